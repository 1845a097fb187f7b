"""Notebooks without a browser: papermill, but strict about parameters, and with the interpreter that runs it."""

from labkit.nbrun.running import RunResult as RunResult
from labkit.nbrun.running import run_notebook as run_notebook
