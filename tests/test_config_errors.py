"""A tuned file that is broken, of the future or not ours is one clear line that names the field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from labkit.batching.policy import BatchPolicy
from labkit.config import TunedConfig
from labkit.errors import ConfigError, DataFileError
from labkit.lengths.histogram import LengthHistogram

VERSION = version("labkit")
HISTOGRAM = LengthHistogram.from_lengths([3, 1, 3, 0, 8])
TUNED = TunedConfig.from_policy(HISTOGRAM, BatchPolicy("bucket_budget", bucket_edges=(3, 8)))


def message_of(text: str | bytes, folder: Path) -> str:
    """The message with which a file of that content is refused, without the name of the file."""
    path = folder / "tuned.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        TunedConfig.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"'{path}': ")
    return message.removeprefix(f"'{path}': ")


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(TUNED.to_json())
    change(data)
    return json.dumps(data)


def put(*keys: Any, value: Any) -> Callable[[dict[str, Any]], object]:
    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


FIELDS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no kind": (
        lambda d: d.pop("kind"),
        ("not a tuned configuration of labkit: it has no field 'kind' that says 'labkit.tuned_config'."),
    ),
    "other kind": (
        put("kind", value="x"),
        ("not a tuned configuration of labkit: kind is 'x', expected 'labkit.tuned_config'."),
    ),
    "future": (
        put("schema_version", value=2),
        f"schema_version is 2, this labkit {VERSION} reads version 1: upgrade labkit where it is read.",
    ),
    "text version": (
        put("schema_version", value="1"),
        f"schema_version is '1', expected a whole number from 1: this labkit {VERSION} reads version 1.",
    ),
    "true version": (
        put("schema_version", value=True),
        f"schema_version is True, expected a whole number from 1: this labkit {VERSION} reads version 1.",
    ),
    "no version": (
        lambda d: d.pop("schema_version"),
        f"schema_version is missing, expected a whole number from 1: this labkit {VERSION} reads version 1.",
    ),
    "missing": (lambda d: d["policy"].pop("token_budget"), "policy.token_budget is missing."),
    "missing part": (lambda d: d.pop("histogram"), "histogram is missing."),
    "unknown": (put("policy", "tokens", value=1), "policy.tokens is no field of a tuned configuration."),
    "text": (put("policy", "rows", value="256"), "policy.rows is '256': it should be a valid integer."),
    "float": (
        put("policy", "token_budget", value=16384.0),
        ("policy.token_budget is 16384.0: it should be a valid integer."),
    ),
    "bool": (put("policy", "rows", value=True), "policy.rows is True: it should be a valid integer."),
    "item": (put("histogram", "counts", 2, value=2.5), "histogram.counts[2] is 2.5: it should be a valid integer."),
    "enum": (
        put("policy", "overflow", value="cut"),
        ("policy.overflow is 'cut': it should be 'error', 'truncate', 'drop' or 'split'."),
    ),
    "range": (put("policy", "token_budget", value=0), "policy: token_budget must be 1 or more: got 0."),
    "edges": (
        put("policy", "bucket_edges", value=[8, 3]),
        ("policy: bucket_edges must be strictly increasing: 3 follows 8 at position 1. Sort them."),
    ),
    "no edges": (
        put("policy", "bucket_edges", value=None),
        ("policy: strategy bucket_budget needs bucket_edges: pass optimal_edges(histogram, buckets).edges."),
    ),
    "share": (
        put("max_truncated_share", value=1.5),
        "max_truncated_share is 1.5: it should be less than or equal to 1.",
    ),
    "count": (
        put("histogram", "counts", 0, value=0),
        ("histogram: histogram count of length 0 is 0: every count must be 1 or more. Leave the line out."),
    ),
    "length": (
        put("histogram", "values", 0, value=3),
        ("histogram: histogram length 3 appears twice: give each length once, with its total count."),
    ),
    "no lengths": (
        put("histogram", value={"values": [], "counts": []}),
        ("histogram: histogram lengths are empty: at least one sequence is needed."),
    ),
    "date": (
        put("created", value="yesterday"),
        "created is 'yesterday': it should be a valid datetime, input is too short.",
    ),
    "local date": (
        put("created", value="2026-01-01T00:00:00"),
        ("created is '2026-01-01T00:00:00': it should have timezone info."),
    ),
    "figure": (
        put("figures", "slots", "value", value="many"),
        ("figures.slots.value is 'many': it should be a valid integer."),
    ),
    "no reason": (
        put("figures", "slots", "value", value=None),
        ("figures.slots: a figure without a value needs a reason (unit 'slots')"),
    ),
}


@pytest.mark.parametrize("case", FIELDS)
def test_the_field_and_its_value_are_named(case: str, tmp_path: Path) -> None:
    change, message = FIELDS[case]
    assert message_of(changed(change), tmp_path) == message


# lengths 0 1 3 3 8 with edges 3, 8: batches of 4 x 3 and 1 x 8, 20 slots for 15 events
EXPORT = "the file was changed after its export. Export it again, with labkit tune or the panel."
FIGURES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "impossible": (
        put("figures", "padding_ratio", "value", value=-7),
        "figures.padding_ratio.value is -7, the policy on this histogram gives 0.25",
    ),
    "one off": (
        put("figures", "slots", "value", value=21),
        "figures.slots.value is 21, the policy on this histogram gives 20",
    ),
    "beyond any float": (
        put("figures", "padding_ratio", "value", value=10**400),
        f"figures.padding_ratio.value is 1{'0' * 59}..., the policy on this histogram gives 0.25",
    ),
    "nearly": (
        put("figures", "padding_ratio", "value", value=0.2500001),
        "figures.padding_ratio.value is 0.2500001, the policy on this histogram gives 0.25",
    ),
    "none": (
        put("figures", "slots", value={"value": None, "unit": "slots", "origin": None, "reason": "forgot"}),
        "figures.slots.origin is None, expected 'exact'",
    ),
    "unit": (put("figures", "slots", "unit", value="zzz"), "figures.slots.unit is 'zzz', expected 'slots'"),
    "origin": (
        put("figures", "slots", "origin", value="measured"),
        "figures.slots.origin is 'measured', expected 'exact'",
    ),
    "deleted": (
        lambda d: d["figures"].pop("slots"),
        "figures.slots is missing, the policy on this histogram gives 20",
    ),
    "share": (
        put("figures", "lost_share", "value", value=1e-6),
        "figures.lost_share.value is 1e-06, the policy on this histogram gives 0.0",
    ),
    # 5 x 8 slots, and one batch of one shape: 5 figures of the old edges remain
    "policy": (
        put("policy", "bucket_edges", value=[8]),
        "figures.padding_ratio.value is 0.25, the policy on this histogram gives 0.625 (4 more figures wrong)",
    ),
}


@pytest.mark.parametrize("case", FIGURES)
def test_figures_that_are_not_those_of_the_policy_are_refused(case: str, tmp_path: Path) -> None:
    change, message = FIGURES[case]
    assert message_of(changed(change), tmp_path) == f"{message}: {EXPORT}"


def test_rounding_and_names_of_later_versions_are_no_fault(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["figures"]["padding_ratio"]["value"] += 1e-13
        data["figures"]["time_s"] = {"value": 3.5, "unit": "s", "origin": "modelled", "reason": "of a later version"}

    (tmp_path / "t.json").write_text(changed(change))
    tuned = TunedConfig.load(tmp_path / "t.json")
    assert tuned.figures["time_s"].value == 3.5
    assert TunedConfig.load(tuned.save(tmp_path / "t.json")) == tuned


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3.75, None),
        (-1, "figures.batches.value is -1, expected a number of 0 or more; the policy on this histogram gives "),
        (None, "figures.batches.value is None, expected a number of 0 or more; the policy on this histogram gives "),
    ],
)
def test_modelled_figures_may_differ_but_must_be_numbers(value: Any, message: str | None, tmp_path: Path) -> None:
    lengths = LengthHistogram.from_lengths([3, 1, 3, 2, 8, 5, 6] * 9)
    data = json.loads(TunedConfig.from_policy(lengths, BatchPolicy("jagged", token_budget=20)).to_json())
    assert data["figures"]["batches"]["origin"] == "modelled"
    data["figures"]["batches"]["value"] = value
    if message is None:
        (tmp_path / "t.json").write_text(json.dumps(data))
        assert TunedConfig.load(tmp_path / "t.json").figures["batches"].value == value
    else:
        found = message_of(json.dumps(data), tmp_path)
        assert found.startswith(message)
        assert found.endswith(EXPORT)


@pytest.mark.parametrize("content", ["precious", "length,count\n1,2\n", "{}", '{"kind": "other"}', "{", "", "[1]"])
def test_a_file_that_is_no_tuned_configuration_is_never_overwritten(content: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    message = f"'{path}' is there and is no tuned configuration, so it is not overwritten: choose another name."
    with pytest.raises(DataFileError, match=f"^{re.escape(message)}$"):
        TUNED.save(path)
    assert path.read_text() == content
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


def test_a_tuned_configuration_is_overwritten_even_of_a_version_that_is_not_read(tmp_path: Path) -> None:
    path = TUNED.save(tmp_path / "t.json")
    path.write_text(changed(put("schema_version", value=9)))
    assert TunedConfig.load(TUNED.save(path)) == TUNED


def test_a_name_too_long_is_one_line(tmp_path: Path) -> None:
    name = "x" * 300 + ".json"
    with pytest.raises(DataFileError, match=r"^cannot read '.*x\.json': File name too long\.$"):
        TunedConfig.load(tmp_path / name)
    with pytest.raises(DataFileError, match=r"^cannot write '.*x\.json': File name too long\.$"):
        TUNED.save(tmp_path / name)


def test_the_first_of_several_faults_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["policy"]["rows"], data["policy"]["shuffle"] = None, 1

    assert message_of(changed(change), tmp_path) == (
        "policy.rows is None: it should be a valid integer (1 more field wrong)."
    )


def test_a_histogram_that_was_changed_does_not_fit_its_fingerprint(tmp_path: Path) -> None:
    # one of the three sequences of length 3 turned into one more of length 8
    message = message_of(changed(put("histogram", "counts", value=[1, 1, 1, 2])), tmp_path)
    assert re.fullmatch(
        r"fingerprint is '[0-9a-f]{12}'\.\.\., but the sha256 of histogram is '[0-9a-f]{12}'\.\.\.: "
        r"one of the two was changed\. Export the file again\.",
        message,
    )


def test_a_policy_that_does_not_run_on_its_own_lengths_is_refused(tmp_path: Path) -> None:
    assert message_of(changed(put("policy", "bucket_edges", value=[3, 5])), tmp_path) == (
        "longest length 8 > last bucket edge 5 (1 of 5 sequences above it): raise the last edge, set max_length, or "
        "choose overflow 'truncate' or 'drop'."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: Expecting value at line 1, column 1."),
        (TUNED.to_json()[:-3], None),
        ("[1, 2]", "not a tuned configuration of labkit: it has no field 'kind' that says 'labkit.tuned_config'."),
        ('{"a": NaN}', "not strict JSON: NaN is no number. A number that does not exist is null with a reason."),
        (
            '{"a": [-Infinity]}',
            ("not strict JSON: -Infinity is no number. A number that does not exist is null with a reason."),
        ),
        ('{"a": 1, "a": 2}', "not strict JSON: field 'a' appears twice in one object."),
        ("[" * 100_000, None),
        ('{"a": ' + "1" * 5000 + "}", None),
        (b'{"kind": "\xff"}', "not JSON: byte 10 is not UTF-8."),
        (b"\x93NUMPY", "not JSON: byte 0 is not UTF-8."),
    ],
    ids=["empty", "cut short", "list", "NaN", "infinity", "repeated", "tower", "long number", "bytes", "npy"],
)
def test_what_is_not_strict_json_is_refused(text: str | bytes, message: str | None, tmp_path: Path) -> None:
    found = message_of(text, tmp_path)
    assert found.startswith("not JSON") if message is None else found == message


def test_a_number_that_overflows_a_float_is_refused(tmp_path: Path) -> None:
    text = TUNED.to_json().replace('"max_truncated_share": 0.01', '"max_truncated_share": 1e999')
    assert message_of(text, tmp_path) == "max_truncated_share is inf: it should be a finite number."


def test_a_file_that_is_not_there_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"^file not found: '.*no\.json'\. Check the path, from folder '.*'\.$"):
        TunedConfig.load(tmp_path / "no.json")
    with pytest.raises(DataFileError, match=r"^cannot read '.*': Is a directory\.$"):
        TunedConfig.load(tmp_path)


def test_saving_where_there_is_no_folder_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"^folder '.*/no' does not exist, so 't\.json' cannot be written"):
        TUNED.save(tmp_path / "no" / "t.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (1.5, "cannot be exported: max_truncated_share is 1.5: it should be less than or equal to 1."),
        (-0.1, "cannot be exported: max_truncated_share is -0.1: it should be greater than or equal to 0."),
        (float("nan"), "cannot be exported: max_truncated_share is nan: it should be a finite number."),
        ("1 %", "cannot be exported: max_truncated_share is '1 %': it should be a valid number."),
    ],
)
def test_a_share_that_is_none_is_not_exported(share: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        TunedConfig.from_policy(HISTOGRAM, TUNED.batch_policy, max_truncated_share=share)


def test_an_unused_field_that_cannot_be_stored_is_named() -> None:
    policy = BatchPolicy("pad_max", max_length=float("nan"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^cannot be exported: max_length is nan: it should be a valid integer"):
        TunedConfig.from_policy(HISTOGRAM, policy)
