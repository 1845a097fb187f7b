"""The device that a measurement is asked to run on: it is there, or one line says what was probed and the way out."""

from __future__ import annotations

import os
from importlib import import_module

import torch

from labkit.errors import DeviceError
from labkit.units import shown


def open_device(name: str | torch.device) -> torch.device:
    """The device of that name: ``cpu``, ``cuda`` or ``cuda:1``.

    Raises:
        DeviceError: another name, or no such device; the message says what was probed and how to get one.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise DeviceError(f"device {shown(name)} does not exist: use cpu, cuda or cuda:N.") from None
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise DeviceError(
            f"device {shown(str(name))} is of a kind that labkit does not measure: use cpu, cuda or cuda:N."
        )
    if not torch.cuda.is_available():
        raise DeviceError(f"there is no CUDA device: {_probed()}. {_way_out()}")
    index = torch.cuda.current_device() if device.index is None else device.index
    many = torch.cuda.device_count()
    if index >= many:
        raise DeviceError(
            f"device cuda:{index} does not exist: torch sees {many} (cuda:0 .. cuda:{many - 1}), {_visible()}. "
            "Use one of them."
        )
    return torch.device("cuda", index)


def _probed() -> str:
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    return f"torch {torch.__version__} is built with {build}, {_driver()}, {_visible()}"


def _way_out() -> str:
    if torch.version.cuda is None:
        return (
            "On a machine with an NVIDIA GPU: pip install torch (the CUDA build); here measure on cpu (--device cpu)."
        )
    return (
        "Install the NVIDIA driver, in a container start it with --gpus all, unset CUDA_VISIBLE_DEVICES; or use "
        "--device cpu."
    )


def _driver() -> str:
    """What NVML says; it is opened for this line alone."""
    try:
        nvml = import_module("pynvml")
        nvml.nvmlInit()
    except Exception as error:  # a missing library, a lost driver: each is an answer here
        return f"NVML says: {(str(error).strip().splitlines() or [type(error).__name__])[0].rstrip('.')}"
    try:
        return f"NVML sees driver {nvml.nvmlSystemGetDriverVersion()} and {nvml.nvmlDeviceGetCount()} cards"
    except nvml.NVMLError as error:
        return f"NVML says: {error}"
    finally:
        nvml.nvmlShutdown()


def _visible() -> str:
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "CUDA_VISIBLE_DEVICES is not set" if names is None else f"CUDA_VISIBLE_DEVICES is {shown(names)}"
