"""Bars, worked out by hand."""

from __future__ import annotations

from typing import Any

from labkit.gpu_check.bars import bars


def case(op: str, lengths: str, **found: Any) -> dict[str, Any]:
    base = {"case": f"{op}, {lengths}", "ok": True, "op": op, "lengths": lengths, "peers": {}, "median_s": 0.002}
    return {**base, "share_of_copy": None, "speedup": None, **found}


def found(*cases: dict[str, Any]) -> list[tuple[str, float, bool]]:
    return [(bar["case"], bar["value"], bar["met"]) for bar in bars(cases)]


def test_copies_and_pools_are_held_against_the_copy() -> None:
    at, below = case("segment_sum", "zipf", share_of_copy=0.85), case("jagged_to_padded", "zipf", share_of_copy=0.84)
    assert found(at, below) == [("segment_sum, zipf", 0.85, True), ("jagged_to_padded, zipf", 0.84, False)]
    # a gather or an exponential is not a copy, and without a bandwidth there is no share
    assert found(case("embedding_pool", "zipf", share_of_copy=0.1), case("segment_sum", "zipf")) == []


def test_embedding_pool_is_held_against_embedding_bag() -> None:
    peers = {"EmbeddingBag": {"median_s": 0.003}, "gather, then segment_reduce": {"median_s": 0.001}}
    assert found(case("embedding_pool", "zipf", peers=peers)) == [("embedding_pool, zipf", 1.5, True)]
    assert found(case("embedding_pool", "zipf", peers={"EmbeddingBag": {"reason": "out of memory"}})) == []


def test_attention_is_held_against_padding_on_zipf_lengths() -> None:
    peers = {"pad and mask": {"median_s": 0.0058}}
    assert found(case("attention_pool", "zipf", peers=peers)) == [("attention_pool, zipf", 2.9, False)]
    assert found(case("attention_pool", "uniform", peers=peers)) == []


def test_on_uniform_lengths_nothing_is_a_tenth_slower_than_torch() -> None:
    near, far = case("attention_pool", "uniform", speedup=0.92), case("segment_max", "uniform", speedup=0.9)
    assert [met for _, _, met in found(near, far)] == [True, False]
    assert found(case("segment_max", "zipf", speedup=0.1), case("bin_rows", "uniform", speedup=0.1)) == []


def test_what_failed_has_no_bar() -> None:
    assert found({"case": "segment_sum, zipf", "ok": False, "error": "RuntimeError: no"}) == []
