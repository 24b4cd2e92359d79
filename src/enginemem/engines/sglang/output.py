"""Moments of the output length under the limit that the engine's clips leave."""

from __future__ import annotations

from enginemem.traffic import OutputMoments, Shape, output_moments


def cut_moments(shape: Shape, mean: int, limit: int) -> OutputMoments:
    """Moments of the output under a limit that the engine's clip may have set below the mean."""
    limit = max(1, limit)
    return output_moments(shape=shape, mean=min(mean, limit) if shape == "fixed" else mean, limit=limit)


def output_mean(shape: Shape, mean: int, limit: int) -> float:
    """Mean output after the cut, tokens."""
    return cut_moments(shape, mean, limit).mean


def output_progress(shape: Shape, mean: int, limit: int) -> float:
    """Mean tokens that a running request has behind it, seen at random times: E[L(L-1)/2] / E[L]."""
    moments = cut_moments(shape, mean, limit)
    return moments.pairs / moments.mean
