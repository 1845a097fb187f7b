"""Are the kernels right on the device: the trials of every op there, then torch in float64 on large and odd batches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from labkit.gpu.catalog import KERNELS
from labkit.gpu.launch import launching_by
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.verify.ragged import EVENTS, OFFSETS, REGIMES
from labkit.gpu.verify.stand_in import poisoned_allocations
from labkit.gpu.verify.trials import trials
from labkit.gpu_check.exact import CLOSE, GRADIENTS, Rows, differences, inputs_of
from labkit.gpu_check.items import extremes
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.ragged_data import Law, drawn_lengths
from labkit.gpu_check.runner import Case, Found
from labkit.gpu_check.there_and_back import ThereAndBack

_ITEMS = 50
_SIXTEEN_BITS = tuple(dtype for dtype in CLOSE if dtype.itemsize == 2)


def cases(lab: Lab) -> Sequence[Case]:
    """All of them, those that find most first."""
    found = [Case(f"trials of {op}", partial(run_trials, lab, op)) for op in KERNELS]
    found += [
        Case(f"{name}, {_short(dtype)}", partial(_regimes, lab, name, dtype)) for name in GRADIENTS for dtype in CLOSE
    ]
    for name in GRADIENTS:
        found.append(Case(f"{name}, {lab.sizes.many_rows} rows", partial(_many_rows, lab, name)))
        found.append(Case(f"{name}, one row of {lab.sizes.million} events", partial(_long_row, lab, name)))
        for dtype in _SIXTEEN_BITS:
            title = f"{name}, {_short(dtype)}, one row of {lab.sizes.long_row} events"
            found.append(Case(title, partial(_long_row_of_16_bits, lab, name, dtype)))
        found.append(Case(f"{name}, no rows and no events", partial(_nothing, lab, name)))
    return [*found, *extremes.cases(lab)]


def run_trials(lab: Lab, op: str, *, sample: bool = False) -> Found:
    """Every trial of an op, launched on the device, against the NumPy reference.

    Args:
        lab: where.
        op: of the catalog.
        sample: only those that go every way through the kernel once.

    Raises:
        AssertionError: a trial gave something else; the message has the first three.
    """
    if not lab.on_gpu:
        return no_gpu("the trials launch CUDA kernels")
    carried, wrong, compared = ThereAndBack(lab.device), [], 0
    chosen = [trial for trial in trials(op) if (trial.sample or not sample) and not trial.host]
    with poisoned_allocations(), launching_by(carried.launch):
        for trial in chosen:
            for result in trial.run():
                compared += 1
                if result.difference is not None:
                    wrong.append(f"{trial.name}: {result.difference}")
    if wrong:
        raise AssertionError(f"{len(wrong)} of {compared} results: {'; '.join(wrong[:3])}")
    return {"trials": len(chosen), "results": compared, "launches": len(carried.launched)}


def no_gpu(what: str) -> Found:
    """What a case says that needs a GPU and has none."""
    return {"ok": None, "reason": f"{what}, and there is no CUDA device here"}


def _regimes(lab: Lab, name: str, dtype: torch.dtype) -> Found:
    """Rows around the sizes at which a group, a warp and a block end, with thresholds that force each regime."""
    offsets = OFFSETS.to(lab.device)
    for dim in lab.sizes.dims:
        for regime, config in REGIMES.items():
            rows = Rows(offsets, EVENTS, config)
            try:
                differences(name, rows, inputs_of(rows, dim, dtype, _ITEMS))
            except AssertionError as error:
                raise AssertionError(f"{regime} rows, D={dim}: {error}") from error
    return {"dims": list(lab.sizes.dims), "regimes": list(REGIMES)}


def _many_rows(lab: Lab, name: str) -> Found:
    lengths = torch.from_numpy(drawn_lengths(Law.ZIPF, lab.sizes.many_rows, 200))
    lengths[::7] = 0
    return _compared(lab, name, lengths, 8)


def _long_row(lab: Lab, name: str) -> Found:
    return _compared(lab, name, torch.tensor([0, 3, lab.sizes.million, 0, 1]), 8)


def _long_row_of_16_bits(lab: Lab, name: str, dtype: torch.dtype) -> Found:
    """Its length is no float16, and its gradients are small: a length that overflows would make zeros of them."""
    events, dim = lab.sizes.long_row, 8
    rows = Rows(torch.tensor([0, events], device=lab.device), events, LaunchConfig())
    differences(name, rows, inputs_of(rows, dim, dtype, _ITEMS), floor=0.0)
    return {"rows": 1, "events": events, "dim": dim}


def _nothing(lab: Lab, name: str) -> Found:
    for count in (0, 3):
        _compared(lab, name, torch.zeros(count, dtype=torch.int64), 8)
    return {}


def _compared(lab: Lab, name: str, lengths: torch.Tensor, dim: int) -> Found:
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(lab.device)
    rows = Rows(offsets, int(lengths.sum()), LaunchConfig())
    differences(name, rows, inputs_of(rows, dim, torch.float32, _ITEMS))
    return {"rows": rows.count, "events": rows.events, "dim": dim}


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
