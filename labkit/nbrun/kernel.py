"""papermill on a kernel of the running interpreter, whatever kernels happen to be installed."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labkit.errors import NotebookRunError

#: Called after every cell with the cells done and the cells in all.
Progress = Callable[[int, int], None]

_MOST_SHOWN = 300
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def execute(notebook: Path, target: Path, parameters: Mapping[str, Any], on_progress: Progress | None = None) -> int:
    """Run every cell, and keep what there is so far in ``target`` all the time.

    Args:
        notebook: to run.
        target: an ``.ipynb`` to write, again after every cell.
        parameters: checked ones.
        on_progress: called after every code cell.

    Returns:
        Code cells that ran.

    Raises:
        NotebookRunError: a cell raised, or the kernel died; ``target`` is as far as it got.
    """
    with _quiet_imports():
        from nbclient.exceptions import CellControlSignal, DeadKernelError
        from papermill import execute_notebook
        from papermill.exceptions import PapermillExecutionError

        # it guesses at the parameters cell by patterns, and warns of what it does not understand
        logging.getLogger("papermill").setLevel(logging.ERROR)
        watch = _Watch(on_progress)
        try:
            execute_notebook(
                # papermill formats both paths like templates
                *(str(path).replace("{", "{{").replace("}", "}}") for path in (notebook, target)),
                parameters=dict(parameters),
                kernel_name="python3",
                language="python",
                progress_bar=False,
                # from here on: for the client
                store_widget_state=False,
                kernel_manager_class=_this_interpreter(),
                on_notebook_start=watch.start,
                on_cell_execute=watch.cell_starts,
                on_cell_executed=watch.cell_ends,
            )
        except PapermillExecutionError as error:
            raise NotebookRunError(f"{watch.where} raised {error.ename}: {_shown(error.evalue)}") from None
        except (DeadKernelError, CellControlSignal) as error:
            raise NotebookRunError(f"{watch.where} stopped the kernel: {_shown(str(error))}") from None
    return watch.done


class _Watch:
    """Knows which cell runs."""

    def __init__(self, on_progress: Progress | None) -> None:
        self.done = 0
        self.where = "the kernel, before the first cell,"
        self._total = 0
        self._on_progress = on_progress

    def start(self, notebook: Any) -> None:
        self._total = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in notebook.cells)

    def cell_starts(self, cell: Any, cell_index: int) -> None:
        line = next(line.strip() for line in cell.source.splitlines() if line.strip())
        self.where = f"cell {self.done + 1} ({_shown(line)!r})"

    def cell_ends(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        self.done += 1
        if self._on_progress is not None:
            self._on_progress(self.done, self._total)


def _this_interpreter() -> Any:
    """A kernel manager class that knows one kernel: ours. It says nothing on stderr that the notebook does not say."""
    import zmq
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    found = get_kernel_dict()
    # the kernel logs the interruption by which a kernel is always ended as an error
    argv, env = [*found["argv"], "--log-level=50"], {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}

    class ThisInterpreter(AsyncKernelManager):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            if self.has_trait("transport_encryption") and zmq.has("curve"):
                self.transport_encryption = "auto"

        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(**{**found, "argv": argv, "env": env})

    return ThisInterpreter


@contextmanager
def _quiet_imports() -> Iterator[None]:
    """Leave the deprecations of the notebook machinery to those who maintain it."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield


def _shown(text: str) -> str:
    """One line without colours, not too long."""
    line = next((part for part in _ANSI.sub("", text).splitlines() if part.strip()), "no message")
    return line if len(line) <= _MOST_SHOWN else line[:_MOST_SHOWN] + "..."
