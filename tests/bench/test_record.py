"""Record: figures as attributes, strict JSON there and back, measured once and recorded ever after."""

from __future__ import annotations

import json
import pickle
import re

import pytest

from labkit.bench.record import FIGURES, Record
from labkit.errors import DataFileError
from labkit.provenance import Figure, Origin

WHO = {"strategy": "jagged", "policy": {"rows": 2}, "device": "cpu", "model": "din", "environment": {"torch": "2"}}


def record(**figures: Figure) -> Record:
    return Record.failed("not measured here", figures=figures, **WHO)


def test_every_figure_is_there_and_those_without_a_value_say_why() -> None:
    made = record(epoch_s=Figure(2.5, "s", Origin.MEASURED), energy_j=Figure(3, "J", Origin.MEASURED, "of the card"))
    assert made.epoch_s == 2.5
    assert made.energy_j == 3
    assert made.kernels is None
    assert made.provenance == {"epoch_s": Origin.MEASURED, "energy_j": Origin.MEASURED}
    assert made.reason["kernels"] == "not measured here"
    assert made.reason["energy_j"] == "of the card"
    assert "epoch_s" not in made.reason
    assert made.ok
    assert not record().ok


def test_an_unknown_attribute_names_the_figures() -> None:
    with pytest.raises(AttributeError, match="no figure 'epochs'; it has epoch_s, epoch_error_s, events_per_s, "):
        record().epochs  # noqa: B018


def test_a_record_that_lacks_a_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="a record of jagged lacks kernels, n: give a Figure with a reason"):
        Record(**WHO, figures={name: Figure(1, "1", Origin.EXACT) for name in FIGURES if name not in ("kernels", "n")})


def test_json_and_pickle_round_trip() -> None:
    made = record(epoch_s=Figure(2.5, "s", Origin.MEASURED, "extrapolated"), n=Figure(7, "1", Origin.MEASURED))
    text = json.dumps(made.to_dict(), allow_nan=False)
    again = Record.from_dict(json.loads(text), device="cpu", model="din", environment={"torch": "2"})
    assert again == made
    assert pickle.loads(pickle.dumps(made)) == made


def test_what_an_earlier_version_recorded_has_no_error() -> None:
    data = record(epoch_s=Figure(2.5, "s", Origin.MEASURED)).to_dict()
    for part in (data, data["unit"], data["reason"]):
        part.pop("epoch_error_s", None)
    read = Record.from_dict(data, device="cpu", model="din", environment={})
    assert read.figures["epoch_error_s"] == Figure(None, "s", None, "not there when this was recorded")


def test_what_was_measured_becomes_recorded_and_what_is_exact_stays_exact() -> None:
    made = record(epoch_s=Figure(2.5, "s", Origin.MEASURED, "a"), padding_ratio=Figure(0.5, "1", Origin.EXACT))
    later = made.recorded("H200, 2026-11-29, abc123")
    assert later.figures["epoch_s"] == Figure(2.5, "s", Origin.RECORDED, "H200, 2026-11-29, abc123; a")
    assert later.figures["padding_ratio"] == made.figures["padding_ratio"]
    assert later.figures["kernels"] == made.figures["kernels"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": None}, "'NoneType' object has no attribute 'items'"),
        ({"provenance": {}}, "a figure with a value needs an origin (value 2.5, unit 's')"),
        ({"provenance": {"epoch_s": "guessed"}}, "'guessed' is not a valid Origin"),
        ({"reason": {}}, "a figure without a value needs a reason"),
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, object], message: str) -> None:
    data = record(epoch_s=Figure(2.5, "s", Origin.MEASURED)).to_dict() | change
    with pytest.raises(
        DataFileError, match=re.escape("this is no record of a measurement: ") + ".*" + re.escape(message)
    ):
        Record.from_dict(data, device="cpu", model="din", environment={})


def test_a_missing_part_is_named() -> None:
    with pytest.raises(DataFileError, match=r"'provenance' is missing\. Use what labkit measure wrote\."):
        Record.from_dict({}, device="cpu", model="din", environment={})
