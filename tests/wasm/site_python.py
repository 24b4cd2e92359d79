"""The built site's own Python, run under Node; and the requests that both Pythons must answer alike."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from enginemem.link import encode
from enginemem.scenario import Scenario
from enginemem.web import PARTS
from random_scenarios import random_scenario

RUN = Path(__file__).with_name("run.mjs")
RANDOM = 1000
BAD_VALUES = ("", "x", "-1", "1.5.5", "h100", "1e99", "NaN", "\u221e", "3 GB GB", "0x10")


def node(*arguments: str | Path, expect: int = 0) -> str:
    """Standard output of run.mjs; fails with its words when it ends with another status."""
    command = ["node", str(RUN), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def digests(site: Path, requests: Sequence[str], scratch: Path, *, what: str = "answers") -> list[str]:
    """The sha256 of the answer to each request, from the site's Python. `what`: answers, or records with pydantic."""
    file = scratch / "requests.jsonl"
    file.write_text("".join([f"{request}\n" for request in requests]), "utf-8")
    found = scratch / "digests"
    node(site, what, file, found)
    return found.read_text("ascii").split()


def request(part: str, **more: object) -> str:
    """A request about a plan."""
    return json.dumps({"id": 7, "kind": "plan", "part": part, **more})


def as_typed(inputs: dict[str, object]) -> dict[str, str]:
    """A scenario's inputs as texts that somebody could have typed."""
    return {key: _text(value) for key, value in inputs.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join([str(item) for item in value])
    return str(value)


def random_inputs(seed: int = 20261201) -> list[dict[str, str]]:
    """1,000 random scenarios as typed; each tenth has one value spoilt."""
    rng = random.Random(seed)
    drawn = [as_typed(random_scenario(rng)) for _ in range(RANDOM)]
    for inputs in drawn[::10]:
        inputs[rng.choice(sorted(inputs))] = rng.choice(BAD_VALUES)
    return drawn


def every_part(inputs: dict[str, str]) -> Iterator[str]:
    """Every part of the answer about some inputs; and, where they are good, the same by their link."""
    for part in PARTS:
        yield request(part, inputs=inputs)
    yield request("figures", link=encode(Scenario(**inputs)), reference="vllm")
