"""Results remembered by the identity of a model."""

from __future__ import annotations

from enginemem.memo import MOST, per_model


def test_one_model_is_asked_once_for_each_set_of_arguments() -> None:
    calls: list[tuple[object, int]] = []

    @per_model
    def doubled(model: tuple[int, ...], *, tp: int = 1) -> int:
        calls.append((model, tp))
        return 2 * sum(model) * tp

    model = (1, 2, 3)
    assert [doubled(model), doubled(model), doubled(model, tp=2), doubled(model, tp=2)] == [12, 12, 24, 24]
    assert calls == [(model, 1), (model, 2)]
    # An equal model is another one: its tensors are not compared.
    assert doubled(tuple(range(1, 4))) == 12
    assert len(calls) == 3


def test_positions_and_names_are_not_mixed_up() -> None:
    @per_model
    def difference(_model: str, first: int, second: int) -> int:
        return first - second

    model = "model"
    assert difference(model, first=5, second=3) == 2
    assert difference(model, first=3, second=5) == -2
    assert difference(model, 3, 5) == -2


def test_models_come_and_go_without_taking_each_others_results() -> None:
    @per_model
    def total(model: list[int]) -> int:
        return sum(model)

    # Each list dies at once, so the next may lie at the same address; only so many entries keep theirs alive.
    assert [total([number]) for number in range(2 * MOST)] == list(range(2 * MOST))
