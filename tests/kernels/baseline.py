"""Lanes and sectors of the segmented kernels, regime by regime, on real histograms: the counts of their PTX.

``baseline.json`` holds them; ``python -m tests.kernels.baseline --write`` makes it anew after a kernel was changed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labkit.gpu.catalog import kernel_folder
from labkit.gpu.launch_config import LaunchConfig
from labkit.gpu.nvrtc import compile_source
from labkit.gpu.ops.bin_rows import bin_rows
from labkit.gpu.ops.segment_pool import segment_sum_cuda
from labkit.gpu.ptx.counts import Tally
from labkit.gpu.ptx.parse import parse
from labkit.gpu.ptx.runner import run
from labkit.gpu.regimes import Regime, regime_of
from labkit.lengths.histogram import LengthHistogram
from labkit.lengths.presets import preset
from tests.kernels.ptx_device import ARCH, PtxDevice, ptx_device

FILE = Path(__file__).with_name("baseline.json")
ROWS, DIM = 192, 64
REAL = ("cdnow", "household-lines", "basket-items", "ml-100k")
ZIPF = "zipf-1.2"

#: What segmented kernels are measured against: each thread pools a sequence by itself.
THREAD_PER_SEQUENCE = kernel_folder() / "compared" / "thread_per_sequence.cu"


def zipf(alpha: float = 1.2, longest: int = 4096) -> LengthHistogram:
    """Lengths 1 .. longest with shares length**-alpha, a million sequences."""
    values = np.arange(1, longest + 1)
    share = values**-alpha
    counts = np.rint(share / share.sum() * 1_000_000).astype(np.int64)
    return LengthHistogram(values[counts > 0], counts[counts > 0])


def histogram(name: str) -> LengthHistogram:
    """One of the five by its name."""
    return zipf() if name == ZIPF else preset(name)


def sampled(lengths: LengthHistogram, rows: int = ROWS) -> NDArray[np.int64]:
    """The lengths at the middles of ``rows`` equal shares of the sequences, shuffled, always in the same way."""
    at = (np.arange(rows) + 0.5) / rows * lengths.counts.sum()
    chosen = lengths.values[np.searchsorted(np.cumsum(lengths.counts), at, side="right")]
    return np.random.default_rng(12).permutation(chosen).astype(np.int64)


def summary(tally: Tally, rows: int) -> dict[str, Any]:
    """Counts and what they mean."""
    return {
        "rows": rows,
        "issues": tally.issues,
        "requests": tally.requests,
        "sectors": tally.sectors,
        "lanes_per_issue": round(tally.lanes / tally.issues, 3),
        "lanes_per_request": round(tally.request_lanes / tally.requests, 3),
        "sectors_per_ideal_sector": round(tally.sectors / tally.ideal_sectors, 4),
    }


def pooled(lengths: NDArray[np.int64], config: LaunchConfig) -> Tally:
    """Counts of all launches of a segment sum of rows of these lengths, ``DIM`` features."""
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
    events = int(offsets[-1])
    bins = bin_rows(offsets, config.giants(events), config.thresholds)
    with ptx_device(PtxDevice()) as device:
        segment_sum_cuda(torch.ones(events, DIM), offsets, bins, config.thresholds, False)
    return sum((counts.total for _, counts in device.launched), Tally())


def by_thread(lengths: NDArray[np.int64]) -> Tally:
    """Counts of the same sum, a thread a sequence."""
    source = THREAD_PER_SEQUENCE.read_text(encoding="utf-8")
    kernel = parse(compile_source(source, THREAD_PER_SEQUENCE.name, arch=ARCH).ptx)["thread_per_sequence"]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values, out = np.ones(int(offsets[-1]), np.float32), np.zeros(len(lengths), np.float32)
    args = [out, values, offsets, np.int32(len(lengths))]
    counts = run(kernel, (-(-len(lengths) // 256),), (256,), args)
    np.testing.assert_array_equal(out, lengths)
    return counts.total


def entry(name: str) -> dict[str, Any]:
    """One histogram: each regime on the rows that are its own, all of them together, and a thread a sequence."""
    lengths = sampled(histogram(name))
    config = LaunchConfig.for_histogram(histogram(name), DIM, events=int(lengths.sum()))
    regimes = np.array([regime_of(int(length), config.thresholds) for length in lengths])
    found: dict[str, Any] = {"thresholds": list(config.thresholds), "events": int(lengths.sum())}
    for regime in Regime:
        own = lengths[regimes == regime]
        found[regime.value] = summary(pooled(own, config), len(own)) if len(own) else None
    found["segmented"] = summary(pooled(lengths, config), len(lengths))
    found["thread_per_sequence"] = summary(by_thread(lengths), len(lengths))
    return found


def as_text(entries: dict[str, Any]) -> str:
    """Deterministic JSON, a line for each regime."""
    blocks = []
    for name, found in entries.items():
        lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
        blocks.append(f"  {json.dumps(name)}: {{\n{lines}\n  }}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main() -> int:
    """Write the baseline, or say whether it is up to date."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.baseline", description=main.__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    text = as_text({name: entry(name) for name in (*REAL, ZIPF)})
    if write:
        FILE.write_text(text)
    current = FILE.is_file() and FILE.read_text() == text
    print("up to date" if current else "out of date; run: python -m tests.kernels.baseline --write")
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
