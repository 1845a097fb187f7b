"""What only a large or special batch shows: indices above 2**31, a NaN, foreign ids, graphs, the same bits twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def cases(lab: Lab) -> Sequence[Case]:
    """Those that need least memory first."""
    runs: dict[str, Callable[[Lab], Found]] = {
        "a NaN stays in its row": _nan,
        "an id outside of the table makes its own row NaN": _foreign_id,
        "two runs give the same bits": _same_bits,
        "a captured graph replays what eager gives": _graph,
        "T*D above 2**31: sum, mean, max, attention": _many_elements,
        "more than 2**32 slots: copies there and back": _many_slots,
    }
    return [Case(name, partial(run, lab)) for name, run in runs.items()]


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


def _many_slots(lab: Lab) -> Found:
    """Bytes, one an event: a rectangle that 32 bits cannot number; there and back it is the same."""
    rows = lab.sizes.many_rows
    width = 2 * (lab.sizes.most_elements // rows) + 1
    if (room := lab.fit(rows, 1.5 * width)) < rows:
        return {"ok": None, "reason": f"half of the free memory holds {room} of {rows} rows"}
    lengths = torch.arange(rows) % 40
    lengths[-1] = width + 3  # cut
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(lab.device)
    events = int(lengths.sum())
    values = (torch.arange(events, device=lab.device) % 251).to(torch.uint8)
    padded = jagged_to_padded(values, offsets, width, 255)
    filled = int((padded[-1] != 255).sum())
    assert filled == width, f"the last row has {filled} events in {width} slots"
    back = padded_to_jagged(padded, offsets, events, 255)
    cut = int(lengths[:-1].sum())
    assert torch.equal(back[:cut], values[:cut]), "rows differ after both copies"
    assert bool((back[cut : cut + 3] == 255).all()), "events that had no slot are not the fill"
    assert torch.equal(back[cut + 3 :], values[cut + 3 :]), "the row that was cut differs"
    return {"slots": padded.numel()}
