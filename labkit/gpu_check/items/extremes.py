"""What only a large or special batch shows: indices above 2**31, a NaN, foreign ids, graphs, the same bits twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.copies import jagged_to_padded, padded_to_jagged
from labkit.gpu.ops.din_attention import attention_pool
from labkit.gpu.ops.embedding_pool import embedding_pool
from labkit.gpu.ops.segment_pool import segment_max, segment_sum
from labkit.gpu.verify.ragged import EVENTS, LENGTHS, OFFSETS, REGIMES
from labkit.gpu_check.exact import GRADIENTS, Rows, by_kernels, inputs_of, result_and_gradients
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.runner import Case, Found

_DIM = 64

#: Dtype and shape of an event: each is one unit of a copy.
_UNITS: tuple[tuple[torch.dtype, tuple[int, ...]], ...] = (
    (torch.uint8, ()), (torch.int16, ()), (torch.int32, ()), (torch.int64, ()), (torch.int64, (2,)),
)  # fmt: skip

#: Events of a row that have no slot; what fills slots without an event, and events without a slot.
_CUT, _FILL = 5, 255
#: Events come again after so many, of which no power of two is a multiple.
_PRIME = 251
_CHUNK = _PRIME * 2**16


def cases(lab: Lab) -> Sequence[Case]:
    """Those that need least memory first."""
    small: dict[str, Callable[[Lab], Found]] = {
        "a NaN stays in its row": _nan,
        "an id outside of the table makes its own row NaN": _foreign_id,
        "two runs give the same bits": _same_bits,
        "a captured graph replays what eager gives": _graph,
        "T*D above 2**31: sum, mean, max, attention": _many_elements,
    }
    large: dict[str, Callable[[Lab], Found]] = {
        f"more than 2**32 units of {dtype.itemsize * math.prod(tail)} B: copies there and back": partial(
            _many_units, dtype, tail
        )
        for dtype, tail in _UNITS
    }
    return [Case(name, partial(run, lab)) for name, run in (small | large).items()]


def _rows(lab: Lab, regime: str = "mixed") -> Rows:
    return Rows(OFFSETS.to(lab.device), EVENTS, REGIMES[regime])


def _nan(lab: Lab) -> Found:
    rows = _rows(lab)
    given = inputs_of(rows, _DIM, torch.float32, 50)
    own = 6  # of 127 events
    given["values"][int(OFFSETS[own]) + 3] = torch.nan
    for name in ("sum", "mean", "max", "attention"):
        found = by_kernels(name, rows, given).isnan().any(1)
        assert found.nonzero().flatten().tolist() == [own], f"{name}: NaN in rows {found.nonzero().flatten().tolist()}"
    return {}


def _foreign_id(lab: Lab) -> Found:
    rows = _rows(lab)
    given = inputs_of(rows, _DIM, torch.float32, 50)
    for row, foreign in ((6, 50), (8, -1), (12, 2**40)):
        given["ids"][int(OFFSETS[row])] = foreign
    table = given["table"].requires_grad_()
    found = embedding_pool(table, given["ids"], None, *rows.arguments, False)
    bad = found.isnan().all(1).nonzero().flatten().tolist()
    assert bad == [6, 8, 12], f"NaN in rows {bad}"
    (grad,) = torch.autograd.grad(found.nansum(), table)
    assert bool(grad.isfinite().all()), "the gradient of the table is not finite"
    return {}


def _same_bits(lab: Lab) -> Found:
    rows = _rows(lab)
    given = inputs_of(rows, _DIM, torch.float32, 50)
    for name in GRADIENTS:
        first, second = (result_and_gradients(name, rows, given) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True)), f"{name} differs between two runs"
    return {}


def _graph(lab: Lab) -> Found:
    """Bins, every op and every gradient in one graph; replayed, it sees new values and new offsets."""
    backend = lab.graphs(lab.device)
    if backend is None:
        return {"ok": None, "reason": "a CPU has no CUDA graphs"}
    offsets, config = OFFSETS.to(lab.device).clone(), REGIMES["mixed"]
    given = inputs_of(Rows(offsets, EVENTS, config), _DIM, torch.float32, 50)

    def step() -> list[Tensor]:
        rows = Rows(offsets, EVENTS, config)
        return [part for name in GRADIENTS for part in result_and_gradients(name, rows, given)]

    backend.warm_up(step, 3)
    graph, captured = backend.capture(step)
    offsets[1:].copy_(torch.tensor(LENGTHS[::-1]).cumsum(0))
    given["values"].normal_()
    graph.replay()
    for number, (replayed, eager) in enumerate(zip(captured, step(), strict=True)):
        assert torch.equal(replayed, eager), f"result {number} of the replay differs from eager"
    return {"results": len(captured)}


def _many_elements(lab: Lab) -> Found:
    """float16, D = 512: every event t holds t mod 7, so that each row's results are known."""
    dim = 512
    events = -(-lab.sizes.most_elements // dim)
    if (room := lab.fit(events, 2.0 * dim)) < events:
        return {"ok": None, "reason": f"half of the free memory holds {room} of {events} events"}
    cuts = torch.tensor([0, 1, events // 3, events - 5, events])
    offsets, config = cuts.to(lab.device), LaunchConfig()
    each = (torch.arange(events, device=lab.device) % 7).half()
    values = each[:, None].expand(-1, dim).contiguous()
    bins = bin_rows(offsets, config.giants(events), config.thresholds)
    parts = [each[low:high].double() for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]
    mean = torch.stack([part.mean() for part in parts])
    top = torch.stack([part.max() for part in parts])
    scores = torch.zeros(events, dtype=torch.float16, device=lab.device)
    rows = (offsets, bins, config.thresholds)
    results = {
        "mean": (segment_sum(values, *rows, True), mean),
        "max": (segment_max(values, *rows)[0], top),
        "attention to all alike": (attention_pool(scores, values, *rows)[0], mean),
    }
    for name, (found, expected) in results.items():
        away = float((found.double() - expected[:, None]).abs().max())
        assert away <= 4e-3, f"{name}: {away:.3g} away (events {events}, D {dim})"
    return {"events": events, "dim": dim, "elements": events * dim}


def _many_units(dtype: torch.dtype, tail: tuple[int, ...], lab: Lab) -> Found:
    """Copies of more units than 32 bits number, either way: threads are counted by 64 bits, events and slots alike."""
    rows = lab.sizes.many_rows
    width = -(-2 * lab.sizes.most_elements // (rows - 3))
    lengths = torch.full((rows,), width)
    lengths[:3] = torch.tensor([3, 0, width + _CUT])
    events, size = int(lengths.sum()), dtype.itemsize * math.prod(tail)
    if (room := lab.fit(rows, 2.1 * width * size, share=0.95)) < rows:
        return {
            "ok": None,
            "reason": f"the free memory holds {room} of {rows} rows of {width} x {size} B, there and back",
        }
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(lab.device)
    values = torch.empty((events, *tail), dtype=dtype, device=lab.device)
    for chunk, pattern in _chunks(values):
        chunk.copy_(pattern)
    padded = jagged_to_padded(values, offsets, width, _FILL)
    ends = [values[:3], values[3 + _CUT : 3 + _CUT + width], values[-width:]]
    for row, slots, expected in ((0, 3, ends[0]), (1, 0, values[:0]), (2, width, ends[1]), (rows - 1, width, ends[2])):
        assert torch.equal(padded[row, :slots], expected), f"row {row} differs in its slots"
        assert bool((padded[row, slots:] == _FILL).all()), f"row {row} is not filled from slot {slots} on"
    del values, ends, expected
    back = padded_to_jagged(padded, offsets, events, _FILL)
    assert bool((back[3 : 3 + _CUT] == _FILL).all()), "events that had no slot are not the fill"
    for event, (chunk, pattern) in enumerate(_chunks(back)):
        skipped = 3 + _CUT if event == 0 else 0
        assert torch.equal(chunk[skipped:], pattern[skipped:]), (
            f"events differ from {event * _CHUNK} on after both copies"
        )
    return {"units": padded.numel() // math.prod(tail), "unit_bytes": size, "events": events}


def _chunks(values: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Parts of events, and what each holds: the event's number modulo a prime, in every element."""
    one = (torch.arange(_CHUNK, device=values.device) % _PRIME).to(values.dtype)
    pattern = one.view(-1, *[1] * (values.ndim - 1)).expand(-1, *values.shape[1:])
    for start in range(0, values.shape[0], _CHUNK):
        chunk = values[start : start + _CHUNK]
        yield chunk, pattern[: len(chunk)]
