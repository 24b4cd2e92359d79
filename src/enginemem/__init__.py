"""What vLLM, SGLang and TensorRT-LLM each do with a GPU's memory, before anybody starts them.

    scenario = enginemem.Scenario(gpu="h100-sxm", model="llama-3.1-8b", prompt=2000)
    comparison = enginemem.compare(scenario)

`compare` returns a Comparison: the engines' plans, each with its steps, and the finding in one sentence.
"""

from typing import TYPE_CHECKING

from enginemem.version import __version__

if TYPE_CHECKING:
    from enginemem.architecture import Architecture
    from enginemem.comparison import Comparison, compare
    from enginemem.inputs import FieldError, InvalidInputs
    from enginemem.link import decode as from_link
    from enginemem.scenario import Scenario

__all__ = [
    "Architecture",
    "Comparison",
    "FieldError",
    "InvalidInputs",
    "Scenario",
    "__version__",
    "compare",
    "from_link",
]

_HOMES = {
    "Architecture": ("enginemem.architecture", "Architecture"),
    "Comparison": ("enginemem.comparison", "Comparison"),
    "FieldError": ("enginemem.inputs", "FieldError"),
    "InvalidInputs": ("enginemem.inputs", "InvalidInputs"),
    "Scenario": ("enginemem.scenario", "Scenario"),
    "compare": ("enginemem.comparison", "compare"),
    "from_link": ("enginemem.link", "decode"),
}


def __getattr__(name: str) -> object:
    """The public names, imported when they are first asked for: a tool that only reads the version pays for nothing."""
    from importlib import import_module  # noqa: PLC0415 - see above

    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
