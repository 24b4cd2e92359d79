"""The model presets: shapes that add up, one owner for each id and hub id."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from enginemem import Architecture
from enginemem.architecture import load_model, model_ids
from enginemem.schema import ModelsFile
from enginemem.schema.models import ConfiguredModel, Model
from public_configs import CONFIGS

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    path.stem: ModelsFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "data/models").glob("*.yaml"))
}
MODELS = {model_id: model for file in FILES.values() for model_id, model in file.models.items()}
PRESETS = {
    "llama": {
        "llama-3.1-8b",
        "llama-3.1-70b",
        "llama-3.1-405b",
        "llama-3.2-1b",
        "llama-3.2-3b",
        "llama-3.3-70b",
    },
    "qwen2.5": {"qwen2.5-7b", "qwen2.5-32b"},
    "qwen3": {"qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen3-32b"},
    "mistral": {"mistral-7b-v0.3", "mistral-nemo-12b"},
}
DENSE = {model_id: model for model_id, model in MODELS.items() if isinstance(model, Model)}
CONFIGURED = {model_id: model for model_id, model in MODELS.items() if isinstance(model, ConfiguredModel)}


def counted(model: Model) -> int:
    """Parameters tensor by tensor, apart from the schema's own formula."""
    h, d = model.hidden_size, model.head_dim
    q, kv, i = model.heads * d, model.kv_heads * d, model.intermediate_size
    tensors = [(model.vocabulary, h), (h,)]
    if not model.tied_embeddings:
        tensors.append((model.vocabulary, h))
    for _ in range(model.layers):
        tensors += [(q, h), (kv, h), (kv, h), (h, q), (i, h), (i, h), (h, i), (h,), (h,)]
        if model.qkv_bias:
            tensors += [(q,), (kv,), (kv,)]
        if model.output_bias:
            tensors.append((h,))
        if model.qk_norm:
            tensors += [(d,), (d,)]
    return sum(shape[0] * (shape[1] if len(shape) == 2 else 1) for shape in tensors)


def test_the_dense_presets_are_there_family_by_family() -> None:
    assert {family: set(FILES[family].models) for family in PRESETS} == PRESETS
    assert set().union(*PRESETS.values()) == set(DENSE)


def test_at_least_forty_models_are_presets() -> None:
    assert len(MODELS) >= 40
    assert set(model_ids()) == set(MODELS)


@pytest.mark.parametrize("model_id", sorted(DENSE))
def test_the_parameters_follow_from_the_shape(model_id: str) -> None:
    assert DENSE[model_id].parameters == counted(DENSE[model_id])


@pytest.mark.parametrize("model_id", sorted(MODELS))
def test_a_preset_has_the_parameters_that_its_file_states(model_id: str) -> None:
    model = load_model(model_id)
    assert (model.id, model.hub_id) == (model_id, MODELS[model_id].hub_id)
    assert model.parameters == MODELS[model_id].parameters


@pytest.mark.parametrize("model_id", sorted(CONFIGURED))
def test_a_preset_has_the_facts_of_the_public_configuration(model_id: str) -> None:
    model = load_model(model_id)
    names = [model.hub_id, *model.hub_aliases]
    configs = [CONFIGS[name.replace("/", "--")] for name in names]
    if model_id.startswith("llama-4"):
        # The copies here end before the encoder, which is the same in every checkpoint of the family.
        scout = CONFIGS["RedHatAI--Llama-4-Scout-17B-16E-Instruct-FP8-dynamic"]
        configs = [config | {"vision_config": scout["vision_config"]} for config in configs]
    public = [Architecture.from_hf_config(config) for config in configs]
    for found in public:
        assert (
            found._replace(
                id=model.id,
                name=model.name,
                hub_id=model.hub_id,
                hub_aliases=model.hub_aliases,
                family=model.family,
                configuration="",
            )
            == model
        )


def test_llama_3_1_8b_has_the_parameters_of_the_worked_comparison() -> None:
    # Linear weights in layers + LM head + input embedding + norms.
    linear, head, norms = 6_979_321_856, 525_336_576, 266_240
    assert MODELS["llama-3.1-8b"].parameters == linear + 2 * head + norms


def test_ids_and_hub_ids_have_one_owner_each() -> None:
    ids = Counter(model_id for file in FILES.values() for model_id in file.models)
    hub_ids = Counter(name for model in MODELS.values() for name in [model.hub_id, *model.hub_aliases])
    assert max(ids.values()) == 1
    assert max(hub_ids.values()) == 1


def test_every_source_is_a_file_of_a_public_repository() -> None:
    for model in MODELS.values():
        assert re.search(r"\.(json|yml)$", model.source.path)
        assert not model.source.path.startswith("/")


def test_a_count_that_the_shape_does_not_give_is_refused() -> None:
    facts = DENSE["llama-3.1-8b"].model_dump()
    with pytest.raises(ValidationError, match="the shape gives 8030261248 parameters, not 8030000000"):
        Model.model_validate(facts | {"parameters": 8_030_000_000})


def test_heads_that_the_kv_heads_do_not_divide_are_refused() -> None:
    facts = DENSE["llama-3.1-8b"].model_dump()
    with pytest.raises(ValidationError, match="no multiple"):
        Model.model_validate(facts | {"kv_heads": 7})
