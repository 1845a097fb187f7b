"""A session with NVML, NVIDIA's library of gauges: the devices that a CUDA process would see, found by UUID.

Every answer is a value, or None with a reason; what one card cannot say never stops the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from labkit.errors import DeviceError
from labkit.gpu.nvml_answers import Answer, ask, reason_of, tell
from labkit.gpu.nvml_visible import UNKNOWN_ORDER, Card, Instance, Place, of_uuids, order_is_known, visible

#: What to do where NVML does not start, by its return code.
_FIXES = {
    9: "Load the NVIDIA driver, and in a container start with --gpus all",
    12: "Install the NVIDIA driver, and in a container start with --gpus all",
    18: "Reboot, or load the driver anew",
}


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A card, or an instance of one in MIG mode, that a CUDA process sees.

    Attributes:
        index: its number in the process: ``cuda:index``.
        uuid: ``GPU-...`` or ``MIG-...``.
        name: of the card or the instance; always text.
        handle: NVML's handle.
        card_handle: NVML's handle of the card; of a whole card the same.
        instance: the MIG instance; None of a whole card.
    """

    index: int
    uuid: str
    name: str
    handle: Any = field(repr=False, compare=False)
    card_handle: Any = field(repr=False, compare=False)
    instance: Instance | None = None


class NvmlSession:
    """NVML while it is open; a context manager.

    Attributes:
        nvml: the module ``pynvml``.
        driver: version of the driver.
        devices: what a CUDA process sees, in the order in which it counts.
        hidden: cards that NVML lists and the process does not see, or not as a whole.
        notes: what must be known of the list of devices.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, cuda_uuids: Sequence[str] | None = None) -> None:
        """Open NVML and list the devices.

        Args:
            environment: where ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` are looked up; None: of this process.
            cuda_uuids: UUIDs of CUDA's devices in its order; None: torch is asked where it has opened CUDA.

        Raises:
            DeviceError: NVML cannot be opened: the message says why.
        """
        self.nvml = _library()
        try:
            self._list_devices(
                os.environ if environment is None else environment,
                torch_uuids() if cuda_uuids is None else cuda_uuids,
            )
        except BaseException:
            self.close()
            raise

    def _list_devices(self, environment: Mapping[str, str], cuda_uuids: Sequence[str]) -> None:
        names, order = environment.get("CUDA_VISIBLE_DEVICES"), environment.get("CUDA_DEVICE_ORDER")
        self.driver: Answer[str] = ask(self.nvml, "nvmlSystemGetDriverVersion")
        handles, lost = self._handles()
        cards = [self._card(handle) for handle in handles]
        notes = list(lost)
        if cuda_uuids:
            places = of_uuids(cards, cuda_uuids, names)
        else:
            places = visible(cards, names)
            if places and not order_is_known(cards, names, order):
                notes.append(UNKNOWN_ORDER)
        self.devices = tuple(self._device(i, place, cards, handles) for i, place in enumerate(places))
        self.hidden = len(cards) - len({place.card for place in places})
        self.notes = tuple(notes)

    def _handles(self) -> tuple[list[Any], list[str]]:
        """Handles of all cards, and what is to be said of those that gave none."""
        many = ask(self.nvml, "nvmlDeviceGetCount")
        if many.value is None:
            return [], [f"the cards cannot be counted: {many.reason}"]
        answers = [ask(self.nvml, "nvmlDeviceGetHandleByIndex", i) for i in range(many.value)]
        lost = [f"card {i} does not answer: {answer.reason}" for i, answer in enumerate(answers) if answer.reason]
        return [answer.value for answer in answers if answer.value is not None], lost

    def _card(self, handle: Any) -> Card:
        uuid = ask(self.nvml, "nvmlDeviceGetUUID", handle).value or ""
        name = ask(self.nvml, "nvmlDeviceGetName", handle).value
        mode = ask(self.nvml, "nvmlDeviceGetMigMode", handle).value
        mig = mode is not None and bool(mode[0])
        return Card(uuid, name, mig, tuple(_instance(self.nvml, h) for h in self._instances(handle)) if mig else ())

    def _instances(self, handle: Any) -> list[Any]:
        """Handles of the MIG instances of a card; the numbers may have gaps."""
        most = ask(self.nvml, "nvmlDeviceGetMaxMigDeviceCount", handle).value or 0
        answers = (ask(self.nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, i) for i in range(most))
        return [answer.value for answer in answers if answer.value is not None]

    def _device(self, index: int, place: Place, cards: Sequence[Card], handles: Sequence[Any]) -> GpuDevice:
        card, handle = cards[place.card], handles[place.card]
        if place.instance is None:
            return GpuDevice(index, card.uuid, card.name or f"unnamed {card.uuid}", handle, handle)
        instance, own = card.instances[place.instance], self._instances(handle)[place.instance]
        name = ask(self.nvml, "nvmlDeviceGetName", own).value or f"MIG instance of {card.name}"
        return GpuDevice(index, instance.uuid, name, own, handle, instance)

    def device(self, index: int) -> GpuDevice:
        """The device that CUDA counts as ``index``.

        Raises:
            DeviceError: it is not there.
        """
        if not 0 <= index < len(self.devices):
            there = ", ".join(f"cuda:{d.index} {d.name}" for d in self.devices) or "none"
            raise DeviceError(
                f"there is no device cuda:{index}: this process sees {there} "
                f"(CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')})."
            )
        return self.devices[index]

    def close(self) -> None:
        """End the session; handles are void from then on."""
        tell(self.nvml, "nvmlShutdown")  # fails where the driver has gone: then there is nothing left to close

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def torch_uuids() -> tuple[str, ...]:
    """UUIDs of CUDA's devices in CUDA's order, from torch; empty where torch has not opened CUDA in this process.

    Nothing is imported or opened for it: a CUDA context takes hundreds of MB of the device, which a gauge would then
    read as in use, for as long as the process lives.
    """
    torch: Any = sys.modules.get("torch")
    is_open = getattr(getattr(torch, "cuda", None), "is_initialized", None)  # another thread may be loading torch
    if is_open is None or not is_open():
        return ()
    return tuple(str(torch.cuda.get_device_properties(i).uuid) for i in range(torch.cuda.device_count()))


def _library() -> Any:
    """``pynvml``, initialized.

    Raises:
        DeviceError: it is not installed, or NVML does not start.
    """
    try:
        nvml = import_module("pynvml")
    except ImportError as error:
        raise DeviceError(f"NVML cannot be used: {error}. Install it with pip install nvidia-ml-py.") from None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        fix = _FIXES.get(error.value, "Try nvidia-smi")
        raise DeviceError(f"NVML cannot be opened: {reason_of(error)}. {fix}.") from None
    return nvml


def _instance(nvml: Any, handle: Any) -> Instance:
    """What names a MIG instance; a number that cannot be read is -1, which no name matches."""
    gpu = ask(nvml, "nvmlDeviceGetGpuInstanceId", handle).value
    compute = ask(nvml, "nvmlDeviceGetComputeInstanceId", handle).value
    uuid = ask(nvml, "nvmlDeviceGetUUID", handle).value or ""
    return Instance(uuid, -1 if gpu is None else gpu, -1 if compute is None else compute)
