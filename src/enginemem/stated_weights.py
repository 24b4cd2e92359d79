"""Sizes of weights that files and start-up logs state, beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from enginemem import dataset
from enginemem.architecture import Architecture, configuration_of, model_facts
from enginemem.engines.sglang import weights as sglang
from enginemem.engines.sglang.length import rotary_bytes
from enginemem.engines.vllm import loading as vllm_loading
from enginemem.engines.vllm import weights as vllm
from enginemem.hf_config import parse
from enginemem.release import load_release
from enginemem.units import Exact


class StatedWeights(NamedTuple):
    """One stated size and ours, bytes; `limit` and `precision` (half a unit of the last printed digit) likewise.

    `what` is checkpoint or loaded, the latter on one of `tp` GPUs of `engine`; `reason` says why the size stays outside
    of the limit, None where it is inside.
    """

    model: str
    what: str
    engine: str | None
    tp: int
    printed: str
    stated: Exact
    ours: int
    limit: Exact
    precision: Exact
    quantised: bool
    reason: str | None
    record: str | None

    @property
    def difference(self) -> Fraction:
        """Ours above the stated size, as a share of it."""
        return (Fraction(self.ours) - self.stated) / self.stated

    @property
    def within(self) -> bool:
        """Whether the two agree up to the limit, beyond what printing rounds off."""
        return abs(self.ours - Fraction(self.stated)) <= Fraction(self.limit) + self.precision


def stated_weights() -> tuple[StatedWeights, ...]:
    """Every row of `data/weights.yaml` with ours beside it."""
    facts = dataset.read("weights.json")
    return tuple([_row(row, facts) for row in facts["rows"]])


def _row(row: Mapping[str, Any], facts: Mapping[str, Any]) -> StatedWeights:
    config = dict(configuration_of(model_facts(row["preset"])))
    if row["quantization"] is not None:
        config["quantization_config"] = row["quantization"]
    model = parse(config)
    quantised = model.quantization is not None
    stated = dataset.exact(row["bytes"]) or 0
    share = Fraction(facts["limits"]["quantised" if quantised else "plain"])
    return StatedWeights(
        model=row["model"],
        what=row["of"],
        engine=row["engine"],
        tp=row["tp"],
        printed=row["stated"],
        stated=stated,
        ours=_ours(model, row["engine"], tp=row["tp"], rotary=facts["sglang_rotary_bytes"]),
        limit=share * stated,
        precision=dataset.exact(row["precision"]) or 0,
        quantised=quantised,
        reason=row["miss"],
        record=row["record"],
    )


def _ours(model: Architecture, engine: str | None, *, tp: int, rotary: int) -> int:
    """Bytes of the checkpoint's tensors, or what an engine counts as loaded on its first GPU: parameters, buffers, and
    copies that it makes while loading."""
    if engine is None:
        return model.inventory.stored_bytes + (0 if model.vision is None else model.vision.inventory.stored_bytes)
    release = load_release(engine)
    multiple = release.integer("vocabulary_multiple")
    if engine == "sglang":
        held = sglang.weights(model, tp=tp, weight_dtype="auto", vocabulary_multiple=multiple).total
        return held + sum([rotary_bytes(rope, element=rotary) for rope in model.ropes])
    rules = vllm_loading.buffer_rules(release)
    first = vllm.loaded(model, rules, tp=tp, pp=1, whole_experts=False, vocabulary_multiple=multiple)[0]
    return first.parameter_bytes + first.buffers + vllm.latent_copies(model, tp=tp)
