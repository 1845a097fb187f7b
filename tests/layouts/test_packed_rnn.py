"""Packed sequences: sorted inside, the order restored, empty rows set aside, bad lengths refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils._python_dispatch import TorchDispatchMode

from labkit.batching.policy import BatchPolicy
from labkit.errors import ShapeError
from labkit.layouts.collate import collate
from labkit.layouts.moving import batch_bytes, to_device
from labkit.layouts.packed_rnn import PackedSequenceBatch, pack_jagged, pack_padded
from labkit.layouts.padded import valid_slots


def events(lengths: list[int]) -> Tensor:
    """Distinct numbers: 10 * row + step."""
    return torch.tensor([10.0 * row + step for row, n in enumerate(lengths) for step in range(n)])


def test_events_lie_step_by_step_longest_row_first() -> None:
    batch = pack_jagged(events([2, 0, 3]), torch.tensor([2, 0, 3]))
    assert batch.values.tolist() == [20, 0, 21, 1, 22]  # type: ignore[union-attr]
    assert batch.batch_sizes.tolist() == [2, 2, 1]
    assert batch.sorted_indices.tolist() == [1, 0]
    assert batch.unsorted_indices.tolist() == [1, 0]
    assert batch.filled_rows.tolist() == [0, 2]
    assert batch.places.tolist() == [1, 3, 0, 2, 4]
    assert (batch.events, batch.rows) == (5, 3)


def test_rows_of_a_rectangle_pack_as_rows_end_to_end_do() -> None:
    lengths = torch.tensor([2, 0, 3])
    padded = torch.full((3, 4), -1.0).masked_scatter(valid_slots(lengths, 4), events([2, 0, 3]))
    one, other = pack_padded(padded, lengths), pack_jagged(events([2, 0, 3]), lengths)
    for name, ours in one._asdict().items():
        theirs = getattr(other, name)
        assert torch.equal(ours, theirs) if isinstance(ours, Tensor) else ours == theirs, name


def test_it_is_what_torch_packs_where_torch_packs_at_all() -> None:
    lengths = torch.tensor([1, 4, 2, 4])
    padded = torch.randn(4, 4, 3, generator=torch.Generator().manual_seed(0))
    batch = pack_padded(padded, lengths)
    assert isinstance(batch.values, Tensor)
    ours = batch.packed(batch.values)
    theirs = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    # rows of one length may change places: what comes back is the same
    assert torch.equal(ours.batch_sizes, theirs.batch_sizes)
    back, back_lengths = pad_packed_sequence(ours, batch_first=True)
    assert torch.equal(back, pad_packed_sequence(theirs, batch_first=True)[0])
    assert back_lengths.tolist() == [1, 4, 2, 4]


# --- C23, C24: empty users, and the order of the users


@pytest.mark.parametrize("lengths", [[3, 0, 2], [0, 1, 0, 5, 5, 0], [1], [2, 9, 4, 1, 9], [1, 1, 1]], ids=str)
def test_a_packed_gru_equals_the_loop_over_users(lengths: list[int]) -> None:
    torch.manual_seed(0)
    gru, data = nn.GRU(4, 6), torch.randn(sum(lengths), 4)
    batch = pack_jagged(data, torch.tensor(lengths))
    assert isinstance(batch.values, Tensor)
    output, state = gru(batch.packed(batch.values))
    users = torch.split(data, lengths)
    outputs = torch.cat([gru(user)[0] for user in users if len(user)])
    states = torch.stack([gru(user)[1][0] if len(user) else torch.zeros(6) for user in users])
    torch.testing.assert_close(batch.unpack(output), outputs, atol=1e-6, rtol=0)
    torch.testing.assert_close(batch.last(state[-1]), states, atol=1e-6, rtol=0)


def test_empty_users_get_rows_of_zeros_where_they_were() -> None:
    batch = pack_jagged(events([3, 0, 2]), torch.tensor([3, 0, 2]))
    assert batch.last(torch.tensor([[1.0, 2], [3, 4]])).tolist() == [[1, 2], [0, 0], [3, 4]]


def test_only_empty_users() -> None:
    batch = pack_jagged(torch.empty(0, 4), torch.tensor([0, 0]))
    assert (batch.events, batch.batch_sizes.tolist(), batch.filled_rows.tolist()) == (0, [], [])
    assert batch.last(torch.empty(0, 4)).tolist() == [[0] * 4] * 2
    with pytest.raises(ShapeError, match=r"^a batch without any event cannot be packed: all rows are empty\. Skip"):
        batch.packed(torch.empty(0, 4))


def test_torch_itself_refuses_empty_users() -> None:
    with pytest.raises(RuntimeError, match="greater than 0"):
        pack_padded_sequence(torch.zeros(3, 3), torch.tensor([3, 0, 2]), batch_first=True, enforce_sorted=False)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_what_is_packed_comes_back_in_the_order_of_the_rows(lengths: list[int]) -> None:
    data = events(lengths)
    batch = pack_jagged(data, torch.tensor(lengths))
    assert isinstance(batch.values, Tensor)
    assert torch.equal(batch.unpack(batch.values), data)
    assert batch.batch_sizes.tolist() == [sum(n > t for n in lengths) for t in range(max(lengths))]
    assert sorted(batch.places.tolist()) == list(range(sum(lengths)))


# --- fields, dtypes, devices


def test_named_fields_are_packed_together_and_fixed_ones_stay() -> None:
    fields = {"items": torch.tensor([1, 2, 3]), "age": torch.tensor([[1.0], [2], [3]]), "label": torch.tensor([7, 8])}
    batch = pack_jagged(fields, torch.tensor([1, 2]), rows=1, fixed=["label"])
    assert isinstance(batch.values, dict)
    assert {name: field.tolist() for name, field in batch.values.items()} == {
        "items": [2, 1, 3],
        "age": [[2], [1], [3]],
        "label": [7, 8],
    }
    assert batch.rows == 1


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int64])
def test_lengths_of_any_integer_type(dtype: torch.dtype) -> None:
    batch = pack_jagged(events([1, 2]), torch.tensor([1, 2], dtype=dtype))
    assert (batch.lengths.dtype, batch.batch_sizes.dtype, batch.places.dtype) == (torch.int64,) * 3
    assert batch.lengths.tolist() == [1, 2]


def test_values_on_a_device_with_lengths_on_the_host() -> None:
    batch = pack_jagged(torch.empty(5, 3, device="meta"), torch.tensor([2, 0, 3]))
    assert isinstance(batch.values, Tensor)
    assert {tensor.device.type for tensor in batch if isinstance(tensor, Tensor)} == {"meta", "cpu"}
    assert batch.batch_sizes.device.type == "cpu"
    output, state = nn.GRU(3, 4, device="meta")(batch.packed(batch.values))
    assert batch.unpack(output).shape == (5, 4)
    assert batch.last(state[-1]).shape == (3, 4)


class Asked(TorchDispatchMode):
    """Notes each question for a number or an index that the host would have to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if func._overloadpacket.__name__ in ("_local_scalar_dense", "nonzero", "item", "masked_select"):
            self.questions.append(str(func))
        return func(*args, **kwargs or {})


def test_nothing_is_asked_of_the_device_on_the_path_of_a_step() -> None:
    batch = pack_jagged(events([2, 0, 3]), torch.tensor([2, 0, 3]))
    assert isinstance(batch.values, Tensor)
    with Asked() as asked:
        batch.unpack(batch.packed(batch.values))
        batch.last(torch.ones(2, 4))
        assert asked.questions == []
        batch.lengths.max().item()  # the control: the watcher sees one
    assert len(asked.questions) == 1


# --- C25 and other bad input


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (
            torch.tensor([5, 3, 2]),
            r"^lengths must be at most the width: expected <= 4, got lengths\[0\] == 5 \(values \(3, 4\)\)\. Cut them",
        ),
        (torch.tensor([4, -1, 2]), r"^lengths must be 0 or more: got lengths\[1\] == -1\.$"),
        (
            torch.tensor([1, 2]),
            r"^values must be \(R, L\) or \(R, L, D\) with one length a row: got \(3, 4\) and 2 l",
        ),
        (torch.tensor([1.0, 2, 3]), r"^lengths must be \(R,\) whole numbers: got \(3,\) of torch\.float32\.$"),
        (torch.tensor([[1, 2, 3]]), r"^lengths must be \(R,\) whole numbers: got \(1, 3\) of torch\.int64\.$"),
    ],
    ids=["longer than T", "negative", "too few", "floats", "two dimensions"],
)
def test_bad_lengths_of_a_rectangle(lengths: Tensor, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        pack_padded(torch.zeros(3, 4), lengths)


def test_lengths_that_do_not_add_up() -> None:
    message = r"^lengths must add up to T: expected 3, got 4 \(items \(3,\), R=2\)\. Count the events of each row"
    with pytest.raises(ShapeError, match=message):
        pack_jagged({"items": torch.zeros(3)}, torch.tensor([2, 2]))


def test_what_does_not_belong_to_the_batch() -> None:
    batch = pack_jagged(events([2, 0, 3]), torch.tensor([2, 0, 3]))
    with pytest.raises(ShapeError, match=r"^data must have one entry an event: expected \(5, \.\.\.\), got \(4, 2\)\."):
        batch.packed(torch.zeros(4, 2))
    with pytest.raises(ShapeError, match=r"^output must have one entry an event: expected \(5, \.\.\.\), got \(\)\."):
        batch.unpack(torch.tensor(1.0))
    message = r"^state must have one entry a row with events: expected 2, got \(3, 4\) \(R=3\)\. Give h_n\[-1\] of the"
    with pytest.raises(ShapeError, match=message):
        batch.last(torch.zeros(3, 4))
    with pytest.raises(ShapeError, match=r"^no field is a sequence: got label, all of them in fixed\.$"):
        pack_jagged({"label": torch.zeros(2)}, torch.tensor([0, 0]), fixed=["label"])


def test_a_large_batch_is_packed_without_a_loop() -> None:
    lengths = np.random.default_rng(0).integers(0, 50, 3000)
    data = torch.arange(int(lengths.sum()))
    batch: PackedSequenceBatch = pack_jagged(data, torch.from_numpy(lengths))
    assert isinstance(batch.values, Tensor)
    assert torch.equal(batch.unpack(batch.values), data)


# --- from the samples of a loader, and to a device


def test_collate_packs_the_most_recent_events() -> None:
    policy = BatchPolicy("rnn_packed", rows=3, max_length=2)
    samples = [{"items": [1, 2, 3], "label": 7}, {"items": [], "label": 8}, {"items": [4], "label": 9}]
    batch = collate(policy)(samples)
    assert isinstance(batch, PackedSequenceBatch)
    assert isinstance(batch.values, dict)
    assert {name: field.tolist() for name, field in batch.values.items()} == {"items": [2, 4, 3], "label": [7, 8, 9]}
    assert (batch.lengths.tolist(), batch.batch_sizes.tolist(), batch.rows) == ([2, 0, 1], [2, 1], 3)


def test_moved_all_but_the_batch_sizes_which_torch_reads_on_the_host() -> None:
    batch = pack_jagged({"items": torch.tensor([1, 2, 3])}, torch.tensor([1, 2]))
    moved = to_device(batch, "meta")
    assert moved.batch_sizes is batch.batch_sizes
    assert isinstance(moved.values, dict)
    others = [tensor for tensor in moved if isinstance(tensor, Tensor) and tensor is not moved.batch_sizes]
    assert {tensor.device.type for tensor in [*others, moved.values["items"]]} == {"meta"}
    # items 3, places 3, lengths 2, sorted and unsorted indices 2 + 2, filled rows 2: of 8 bytes
    assert batch_bytes(batch) == 14 * 8
