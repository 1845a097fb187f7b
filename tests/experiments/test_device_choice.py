"""Devices that are not there: one line with what was probed and the way out."""

from __future__ import annotations

import pytest
import torch

from labkit.errors import DeviceError
from labkit.experiments.device_choice import open_device


def test_the_processor_is_always_there() -> None:
    assert open_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu0", "cuda:x", ""])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(DeviceError, match=f"device '{name}' does not exist: use cpu, cuda or cuda:N"):
        open_device(name)


def test_another_kind_of_device_is_refused() -> None:
    with pytest.raises(DeviceError, match="device 'mps' is of a kind that labkit does not measure"):
        open_device("mps")


def test_a_device_that_is_not_there_says_what_was_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(DeviceError) as caught:
        open_device("cuda")
    message = str(caught.value)
    for part in (
        "there is no CUDA device: ",
        f"torch {torch.__version__} is built with no CUDA, ",
        "NVML s",
        "CUDA_VISIBLE_DEVICES is '3'. On a machine with an NVIDIA GPU: pip install torch (the CUDA build)",
        "here measure on cpu (--device cpu).",
    ):
        assert part in message
    assert "\n" not in message


def test_a_number_that_is_too_high_names_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(DeviceError, match=r"cuda:2 does not exist: torch sees 2 \(cuda:0 .. cuda:1\), CUDA_VISIBLE_"):
        open_device("cuda:2")
