"""From the export to the tensors of another process: nothing changes on the way."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.config import TunedConfig
from labkit.layouts.collate import collate
from labkit.lengths.histogram import LengthHistogram

LENGTHS = np.random.default_rng(3).geometric(0.1, size=90) - 1
HISTORIES = [torch.arange(n) * 100 + i for i, n in enumerate(LENGTHS.tolist())]
EDGES = (3, 9, 30, 80)

FRESH = """
import sys
from tests.test_tuned_tensors import HISTORIES, LENGTHS, digest
from torch.utils.data import DataLoader
import labkit
tuned = labkit.TunedConfig.load(sys.argv[1])
print(digest(DataLoader(HISTORIES, batch_sampler=tuned.sampler(LENGTHS, seed=5), collate_fn=tuned.collate())))
"""


def digest(loader: DataLoader) -> str:
    """sha256 over the names, shapes, types and bytes of all tensors of an epoch."""
    found = hashlib.sha256()
    for batch in loader:
        for name, part in batch._asdict().items():
            found.update(f"{name} {getattr(part, 'shape', part)} {getattr(part, 'dtype', '')}".encode())
            found.update(part.numpy().tobytes() if isinstance(part, torch.Tensor) else b"")
    return found.hexdigest()


@pytest.mark.parametrize("strategy", ["pad_recent", "bucket_budget", "bucket_graph", "jagged"])
def test_tensors_of_a_loaded_file_in_a_fresh_process_are_those_of_before_the_export(
    strategy: str, tmp_path: Path
) -> None:
    policy = BatchPolicy(strategy, rows=8, bucket_edges=EDGES, token_budget=160)
    histogram = LengthHistogram.from_lengths(LENGTHS)
    sampler = BucketBatchSampler(LENGTHS, policy, seed=5)
    before = digest(DataLoader(HISTORIES, batch_sampler=sampler, collate_fn=collate(policy, histogram=histogram)))
    path = TunedConfig.from_policy(histogram, policy).save(tmp_path / "tuned.json")
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(path)], capture_output=True, text=True, check=True, cwd=root
    )
    assert done.stdout.strip() == before


def test_the_digest_sees_another_shuffle() -> None:
    policy = BatchPolicy("bucket_budget", bucket_edges=EDGES, token_budget=160)
    first, second = (
        digest(
            DataLoader(
                HISTORIES, batch_sampler=BucketBatchSampler(LENGTHS, policy, seed=seed), collate_fn=collate(policy)
            )
        )
        for seed in (1, 2)
    )
    assert first != second
