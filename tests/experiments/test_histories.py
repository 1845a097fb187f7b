"""Histories: deterministic, constant cost a sample, popular ids, and real data that fits or is refused."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.errors import LengthsError, ShapeError
from labkit.experiments.histories import from_fields, sampled_lengths, synthetic
from labkit.jagged import Jagged
from labkit.layouts.collate import collate
from labkit.layouts.packed import PackedDataset
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import MODELS, Model, model_spec

DIN = model_spec("din")


@pytest.mark.parametrize("model", Model)
def test_samples_hold_what_the_model_asks_for(model: Model) -> None:
    spec = MODELS[model]
    data = synthetic(spec, [2, 0, 3])
    assert (len(data), data.lengths.tolist(), data.made_up) == (3, [2, 0, 3], True)
    for length, sample in zip([2, 0, 3], data.__getitems__([0, 1, 2]), strict=True):
        assert list(sample) == [*spec.sequences, *(f.name for f in spec.fields if f.per == "row")]
        for field in spec.fields:
            value = np.asarray(sample[field.name])
            assert value.dtype == field.dtype
            assert value.shape == ((length, *field.shape) if field.per == "event" else field.shape)
            assert (value < (field.vocabulary or 2)).all()
            assert (value >= 0).all()


def test_the_same_seed_gives_the_same_samples_and_another_seed_others() -> None:
    lengths = np.full(50, 20)
    first, again, other = (synthetic(DIN, lengths, seed=seed).events["items"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_ids_follow_the_law_that_is_written_down() -> None:
    ids, draws = synthetic(DIN, [200_000]).events["items"], 200_000
    counts = np.sort(np.bincount(ids, minlength=100_000))[::-1]
    # the most popular id: log(2)/log(100 001) = 0.0602; the ten most popular: log(11)/log(100 001) = 0.2083
    assert counts[0] / draws == pytest.approx(0.0602, abs=0.003)
    assert counts[:10].sum() / draws == pytest.approx(0.2083, abs=0.005)
    assert np.argsort(-np.bincount(ids, minlength=100_000))[:10].max() > 1000  # scattered, not the first of the table


def test_a_sample_is_a_view_and_costs_nothing_a_sequence() -> None:
    data = synthetic(DIN, [3] * 10)
    assert np.shares_memory(data[4]["items"], data.events["items"])


def test_they_go_through_packs_and_buckets() -> None:
    lengths = [5, 2, 3, 1]
    data = synthetic(DIN, lengths)
    packed = BatchPolicy("packed", rows=3, capacity=5)  # packs 5 | 3 2 | 1
    indices = next(iter(BucketBatchSampler(lengths, packed)))
    batch = collate(packed, sequences=DIN.sequences)(PackedDataset(data).__getitems__(indices))
    assert sorted(batch.lengths.tolist()) == [1, 2, 3, 5]
    policy = BatchPolicy("pad_max", rows=4)
    padded = collate(policy, histogram=lengths, sequences=DIN.sequences)(data.__getitems__([0, 1, 2, 3]))
    assert padded.values["items"].shape == (4, 5)
    assert padded.values["target"].tolist() == data.rows["target"].tolist()


def test_real_fields_are_taken_as_they_are() -> None:
    items = Jagged.from_lengths(np.array([7, 8, 9]), [1, 2])
    data = from_fields(DIN, {"items": items, "target": [4, 5], "label": np.array([0, 1], np.float32)})
    assert data[1]["items"].tolist() == [8, 9]
    assert (data[1]["target"], data.made_up) == (5, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": None}, "model din needs the fields items, target, label: missing target"),
        ({"items": [1, 2, 3]}, "items has one entry an event: expected a Jagged, got a list"),
        ({"target": [4]}, r"target must be \(2,\): got shape \(1,\)"),
        ({"target": [4, 100_000]}, "target must be whole numbers within 0 .. 99999: got int64 within 4 .. 100000"),
    ],
)
def test_real_fields_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    fields = {"items": Jagged.from_lengths(np.array([7, 8, 9]), [1, 2]), "target": [4, 5], "label": [0.0, 1.0]}
    given = {name: value for name, value in (fields | change).items() if value is not None}
    with pytest.raises(ShapeError, match=message):
        from_fields(DIN, given)


def test_fields_that_are_not_aligned_are_refused() -> None:
    spec = model_spec("ctr")
    fields = {f.name: Jagged.from_lengths(np.zeros(3, np.int64), [1, 2]) for f in spec.fields if f.per == "event"}
    rows = {f.name: np.zeros((2, *f.shape), f.dtype) for f in spec.fields if f.per == "row"}
    fields["shops"] = Jagged.from_lengths(np.zeros(3, np.int64), [2, 1])
    with pytest.raises(ShapeError, match="must be aligned: shops has 3 events in 2 rows"):
        from_fields(spec, {**fields, **rows})


def test_negative_lengths_are_refused() -> None:
    with pytest.raises(LengthsError):
        synthetic(DIN, [2, -1])


def test_a_sample_of_lengths_is_drawn_without_replacement() -> None:
    histogram = LengthHistogram(np.array([0, 1, 9]), np.array([5, 90, 5]))
    everything = sampled_lengths(histogram, 100, seed=1)
    assert sorted(everything.tolist()) == [0] * 5 + [1] * 90 + [9] * 5
    some = sampled_lengths(histogram, 40, seed=1)
    values, counts = np.unique(some, return_counts=True)
    assert some.size == 40
    assert all(counts[values == v] <= n for v, n in ((0, 5), (1, 90), (9, 5)))
    assert sampled_lengths([3, 1, 2], 10, seed=0).size == 3


def test_the_longest_is_always_in_the_sample() -> None:
    histogram = LengthHistogram(np.array([1, 500]), np.array([1_000_000, 1]))
    assert all(sampled_lengths(histogram, 3, seed).tolist().count(500) == 1 for seed in range(5))
