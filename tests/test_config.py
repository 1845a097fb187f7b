"""A tuned configuration: export, import, and the batches that a training job gets from it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.edges import optimal_edges, quantile_p95_edges
from labkit.batching.plan import plan_epoch
from labkit.batching.policy import BatchPolicy
from labkit.batching.strategies import Layout, Strategy
from labkit.batching.what_if import FIGURES, what_if
from labkit.config import TunedConfig
from labkit.config.stored import StoredPolicy
from labkit.errors import PolicyError
from labkit.layouts.packed import PackedDataset
from labkit.lengths.histogram import LengthHistogram

LENGTHS = np.array([3, 1, 3, 0, 8, 5, 2, 8, 1, 1])
HISTOGRAM = LengthHistogram.from_lengths(LENGTHS)


def buckets(**changes: Any) -> BatchPolicy:
    settings = {"bucket_edges": (1, 3, 8), "token_budget": 16, **changes}
    return BatchPolicy("bucket_budget", **settings)


@st.composite
def policies(draw: st.DrawFn) -> tuple[LengthHistogram, BatchPolicy]:
    """Lengths and a policy of any strategy that runs on them; whole numbers are Python's or NumPy's."""
    lengths = draw(st.lists(st.integers(0, 60), min_size=1, max_size=40))
    histogram = LengthHistogram.from_lengths(lengths)

    def whole(low: int, high: int) -> Any:
        number = draw(st.integers(low, high))
        return draw(st.sampled_from([int, np.int64, np.int32]))(number)

    settings: dict[str, Any] = {
        "rows": whole(1, 9),
        "token_budget": whole(70, 300),
        "max_length": draw(st.one_of(st.none(), st.just(whole(1, 70)))),
        "overflow": draw(st.sampled_from(["error", "truncate", "drop"])),
        "row_multiple": whole(1, 4),
        "length_multiple": whole(1, 8),
        "batch_order": draw(st.sampled_from(["shuffled", "grouped"])),
        "shuffle": draw(st.booleans()),
        "drop_last": draw(st.booleans()),
    }
    strategy = draw(st.sampled_from(list(Strategy)))
    found = draw(st.sampled_from([optimal_edges(histogram, 4), quantile_p95_edges(histogram)]))
    settings["bucket_edges"] = draw(st.sampled_from([found.edges, list(found.edges), np.array(found.edges)]))
    settings["bucket_widths"] = found.widths
    return histogram, BatchPolicy(strategy, **settings)


@given(policies())
def test_export_then_import_gives_an_equal_policy_with_plain_integers(
    case: tuple[LengthHistogram, BatchPolicy],
) -> None:
    histogram, policy = case
    tuned = TunedConfig.from_policy(histogram, policy)
    read = TunedConfig.model_validate_json(tuned.to_json())
    assert read == tuned
    assert read.to_json() == tuned.to_json()
    assert read.length_histogram == histogram
    for f in fields(BatchPolicy):
        if f.name not in policy.spec.fields:
            continue
        before, after = getattr(policy, f.name), getattr(read.batch_policy, f.name)
        assert after == before, f.name
        assert type(after) is type(before), f.name
    assert what_if(read.length_histogram, read.batch_policy) == what_if(histogram, policy)


@given(policies())
def test_the_json_holds_no_float_where_an_integer_was(case: tuple[LengthHistogram, BatchPolicy]) -> None:
    data = json.loads(TunedConfig.from_policy(*case).to_json())
    whole = [data["policy"][name] for name in ("rows", "token_budget", "row_multiple", "length_multiple")]
    whole += data["histogram"]["values"] + data["histogram"]["counts"] + list(data["policy"]["bucket_edges"])
    assert {type(number) for number in whole} == {int}


def test_no_cap_is_null_and_stays_none(tmp_path: Path) -> None:
    path = TunedConfig.from_policy(HISTOGRAM, buckets()).save(tmp_path / "tuned.json")
    assert json.loads(path.read_text())["policy"]["max_length"] is None
    assert TunedConfig.load(path).batch_policy.max_length is None


def test_every_field_of_a_policy_is_stored() -> None:
    assert list(StoredPolicy.model_fields) == [f.name for f in fields(BatchPolicy)]


def test_a_file_from_before_packing_is_read(tmp_path: Path) -> None:
    data = json.loads(TunedConfig.from_policy(HISTOGRAM, buckets()).to_json())
    for name in ("capacity", "max_sequences_per_pack"):
        assert data["policy"].pop(name) is None
    (tmp_path / "tuned.json").write_text(json.dumps(data))
    policy = TunedConfig.load(tmp_path / "tuned.json").batch_policy
    assert policy == buckets()
    assert (policy.capacity, policy.max_sequences_per_pack) == (None, None)


def test_packs_are_stored_with_their_figure(tmp_path: Path) -> None:
    policy = BatchPolicy("packed", capacity=4, max_sequences_per_pack=3, overflow="split")
    tuned = TunedConfig.load(TunedConfig.from_policy(HISTOGRAM, policy).save(tmp_path / "tuned.json"))
    assert tuned.batch_policy == policy
    assert tuned.figures["packs"].value == what_if(HISTOGRAM, policy).packs


def test_a_field_that_the_strategy_does_not_use_is_stored_as_it_is() -> None:
    policy = BatchPolicy("pad_max", rows=4, token_budget=np.int64(7), bucket_edges=[9, 2], overflow="drop")
    stored = json.loads(TunedConfig.from_policy(HISTOGRAM, policy).to_json())["policy"]
    assert (stored["token_budget"], stored["bucket_edges"], stored["overflow"]) == (7, [9, 2], "drop")


def test_saved_twice_only_the_date_differs(tmp_path: Path) -> None:
    first, second = (TunedConfig.from_policy(HISTOGRAM, buckets()) for _ in range(2))
    later = second.model_copy(update={"created": first.created + timedelta(days=1)})
    texts = [config.save(tmp_path / "tuned.json").read_bytes() for config in (first, first, later)]
    assert texts[0] == texts[1]
    lines = [text.splitlines() for text in texts]
    assert [a for a, b in zip(lines[0], lines[2], strict=True) if a != b] == [
        line for line in lines[0] if line.startswith(b'  "created": ')
    ]


def test_the_date_is_utc_and_the_versions_are_those_that_ran() -> None:
    tuned = TunedConfig.from_policy(HISTOGRAM, buckets())
    assert tuned.created.utcoffset() == timedelta(0)
    assert json.loads(tuned.to_json())["created"].endswith("Z")
    assert tuned.versions["numpy"] == np.__version__
    assert tuned.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert set(tuned.versions) - {"torch"} == {"labkit", "python", "numpy"}


def test_torch_is_named_only_where_it_was_loaded() -> None:
    code = (
        "import sys; from labkit.config import TunedConfig; import labkit; from labkit.lengths.presets import preset\n"
        "h = preset('cdnow'); t = TunedConfig.from_policy(h, labkit.BatchPolicy('pad_batch'))\n"
        "assert 'torch' not in sys.modules and 'torch' not in t.versions\n"
        "import torch; assert TunedConfig.from_policy(h, labkit.BatchPolicy('pad_batch')).versions['torch']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_figures_are_those_of_what_if_with_their_origins() -> None:
    policy = BatchPolicy("pad_batch", rows=4)
    scored = what_if(HISTOGRAM, policy)
    figures = TunedConfig.from_policy(HISTOGRAM, policy).figures
    assert set(figures) == {*FIGURES, "truncated_share", "lost_share"}
    assert {name: figures[name].value for name in FIGURES} == {name: getattr(scored, name) for name in FIGURES}
    assert {name: figures[name].origin for name in FIGURES} == scored.provenance
    assert figures["shapes"].reason == scored.reason["shapes"]
    assert (figures["slots"].unit, figures["padding_ratio"].unit, figures["kept_events"].unit) == (
        "slots",
        "1",
        "events",
    )


# cap 3 cuts the lengths 8, 5, 8: 3 of 10 users, 5 + 2 + 5 = 12 of 32 events
def test_the_share_of_users_that_may_be_cut_follows_the_tuned_one() -> None:
    cut = TunedConfig.from_policy(HISTOGRAM, buckets(bucket_edges=(1, 3), max_length=3))
    assert cut.figures["truncated_share"].value == 0.3
    assert cut.figures["lost_share"].value == 12 / 32
    assert cut.max_truncated_share == pytest.approx(1.5 * 0.3 + 0.01)
    assert TunedConfig.from_policy(HISTOGRAM, buckets()).max_truncated_share == 0.01
    assert TunedConfig.from_policy(HISTOGRAM, buckets(), max_truncated_share=np.float32(0.5)).max_truncated_share == 0.5


def test_a_policy_that_does_not_run_on_its_lengths_is_not_exported() -> None:
    with pytest.raises(PolicyError, match=r"^longest length 8 > last bucket edge 5 \(2 of 10 sequences above it\)"):
        TunedConfig.from_policy(HISTOGRAM, buckets(bucket_edges=(3, 5)))


# --- a training job


@pytest.mark.parametrize("strategy", list(Strategy), ids=str)
def test_the_sampler_of_a_loaded_file_makes_the_batches_planned_before_the_export(
    strategy: Strategy, tmp_path: Path
) -> None:
    edges = (1, 3, 8) if strategy.startswith("bucket") else None
    policy = BatchPolicy(strategy, rows=3, bucket_edges=edges, token_budget=24)
    planned = [[batch.tolist() for batch in plan_epoch(LENGTHS, policy, seed=7, epoch=epoch)] for epoch in (0, 1)]
    path = TunedConfig.from_policy(HISTOGRAM, policy).save(tmp_path / "tuned.json")
    code = (
        "import json, sys; from labkit.config import TunedConfig\n"
        "sampler = TunedConfig.load(sys.argv[1]).sampler(json.loads(sys.argv[2]), seed=7); found = [list(sampler)]\n"
        "sampler.set_epoch(1); found.append(list(sampler)); print(json.dumps(found))"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(path), json.dumps(LENGTHS.tolist())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == planned


def test_other_lengths_are_warned_of_with_both_figures() -> None:
    # edges 1 3 8 on the tuned lengths: 4*1 + 3*3 + 3*8 = 37 slots, 32 events; on 2 2 9: 9 is cut to 8, slots 3+3+8 = 14
    tuned = TunedConfig.from_policy(HISTOGRAM, buckets(overflow="truncate"), max_truncated_share=0.5)
    with pytest.warns(UserWarning, match="not those that this configuration was tuned on") as caught:
        tuned.sampler([2, 2, 9])
    assert [str(w.message) for w in caught] == [
        (
            "the lengths are not those that this configuration was tuned on (10 sequences then, 3 now): "
            "padding 13.5 % then, 14.3 % now; users cut 0 % then, 33.3 % now; events lost 0 % then, 7.7 % now."
        )
    ]
    assert caught[0].filename == __file__


def test_a_share_above_the_limit_says_to_fall_back() -> None:
    tuned = TunedConfig.from_policy(HISTOGRAM, buckets(overflow="truncate"), max_truncated_share=0.3)
    found = tuned.compare([2, 2, 9])
    assert found.fall_back
    assert found.message.endswith(
        " More users are cut than max_truncated_share 30.0 % allows: "
        "fall back to a policy that cuts nobody, and tune again."
    )
    assert not tuned.compare([2, 2, 8]).fall_back


def test_a_dropped_user_counts_as_cut() -> None:
    found = TunedConfig.from_policy(HISTOGRAM, buckets(overflow="drop")).compare([2, 2, 9])
    assert (found.truncated_share_now, found.lost_share_now) == (1 / 3, 9 / 13)
    assert found.fall_back


def test_lengths_on_which_the_policy_does_not_run_are_a_problem_and_an_error_of_the_sampler() -> None:
    tuned = TunedConfig.from_policy(HISTOGRAM, buckets())
    found = tuned.compare(LengthHistogram.from_lengths([2, 9]))
    assert (found.padding_ratio_now, found.truncated_share_now, found.lost_share_now) == (None, None, None)
    assert found.fall_back
    assert "and its policy does not run on them: longest length 9 > last bucket edge 8" in found.message
    with pytest.raises(PolicyError, match="longest length 9 > last bucket edge 8"):
        tuned.sampler([2, 9])


def test_the_same_lengths_in_another_order_are_the_same() -> None:
    tuned = TunedConfig.from_policy(HISTOGRAM, buckets())
    tuned.sampler(LENGTHS[::-1])  # a warning would fail the test
    assert tuned.compare(LENGTHS[::-1]).message == "the lengths are those that this configuration was tuned on."


# --- with the tensors


class Histories(torch.utils.data.Dataset[torch.Tensor]):
    """User i has the events 1000 i + 1, 1000 i + 2, ..."""

    def __len__(self) -> int:
        return LENGTHS.size

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.arange(1, int(LENGTHS[i]) + 1) + 1000 * i


@pytest.mark.parametrize("strategy", list(Strategy), ids=str)
def test_a_loaded_file_gives_the_tensors_that_were_planned(strategy: Strategy, tmp_path: Path) -> None:
    edges = (1, 3, 6) if strategy.startswith("bucket") else None
    policy = BatchPolicy(strategy, rows=3, bucket_edges=edges, token_budget=24, max_length=6, length_multiple=2)
    plan = plan_epoch(LENGTHS, policy, seed=3)
    tuned = TunedConfig.load(TunedConfig.from_policy(HISTOGRAM, policy).save(tmp_path / "tuned.json"))
    packs = strategy is Strategy.PACKED
    layout = "jagged" if strategy in (Strategy.RNN_PACKED, Strategy.SPARSE) else None
    loader = torch.utils.data.DataLoader(
        PackedDataset(Histories()) if packs else Histories(),
        batch_sampler=tuned.sampler(LENGTHS, seed=3),
        collate_fn=tuned.collate(layout),
    )
    batches = list(loader)
    assert len(batches) == len(plan)
    cap = None if strategy is Strategy.PAD_MAX else 6
    for i, (batch, indices) in enumerate(zip(batches, plan, strict=True)):
        recent = [Histories()[j][-cap:] if cap else Histories()[j] for j in indices.tolist()]
        assert batch.rows == (plan.rows[i] if packs else len(recent))
        if packs:
            assert tuple(batch.values.shape) == (plan.rows[i], plan.padded_lengths[i])
            assert batch.values[batch.segment_ids > 0].tolist() == torch.cat(recent).tolist()
        elif layout == "jagged" or policy.spec.layout in (Layout.JAGGED, Layout.SEGMENTED):
            assert batch.values.tolist() == torch.cat(recent).tolist()
        else:
            assert tuple(batch.values.shape) == (plan.rows[i], plan.padded_lengths[i])
            assert batch.values[batch.valid].tolist() == torch.cat(recent).tolist()


@pytest.mark.parametrize(
    ("strategy", "settings", "depends"),
    [
        ("pad_max", {}, True),
        ("pad_recent", {}, True),
        ("pad_recent", {"max_length": 4}, False),
        ("pad_batch", {}, False),
        ("packed", {}, True),
        ("packed", {"capacity": 99}, False),
        ("bucket_graph", {"bucket_edges": (3, 9), "token_budget": 30}, True),
        ("bucket_rows", {"bucket_edges": (3, 9)}, False),
        ("bucket_rows", {"bucket_edges": (3, 9), "static_shapes": True}, True),
    ],
)
def test_other_lengths_give_the_planned_shapes_when_the_collate_knows_them(
    strategy: str, settings: dict[str, Any], depends: bool
) -> None:
    others = LENGTHS[:7]
    tuned = TunedConfig.from_policy(HISTOGRAM, BatchPolicy(strategy, **{"rows": 3, **settings}))
    with pytest.warns(UserWarning, match="not those that this configuration was tuned on") as caught:
        sampler = tuned.sampler(others)
    hint = f" Shapes of {strategy} depend on the lengths: use collate(histogram=lengths)."
    assert str(caught[0].message).endswith(hint) == depends
    collate = tuned.collate(histogram=others)
    data = PackedDataset(Histories()) if strategy == "packed" else Histories()
    shapes = [tuple(collate([data[i] for i in batch]).values.shape) for batch in sampler]
    assert shapes == list(zip(sampler.plan.rows.tolist(), sampler.plan.padded_lengths.tolist(), strict=True))
