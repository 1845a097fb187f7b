"""Asking NVML: each call yields a value, or None with the reason in words. One that fails never stops the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from labkit.provenance import Figure, Origin

T = TypeVar("T")

#: NVML's return codes in words. Source: NVML API Reference Guide, "Device Enums", nvmlReturn_t.
_REASONS = {
    2: "NVML does not take this device for it",
    3: "not supported by this GPU",
    4: "no permission to read it",
    9: "the NVIDIA driver is not loaded",
    12: "libnvidia-ml.so.1 is not found",
    13: "the installed driver is too old to know it",
    15: "the GPU is lost: it fell off the bus or cannot be reached; see the system log, then reset it or reboot",
    16: "the GPU has to be reset",
    18: "driver and library have different versions",
}


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What NVML said that is no number: a name, names of throttle reasons.

    Attributes:
        value: the answer; None where there is none.
        reason: why there is none; None where there is one.
    """

    value: T | None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Refuse an answer that is missing without a reason."""
        if self.value is None and not self.reason:
            raise ValueError("an answer without a value needs a reason")


def ask(nvml: Any, function: str, *arguments: Any) -> Answer[Any]:
    """Call a function of NVML.

    Args:
        nvml: the module ``pynvml``.
        function: its name there.
        *arguments: handles and numbers.

    Returns:
        The value, or None with the reason: an error code of NVML, a binding or a driver that is too old, a text that
        is not UTF-8.
    Cost: one call into the driver, which lets other Python threads run.
    """
    call: Callable[..., Any] | None = getattr(nvml, function, None)
    if call is None:
        return Answer(None, f"the installed nvidia-ml-py has no {function}: pip install -U nvidia-ml-py")
    try:
        return Answer(call(*arguments))
    except nvml.NVMLError as error:
        return Answer(None, reason_of(error))
    except UnicodeDecodeError:
        return Answer(None, "NVML answered with bytes that are no UTF-8")


def tell(nvml: Any, function: str, *arguments: Any) -> str | None:
    """Call a function of NVML that answers nothing: why it failed, None where it did not."""
    try:
        getattr(nvml, function)(*arguments)
    except nvml.NVMLError as error:
        return reason_of(error)
    return None


def reason_of(error: Any) -> str:
    """An ``NVMLError`` in words, with NVML's own where we have none."""
    return _REASONS.get(error.value) or str(error).strip().rstrip(".") or f"NVML error {error.value}"


def figure(answer: Answer[Any], unit: str, convert: Callable[[Any], int | float] = lambda value: value) -> Figure:
    """An answer as a measured figure.

    Args:
        answer: of :func:`ask`.
        unit: of the figure, SI base.
        convert: the answer's value in that unit.
    """
    if answer.value is None:
        return Figure(None, unit, None, answer.reason)
    return Figure(convert(answer.value), unit, Origin.MEASURED)
