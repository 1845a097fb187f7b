"""Masks for attention: one meaning of ``valid``, and converters to what each API of torch wants.

``valid`` and ``allowed`` are True for a real event, and where a query may look at a key. torch has both polarities:

    scaled_dot_product_attention(attn_mask=)              True = attend           sdpa_mask
    MultiheadAttention, TransformerEncoder (padding)      True = ignore           key_padding_mask
    MultiheadAttention, TransformerEncoder (attn_mask)    True = ignore           mha_mask
    any of them, as floats that are added to the scores   0 = attend, -inf        additive_mask
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from labkit.errors import ShapeError
from labkit.layouts.padded import PaddedBatch

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Side(StrEnum):
    """Where the padding of a row is."""

    RIGHT = "right"  # events first: what collate makes
    LEFT = "left"  # events last: the most recent one is in the last slot of every row


def valid_mask(lengths: Tensor, width: int, side: Side | str = Side.RIGHT) -> Tensor:
    """(R, L) bool, True = real event.

        lengths 2 0, width 3:    right 1 1 0    left 0 1 1
                                       0 0 0         0 0 0

    Args:
        lengths: (R,) whole numbers from 0 to L.
        width: L.
        side: of the padding.

    Raises:
        ShapeError: lengths that are no (R,) tensor of whole numbers; on the CPU also one below 0 or above L. A device
            is not asked: see ``check_batch``.
    """
    _check_lengths(lengths, width)
    return _valid(lengths, width, side)


def _valid(lengths: Tensor, width: int, side: Side | str) -> Tensor:
    slots = torch.arange(width, device=lengths.device)
    if Side(side) is Side.RIGHT:
        return slots < lengths[:, None]
    return slots >= width - lengths[:, None]


def positions(valid: Tensor) -> Tensor:
    """(R, L) int64, the position of each event in its row, 0 for its first one, on whichever side the padding is."""
    return (valid.cumsum(-1) - 1).clamp(min=0).masked_fill(~valid, 0)


def padded_on(batch: PaddedBatch, side: Side | str) -> PaddedBatch:
    """A batch padded on the right with its padding on the given side; the padding of the result is 0.

    Args:
        batch: as ``collate`` makes it.
        side: of the padding.

    Returns:
        The batch itself for the right side.

    Cost: one gather a field with events; no host synchronization.
    """
    if Side(side) is Side.RIGHT:
        return batch
    width = batch.valid.shape[1]
    valid = _valid(batch.lengths, width, side)
    source = (torch.arange(width, device=valid.device) - (width - batch.lengths)[:, None]).clamp(min=0)

    def shifted(values: Tensor) -> Tensor:
        if values.shape[:2] != valid.shape:  # of a fixed size
            return values
        tail = [1] * (values.ndim - 2)
        moved = values.gather(1, source.view(*source.shape, *tail).expand_as(values))
        return moved.masked_fill(~valid.view(*valid.shape, *tail), 0)

    values = batch.values
    moved = {name: shifted(field) for name, field in values.items()} if isinstance(values, dict) else shifted(values)
    return PaddedBatch(moved, batch.lengths, valid, batch.rows)


def attention_mask(valid: Tensor, *, causal: bool = False) -> Tensor:
    """Who may attend to whom: every slot to real events, and with ``causal`` to none that comes later.

        valid 1 1 0, causal -> [[1 0 0] [1 1 0] [1 1 0]]      valid 0 1 1, causal -> [[0 0 0] [0 1 0] [0 1 1]]

    What padding sees is of no consequence, as long as nobody looks at what it becomes. But with padding on the left its
    queries have no key at all, and a row without events has none on either side: see the converters.

    Args:
        valid: (R, L) bool, padding on either side.
        causal: leave out later events.

    Returns:
        (R, L, L) bool, True = attend; queries are rows, keys columns. Packed rows: ``block_mask``.

    Raises:
        ShapeError: not (R, L) bool.

    Cost: R * L**2 bytes with ``causal``, a view without.
    """
    _check(valid, 2, "valid", "(R, L)")
    allowed = valid[:, None, :].expand(-1, valid.shape[1], -1)
    return allowed.tril() if causal else allowed


def sdpa_mask(allowed: Tensor) -> Tensor:
    """(R, 1, L, L) bool, True = attend: ``scaled_dot_product_attention(q, k, v, attn_mask=...)``, one for all heads.

    Queries that may attend to nothing get exactly 0 there.
    """
    _check(allowed, 3, "allowed", "(R, L, L)")
    return allowed[:, None]


def key_padding_mask(valid: Tensor) -> Tensor:
    """(R, L) bool, True = **ignore**: ``key_padding_mask`` of MultiheadAttention, ``src_key_padding_mask`` of encoders.

    A row without any real key gives NaN there; ``mha_mask`` does not.
    """
    _check(valid, 2, "valid", "(R, L)")
    return ~valid


def mha_mask(allowed: Tensor, heads: int) -> Tensor:
    """(R * heads, L, L) bool, True = **ignore**: ``attn_mask`` of MultiheadAttention, ``mask`` of encoder layers.

    MultiheadAttention makes NaN of a query without keys, in the forward or in the gradient. Such queries look at
    themselves instead; what they give means nothing and is removed by ``zero_padding``.

    Args:
        allowed: (R, L, L) bool, True = attend.
        heads: of the attention.
    """
    _check(allowed, 3, "allowed", "(R, L, L)")
    own = torch.eye(allowed.shape[-1], dtype=torch.bool, device=allowed.device)
    opened = allowed | (own & ~allowed.any(-1, keepdim=True))
    return ~opened.repeat_interleave(heads, dim=0)


def additive_mask(allowed: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """0 where ``allowed``, -inf elsewhere: to be added to scores.

    A softmax written by hand makes NaN of a query without keys; ``masked_softmax`` takes ``allowed`` itself and gives
    0. A large negative number in place of -inf would give the mean of everything instead, without a word.
    """
    _check(allowed, allowed.ndim, "allowed", "(...)")
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, -torch.inf)


def zero_padding(output: Tensor, valid: Tensor) -> Tensor:
    """(R, L, ...) with exactly 0 where ``valid`` (R, L) is False, whatever was there, and no gradient from there."""
    return output.masked_fill(~valid.view(*valid.shape, *[1] * (output.ndim - 2)), 0)


def _check_lengths(lengths: Tensor, width: int) -> None:
    if not isinstance(lengths, Tensor):
        raise ShapeError(f"lengths must be a (R,) tensor of whole numbers: got a {type(lengths).__name__}.")
    if lengths.ndim != 1 or lengths.dtype not in _WHOLE:
        raise ShapeError(f"lengths must be (R,) whole numbers: got {tuple(lengths.shape)} of {lengths.dtype}.")
    if lengths.device.type != "cpu" or not len(lengths):
        return
    least, most = int(lengths.min()), int(lengths.max())
    if least < 0 or most > width:
        raise ShapeError(f"lengths must be within 0 .. {width}, the width: got {least if least < 0 else most}.")


def _check(mask: Tensor, dimensions: int, name: str, shape: str) -> None:
    if mask.dtype is not torch.bool or mask.ndim != dimensions:
        raise ShapeError(
            f"{name} must be {shape} bool, True = real: got {tuple(mask.shape)} of {mask.dtype}. "
            "Make it of lengths with valid_mask."
        )
