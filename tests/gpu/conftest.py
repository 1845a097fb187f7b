"""The stand-in library, compiled once a run."""

from __future__ import annotations

import pytest

from tests.gpu.stand_in import StandIn, compile_into


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return StandIn(compile_into(tmp_path_factory.mktemp("nvml")))
