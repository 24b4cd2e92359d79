"""Where the bytes of a GPU go."""

from __future__ import annotations

import pytest

from enginemem import Scenario, compare
from enginemem.memory_map import MemoryMap, memory_maps

STATE = 3 * (64 * 64 + 2 * 8 * 128), 64 * 64 * 128
"""Elements of the convolution and of the recurrence in one layer of Nemotron 3 Nano, on one GPU."""


def shares(**inputs: object) -> dict[str, MemoryMap]:
    return memory_maps(compare(Scenario(**inputs)))


def part(found: MemoryMap, kind: str) -> int:
    return int(sum([share.bytes for share in found.parts if share.kind == kind]))


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-oss-20b", "nemotron-3-nano"])
def test_the_shares_are_the_whole_gpu(model: str) -> None:
    for found in shares(gpu="h200-sxm", model=model, **{"vllm.max_num_seqs": 256}).values():
        assert sum([share.bytes for share in found.parts]) == found.total


def test_recurrent_states_stand_beside_the_pool_where_the_engine_keeps_them_there() -> None:
    maps = shares(gpu="h200-sxm", model="nemotron-3-nano", **{"vllm.max_num_seqs": 256})
    # 23 layers, 16-bit, one slot for each of 2,048 requests.
    assert part(maps["tensorrt-llm"], "states") == 2048 * 23 * sum(STATE) * 2
    # The recurrence in 32 bits, as many slots as the share of the rest holds.
    slot = 23 * (STATE[0] * 2 + STATE[1] * 4)
    assert part(maps["sglang"], "states") % slot == 0
    assert part(maps["sglang"], "states") > 100 * slot
    # vLLM's lie in the pool's own blocks.
    assert part(maps["vllm"], "states") == 0


def test_models_without_states_have_no_such_share() -> None:
    assert all(share.kind != "states" for found in shares().values() for share in found.parts)
