"""Files are written whole or not at all."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from labkit.errors import DataFileError
from labkit.files import (
    PathKind,
    check_folder,
    check_target,
    expanded,
    kind_of,
    made_folder,
    not_found,
    write_whole,
    written_whole,
)


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


@pytest.mark.parametrize("name", ["x" * 255, "x" * 250 + ".json", "é" * 127, "." + "x" * 254, "a." + "x" * 253])
def test_a_name_as_long_as_one_may_be_can_be_written(tmp_path: Path, name: str) -> None:
    write_whole(tmp_path / name, "x")
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x" * 256, "x" * 252 + ".json", "é" * 128, "x" * 300 + "/a.json"])
def test_a_name_too_long_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataFileError) as refused:
        write_whole(tmp_path / name, "x")
    assert str(refused.value) == f"cannot write {str(tmp_path / name)!r}: File name too long."
    assert list(tmp_path.iterdir()) == []


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_where_we_must_not_look_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(DataFileError, match=r"^cannot read 's/a': Permission denied\.$"):
        kind_of("s/a")
    with pytest.raises(DataFileError, match=r"^cannot write 's/a': Permission denied\.$"):
        check_target("s/a")


def test_a_folder_that_must_not_be_written_to_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("write_bytes", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    with pytest.raises(DataFileError, match=rf"^cannot write '{tmp_path}/a': Permission denied\.$"):
        write_whole(tmp_path / "a", "x")


def test_what_lies_at_a_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nothing")
    found = [kind_of(tmp_path / name) for name in ("file", "pipe", ".", "no", "file/no", "dangling")]
    assert found == [PathKind.FILE, PathKind.OTHER, PathKind.FOLDER, None, None, None]
    with pytest.raises(DataFileError, match=r"^cannot read 'a\\x00b': embedded null byte\.$"):
        kind_of("a\0b")


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    names = ["~/a.json", "~", "a~", "./~/a", "~no-such-user/a"]
    assert [expanded(name) for name in names] == ["/home/me/a.json", "/home/me", "a~", "./~/a", "~no-such-user/a"]


def test_what_is_not_found_is_said_even_where_the_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(not_found("a")) == f"file not found: 'a'. Check the path, from folder '{tmp_path}'."
    monkeypatch.setattr(Path, "cwd", lambda: Path("/no/such").stat())
    assert str(not_found("a")) == "file not found: 'a'. Check the path, and the current folder, which is gone."


def test_a_folder_is_made_where_only_its_last_part_is_missing(tmp_path: Path) -> None:
    assert made_folder(tmp_path / "new") == tmp_path / "new"
    assert made_folder(tmp_path / "new").is_dir()
    with pytest.raises(DataFileError, match="does not exist: create it"):
        made_folder(tmp_path / "none" / "deep")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFileError, match="is a file, not a folder"):
        made_folder(tmp_path / "file")


def test_a_folder_is_checked_as_it_would_be_made_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert check_folder(tmp_path / "new") == tmp_path / "new"
    assert check_folder(tmp_path) == tmp_path
    assert check_folder(tmp_path / "out" / "sub", made_before=tmp_path / "out") == tmp_path / "out" / "sub"
    assert check_folder(tmp_path / "a", made_before=tmp_path / "a" / "b") == tmp_path / "a"
    with pytest.raises(DataFileError, match=r"is a file, not a folder: choose another place\.$"):
        check_folder(tmp_path / "file")
    with pytest.raises(DataFileError, match=r"none' does not exist: create it, or choose another place\.$"):
        check_folder(tmp_path / "none" / "new", made_before=tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
