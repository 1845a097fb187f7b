"""A session with the stand-in library: the right card, every gauge, and a reason for every gauge that is missing."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.gpu.nvml_answers import Answer
from labkit.units import GIB
from tests.gpu.stand_in import StandIn, compile_into

DEVICES = """
from labkit.gpu.nvml import NvmlSession
with NvmlSession() as s:
    result = {"devices": [[d.index, d.name, d.uuid[:8]] for d in s.devices], "notes": s.notes, "hidden": s.hidden,
              "driver": s.driver.value}
"""
READING = """
from dataclasses import asdict
from labkit.gpu.nvml import NvmlSession
from labkit.gpu.nvml_readings import GpuGauges
now = iter(range(100))
with NvmlSession() as s:
    gauges = GpuGauges(s, s.device(0), lambda: next(now))
    result = [asdict(gauges.read()) for _ in range(3)]
    gauges.close()
"""
REFUSED = """
from labkit.gpu.nvml import NvmlSession
from labkit.errors import DeviceError
try:
    NvmlSession().device(5)
except DeviceError as error:
    result = str(error)
"""
A, B = "GPU-aaaa", "GPU-bbbb"


def uuids(found: dict[str, Any]) -> list[str]:
    return [uuid for _, _, uuid in found["devices"]]


def test_the_devices_of_a_process(stand_in: StandIn) -> None:
    assert stand_in.run(DEVICES) == {
        "devices": [[0, "NVIDIA H100", A], [1, "NVIDIA H100", B]],
        "notes": [],
        "hidden": 0,
        "driver": "580.65.06",
    }


@pytest.mark.parametrize(
    ("names", "seen"),
    [("1", [B]), ("1,0", [B, A]), ("GPU-bb", [B]), ("", []), ("-1", []), ("0,0", []), ("MIG-cccc", [])],
)
def test_cuda_visible_devices_is_honoured(stand_in: StandIn, names: str, seen: list[str]) -> None:
    assert uuids(stand_in.run(DEVICES, CUDA_VISIBLE_DEVICES=names)) == seen


def test_the_second_card_is_read_where_the_process_sees_only_that(stand_in: StandIn) -> None:
    # device memory of the stand-in: 1 GiB in use on card 0, 2 GiB on card 1
    used = [
        stand_in.run(READING, CUDA_VISIBLE_DEVICES=names)[0]["device_used_bytes"]["value"]
        for names in ("0", "1", "1,0")
    ]
    assert used == [GIB, 2 * GIB, 2 * GIB]


def test_different_cards_in_an_order_that_nobody_knows_are_noted(stand_in: StandIn) -> None:
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in stand_in.run(DEVICES, "mixed")["notes"][0]
    assert stand_in.run(DEVICES, "mixed", CUDA_DEVICE_ORDER="PCI_BUS_ID")["notes"] == []
    assert stand_in.run(DEVICES, "mixed", CUDA_VISIBLE_DEVICES="-1")["notes"] == []


def test_torch_tells_the_order_by_uuid(stand_in: StandIn) -> None:
    fake = """
from types import SimpleNamespace as N
cards = ["bbbb0000-0000-0000-0000-000000000000", "aaaa0000-0000-0000-0000-000000000000"]
def properties(i):
    opened.append(i)
    return N(uuid=cards[i])
sys.modules["torch"] = N(cuda=N(is_available=lambda: True, is_initialized=lambda: bool(opened), device_count=lambda: 2,
                                get_device_properties=properties))
"""
    found = stand_in.run("opened = [0]" + fake + DEVICES, "mixed")
    assert uuids(found) == [B, A]
    assert found["notes"] == []
    # the properties would open CUDA, which takes memory of the device: a process that has not is not made to
    closed = stand_in.run("opened = []" + fake + DEVICES + "result = [opened, result]", "mixed")
    assert closed[0] == []
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in closed[1]["notes"][0]
    # on a screen gauges are opened by one thread while another may be loading torch
    half_loaded = "from types import SimpleNamespace as N\nsys.modules['torch'] = N()\n"
    assert uuids(stand_in.run(half_loaded + DEVICES)) == [A, B]


def test_every_gauge_of_a_card(stand_in: StandIn) -> None:
    first, second, third = stand_in.run(READING)
    assert first["sm_active"] == {
        "value": None,
        "unit": "1",
        "origin": None,
        "reason": "GPM needs two samples, this is the first",
    }
    values = {name: gauge["value"] for name, gauge in second.items() if name != "at_s"}
    assert values == {
        "sm_active": 0.625,
        "sm_occupancy": 0.25,
        "dram_active": 0.4,
        "time_active": 0.9,
        "memory_controller_active": 0.3,
        "device_used_bytes": GIB,
        "device_free_bytes": 79 * GIB,
        "device_total_bytes": 80 * GIB,
        "power_w": 350.5,
        "energy_j": 2.0,  # 1 J at first, half a joule a reading
        "sm_clock_hz": 1_980_000_000,
        "memory_clock_hz": 2_619_000_000,
        "temperature_c": 61,
        "throttle": ["software power cap", "software thermal slowdown", "reason 0x4000"],
    }
    assert third["sm_active"]["value"] == 0.625  # the samples take turns in the right order
    assert {gauge["origin"] for name, gauge in second.items() if name not in {"at_s", "throttle"}} == {"measured"}


def reasons(reading: dict[str, Any]) -> dict[str, str]:
    return {name: gauge["reason"] for name, gauge in reading.items() if name != "at_s" and gauge["value"] is None}


def test_gauges_that_a_card_does_not_have_do_not_stop_the_others(stand_in: StandIn) -> None:
    reading = stand_in.run(READING, "no_fields,no_gpm")[1]
    missing = reasons(reading)
    assert missing["sm_active"] == "no GPM: this GPU is older than Hopper"
    names = {"time_active", "memory_controller_active", "power_w", "energy_j", "sm_clock_hz", "memory_clock_hz"}
    assert {missing[name] for name in names | {"temperature_c", "throttle"}} == {"not supported by this GPU"}
    assert reading["device_used_bytes"]["value"] == GIB


def test_one_metric_that_is_missing(stand_in: StandIn) -> None:
    reading = stand_in.run(READING, "no_dram")[1]
    assert reasons(reading) == {"dram_active": "GPM does not have it on this GPU (NVML error 3)"}


def test_a_metric_that_is_no_number(stand_in: StandIn) -> None:
    reading = stand_in.run(READING, "gpm_nan")[1]
    assert reasons(reading) == {"sm_occupancy": "GPM counted nothing between the two samples"}


def test_a_reading_that_comes_too_early_is_none_and_spoils_nothing(stand_in: StandIn) -> None:
    code = """
from labkit.gpu.gpm import Gpm
from labkit.gpu.nvml import NvmlSession
now = iter([0, 0.05, 0.2])
with NvmlSession() as s:
    gpm = Gpm(s.nvml, s.device(0), lambda: next(now))
    result = [[f.value, f.reason] for f in (gpm.read()["sm_active"] for _ in range(3))]
    gpm.close()
"""
    assert stand_in.run(code)[1:] == [[None, "GPM needs 0.1 s between two samples"], [0.625, None]]


def test_a_permission_that_is_missing(stand_in: StandIn) -> None:
    assert reasons(stand_in.run(READING, "no_rights")[1]) == {"throttle": "no permission to read it"}


def test_a_card_that_is_lost_has_reasons_and_the_readings_go_on(stand_in: StandIn) -> None:
    # the nine calls of the first reading succeed: the second reading finds the card gone
    first, second, third = stand_in.run(READING, "lost=9")
    assert first["device_used_bytes"]["value"] == GIB
    for reading in (second, third):
        assert all("the GPU is lost" in reason for reason in reasons(reading).values())
        assert set(reasons(reading)) == set(reading) - {"at_s"}


def test_an_instance_of_a_card_in_mig_mode(stand_in: StandIn) -> None:
    found = stand_in.run(DEVICES, "mig")
    assert found["devices"] == [[0, "NVIDIA H100 MIG 3g.40gb", "MIG-cccc"]]
    assert found["hidden"] == 1
    second = stand_in.run(READING, "mig", CUDA_VISIBLE_DEVICES="MIG-dddd")[1]
    assert second["sm_active"]["value"] == 0.625
    assert second["device_total_bytes"]["value"] == 40 * GIB
    missing = reasons(second)
    assert missing["time_active"] == "not supported by this GPU"
    assert (
        missing["power_w"] == "a MIG instance has no such gauge of its own; the card's counts its other instances too"
    )


def test_names_are_text_even_where_nvml_gives_none(stand_in: StandIn) -> None:
    assert stand_in.run(DEVICES, "odd_name,one")["devices"] == [[0, f"unnamed {A}0000-0000-0000-0000-000000000000", A]]


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("no_driver", "NVML cannot be opened: the NVIDIA driver is not loaded"),
        ("mismatch", "NVML cannot be opened: driver and library have different versions"),
        ("", "there is no device cuda:5: this process sees cuda:0 NVIDIA H100, cuda:1 NVIDIA H100"),
    ],
)
def test_why_not_in_one_line(stand_in: StandIn, scenario: str, said: str) -> None:
    message = stand_in.run(REFUSED, scenario)
    assert message.startswith(said)
    assert "\n" not in message


def test_no_library_and_no_binding(stand_in: StandIn, tmp_path: Any) -> None:
    assert "libnvidia-ml.so.1 is not found" in stand_in.run(REFUSED, LD_LIBRARY_PATH=str(tmp_path))
    missing = stand_in.run('sys.modules["pynvml"] = None' + REFUSED)
    assert missing.endswith("Install it with pip install nvidia-ml-py.")


def test_a_binding_that_is_too_old_for_a_gauge(stand_in: StandIn) -> None:
    old = "import pynvml\ndel pynvml.nvmlDeviceGetCurrentClocksEventReasons\n"
    assert "pip install -U nvidia-ml-py" in reasons(stand_in.run(old + READING)[1])["throttle"]


def test_an_answer_that_is_missing_has_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Answer(None)


def test_a_missing_compiler_fails_with_the_line_that_installs_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="sudo apt-get install gcc"):
        compile_into(tmp_path)
