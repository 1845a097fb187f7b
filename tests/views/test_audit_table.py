from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.views.audit_table import AuditTable, audit_table


def table(lengths: list[int], strategy: str, **fields: Any) -> AuditTable:
    return audit_table(plan_epoch(lengths, BatchPolicy(strategy, **fields)).audit())


@pytest.fixture
def counted() -> AuditTable:
    # 9 is cut to 4; 2 batches of 3 rows of width 4, one row is a ghost
    return table([3, 3, 9, 0, 1], "bucket_graph", bucket_edges=(4,), token_budget=16, overflow="truncate")


def test_figures_are_those_of_the_audit(counted: AuditTable) -> None:
    rows = {row[0]: row[1:] for row in counted.figures.rows}
    assert rows["ranks"] == ("all of 1", "")
    assert rows["rows a batch"] == ("3", "")
    assert rows["padding"] == ("13", "54.2 %")  # 24 slots, 11 events
    assert rows["users cut"] == ("1", "20.0 %")
    assert rows["events lost"] == ("5", "31.2 %")
    assert rows["users seen"] == ("5", "100.0 %")
    assert rows["lag-1 correlation"] == ("none", "it takes three batches that are not all of one length")
    assert counted.figures.note == "all figures are exact: counted in the plan, with the lengths"


def test_buckets_have_a_row_each(counted: AuditTable) -> None:
    assert counted.buckets is not None
    assert counted.buckets.rows == (("<= 4", "4", "5", "2", "24", "54.2 %", "1", "1", "5", "0", "0"),)
    assert table([1, 2], "jagged").buckets is None
    dropped = table([1, 9], "bucket_rows", bucket_edges=(2,), overflow="drop").buckets
    assert dropped is not None
    assert dropped.rows[1][:4] == ("above", "none", "1", "0")


def test_words_come_faults_first(counted: AuditTable) -> None:
    assert [kind for kind, _ in counted.words] == ["advice"]
    broken = audit_table(replace(counted.audit, faults=("<b>wrong</b>",), warnings=("look",)))
    assert [kind for kind, _ in broken.words] == ["fault", "warning", "advice"]
    page = broken._repr_html_()
    assert re.findall(r'data-kind="(\w+)"', page) == ["fault", "warning", "advice"]
    assert "&lt;b&gt;wrong" in page
    assert "<b>wrong" not in page


def test_text_is_aligned_and_ends_with_the_advice(counted: AuditTable) -> None:
    lines = repr(counted).splitlines()
    assert lines[0].split() == ["figure", "value", "share"]
    assert len({len(line) for line in lines[:20]}) == 1
    assert lines[-1].startswith("advice: Padding is 54.2 %")


def test_one_rank_of_several_says_which() -> None:
    plan = plan_epoch([1, 2, 3], BatchPolicy("pad_max", rows=1), rank=1, world_size=3)
    rows = {row[0]: row[1:] for row in audit_table(plan.audit()).figures.rows}
    assert rows["ranks"] == ("1 of 3", "")
    assert rows["users dropped"] == ("none", "other ranks have the rest: audit_ranks counts all of them")
    assert rows["above the token budget"] == ("none", "pad_max has no token budget")
