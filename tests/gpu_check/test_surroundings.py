"""What a run was made on, as far as it can be told without a GPU."""

from __future__ import annotations

import stat
from importlib import metadata
from pathlib import Path

import pytest
import torch

from labkit.bench import environment
from labkit.gpu_check import surroundings as module
from labkit.gpu_check.surroundings import surroundings, why_no_gpu


def test_a_cpu_has_versions_and_no_driver() -> None:
    found = surroundings(torch.device("cpu"))
    assert (found["timing"], found["driver"], found["cupy"]) == ("perf_counter", None, None)
    assert found["torch"] == torch.__version__
    assert found["commit"]


def test_nvidia_smi_is_asked_for_driver_and_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    answer = "580.65, 1980 MHz, 1980 MHz, 3201 MHz, 3201 MHz, 700.00 W, 0x0000000000000000, Disabled"
    program.write_text(f'#!/bin/sh\ntest "$3" = --id=GPU-abc || exit 6\necho "{answer}"\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    found = module._driver("abc")
    assert (found["driver"], found["sm_clock"], found["mig"]) == ("580.65", "1980 MHz", "Disabled")
    assert set(module._driver("another").values()) == {None}
    monkeypatch.setenv("PATH", "")
    assert set(module._driver("abc").values()) == {None}


@pytest.mark.parametrize(
    ("cuda", "is_available", "cupy", "message"),
    [
        (None, False, True, "is built without CUDA"),
        ("13.0", False, True, "finds no CUDA device"),
        ("13.0", True, False, "the kernels run through CuPy, which cannot be imported (No module named 'cupy')"),
        ("13.0", True, True, None),
    ],
)
def test_why_nothing_can_be_checked(
    cuda: str | None, is_available: bool, cupy: bool, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def imported(name: str) -> object:
        if not cupy:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return object()

    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: is_available)
    monkeypatch.setattr(module, "import_module", imported)
    reason = why_no_gpu()
    assert reason is None if message is None else message in str(reason)


def test_cupy_is_advised_for_the_cuda_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(module, "import_module", missing)
    assert str(why_no_gpu()).endswith("Run pip install cupy-cuda12x.")


def test_an_nvidia_smi_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(module, "_PATIENCE_S", 0.2)
    assert set(module._driver("abc").values()) == {None}


def test_a_checkout_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(environment, "version", missing)
    assert environment.environment(torch.device("cpu"))["labkit"] == "a checkout that is not installed"
