"""NVML beside CUDA on a real card: the same devices, and no context for a gauge."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from labkit.gpu.nvml import NvmlSession
from labkit.gpu.nvml_readings import GpuGauges

pytestmark = pytest.mark.gpu

WITHOUT_A_CONTEXT = """
import json, torch
from labkit.bench.machine_gauges import MachineGauges
gauges = MachineGauges()
gauges.read()
reading = gauges.read()
used = reading.gpu.device_used_bytes.value
name = gauges.gpu_name
gauges.close()
print(json.dumps({"opened": torch.cuda.is_initialized(), "used": used, "name": name}))
"""


def test_devices_are_those_of_cuda_in_its_order() -> None:
    torch.cuda.init()
    with NvmlSession() as session:
        assert [device.uuid.rpartition("GPU-")[2].rpartition("MIG-")[2] for device in session.devices] == [
            str(torch.cuda.get_device_properties(i).uuid) for i in range(torch.cuda.device_count())
        ]


def test_gauges_open_no_context_though_torch_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_CONTEXT], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert not found["opened"]
    assert found["used"] >= 0
    assert found["name"]


def test_what_a_process_takes_is_seen_by_the_gauge() -> None:
    torch.zeros(1, device="cuda")
    with NvmlSession() as session:
        gauges = GpuGauges(session, session.device(0))
        before = gauges.read().device_used_bytes.value
        block = torch.empty(2**30, dtype=torch.uint8, device="cuda:0")
        after = gauges.read().device_used_bytes.value
        gauges.close()
    del block
    torch.cuda.empty_cache()
    assert before is not None
    assert after is not None
    assert after - before > 2**29  # other processes may come and go meanwhile
