"""How a comparison is made again: as a command, as Python, and as the inputs that a text names."""

from __future__ import annotations

import shlex

from enginemem.link import query
from enginemem.scenario import PLAN_INPUTS, Scenario

CONFIG, QUANT_CONFIG = "config.json", "hf_quant_config.json"
"""What the files of a user's own model are called where their real names are not known."""


def _files(scenario: Scenario) -> dict[str, str]:
    """The flags that bring a user's own model, with their files."""
    if not scenario.has_own_model:
        return {}
    extra = '"quant_config":' in scenario.model.configuration
    return {"--config": CONFIG, **({"--quant-config": QUANT_CONFIG} if extra else {})}


def _given(scenario: Scenario) -> dict[str, str]:
    """The inputs that differ from their defaults; no preset beside a model of the user's own."""
    given = scenario.non_defaults()
    if scenario.has_own_model:
        given.pop("model", None)
    return given


def command_line(scenario: Scenario) -> str:
    """The command that prints this comparison."""
    words = ["enginemem", "compare"]
    for flag, file in _files(scenario).items():
        words += [flag, file]
    for key, text in _given(scenario).items():
        option = PLAN_INPUTS[key].flag
        words += [option, text] if option is not None else ["--set", f"{key}={text}"]
    return " ".join([shlex.quote(word) for word in words])


def python_line(scenario: Scenario) -> str:
    """The Python that computes it."""
    given = _given(scenario)
    plain = [f"{key}={text if text.isdigit() else repr(text)}" for key, text in given.items() if "." not in key]
    knobs = {key: text for key, text in given.items() if "." in key}
    words = plain + ([f"**{knobs!r}"] if knobs else [])
    files = [f"json.loads(pathlib.Path({file!r}).read_text())" for file in _files(scenario).values()]
    if not files:
        return f"enginemem.compare(enginemem.Scenario({', '.join(words)}))"
    model = f"enginemem.Architecture.from_hf_config({', hf_quant_config='.join(files)})"
    return f"enginemem.compare(enginemem.Scenario.of_model({', '.join([model, *words])}))"


def inputs_line(scenario: Scenario) -> tuple[str, str]:
    """The inputs as a text names them: the query, and what goes beside it for a user's own model, else an empty text."""
    files = [f"{flag} {file}" for flag, file in _files(scenario).items()]
    return query(scenario), f" with {' '.join(files)} of {scenario.model.name}" if files else ""
