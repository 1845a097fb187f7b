"""The Config that a notebook names in its metadata, asked about the parameters before a kernel starts.

"metadata": {"labkit": {"config": "labkit.experiments.tune_buckets:Config"}}
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from labkit.errors import LabkitError, NotebookError
from labkit.nbrun.parameters import Parameter
from labkit.units import shown


def check_config(
    metadata: Mapping[str, Any], declared: Mapping[str, Parameter], values: Mapping[str, Any], *, files: bool = True
) -> None:
    """Make the Config of a notebook from the parameters that it knows, so that it can refuse them.

    The others, ``out_dir`` for one, are passed over. A Config with a method ``check_files`` is asked that too.

    Args:
        metadata: of the notebook; one that names no Config is not checked.
        declared: the parameters that the notebook declares; their values there are the defaults.
        values: the values that are given.
        files: ``check_files`` too; False for a run on another machine, whose files and devices are not here.

    Raises:
        LabkitError: whatever the Config raises of it.
        NotebookError: there is no such Config, or it refuses the parameters with an error of another kind.
    """
    ours = metadata.get("labkit", {})
    name = ours.get("config") if isinstance(ours, Mapping) else ours
    if name is None:
        return
    make = _imported(name)
    defaults = {p.name: p.default for p in declared.values() if p.has_default}
    known = inspect.signature(make).parameters
    arguments = {key: value for key, value in {**defaults, **values}.items() if key in known}
    try:
        config = make(**arguments)
        check_files = getattr(config, "check_files", None)
        if files and check_files is not None:
            check_files()
    except LabkitError:
        raise
    except (TypeError, ValueError, OSError) as error:
        raise NotebookError(f"{name} refuses the parameters: {error}") from error


def _imported(name: Any) -> Callable[..., Any]:
    """What ``package.module:Name`` names; modules beside us are found, as the kernel finds them."""
    module, _, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not (module and attribute):
        raise NotebookError(f"the notebook's metadata labkit.config is {shown(name)}: expected 'package.module:Name'.")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - what the kernel does
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise NotebookError(f"the notebook's metadata names a Config that cannot be imported: {error}.") from error
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise NotebookError(f"the notebook's metadata labkit.config is {shown(name)}, which cannot be called.")
    return found  # type: ignore[no-any-return]
