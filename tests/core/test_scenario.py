"""Bad input is answered by name, all of it at once, and nothing is guessed."""

from fractions import Fraction

import pytest

from enginemem.inputs import InvalidInputs
from enginemem.scenario import PLAN_INPUTS, Scenario


def errors_of(**inputs: object) -> dict[str, str]:
    with pytest.raises(InvalidInputs) as caught:
        Scenario(**inputs)
    return {error.field: str(error) for error in caught.value.errors}


def test_defaults_are_the_published_baseline() -> None:
    scenario = Scenario()
    assert (scenario.text("gpu"), scenario.text("model"), scenario.tp) == ("h100-sxm", "llama-3.1-8b", 1)
    assert (scenario.prompt, scenario.max_tokens, scenario.mean_output, scenario.shape) == (
        2000,
        2000,
        300,
        "geometric",
    )
    assert (scenario.runtime, scenario.preload) == (3 * 10**9, 2**29)
    assert scenario.gpu.cuda_total == Fraction(2125471940608, 25)
    assert scenario.non_defaults() == {}


@pytest.mark.parametrize(
    "value",
    ["-1", -1, "0", 0, "2.5", 2.5, float("nan"), float("inf"), "nan", "many", "", 10**12, "1e12", None, [], True],
)
def test_a_bad_token_count_is_named_with_what_is_allowed(value: object) -> None:
    message = errors_of(prompt=value)["prompt"]
    assert message.startswith("prompt: ")
    assert "a whole number of tokens from 1 to 100,000,000" in message


@pytest.mark.parametrize("value", ["3", "-3GB", "3 parsecs", "nan", "1e20GB", 1.5])
def test_a_bad_quantity_is_named(value: object) -> None:
    assert "a quantity with its unit" in errors_of(runtime=value)["runtime"]


@pytest.mark.parametrize("value", ["0", "1.01", "-0.5", "nan", "half", float("nan"), True])
def test_a_bad_fraction_is_named(value: object) -> None:
    assert (
        "a number more than 0 up to 1"
        in errors_of(**{"vllm.gpu_memory_utilization": value})["vllm.gpu_memory_utilization"]
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vllm.gpu_memory_utilization", "1e-30"),
        ("vllm.gpu_memory_utilization", Fraction(1, 3)),
        ("runtime", "1e-30GB"),
        ("runtime", Fraction(10, 3)),
    ],
)
def test_a_number_that_no_link_could_carry_is_named(key: str, value: object) -> None:
    assert "a number with at most 18 decimals" in errors_of(**{key: value})[key]


def test_an_input_named_like_an_argument_is_an_unknown_input() -> None:
    assert set(errors_of(self=3, cls=4)) == {"self", "cls"}


def test_every_bad_field_is_named_at_once() -> None:
    found = errors_of(prompt=0, gpu="h100-smx", tp=3, runtime="x", nonsense=1, **{"vllm.max_num_seq": 5})
    assert set(found) == {"prompt", "gpu", "tp", "runtime", "nonsense", "vllm.max_num_seq"}
    assert "Did you mean h100-sxm?" in found["gpu"]
    assert "Did you mean vllm.max_num_seqs?" in found["vllm.max_num_seq"]


def test_a_mean_output_above_max_tokens_is_a_contradiction() -> None:
    assert "at most max_tokens (300)" in errors_of(max_tokens=300, mean_output=301)["mean_output"]


def test_a_tp_that_the_model_cannot_take_is_named_with_the_sizes_that_it_can() -> None:
    message = errors_of(model="qwen2.5-7b", tp=8)["tp"]
    assert "1, 2, 4 (" in message
    assert "28 attention heads" in message


def test_contradictory_knobs_are_named() -> None:
    knobs = {"vllm.max_num_seqs": 512, "vllm.max_num_batched_tokens": 256}
    assert "at least vllm.max_num_seqs (512)" in errors_of(**knobs)["vllm.max_num_batched_tokens"]
    both = {"vllm.kv_cache_memory_bytes": "8GB", "vllm.num_gpu_blocks_override": 10}
    assert "both fix the KV cache" in errors_of(**both)["vllm.num_gpu_blocks_override"]
    assert "never below the CUDA total" in errors_of(smi_total="70GiB")["smi_total"]
    assert (
        "auto, -1 (off) or at least 1" in errors_of(**{"sglang.chunked_prefill_size": 0})["sglang.chunked_prefill_size"]
    )


def test_auto_is_not_the_value_that_it_leads_to() -> None:
    explicit = Scenario(**{"vllm.gpu_memory_utilization": "0.92"})
    assert explicit != Scenario()
    assert explicit.non_defaults() == {"vllm.gpu_memory_utilization": "0.92"}
    assert Scenario(**{"vllm.gpu_memory_utilization": "auto"}) == Scenario()


def test_auto_is_refused_where_it_is_not_offered() -> None:
    assert "prompt" in errors_of(prompt="auto")


def test_hub_ids_name_presets_in_any_case() -> None:
    assert Scenario(model="meta-llama/Llama-3.1-8B") == Scenario()
    assert Scenario(model="META-LLAMA/llama-3.1-8b-instruct") == Scenario()


def test_people_type_k_and_ki() -> None:
    assert Scenario(prompt="32k").prompt == 32_000
    assert Scenario(prompt="32Ki").prompt == 32_768


def test_totals_override_the_hardware_table() -> None:
    scenario = Scenario(cuda_total="81,090 MiB")
    assert scenario.gpu.cuda_total == 81090 * 2**20
    assert scenario.gpu.smi_total == Scenario().gpu.smi_total


def test_assumptions_are_marked_in_the_table() -> None:
    assert [field.key for field in PLAN_INPUTS if field.assumption] == ["runtime", "preload"]


def test_a_hostile_value_is_shown_short() -> None:
    message = errors_of(prompt="9" * 10_000)["prompt"]
    assert len(message) < 300


def test_no_number_is_suggested_for_a_number() -> None:
    for key, value in (("vllm.block_size", "17"), ("tp", "3")):
        with pytest.raises(InvalidInputs) as caught:
            Scenario(**{key: value})
        assert caught.value.errors[0].suggestion is None
