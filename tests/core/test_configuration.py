"""A pasted configuration: what is no JSON is named, what was read is kept, and a link carries it exactly."""

import base64
import bz2
import json
from typing import Any

import pytest

from enginemem import Architecture, InvalidInputs, Scenario, from_link
from enginemem.configuration import MOST_TEXT, read_texts, short_name
from enginemem.link import CARRIED, MOST_FRAGMENT, encode, fragment, query
from public_configs import CONFIGS, REFUSED

ACCEPTED = sorted(CONFIGS.keys() - REFUSED.keys())
TINY: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
}


def faults(config: str, quant: str | None = None) -> dict[str, str]:
    with pytest.raises(InvalidInputs) as caught:
        read_texts(config, quant)
    return {error.field: error.given for error in caught.value.errors}


def link_of(packed: bytes) -> str:
    return f"?v=1#{CARRIED}{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_link_carries_every_public_configuration(name: str) -> None:
    scenario = Scenario(gpu="h200-sxm").with_model(Architecture.from_hf_config(CONFIGS[name]))
    text = encode(scenario)
    opened = from_link(text)
    assert opened == scenario
    assert opened.model == scenario.model
    assert encode(opened) == text
    assert text.partition("#")[0] == query(scenario) == "?v=1&gpu=h200-sxm"
    assert len(text.partition("#")[2]) <= MOST_FRAGMENT


def test_only_what_was_read_is_carried() -> None:
    config = {**TINY, "secret_note": "mine", "auto_map": {"AutoConfig": "x"}, "text_note": None}
    carried = json.loads(Architecture.from_hf_config(config).configuration)["config"]
    assert TINY.keys() <= carried.keys()
    assert not {"secret_note", "auto_map", "text_note"} & carried.keys()


def test_an_own_model_is_another_scenario_than_its_preset() -> None:
    own = Scenario(tp=2).with_model(Architecture.from_hf_config(TINY))
    assert own != Scenario(tp=2)
    assert own == Scenario.of_model(Architecture.from_hf_config(dict(TINY)), tp=2)
    assert "LlamaForCausalLM" in repr(own)


def test_contradictions_are_those_of_the_own_model() -> None:
    model = Architecture.from_hf_config(TINY)
    with pytest.raises(InvalidInputs, match="4 attention heads"):
        Scenario.of_model(model, tp=8)
    wide = Architecture.from_hf_config({**TINY, "num_attention_heads": 8, "num_key_value_heads": 8})
    assert Scenario.of_model(wide, tp=8, model="qwen2.5-7b").tp == 8


def test_a_model_that_was_not_read_from_a_configuration_is_not_carried() -> None:
    scenario = Scenario().with_model(Scenario().model._replace(id="mine"))
    assert fragment(scenario).text is None
    assert encode(scenario) == "?v=1"


def test_a_configuration_that_is_too_long_for_a_link_says_so() -> None:
    names = [f"layer-{index * 7919 % 10_007}-{index * index % 9_973}" for index in range(4_000)]
    quantization = {"quant_method": "fp8", "ignored_layers": names}
    scenario = Scenario().with_model(Architecture.from_hf_config({**TINY, "quantization_config": quantization}))
    carried = fragment(scenario)
    assert carried.text is None
    assert f"more than {MOST_FRAGMENT:,}" in carried.reason
    assert scenario.link() == "?v=1"


@pytest.mark.parametrize(
    "link",
    [
        f"?v=1#{CARRIED}",
        f"?v=1#{CARRIED}QlpoOTFB",
        f"?v=1#{CARRIED}not*base64",
        link_of(bz2.compress(b" " * 50_000_000)),
        link_of(bz2.compress(b"[1]")),
        link_of(bz2.compress(b"{}")),
        link_of(bz2.compress(b'{"config": []}')),
        link_of(bz2.compress("{é}".encode())),
    ],
)
def test_a_damaged_fragment_is_refused_by_name(link: str) -> None:
    with pytest.raises(InvalidInputs) as caught:
        from_link(link + "&prompt=x" if "#" not in link else link.replace("v=1", "v=1&prompt=x"))
    assert [error.field for error in caught.value.errors] == ["config", "prompt"]


def test_another_fragment_is_left_off() -> None:
    assert from_link("?v=1&prompt=5#vllm.budget.requested") == Scenario(prompt=5)


@pytest.mark.parametrize(
    ("text", "field", "given"),
    [
        ("", "config", "an empty text"),
        ("{", "config", "line 1, column 2"),
        ('{"a": 1,\n }', "config", "line 2, column 2"),
        ("[1,]", "config", "line 1, column 4"),
        ("{} {}", "config", "line 1, column 4"),
        ("[" * 100_000, "config", "nested more than 32 deep"),
        ('{"a":' * 40 + "1" + "}" * 40, "config", "nested more than 32 deep"),
        ('"' + '\\"' * 200_000, "config", "line 1, column 1"),
        ('{"a": "]]]]}}}}"', "config", "line 1, column 17"),
        (" " * (MOST_TEXT + 1), "config", "500,001 characters"),
        ("[1]", "config", "list"),
        ('{"hidden_size": 1, "b": {"hidden_size": 1}, "hidden_size": 2}', "config.hidden_size", "there twice"),
        ('{"a": [0, {"b": 1, "b": 1}]}', "config.a[1].b", "there twice"),
        (json.dumps({**TINY, "vocab_size": 10**41}), "config.vocab_size", "1e+41"),
        (json.dumps(TINY).replace("1024", "9" * 5_000), "config.vocab_size", "inf"),
        (json.dumps(TINY).replace("1024", "1e999"), "config.vocab_size", "inf"),
        (json.dumps(TINY).replace("1024", "NaN"), "config.vocab_size", "nan"),
        (json.dumps({**TINY, "model_type": "\ud800"}), "config.model_type", "'\\ud800'"),
    ],
)
def test_a_text_that_cannot_be_read_is_named_with_its_place(text: str, field: str, given: str) -> None:
    assert given in faults(text)[field]


def test_both_files_are_read_before_anything_is_refused() -> None:
    assert faults("{", "[}").keys() == {"config", "hf_quant_config"}
    assert faults(json.dumps(TINY), "[]").keys() == {"hf_quant_config"}
    assert "hf_quant_config.quant_algo" in faults(json.dumps(TINY), '{"quant_algo": "SECRET"}')


def test_a_quantisation_of_its_own_file_travels_too() -> None:
    quant = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    model = read_texts(json.dumps(TINY), json.dumps(quant))
    assert model.quantization == "modelopt"
    assert from_link(Scenario.of_model(model).link()).model == model


def test_infinity_in_a_field_that_nobody_reads_is_no_fault() -> None:
    text = json.dumps({**TINY, "time_step_limit": [0.0, float("inf")]})
    assert "Infinity" in text
    assert read_texts("\ufeff" + text).hidden_size == 256


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("org/Model-1.5", "org/Model-1.5"),
        ("/home/somebody/checkpoints/my model/", "my model"),
        ("C:\\models\\mine", "mine"),
        ("../x/y", "y"),
        ("a\u202eb\nc", "a b c"),
        ("x" * 500, "x" * 80),
        ("", ""),
    ],
)
def test_a_name_is_short_and_tells_no_path(given: str, name: str) -> None:
    assert short_name(given) == name


@pytest.mark.parametrize(
    ("given", "hub_id", "name"),
    [
        ("org/Model", "org/Model", "org/Model"),
        ("/srv/mine", "", "mine"),
        (None, "", "LlamaForCausalLM"),
        (3, "", "LlamaForCausalLM"),
    ],
)
def test_an_own_model_is_called_what_its_file_calls_it(given: object, hub_id: str, name: str) -> None:
    model = Architecture.from_hf_config({**TINY, "_name_or_path": given})
    assert (model.hub_id, model.name) == (hub_id, name)


def test_a_quantisation_in_the_configuration_counts_in_place_of_the_file() -> None:
    config, quant = {**TINY, "quantization_config": {"quant_method": "fp8"}}, {"quantization": {"quant_algo": "NVFP4"}}
    alone, both = Architecture.from_hf_config(config), Architecture.from_hf_config(config, hf_quant_config=quant)
    assert any("hf_quant_config.json was not read" in note for note in both.notes)
    assert both._replace(notes=(), configuration="") == alone._replace(notes=(), configuration="")
    assert from_link(Scenario.of_model(both).link()).model == both


def test_formats_by_layer_that_stand_in_the_file_alone_are_read_there() -> None:
    names = {
        f"model.layers.{index}.mlp.{part}_proj": {"quant_algo": "FP8"} for index in (0, 1) for part in ("up", "down")
    }
    stated = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
    quant = {"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": names}}
    model = Architecture.from_hf_config({**TINY, "quantization_config": stated}, hf_quant_config=quant)
    assert model == Architecture.from_hf_config(TINY, hf_quant_config=quant)._replace(configuration=model.configuration)
    assert model.quantization == "modelopt"
    assert not any("was not read" in note for note in model.notes)
    whole = Architecture.from_hf_config({**TINY, "quantization_config": {**stated, "quantized_layers": names}})
    assert whole.inventory == model.inventory
