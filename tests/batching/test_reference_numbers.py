"""The reference numbers of data/lengths/README.md: what labkit says about the four histograms, to four decimals."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import pytest

from labkit.batching.edges import USUAL_QUANTILES, equal_quantile_edges, optimal_edges, quantile_edges
from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import WhatIf, what_if
from labkit.lengths import presets


@dataclass(frozen=True)
class Reference:
    """One row of each of the two tables."""

    pad_max: float
    recent_50: tuple[float, float, float]  # users cut, events kept, padding
    quantile: tuple[tuple[int, ...], float, float]  # edges, padding, events kept
    optimal: tuple[tuple[int, ...], float]
    octiles: tuple[tuple[int, ...], float]
    batches_of_256: float


REFERENCES = {
    "cdnow": Reference(
        pad_max=0.9864,
        recent_50=(0.0008, 0.9876, 0.9416),
        quantile=((1, 2, 4, 9), 0.1349, 0.8697),
        optimal=((1, 2, 4, 7, 13, 26, 62, 217), 0.1846),
        octiles=((1, 2, 3, 5, 217), 0.8968),
        batches_of_256=0.9310,
    ),
    "household-lines": Reference(
        pad_max=0.8581,
        recent_50=(0.9081, 0.0800, 0.0474),
        quantile=((116, 293, 543, 977, 1752), 0.2339, 0.9467),
        optimal=((128, 336, 562, 868, 1273, 1808, 2717, 4193), 0.2069),
        octiles=((67, 164, 267, 407, 586, 848, 1233, 4193), 0.3858),
        batches_of_256=0.8253,
    ),
    "basket-items": Reference(
        pad_max=0.9414,
        recent_50=(0.0178, 0.9728, 0.8166),
        quantile=((1, 3, 7, 15, 35), 0.2474, 0.9217),
        optimal=((2, 6, 12, 20, 31, 47, 74, 161), 0.2332),
        octiles=((1, 2, 3, 5, 7, 12, 21, 161), 0.6299),
        batches_of_256=0.8816,
    ),
    "ml-100k": Reference(
        pad_max=0.8561,
        recent_50=(0.5970, 0.3993, 0.1531),
        quantile=((29, 50, 93, 172, 311), 0.2220, 0.9571),
        optimal=((35, 66, 112, 168, 236, 307, 414, 737), 0.1810),
        octiles=((24, 33, 47, 65, 102, 148, 225, 737), 0.3793),
        batches_of_256=0.8269,
    ),
}

pytestmark = pytest.mark.parametrize("name", REFERENCES)


def scored(name: str, strategy: str, **fields: object) -> WhatIf:
    return what_if(presets.preset(name), BatchPolicy(strategy, **fields))


def kept_share(found: WhatIf) -> float:
    return found.kept_events / (found.kept_events + found.events_lost)


def test_pad_to_max(name: str) -> None:
    assert round(scored(name, "pad_max").padding_ratio, 4) == REFERENCES[name].pad_max


def test_recent_50(name: str) -> None:
    found = scored(name, "pad_recent", max_length=50)
    users_cut = found.sequences_truncated / presets.preset(name).sequences
    assert (round(users_cut, 4), round(kept_share(found), 4), round(found.padding_ratio, 4)) == REFERENCES[
        name
    ].recent_50


def test_quantile_buckets_truncated_at_the_last_edge(name: str) -> None:
    edges = quantile_edges(presets.preset(name), USUAL_QUANTILES)
    found = scored(name, "bucket_rows", bucket_edges=edges.edges, overflow="truncate")
    assert (edges.edges, round(found.padding_ratio, 4), round(kept_share(found), 4)) == REFERENCES[name].quantile
    assert edges.note == (
        "5 buckets asked, 4 left: equal edges and empty buckets are merged." if name == "cdnow" else None
    )


def test_quantile_buckets_with_what_is_longer_dropped(name: str) -> None:
    histogram = presets.preset(name)
    last = REFERENCES[name].quantile[0][-1]
    found = scored(name, "bucket_rows", bucket_edges=REFERENCES[name].quantile[0], overflow="drop")
    longer = histogram.values > last
    assert found.sequences_dropped == int(histogram.counts[longer].sum())
    assert found.events_lost == int((histogram.values * histogram.counts)[longer].sum())
    assert found.sequences_truncated == 0
    assert 0 < found.sequences_dropped <= ceil(0.05 * histogram.sequences)  # the last edge is P95


def test_eight_optimal_edges(name: str) -> None:
    histogram = presets.preset(name)
    edges = optimal_edges(histogram, 8)
    found = scored(name, "bucket_rows", bucket_edges=edges.edges)
    assert (edges.edges, round(found.padding_ratio, 4)) == REFERENCES[name].optimal
    assert found.slots == edges.cost
    assert (found.events_lost, found.sequences_truncated) == (0, 0)


def test_octiles(name: str) -> None:
    edges = equal_quantile_edges(presets.preset(name), 8).edges
    found = scored(name, "bucket_rows", bucket_edges=edges)
    assert (edges, round(found.padding_ratio, 4)) == REFERENCES[name].octiles


def test_shuffled_batches_of_256_padded_to_their_longest(name: str) -> None:
    assert round(scored(name, "pad_batch", rows=256).padding_ratio, 4) == REFERENCES[name].batches_of_256
