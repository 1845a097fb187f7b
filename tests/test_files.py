"""Files are written whole or not at all."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from labkit.errors import DataFileError
from labkit.files import check_target, write_whole, written_whole


def test_text_and_bytes_are_written_and_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    assert write_whole(path, "é\n") == path
    assert path.read_bytes() == b"\xc3\xa9\n"
    write_whole(path, b"\x00")
    assert path.read_bytes() == b"\x00"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half() -> None:
        with written_whole(path) as temporary:
            temporary.write_text("ne")
            raise RuntimeError("half")

    with pytest.raises(RuntimeError, match="half"):
        write_half()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_the_temporary_name_keeps_the_ending_and_the_folder(tmp_path: Path) -> None:
    with written_whole(tmp_path / "a.ipynb") as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".ipynb"
        temporary.write_text("{}")


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "ours", "")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_targets_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, message in (
        (tmp_path, f"'{tmp_path}' is a folder: name a file in it."),
        (
            tmp_path / "no" / "a.json",
            f"folder '{tmp_path}/no' does not exist, so 'a.json' cannot be written: create it first.",
        ),
        (
            tmp_path / "file" / "a.json",
            f"'{tmp_path}/file' is a file, not a folder: 'a.json' cannot be written there.",
        ),
    ):
        with pytest.raises(DataFileError, match=f"^{re.escape(message)}$"):
            check_target(path)
        with pytest.raises(DataFileError, match=f"^{re.escape(message)}$"):
            write_whole(path, "x")


def test_an_error_of_the_system_is_one_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with (
        pytest.raises(DataFileError, match=r"^cannot write '.*a\.txt': No space left on device\.$"),
        written_whole(path),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []
