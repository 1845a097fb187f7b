"""What goes wrong in a lane while a program runs; the runner turns it into a ``PtxError`` that says where."""

from __future__ import annotations


class Fault(Exception):  # noqa: N818 - the field's word: a memory fault
    """A lane did something that a GPU would not survive, or whose result would be undefined.

    Attributes:
        message: what happened.
        lane: index among the lanes that executed the instruction; None where all of them did.
        unsupported: a GPU would know what to do; the runner does not.
    """

    def __init__(self, message: str, lane: int | None = None, *, unsupported: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.lane = lane
        self.unsupported = unsupported
