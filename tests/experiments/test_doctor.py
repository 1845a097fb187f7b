"""labkit doctor: every finding has a reason and a way out, whatever is broken."""

from __future__ import annotations

import json
import types
from importlib import metadata
from typing import Any

import pytest

from labkit.cli import main
from labkit.experiments import doctor
from labkit.experiments.doctor import Check, diagnose, doctor_text
from tests.gpu.stand_in import StandIn, compile_into


def checks() -> dict[str, Check]:
    return {check.name: check for check in diagnose()}


def test_what_is_here_is_found_and_what_is_not_has_a_reason_and_a_fix() -> None:
    found = checks()
    assert found["python"].ok
    assert found["numpy"].found == metadata.version("numpy")
    assert {"torch CUDA", "cupy", "nvrtc", "NVIDIA driver", "node", "g++", "chromium", "memory"} <= set(found)
    for check in found.values():
        assert check.needed_for
        if check.ok:
            assert (check.reason, check.fix) == (None, None)
            assert check.found
        else:
            assert check.reason
            assert check.fix
            assert "\n" not in check.reason


def test_the_json_is_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [set(check) for check in data["checks"]] == [
        {"name", "ok", "found", "needed_for", "reason", "fix"} for _ in data["checks"]
    ]


def test_the_text_has_a_line_a_check() -> None:
    lines = doctor_text(
        [
            Check("numpy", True, "2.0", "everything"),
            Check("node", False, None, "tests", "not on the PATH", "apt-get install nodejs"),
        ]
    ).splitlines()
    assert lines == [
        "ok       numpy          2.0",
        "missing  node           not on the PATH. Needed for tests; apt-get install nodejs",
    ]


def stand_in(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    def find(name: str) -> Any:
        if name not in modules:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return modules[name]

    monkeypatch.setattr(doctor, "import_module", find)


def test_packages_that_are_missing_are_findings_not_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    monkeypatch.setenv("PATH", "/nowhere")

    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    found = checks()
    assert found["duckdb"] == Check(
        "duckdb", False, None, "event tables in Parquet and CSV", "not installed", "pip install duckdb"
    )
    assert found["cupy"].reason == "No module named 'cupy'"
    assert found["cupy"].fix == "pip install 'labkit[gpu]'"
    assert found["memory"].reason == "No module named 'psutil'"
    assert found["node"] == Check(
        "node", False, None, "tests of the widgets' JavaScript", "not on the PATH", "sudo apt-get install nodejs"
    )


def test_a_machine_with_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = types.SimpleNamespace(is_available=lambda: True, device_count=lambda: 2, get_device_name=lambda i: "H200")
    torch = types.SimpleNamespace(__version__="2.13.0", version=types.SimpleNamespace(cuda="13.0"), cuda=cuda)
    stand_in(monkeypatch, torch=torch)
    found = checks()
    assert found["torch CUDA"].found == "CUDA 13.0, 2 x H200"


GPU_CHECKS = """
from labkit.experiments.doctor import _driver
result = [[check.name, check.ok, check.found if check.ok else check.reason] for check in _driver()]
"""


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return StandIn(compile_into(tmp_path_factory.mktemp("nvml")))


@pytest.mark.parametrize(
    ("scenario", "visible", "said"),
    [
        (
            "",
            None,
            [
                ["NVIDIA driver", True, "driver 580.65.06, 2 devices"],
                ["cuda:0", True, "NVIDIA H100 (80 GiB), utilization as SM-active (GPM)"],
                ["cuda:1", True, "NVIDIA H100 (80 GiB), utilization as SM-active (GPM)"],
            ],
        ),
        (
            "no_gpm",
            "1",
            [
                ["NVIDIA driver", True, "driver 580.65.06, 1 device, 1 hidden by CUDA_VISIBLE_DEVICES=1"],
                [
                    "cuda:0",
                    True,
                    "NVIDIA H100 (80 GiB), utilization as time-active (no GPM: this GPU is older than Hopper)",
                ],
            ],
        ),
        (
            "mig",
            None,
            [
                [
                    "NVIDIA driver",
                    True,
                    "driver 580.65.06, 1 device, 1 hidden by MIG mode",
                ],
                ["cuda:0", True, "NVIDIA H100 MIG 3g.40gb (40 GiB), MIG instance, utilization as SM-active (GPM)"],
            ],
        ),
        (
            "",
            "",
            [
                [
                    "NVIDIA driver",
                    False,
                    "driver 580.65.06, 0 devices, 2 hidden by CUDA_VISIBLE_DEVICES=: no GPU for this process",
                ]
            ],
        ),
        ("no_driver", None, [["NVIDIA driver", False, "NVML cannot be opened: the NVIDIA driver is not loaded"]]),
    ],
)
def test_a_line_a_card(cards: StandIn, scenario: str, visible: str | None, said: list[list[object]]) -> None:
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert cards.run(GPU_CHECKS, scenario, **variables) == said


@pytest.mark.parametrize(
    ("cuda", "reason"),
    [
        (None, "torch 2.13.0 is built without CUDA"),
        ("13.0", "torch 2.13.0 is built for CUDA 13.0, but finds no GPU"),
    ],
)
def test_why_torch_cannot_use_a_gpu(monkeypatch: pytest.MonkeyPatch, cuda: str | None, reason: str) -> None:
    torch = types.SimpleNamespace(
        __version__="2.13.0",
        version=types.SimpleNamespace(cuda=cuda),
        cuda=types.SimpleNamespace(is_available=lambda: False),
    )
    stand_in(monkeypatch, torch=torch)
    assert checks()["torch CUDA"].reason == reason


def test_what_can_be_proved_about_kernels_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = types.SimpleNamespace(is_available=lambda: False)
    nvrtc = types.SimpleNamespace(
        nvrtc_version=lambda: (13, 0), ARCHES=(80, 90), compile_source=lambda *_: None, cupy_options=lambda *_: ()
    )
    toolchain = types.SimpleNamespace(compiler=lambda: ("/usr/bin/g++", "g++ 12.2"))
    modules = {
        "torch": types.SimpleNamespace(cuda=cuda),
        "labkit.gpu.nvrtc": nvrtc,
        "labkit.gpu.host.toolchain": toolchain,
        "labkit.gpu.verify.stages": types.SimpleNamespace(PTX_ARCH=90),
    }
    monkeypatch.setattr(doctor, "import_module", modules.__getitem__)
    found = {check.name: check for check in doctor._kernels()}
    assert found["kernels: code"].found == "NVRTC 13.0 for sm_80, sm_90"
    assert found["kernels: PTX"].found == "of sm_90, on the CPU"
    assert found["kernels: CPU"].found == "on the CPU, by g++ 12.2"
    assert found["kernels: GPU"].reason == "torch finds no GPU, so nothing about its time is known"

    def missing(*_: object) -> None:
        raise ImportError("the CPU runner needs g++, which is not on PATH")

    toolchain.compiler = nvrtc.compile_source = nvrtc.cupy_options = missing
    broken = {check.name: check for check in doctor._kernels()}
    assert not any(check.ok for check in broken.values())
    assert broken["kernels: CPU"].fix == "make setup-tests"
    assert broken["kernels: PTX"].fix == "pip install 'labkit[gpu]'"
