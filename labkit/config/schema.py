"""The JSON Schema of a tuned configuration, made from the model: ``python -m labkit.config.schema`` renews the file."""

from __future__ import annotations

import json
from pathlib import Path

from labkit.config.tuned import TunedConfig
from labkit.files import write_whole

#: The committed schema, for readers in other languages and for editors.
SCHEMA_FILE = Path(__file__).resolve().parents[1] / "tuned_config.schema.json"


def schema_text() -> str:
    """The schema as it should lie in ``SCHEMA_FILE``."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **TunedConfig.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    write_whole(SCHEMA_FILE, schema_text())
