"""Blocks that a running request holds, and those that the next one must find free.

Source rules: `KVCacheManager.allocate_slots` and `SingleTypeKVCacheManager.remove_skipped_blocks` at 0.32.0: the blocks
of a whole prefill are taken at admission; those behind a window come back once the step that read them is processed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from enginemem.engines.vllm.layout import KvRow, blocks_per_request
from enginemem.traffic import Shape, marks_reached
from enginemem.units import ceil_div


class OutputLength(NamedTuple):
    """The output length of requests, tokens: `mean` before the cut at `limit`."""

    shape: Shape
    mean: int
    limit: int

    def marks(self, *, first: int, step: int) -> float:
        """Mean number of the output tokens `first`, `first` + `step`, ... that a running request has reached."""
        return marks_reached(self.shape, self.mean, self.limit, first, step)


def next_request_blocks(row: KvRow, *, prompt: int, in_flight: int) -> int:
    """Blocks of one group that a request of `prompt` tokens must find free to be admitted.

    A recurrent state takes one, and another for the checkpoint at the prompt's last whole block.
    """
    whole = ceil_div(prompt, row.block_size)
    if row.kind == "mamba":
        return min(whole, 1 + row.prefill_checkpoint_blocks)
    if row.kind in ("sliding", "chunked"):
        return min(whole, blocks_per_request(row, tokens=prompt, in_flight=in_flight))
    return whole


def held_blocks(row: KvRow, *, prompt: int, mean_output: float, progress: float, prefill_steps: float) -> float:
    """Blocks of one group of full or sliding layers that a running request holds on average.

    Half a block is open, and every token of output adds at most a block to the prompt's. A window of w tokens covers
    w / block + 1 blocks, wherever it begins; for `prefill_steps` of a request's steps, one a token, the group still
    holds the whole prompt.
    """
    block = row.block_size
    whole = min((prompt + progress + block / 2) / block, ceil_div(prompt, block) + progress - 1)
    if row.kind != "sliding" or row.window is None:
        return whole
    share = min(1.0, prefill_steps / mean_output)
    return min(row.window / block + 1 + share * max(0, prompt - row.window) / block, whole)


def held_in_chunks(
    row: KvRow, *, prompt: int, mean_output: float, progress: float, prefill_steps: float, length: OutputLength
) -> float:
    """The same for chunked layers: the blocks of the tokens, less those of the chunks that lie behind.

    A chunk is freed one processed step after its last token; a prefill holds its chunks for `prefill_steps` steps.
    """
    chunk, block = row.chunk or 1, row.block_size
    whole = held_blocks(row, prompt=prompt, mean_output=mean_output, progress=progress, prefill_steps=prefill_steps)
    behind = prompt // chunk
    marks = length.marks(first=chunk - prompt % chunk + 1, step=chunk)
    share = min(1.0, prefill_steps / mean_output)
    return whole - chunk / block * (behind + marks) + share * chunk / block * behind


def held_beside_states(row: KvRow, *, prompt: int, length: OutputLength) -> float:
    """The same for the groups of a hybrid with recurrent layers, whose blocks are hundreds of tokens wide: the state
    takes one block, attention whole blocks up to the token in progress, counted exactly."""
    if row.kind == "mamba":
        return 1.0
    whole = ceil_div(prompt + 1, row.block_size)
    return whole + length.marks(first=whole * row.block_size - prompt + 1, step=row.block_size)


def held_by_groups(
    counts: Mapping[KvRow, int],
    *,
    prompt: int,
    mean_output: float,
    progress: float,
    prefill_steps: float,
    length: OutputLength | None,
) -> float:
    """Blocks that a running request holds on average over all groups: each spec with the number of its groups."""
    states, total = any(row.kind == "mamba" for row in counts), 0.0
    for row, count in counts.items():
        if length is None and (states or row.kind == "chunked"):
            raise ValueError("chunked and recurrent groups need the output length")
        if states and length is not None:
            held = held_beside_states(row, prompt=prompt, length=length)
        elif row.kind == "chunked" and length is not None:
            held = held_in_chunks(
                row,
                prompt=prompt,
                mean_output=mean_output,
                progress=progress,
                prefill_steps=prefill_steps,
                length=length,
            )
        else:
            held = held_blocks(
                row, prompt=prompt, mean_output=mean_output, progress=progress, prefill_steps=prefill_steps
            )
        total += count * held
    return total


class Held(NamedTuple):
    """Blocks of a running request over all groups: on average, while it only decodes, and while its prefill is held
    whole. The three differ where blocks behind a window are freed late."""

    mean: float
    decoding: float
    whole: float


def held_thrice(
    counts: Mapping[KvRow, int],
    *,
    prompt: int,
    mean_output: float,
    progress: float,
    prefill_steps: int,
    length: OutputLength | None,
) -> Held:
    """What a running request holds over all groups, with its prefill held whole for `prefill_steps` steps."""

    def over(steps: float) -> float:
        return held_by_groups(
            counts, prompt=prompt, mean_output=mean_output, progress=progress, prefill_steps=steps, length=length
        )

    if not any(row.kind in ("sliding", "chunked") for row in counts):
        mean = over(prefill_steps)
        return Held(mean, mean, mean)
    return Held(over(prefill_steps), over(0), over(mean_output))
