"""Measures what the project promises about speed: `compare` over distinct random scenarios, and the import.

Seconds depend on the machine; read them beside each other, in one run.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

SCENARIOS = 1000
IMPORTS = 20


def bench_compare() -> list[tuple[float, str]]:
    """Milliseconds of one `compare` for each of distinct random scenarios, with its link; nothing is memoised."""
    import enginemem  # noqa: PLC0415 - the import is measured apart
    from random_scenarios import random_scenario  # noqa: PLC0415

    rng = random.Random(20261130)
    scenarios: dict[str, enginemem.Scenario] = {}
    while len(scenarios) < SCENARIOS:
        scenario = enginemem.Scenario(**random_scenario(rng))
        scenarios.setdefault(scenario.link(), scenario)
    enginemem.compare(enginemem.Scenario())  # reads the data files once, as a server or a page does
    times = []
    for link, scenario in scenarios.items():
        start = time.perf_counter()
        enginemem.compare(scenario)
        times.append((1000 * (time.perf_counter() - start), link))
    return sorted(times)


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


if __name__ == "__main__":
    main()
