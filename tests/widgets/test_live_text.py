from __future__ import annotations

import pytest

from labkit.widgets.live_text import LiveText


@pytest.mark.parametrize(
    ("text", "error", "expected"),
    [
        ("no such file", True, ("no such file", True)),
        ("Saved", False, ("Saved", False)),
        (None, True, ("", False)),
        ("", False, ("", False)),
    ],
)
def test_what_is_said_is_plain_text_with_its_kind(text: str | None, error: bool, expected: tuple[str, bool]) -> None:
    said = LiveText()
    said.say("before", error=not error)
    said.say(text, error=error)
    assert (said.text, said.is_error) == expected
    said.close()
