"""DeepSeek V4 in vLLM: pages of several sizes packed into one block.

The figures of GROUPS and CAPACITY are the engine's own: `get_kv_cache_configs`, `get_kv_cache_capacity` and
`_check_enough_kv_cache_memory` of the 0.32.0 wheel (vllm/v1/core/kv_cache_utils.py), run in CPython on the specs that
`get_kv_cache_spec` of the layers returns (written out by hand from models/deepseek_v4, in the order in which the layers
register them), with stand-ins for torch and the configuration; layout BLHNC, as the indexer's backend declares.
"""

from __future__ import annotations

import pytest

from enginemem import Architecture, Scenario, compare
from enginemem.engines.plan import EnginePlan
from enginemem.engines.vllm.compressed import compressed_sizes
from enginemem.engines.vllm.costs import KvLayout, kv_layout
from enginemem.engines.vllm.layout import KvRow, PagesCannotBeUnifiedError
from enginemem.engines.vllm.packed import least_padding, packed_groups
from enginemem.engines.vllm.pool import KvShortage, prefix_block_sizes, shortage, sized
from enginemem.release import load_release
from public_configs import CONFIGS

FLASH, PRO = "deepseek-ai--DeepSeek-V4-Flash", "deepseek-ai--DeepSeek-V4-Pro"
RELEASE = load_release("vllm")

# (layers, tokens a block, bytes of a block) of each group, and bytes of a block of the pool.
GROUPS = {
    FLASH: ([(22, 64, 823_680), (21, 64, 786_240), (62, 256, 1_002_240), (42, 4, 870_912), (20, 8, 656_640)], 1_002_240),
    PRO: ([(31, 64, 1_160_640), (30, 64, 1_123_200), (91, 256, 1_435_968), (31, 8, 1_017_792), (60, 4, 1_244_160)],
          1_435_968),
}  # fmt: skip

# (model, max_model_len, tokens in flight, bytes) -> (blocks, tokens in the log, concurrency, blocks by group).
CAPACITY = [
    ((FLASH, 1_048_576, 16_384, 114_456_249_296), (114_200, 11_110_352, 10.595657821488217, [259, 259, 4096, 4099, 2065])),
    ((FLASH, 262_144, 16_384, 42_949_672_960), (42_853, 1_457_780, 5.560991435245263, [259, 259, 1024, 4099, 2065])),
    ((FLASH, 65_536, 4_096, 12_345_678_901), (12_318, 414_836, 6.329907502569373, [67, 67, 256, 1027, 529])),
    ((PRO, 1_048_576, 16_384, 114_456_249_296), (79_706, 7_754_481, 7.395249582482835, [259, 259, 4096, 2065, 4099])),
    ((PRO, 262_144, 16_384, 42_949_672_960), (29_909, 1_017_449, 3.8812613547884767, [259, 259, 1024, 2065, 4099])),
    ((PRO, 65_536, 4_096, 12_345_678_901), (8_597, 289_523, 4.417780061664954, [67, 67, 256, 529, 1027])),
]  # fmt: skip


def layout(name: str, tp: int = 8) -> KvLayout:
    model = Architecture.from_hf_config(CONFIGS[name])
    found = kv_layout(model, tp=tp, dtype="fp8_ds_mla", block_size=256, sizes=compressed_sizes(RELEASE))
    assert isinstance(found, KvLayout)
    return found


def plan_of(name: str, *, gpu: str = "h200-sxm", **inputs: str) -> EnginePlan:
    model = Architecture.from_hf_config(CONFIGS[name])
    return compare(Scenario(gpu=gpu, tp=8, **inputs).with_model(model)).engines["vllm"]


@pytest.mark.parametrize("name", [FLASH, PRO])
def test_groups_are_those_of_the_engine(name: str) -> None:
    groups, block = GROUPS[name]
    found = layout(name)
    assert [(group.layers[0], group.block_size, group.layer_bytes[0]) for group in found.groups] == groups
    assert found.block_bytes == block
    assert [group.kind for group in found.groups].count("mla_attention") == 1
    assert prefix_block_sizes(found.groups) == (256, 4)


@pytest.mark.parametrize(("given", "expected"), CAPACITY)
def test_capacity_is_that_of_the_engine(
    given: tuple[str, int, int, int], expected: tuple[int, int, float, list[int]]
) -> None:
    name, length, in_flight, memory = given
    blocks, tokens, concurrency, by_group = expected
    found = layout(name)
    got = sized(
        found.groups, num_blocks=memory // found.block_bytes, block_bytes=[found.block_bytes], max_model_len=length,
        in_flight=in_flight,
    )  # fmt: skip
    assert (got.num_blocks, got.kv_tokens_logged, got.max_concurrency) == (blocks, tokens, concurrency)
    assert [group.blocks_per_max_request for group in got.groups] == by_group


def test_the_start_up_error_is_that_of_the_engine() -> None:
    # With 8 GiB the engine's message says: 10.06 GiB needed, 8.00 GiB available, 483072 estimated.
    found = layout(FLASH)
    memory = 8 * 2**30 - found.block_bytes
    short = shortage(
        found.groups, memory=memory, block_bytes=found.block_bytes, max_model_len=1_048_576, in_flight=16_384
    )
    assert short == KvShortage("max_model_len_does_not_fit", 1_048_576, 10.06, 8.0, 483_072)


def test_two_public_logs_of_one_machine_differ_by_the_activation_they_print() -> None:
    """A DGX Spark with DeepSeek-V4-Flash and --max-model-len 262144 logged 290,632 tokens with 8,224 batched tokens and
    1,262,567 with 2,048, at activation peaks of 5.30 and 1.39 GiB (one batch in flight: max_num_seqs 1)."""
    found = layout(FLASH)
    blocks = []
    for tokens, batched in ((290_632, 8_224), (1_262_567, 2_048)):
        each = sized(found.groups, num_blocks=10**6, block_bytes=[1], max_model_len=262_144, in_flight=batched)
        request = sum([group.blocks_per_max_request for group in each.groups])
        blocks.append(tokens * request / 262_144)
    assert (blocks[1] - blocks[0]) * found.block_bytes / 2**30 == pytest.approx(5.30 - 1.39, abs=0.01)


def test_nothing_is_split_over_gpus() -> None:
    assert layout(FLASH, tp=1) == layout(FLASH, tp=8)


def test_a_plan_has_the_engines_line_and_what_it_resolved() -> None:
    plan = plan_of(FLASH)
    assert plan.status == "ok"
    assert (plan.kv_pool_bytes, plan.blocks) == (114_456_249_296, 114_200)
    assert plan.log_line == (
        "GPU KV cache size: 11,110,352 tokens, Maximum concurrency for 1,048,576 tokens per request: 10.60x"
    )
    assert plan.kv_tokens is None
    assert plan.kv_bytes_per_token == 1_002_240 // 256
    assert plan.resolved["kv_cache_dtype"].value == "fp8_ds_mla"
    assert plan.resolved["attention_backend"].value == "FLASHMLA_SPARSE_DSV4"
    assert plan.page_tokens == 256
    # The floor of a decode step needs what sparse attention reads: not known here.
    assert plan.decode_step_seconds is None


def test_blackwell_workstations_take_flashinfer_and_pad_no_heads() -> None:
    steps = {step.id: step.value for step in plan_of(FLASH, gpu="rtx-pro-6000-server").steps}
    assert steps["vllm.weights.sink_padding"] == 0
    assert plan_of(FLASH, gpu="rtx-pro-6000-server").resolved["attention_backend"].value == "FLASHINFER_MLA_SPARSE_DSV4"
    # 8 of the 64 heads on each of eight GPUs, padded to 64 for FlashMLA; a sink has four bytes.
    steps = {step.id: step.value for step in plan_of(FLASH).steps}
    assert steps["vllm.weights.sink_padding"] == 43 * (64 - 8) * 4


def test_other_cache_types_and_block_sizes_are_refused() -> None:
    for kv_dtype in ("bf16", "nvfp4"):
        plan = plan_of(FLASH, gpu="b200", kv_dtype=kv_dtype)
        assert plan.status == "refused"
        assert "fp8_ds_mla" in (plan.reason or "")
    plan = plan_of(FLASH, **{"vllm.block_size": "64"})
    assert plan.status == "refused"
    assert "256" in (plan.reason or "")
    assert plan_of(FLASH, kv_dtype="fp8").log_line == plan_of(FLASH).log_line


def test_ampere_is_not_modeled() -> None:
    plan = plan_of(FLASH, gpu="a100-80-sxm")
    assert (plan.status, "compute capability 8.0" in (plan.reason or "")) == ("not_modeled", True)


def test_compressed_layers_without_an_indexer_are_not_modeled() -> None:
    config = {**CONFIGS[FLASH], "compress_ratios": [0, 128] * 21 + [0]}
    plan = compare(Scenario(gpu="h200-sxm", tp=8).with_model(Architecture.from_hf_config(config))).engines["vllm"]
    assert (plan.status, "without an indexer" in (plan.reason or "")) == ("not_modeled", True)


def test_least_padding_prefers_the_larger_of_equals() -> None:
    # 43, 21 and 20 layers from 21 up: 22 pads 1 + 1 + 2, all others more (the engine's loop, run).
    assert least_padding([43, 21, 20], lowest=21) == 22
    assert least_padding([61, 31, 30], lowest=30) == 31
    assert least_padding([4, 8], lowest=1) == 4


def test_a_pattern_that_would_be_cut_is_not_guessed() -> None:
    narrow = KvRow("sliding", 4, n=30, head_size=64, dtype="fp32", window=8, v_head_size=0)
    wide = narrow._replace(head_size=512, n=1)
    latent = KvRow("mla", 16, n=1, head_size=100)
    with pytest.raises(PagesCannotBeUnifiedError):
        packed_groups([latent, narrow, wide])
