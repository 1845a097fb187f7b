"""The command line: where the JSON goes, how long it may take, and what comes out as the exit code."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from labkit.errors import DataFileError
from labkit.files import check_target
from labkit.gpu_check.bars import bars
from labkit.gpu_check.children import end_all
from labkit.gpu_check.items import op_timings
from labkit.gpu_check.items.order import ITEMS
from labkit.gpu_check.lab import Lab
from labkit.gpu_check.report import Report
from labkit.gpu_check.runner import DeviceLostError, Item, run_items, worst
from labkit.gpu_check.surroundings import surroundings, why_no_gpu

FAILED, BAD_INPUT, NO_GPU = 1, 2, 3

SECONDS = 240.0

#: Beyond the time, for the case that runs when it is over. One that is still running then hangs, and is reported so.
_GRACE_S = 40.0

_RESUME = "LABKIT_GPU_CHECK_RESUME"


class _OneLine(argparse.ArgumentParser):
    """Says what is wrong in one line, as all commands of labkit do."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(BAD_INPUT, f"gpu-check: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything that needs a GPU.

    Returns:
        0; 1 where a case failed; 2 for bad input; 3 where there is no GPU.
    """
    given = _parser().parse_args(arguments)
    try:
        check_target(given.json)
    except DataFileError as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return BAD_INPUT
    reason = why_no_gpu()
    if reason is not None:
        print(f"gpu-check: no GPU to check: {reason}", file=sys.stderr)
        return NO_GPU
    device = torch.device("cuda", torch.cuda.current_device())
    return _run(given.json, given.seconds, device, given.only or [])


def _parser() -> argparse.ArgumentParser:
    parser = _OneLine(prog="python3 -m labkit.gpu_check", description=__doc__)
    parser.add_argument("--json", metavar="FILE", default="gpu-check.json", help="where the results go")
    parser.add_argument("--seconds", type=_seconds, default=SECONDS, help="no case begins after so long (240)")
    keys = [item.key for item in ITEMS]
    parser.add_argument("--only", action="append", choices=keys, metavar="ITEM", help=f"of {', '.join(keys)}; repeats")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"seconds must be a number above 0 and below a million: got {text!r}")
    return seconds


def _run(path: str, seconds: float, device: torch.device, only: Sequence[str]) -> int:
    begun = time.time()
    if (resumed := os.environ.get(_RESUME)) is not None:  # a process before this one has lost the device
        begun = float(resumed)
        report = Report.resumed(path)
    else:
        report = Report(path, surroundings(device))
    left = seconds - (time.time() - begun)
    items = [item for item in ITEMS if not only or item.key in only]
    try:
        code = check(items, Lab(device, report), max(left, 0.0), since=begun)
    except DeviceLostError as error:
        print(f"{error}: going on in a new process", flush=True)
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _RESUME: str(begun)})
    print(f"{'ok' if code == 0 else 'FAILED'}: {path}")
    return code


def check(items: Sequence[Item], lab: Lab, seconds: float, *, since: float | None = None) -> int:
    """Run items, with a watchdog, and finish the report.

    Args:
        items: in order.
        lab: where.
        seconds: that are left.
        since: when the run began, of ``time.time``; None: now.

    Returns:
        The exit code.

    Raises:
        DeviceLostError: see ``run_items``.
    """
    since = time.time() if since is None else since
    lab.ends_s = time.monotonic() + seconds
    watchdog = _watchdog(seconds + _GRACE_S, lab.report, lambda: os._exit(FAILED))
    watchdog.start()
    try:
        run_items(items, lab, seconds, say=_say)
    finally:
        watchdog.cancel()
    found = bars(lab.report.cases(op_timings.KEY)) if lab.on_gpu else []  # they are about kernels
    for bar in found:
        _say(f"   {'met' if bar['met'] else 'MISSED':<7} {bar['case']}: {bar['value']:.2f} {bar['bar']}")
    lab.report.finish(time.time() - since, found)
    return worst(lab.report)


def _watchdog(seconds: float, report: Report, leave: Callable[[], Any]) -> threading.Timer:
    """Where a case never returns: put that down, and leave."""

    def give_up() -> None:
        running = [item for item in report.data["items"] if item["status"] == "running"]
        for item in running:
            error = f"still running after {seconds:.0f} s: it hangs"
            report.add(item["item"], {"case": "a case that hangs", "ok": False, "seconds": seconds, "error": error})
        end_all()
        _say("a case hangs: ended")
        leave()

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    return timer


def _say(line: str) -> None:
    print(line, flush=True)
