"""The browser's door with a pasted configuration: facts, faults by field, the fragment that a link needs; no markup."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginemem import Architecture, InvalidInputs, Scenario, from_link
from enginemem.architecture import load_model, model_ids
from enginemem.render.answer import describe
from enginemem.render.model_fields import model_options
from enginemem.render.own_model import facts
from enginemem.web import PARTS, handle
from public_configs import CONFIGS

HOSTILE = "<img src=x onerror=alert(1)>\"'&</script>"
V3 = json.dumps(CONFIGS["deepseek-ai--DeepSeek-V3"])
ROOM = {"gpu": "h200-sxm", "tp": "8"}


def ask(**request: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(handle(json.dumps({"id": 7, "kind": "plan", "part": "figures", **request})))
    return answer


class Tags(HTMLParser):
    """Collects the tags of a fragment."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.found.add(tag)


def tags(html: str) -> set[str]:
    parser = Tags()
    parser.feed(html)
    return parser.found


def test_a_configuration_beside_inputs_gives_that_models_figures() -> None:
    answer = ask(inputs={**ROOM, "model": "qwen2.5-7b"}, config=V3)
    assert answer["ok"]
    assert answer["link"] == "?v=1&gpu=h200-sxm&tp=8&model=qwen2.5-7b"
    assert answer["inputs"] == {**ROOM, "model": "qwen2.5-7b"}
    assert "DeepseekV3ForCausalLM" in answer["texts"]["describe"]
    own = answer["config"]
    assert own["ok"]
    assert own["fragment"].startswith("config=")
    assert "files" not in own
    preset = ask(inputs={**ROOM, "model": "deepseek-v3"})
    assert "config" not in preset
    assert answer["regions"]["table"] == preset["regions"]["table"]


def test_the_fragment_opens_the_same_figures_and_brings_the_file_back() -> None:
    first = ask(inputs=ROOM, config=V3)
    link = f"{first['link']}#{first['config']['fragment']}"
    opened = ask(link=link)
    assert opened["regions"] == first["regions"]
    assert opened["inputs"] == first["inputs"]
    assert opened["config"]["fragment"] == first["config"]["fragment"]
    again = ask(inputs=ROOM, config=opened["config"]["files"]["config"])
    assert again["config"]["fragment"] == first["config"]["fragment"]
    assert from_link(link).model == Architecture.from_hf_config(json.loads(V3))


def test_a_pasted_file_goes_before_the_one_of_a_link() -> None:
    link = f"?v=1&prompt=4000#{ask(inputs={}, config=V3)['config']['fragment']}"
    answer = ask(link=link, config=json.dumps(CONFIGS["Qwen--Qwen3-8B"]))
    assert answer["texts"]["describe"].startswith("Qwen3ForCausalLM")
    assert answer["inputs"] == {"prompt": "4000"}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_every_part_takes_a_configuration(part: str) -> None:
    answer = ask(part=part, inputs=ROOM, config=V3)
    assert answer["ok"]
    assert answer["config"]["verdict"]


def test_the_pasted_text_enters_no_query() -> None:
    answer = ask(inputs={}, config=json.dumps({**json.loads(V3), "_name_or_path": "org/Secret-Model"}))
    assert "Secret" not in answer["link"]
    assert answer["config"]["name"] == "org/Secret-Model"


def test_a_configuration_that_no_link_carries_says_why() -> None:
    names = [f"layer-{index * 7919 % 10_007}-{index * index % 9_973}" for index in range(4_000)]
    config = {**CONFIGS["Qwen--Qwen3-8B"], "quantization_config": {"quant_method": "fp8", "ignored_layers": names}}
    own = ask(inputs={}, config=json.dumps(config))["config"]
    assert own["fragment"] is None
    assert own["note"].startswith("The link does not carry this model")


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_public_configuration_is_taken_or_refused_as_in_the_library(name: str) -> None:
    answer = ask(part="link", inputs={}, config=json.dumps(CONFIGS[name]))
    try:
        model = Architecture.from_hf_config(CONFIGS[name])
    except InvalidInputs as refused:
        fields = [error.field for error in refused.errors]
        assert [error["field"] for error in answer["errors"]] == fields
        assert f"<code>{fields[0]}</code>" in answer["config"]["verdict"]
    else:
        assert answer["ok"], answer
        assert from_link(f"?v=1#{answer['config']['fragment']}").model == model


def test_faults_stand_by_field_beside_those_of_the_inputs() -> None:
    answer = ask(inputs={"prompt": "x"}, config=json.dumps({**json.loads(V3), "vocab_size": "y"}))
    assert {error["field"] for error in answer["errors"]} == {"config.vocab_size", "prompt"}
    assert answer["config"]["verdict"].count("<li>") == 1
    assert answer["link"] is None
    only_inputs = ask(inputs={"prompt": "x"}, config=V3)
    assert only_inputs["config"] == {"ok": True, "verdict": "", "fragment": None, "note": ""}


def test_many_faults_are_counted() -> None:
    config = {**CONFIGS["Qwen--Qwen3-8B"], "layer_types": ["x"] * 36}
    answer = ask(inputs={}, config=json.dumps(config))
    assert len(answer["errors"]) == 36
    assert answer["config"]["verdict"].count("<li>") == 12
    assert "and 24 more" in answer["config"]["verdict"]


@pytest.mark.parametrize(
    ("request_more", "field"),
    [
        ({"config": "{"}, "config"),
        ({"config": "[" * 200_000}, "config"),
        ({"config": '{"a": 1, "a": 2}'}, "config.a"),
        ({"config": " " * 600_000}, "config"),
        ({"quant_config": "{}"}, "hf_quant_config"),
        ({"link": "?v=1#config=QlpoOTFB"}, "config"),
    ],
)
def test_what_is_no_configuration_is_a_named_error(request_more: dict[str, str], field: str) -> None:
    answer = ask(**request_more)
    assert [error["field"] for error in answer["errors"]] == [field]
    assert f"<code>{field}</code>" in answer["config"]["verdict"]


@pytest.mark.parametrize("value", [5, [], {"model_type": "llama"}, True])
def test_a_configuration_that_is_no_text_is_no_request(value: object) -> None:
    answer = ask(config=value)
    assert answer["error"] == {"kind": "bad_request", "message": "config is no text"}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_text_of_a_configuration_becomes_markup(data: st.DataObject) -> None:
    config = copy.deepcopy(CONFIGS[data.draw(st.sampled_from(["Qwen--Qwen3-8B", "deepseek-ai--DeepSeek-V3"]))])
    key = data.draw(st.sampled_from([*config, "_name_or_path", HOSTILE]))
    config[key] = data.draw(st.sampled_from([HOSTILE, [HOSTILE], {HOSTILE: HOSTILE}, None, -1, 1e300]))
    for part in ("figures", "details"):
        answer = ask(part=part, inputs={}, config=json.dumps(config))
        assert "error" not in answer, answer
        for html in (*answer.get("regions", {}).values(), answer["config"]["verdict"]):
            assert "img" not in tags(html)
            assert "script" not in tags(html)


def test_the_facts_are_those_of_the_preset() -> None:
    own = dict(facts(Architecture.from_hf_config(json.loads(V3))))
    assert own["Parameters"] == "671.03 B (671,026,419,200), 37.55 B active"
    assert own["Layers"] == "61: 61 latent attention"
    assert own["Heads"] == "128 query; a latent row of 576"
    assert own["KV of a token, 16-bit"] == "70,272 B before any split"


def test_layers_of_several_kinds_are_counted_apart() -> None:
    gpt_oss = dict(facts(Architecture.from_hf_config(CONFIGS["openai--gpt-oss-20b"])))
    assert gpt_oss["Layers"] == "24: 12 sliding window of 128 tokens, 12 full attention"
    assert gpt_oss["Heads"] == "64 query; KV 8 of 64"


def test_a_preset_holds_what_it_is_searched_by() -> None:
    html = model_options("phi-4")
    assert len(re.findall(r"<option ", html)) == len(model_ids())
    assert html.count(" selected") == 1
    assert f'data-size="{load_model("phi-4").parameters}" selected' in html
    found = re.search(r'<option value="deepseek-v3" data-hub="([^"]+)"', html)
    assert found
    assert found[1].split() == ["deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1"]


def test_an_own_model_describes_itself() -> None:
    model = Architecture.from_hf_config({**json.loads(V3), "_name_or_path": "org/Mine"})
    assert describe(Scenario.of_model(model, gpu="h200-sxm")).startswith("org/Mine on")
    with pytest.raises(InvalidInputs):
        Scenario.of_model(model, tp=3)


def test_rows_for_several_tokens_have_no_16_bit_figure() -> None:
    shown = dict(facts(Architecture.from_hf_config(CONFIGS["deepseek-ai--DeepSeek-V4-Flash"])))
    assert shown["KV of a token, 16-bit"] == "no engine keeps its rows in 16 bits: see the bytes a token of each"
    assert "20 compressed attention, a row for 128 tokens" in shown["Layers"]
    shown = dict(facts(Architecture.from_hf_config(CONFIGS["stepfun-ai--Step-3.7-Flash"])))
    assert shown["KV of a token, 16-bit"] == f"{45 * 2 * 8 * 128 * 2:,} B before any split"
