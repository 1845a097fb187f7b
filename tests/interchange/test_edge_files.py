"""Edge files: written and read back, what they cannot say, and one line for each that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.batching.policy import BatchPolicy
from labkit.errors import DataFileError, EdgesError, PolicyError
from labkit.interchange import EdgeFormat, capture_sizes, lhotse, read_edges, tf_data, write_edges
from labkit.interchange.files import edges_text

PARSERS = {"lhotse": lhotse.parse, "tf-data": tf_data.parse, "capture-sizes": capture_sizes.parse}
POLICY = BatchPolicy("bucket_budget", bucket_edges=(8, 20, 50), token_budget=400)


@given(st.sets(st.integers(1, 400), min_size=1, max_size=8).map(sorted), st.integers(400, 5000))
@pytest.mark.parametrize("format", list(EdgeFormat))
def test_edges_and_rows_come_back(format: EdgeFormat, edges: list[int], budget: int) -> None:  # noqa: A002
    policy = BatchPolicy("bucket_budget", bucket_edges=tuple(edges), token_budget=budget)
    found = PARSERS[format](json.loads(edges_text(policy, format)), "f")
    assert found.edges == policy.bucket_edges
    rows = tuple(budget // edge for edge in edges)
    assert found.batch_sizes == {"lhotse": rows, "tf-data": (*rows, 1), "capture-sizes": None}[format]


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("lhotse", {"bucket_duration_bins": [8, 20, 50], "bucket_batch_size": [50, 20, 8]}),
        (
            "tf-data",
            {
                "bucket_boundaries": [9, 21, 51],
                "bucket_batch_sizes": [50, 20, 8, 1],
                "pad_to_bucket_boundary": True,
                "drop_remainder": False,
            },
        ),
        ("capture-sizes", {"cudagraph_capture_sizes": [8, 20, 50]}),
    ],
)
def test_a_file_has_the_names_of_its_tool(tmp_path: Path, format: str, content: dict[str, Any]) -> None:  # noqa: A002
    assert write_edges(POLICY, tmp_path / "f.json", format) == ()
    assert json.loads((tmp_path / "f.json").read_text()) == content
    assert read_edges(tmp_path / "f.json", format).edges == (8, 20, 50)


def test_a_cap_and_a_multiple_are_resolved() -> None:
    # the cap takes the last edge; widths of 8 24 32 give 50 16 12 rows
    policy = BatchPolicy(
        "bucket_budget", bucket_edges=(8, 20, 50), token_budget=400, max_length=30, length_multiple=8, row_multiple=4
    )
    assert json.loads(edges_text(policy, "lhotse")) == {
        "bucket_duration_bins": [8, 20, 30],
        "bucket_batch_size": [48, 16, 12],
    }
    assert json.loads(edges_text(policy, "capture-sizes")) == {"cudagraph_capture_sizes": [8, 24, 32]}


def test_what_a_file_cannot_say_is_named(tmp_path: Path) -> None:
    policy = BatchPolicy(
        "bucket_graph",
        bucket_edges=(8, 20),
        bucket_widths=(7, 20),
        max_length=15,
        overflow="truncate",
        length_multiple=8,
        drop_last=True,
    )
    everything = ("max_length 15", "bucket_widths [7, 20]", "overflow truncate", "length_multiple 8")
    assert write_edges(policy, tmp_path / "l", "lhotse") == (*everything, "static_shapes True", "drop_last True")
    assert write_edges(policy, tmp_path / "t", "tf-data") == (*everything, "static_shapes True")
    assert write_edges(policy, tmp_path / "c", "capture-sizes") == (
        *everything[:3],
        "static_shapes True",
        "drop_last True",
    )


def test_dropping_what_is_longer_is_a_max_duration(tmp_path: Path) -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=(8, 20), rows=3, overflow="drop")
    assert write_edges(policy, tmp_path / "f", "lhotse") == ()
    assert json.loads((tmp_path / "f").read_text()) == {
        "bucket_duration_bins": [8, 20],
        "bucket_batch_size": [3, 3],
        "max_duration": 20,
    }
    assert write_edges(policy, tmp_path / "t", "tf-data") == ("overflow drop",)


# --- refused


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("lhotse", "[8, 8]", "duration bins has 8 twice, at positions 0 and 1: leave one out."),
        ("lhotse", "[20, 8]", "duration bins must increase: 8 follows 20 at position 1. Sort them."),
        ("lhotse", "[]", "duration bins is empty: at least one number is needed."),
        ("lhotse", "[-3, 8]", "duration bins[0] = -3 is outside 1 .. 2**31 - 1 = 2147483647."),
        (
            "lhotse",
            "[2.5, 8]",
            "duration bins[0] = 2.5 is not a whole number: count in events (tokens, frames), not in seconds.",
        ),
        ("lhotse", f"[{'9' * 99}]", f"duration bins[0] = {'9' * 60}... is outside 1 .. 2**31 - 1 = 2147483647."),
        ("lhotse", '["8"]', 'duration bins[0] must be a whole number: got "8".'),
        ("lhotse", "[true]", "duration bins[0] must be a whole number: got true."),
        (
            "lhotse",
            '{"bucket_duration_bins": [[8, 4], [20, 9]]}',
            (
                "bucket_duration_bins are two-dimensional ([[input, output], ...]), labkit buckets one length: "
                "give the input's."
            ),
        ),
        (
            "lhotse",
            '{"bucket_duration_bins": [8, 20], "bucket_batch_size": [4, 2, 1]}',
            "bucket_batch_size must have one size a bin: got 3 sizes for 2 bins.",
        ),
        (
            "lhotse",
            '{"bucket_duration_bins": [8, 20], "max_duration": 10}',
            "max_duration 10 is below the last bin 20: nothing would reach it.",
        ),
        (
            "lhotse",
            '{"bucket_duration_bins": 8}',
            "bucket_duration_bins must be a list of whole numbers: got 8.",
        ),
        (
            "tf-data",
            "[1, 8]",
            "bucket_boundaries[0] = 1 is outside 2 .. 2**31 - 1 = 2147483647.",
        ),
        (
            "tf-data",
            '{"bucket_boundaries": [8, 20], "bucket_batch_sizes": [4, 2]}',
            (
                "bucket_batch_sizes must have one size more than boundaries, for the open bucket: got 2 sizes for "
                "2 boundaries."
            ),
        ),
        (
            "tf-data",
            '{"bucket_boundaries": [8], "bucket_batch_sizes": [4, 0]}',
            "bucket_batch_sizes[1] = 0 is outside 1 .. 2**31 - 1 = 2147483647.",
        ),
        ("tf-data", "[8, 1e999]", "bucket_boundaries[1] = inf is not a whole number: count in events."),
        ("capture-sizes", "[1, 8, 4]", "cudagraph_capture_sizes must increase: 4 follows 8 at position 2. Sort them."),
        ("capture-sizes", "[8, 4, 4]", "cudagraph_capture_sizes has 4 twice, at positions 0 and 1: leave one out."),
    ],
)
def test_numbers_that_cannot_be_edges_are_refused(tmp_path: Path, format: str, text: str, message: str) -> None:  # noqa: A002
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(EdgesError) as caught:
        read_edges(path, format)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        (
            "lhotse",
            '{"bucket_boundaries": [8]}',
            (
                "no duration bins: expected a list or an object with the field 'bucket_duration_bins' or "
                "'duration_bins', got an object with the fields 'bucket_boundaries'."
            ),
        ),
        (
            "tf-data",
            "{}",
            (
                "no bucket boundaries: expected a list or an object with the field 'bucket_boundaries', "
                "got an empty object."
            ),
        ),
        (
            "capture-sizes",
            "7",
            "no capture sizes: expected a list or an object with the field 'cudagraph_capture_sizes', got 7.",
        ),
        (
            "capture-sizes",
            '{"compile_sizes": [1, 2]}',
            "compile_sizes are shapes to compile for, nothing is padded to them: give 'cudagraph_capture_sizes'.",
        ),
        ("lhotse", "[8, 20", "not JSON: Expecting ',' delimiter at line 1, column 7."),
        ("lhotse", "[NaN]", "not JSON that can be read: NaN is no number."),
        (
            "lhotse",
            f"[-{'9' * 5000}]",
            "not JSON that can be read: an integer has 5000 digits, 2147483647 is the largest length.",
        ),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, format: str, text: str, message: str) -> None:  # noqa: A002
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(DataFileError) as caught:
        read_edges(path, format)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize("name", ["f.yaml", "f.yml", "f.YAML"])
def test_yaml_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("bucket_duration_bins: [8, 20]\n")
    with pytest.raises(DataFileError, match=r"not JSON: .* Write YAML as JSON first\.$"):
        read_edges(path, "lhotse")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"nothing\.json"):
        read_edges(tmp_path / "nothing.json", "lhotse")


def test_a_file_without_a_name_is_refused() -> None:
    with pytest.raises(DataFileError, match=r"^the file name is empty, or '\.': name the JSON file with the edges\.$"):
        read_edges("", "lhotse")


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("[8, 20]", encoding="utf-8-sig")
    assert read_edges(path, "lhotse").edges == (8, 20)
    assert write_edges(POLICY, path, "lhotse") == ()


@pytest.mark.parametrize("format", list(EdgeFormat))
def test_edges_of_the_same_format_are_overwritten(tmp_path: Path, format: EdgeFormat) -> None:  # noqa: A002
    path = tmp_path / "f.json"
    write_edges(BatchPolicy("bucket_rows", bucket_edges=(7,)), path, format)
    write_edges(POLICY, path, format)
    assert read_edges(path, format).edges == (8, 20, 50)


@pytest.mark.parametrize(
    "content", [b"", b"notes\n", b"\xff\xfe\x00", b"[20, 8]", b'{"bucket_boundaries": [9, 21]}', b"[8, 20"], ids=repr
)
def test_nothing_else_is_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(content)
    with pytest.raises(DataFileError) as caught:
        write_edges(POLICY, path, "lhotse")
    assert str(caught.value) == (
        f"'{path}' is there and is no edges file of format lhotse, so it is not overwritten: choose another name."
    )
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_format_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"^format 'x' does not exist: use one of lhotse, tf-data, capture-sizes\.$"):
        read_edges(tmp_path / "f", "x")


def test_a_policy_without_buckets_has_no_edges(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        write_edges(BatchPolicy("pad_batch"), tmp_path / "f", "lhotse")
    assert str(caught.value) == "strategy pad_batch has no bucket edges to write: use a bucket strategy."
    assert list(tmp_path.iterdir()) == []


def test_an_edge_without_a_boundary_is_refused() -> None:
    policy = BatchPolicy("bucket_rows", bucket_edges=(2**31 - 1,))
    with pytest.raises(EdgesError) as caught:
        edges_text(policy, "tf-data")
    assert str(caught.value) == (
        "edge 2147483647 has no boundary in tf.data, which counts in int32: lower the last edge."
    )
