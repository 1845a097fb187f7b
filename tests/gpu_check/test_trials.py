"""The trials carried to a device and back, the CPU runner being the device; a device that does nothing is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.gpu.host.toolchain import Mode
from labkit.gpu.verify.trials import trials
from labkit.gpu_check import there_and_back
from labkit.gpu_check.items import compiling
from labkit.gpu_check.items.kernels import run_trials
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.small_run import main as small_run
from tests.gpu_check.small import small_lab
from tests.kernels.cpu_device import CpuDevice


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(Lab, "on_gpu", True)
    return small_lab(tmp_path)


def test_the_kernels_pass_their_trials_there(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuDevice(Mode.FAST)
    monkeypatch.setattr(there_and_back, "_launch_itself", device.launch)
    found = run_trials(lab, "jagged_to_padded")
    # all but those that need memory which the CPU runner alone has
    assert found["trials"] == sum(not trial.host for trial in trials("jagged_to_padded"))
    assert found["results"] >= found["trials"] >= 19
    assert found["launches"] == len(device.launched) >= 19


def test_a_device_that_does_nothing_fails_them(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(there_and_back, "_launch_itself", lambda *launch: None)
    with pytest.raises(AssertionError, match=r"^\d+ of \d+ results: .*, L=40: slots: \d+ of \d+ are wrong, first \["):
        run_trials(lab, "jagged_to_padded", sample=True)


def test_the_small_run_launches_and_ends_at_the_first_op_that_is_wrong(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[str] = []
    monkeypatch.setattr(there_and_back, "_launch_itself", lambda op, *rest: launched.append(op))
    with pytest.raises(AssertionError, match="results: mixed rows"):
        small_run("cpu")
    assert set(launched) == {"bin_rows"}


def test_every_source_is_compiled_and_the_ones_that_fail_are_named(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_PROGRAM", "import sys; assert sys.argv[3] == '0'")
    (case,) = compiling.cases(lab)
    assert case.run()["sources"] == 6
    monkeypatch.setattr(compiling, "_PROGRAM", "import sys; sys.exit('no barrier' if 'pool' in sys.argv[1] else 0)")
    with pytest.raises(AssertionError, match=r"^segment_pool: no barrier; embedding_pool: no barrier$"):
        case.run()
