"""Measures what the project promises about speed: `compare` over distinct random scenarios and over every preset, and
the import.

Seconds depend on the machine; read them beside each other, in one run.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import enginemem

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

SCENARIOS = 1000
AGAIN = 50
PER_PRESET = 25
IMPORTS = 20


def bench_compare() -> list[tuple[float, str]]:
    """Milliseconds of one `compare` for each of distinct random scenarios, with its link. Only facts of a model are
    remembered between them. The slowest are measured again, the least counts: a stall of the machine is none of ours.
    """
    import enginemem  # noqa: PLC0415 - the import is measured apart
    from random_scenarios import random_scenario  # noqa: PLC0415 - it imports the package

    rng = random.Random(20261130)
    scenarios: dict[str, enginemem.Scenario] = {}
    while len(scenarios) < SCENARIOS:
        scenario = enginemem.Scenario(**random_scenario(rng))
        scenarios.setdefault(scenario.link(), scenario)
    enginemem.compare(enginemem.Scenario())  # reads the data files once, as a server or a page does
    times = sorted([(_milliseconds(scenario), link) for link, scenario in scenarios.items()])
    again = [(min(took, *[_milliseconds(scenarios[link]) for _ in range(3)]), link) for took, link in times[-AGAIN:]]
    return sorted(times[:-AGAIN] + again)


def _milliseconds(scenario: enginemem.Scenario) -> float:
    import enginemem  # noqa: PLC0415 - the import is measured apart

    start = time.perf_counter()
    enginemem.compare(scenario)
    return 1000 * (time.perf_counter() - start)


def bench_presets() -> list[tuple[float, str, str]]:
    """Median milliseconds of `compare` for every preset and every number of GPUs that splits it, over distinct
    scenarios, slowest first: (milliseconds, model, tp). The slowest are measured again, the lower median counts."""
    from enginemem.architecture import load_model, model_ids  # noqa: PLC0415 - the import is measured apart

    rng = random.Random(20261130)
    found = []
    for model in model_ids():
        facts = load_model(model)
        for tp in [str(size) for size in (1, 2, 4, 8) if facts.tensor_parallel_problem(size) is None]:
            found.append((_preset_milliseconds(model, tp, rng), model, tp))
    found.sort()
    again = [(min(took, _preset_milliseconds(model, tp, rng)), model, tp) for took, model, tp in found[-AGAIN:]]
    return sorted(found[:-AGAIN] + again, reverse=True)


def _preset_milliseconds(model: str, tp: str, rng: random.Random) -> float:
    import enginemem  # noqa: PLC0415 - the import is measured apart

    times = []
    for prompt in rng.sample(range(100, 8000), PER_PRESET):
        # A part on which the model fits, so that no engine ends early.
        inputs = {"gpu": "b300", "model": model, "tp": tp, "prompt": prompt, "max_tokens": 1000}
        times.append(_milliseconds(enginemem.Scenario(**inputs, mean_output=rng.randrange(50, 1000))))
    return statistics.median(times)


def bench_import() -> tuple[float, list[str]]:
    """Median milliseconds of `import enginemem` in a fresh interpreter, and any third-party module that it loads."""
    code = (
        "import sys, time; before = set(sys.modules); start = time.perf_counter(); import enginemem; "
        "took = 1000 * (time.perf_counter() - start); "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(took, *sorted(new - set(sys.stdlib_module_names) - {'enginemem'}))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
        for _ in range(IMPORTS)
    ]
    return statistics.median([float(run[0]) for run in runs]), sorted({name for run in runs for name in run[1:]})


def main() -> None:
    """Print the measurements."""
    took, foreign = bench_import()
    print(f"Python {sys.version.split()[0]}")
    print(f"import enginemem: median {took:.1f} ms of {IMPORTS}; third-party modules: {', '.join(foreign) or 'none'}")
    times = bench_compare()
    middle = statistics.median([took for took, _ in times])
    print(f"compare, {len(times)} distinct random scenarios: median {middle:.3f} ms, worst {times[-1][0]:.3f} ms")
    print("slowest:")
    for took, link in times[:-6:-1]:
        print(f"  {took:.3f} ms  {link}")
    presets = bench_presets()
    took, model, tp = presets[0]
    print(f"compare, slowest of {len(presets)} presets and sizes: {model} at tp {tp}, median {took:.3f} ms")
    for took, model, tp in presets[1:5]:
        print(f"  {took:.3f} ms  {model} at tp {tp}")


if __name__ == "__main__":
    main()
