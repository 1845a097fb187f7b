"""What is installed: locked versions within their ranges, each with its reason; a wheel with all that it needs."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [Requirement(text) for text in [*PROJECT["dependencies"], *EXTRAS["gpu"], *EXTRAS["dev"]]]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def locked_versions() -> dict[str, str]:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def test_every_dependency_is_locked_to_one_version_within_its_range() -> None:
    locked = locked_versions()
    assert {str(r) for r in REQUIREMENTS if not r.specifier.contains(locked[canonicalize_name(r.name)])} == set()
    assert locked["torch"] == "2.13.0"


def refused_by(python: str) -> dict[str, str]:
    """Locked versions that are installed here and do not admit a version of Python."""
    refused = {}
    for name, version in locked_versions().items():
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:  # locked, and not installed here
            continue
        wanted = metadata["Requires-Python"] or ""
        if metadata["Version"].split("+")[0] == version and not SpecifierSet(wanted).contains(python):
            refused[name] = wanted
    return refused


def test_every_locked_version_installs_on_the_python_of_debian_12() -> None:
    assert refused_by("3.11.2") == {}
    assert len(refused_by("3.8")) > 20  # the check sees what there is to see


def test_each_dependency_has_its_reason_in_the_contributing_guide() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert [r.name for r in REQUIREMENTS if f"| `{r.name}` |" not in table] == []


def test_a_built_wheel_carries_every_file_of_the_package_the_histograms_and_the_kernels(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (wheel,) = tmp_path.glob("labkit-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {
        relative(path) for path in (ROOT / "labkit").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    data = (path for folder in ("lengths", "recorded") for path in (ROOT / "data" / folder).iterdir())
    histograms = {f"labkit/{relative(path)}" for path in data}
    kernels = {f"labkit/{relative(path)}" for path in (ROOT / "kernels").rglob("*") if path.is_file()}
    assert any(name.endswith(".csv") for name in histograms)
    assert {"labkit/kernels/jagged_to_padded.cu", "labkit/kernels/host/cuda_shim.h"} <= kernels
    assert packed == package | histograms | kernels
