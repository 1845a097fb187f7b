"""The JSON Schema beside the package is that of the model, and tells good files from bad ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from labkit.batching.policy import BatchPolicy
from labkit.config import TunedConfig
from labkit.config.schema import SCHEMA_FILE, schema_text
from labkit.lengths.histogram import LengthHistogram

TUNED = TunedConfig.from_policy(LengthHistogram.from_lengths([3, 1]), BatchPolicy("bucket_rows", bucket_edges=(3,)))


def test_the_committed_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), (
        "renew it: .venv/bin/python -m labkit.config.schema"
    )


def test_the_command_that_renews_the_schema_leaves_it_as_it_is() -> None:
    before = SCHEMA_FILE.read_bytes()
    subprocess.run([sys.executable, "-m", "labkit.config.schema"], check=True, cwd=Path(__file__).parents[1])
    assert SCHEMA_FILE.read_bytes() == before


def test_a_saved_file_is_valid() -> None:
    jsonschema.validate(json.loads(TUNED.to_json()), json.loads(schema_text()))


@pytest.mark.parametrize(("name", "value"), [("rows", 2.5), ("overflow", "cut"), ("tokens", 1)])
def test_a_wrong_file_is_not_valid(name: str, value: object) -> None:
    data = json.loads(TUNED.to_json())
    data["policy"][name] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json.loads(schema_text()))


def test_every_field_is_described() -> None:
    schema = json.loads(schema_text())
    objects = {"TunedConfig": schema, **{k: v for k, v in schema["$defs"].items() if "properties" in v}}
    bare = [f"{o}.{name}" for o, s in objects.items() for name, p in s["properties"].items() if "description" not in p]
    assert bare == []
