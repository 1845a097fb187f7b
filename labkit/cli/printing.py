"""How a command answers: text for people, or strict JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import typer

INTERRUPTED = 130  # 128 + SIGINT


def print_result(as_json: bool, data: Callable[[], dict[str, Any]], text: Callable[[], str]) -> None:
    """Print the answer; only the form that was asked for is made."""
    typer.echo(json.dumps(data(), indent=2, allow_nan=False) if as_json else text())
