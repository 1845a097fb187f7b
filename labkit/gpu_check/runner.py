"""Run the items in order: each has until its share of the time is over, and one that fails does not stop the next."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.gpu_check.lab import Lab
from labkit.gpu_check.report import Entry, Report, Status

Found = Mapping[str, Any]


class DeviceLostError(RuntimeError):
    """The device does not answer this process any more; another one can go on."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is checked or timed.

    Attributes:
        name: unique in its item.
        run: does it; what it returns goes to the report. ``ok`` None with a ``reason``: it does not exist here.
            Raises where it fails.
    """

    name: str
    run: Callable[[], Found]


@dataclass(frozen=True, slots=True)
class Item:
    """Cases of one kind.

    Attributes:
        key: in the report.
        title: for people.
        share: of the time; what one item leaves is there for those that follow.
        cases: makes them.
    """

    key: str
    title: str
    share: float
    cases: Callable[[Lab], Sequence[Case]]


def run_items(
    items: Sequence[Item],
    lab: Lab,
    seconds: float,
    *,
    say: Callable[[str], object] = print,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Run what the report does not have yet.

    Args:
        items: in the order of their worth.
        lab: where they run.
        seconds: no case begins after so long.
        say: takes a line of progress.
        now: the clock.

    Raises:
        DeviceLostError: a case has ended the device for this process; it is in the report.
    """
    start, share, total = now(), 0.0, sum(item.share for item in items)
    for item in items:
        share += item.share / total
        _run_item(item, lab, start + share * seconds, say, now)


def _run_item(item: Item, lab: Lab, deadline: float, say: Callable[[str], object], now: Callable[[], float]) -> None:
    report, start = lab.report, now()
    done = {case["case"] for case in report.cases(item.key)}
    report.begin(item.key, item.title)
    say(f"-- {item.title}")
    try:
        cases = [case for case in item.cases(lab) if case.name not in done]
    except Exception as error:  # what makes the cases has failed: that is a case too
        cases = []
        report.add(item.key, {"case": "preparation", "ok": False, "seconds": now() - start, **_failure(error)})
        say(f"   FAILED  preparation: {_failure(error)['error']}")
    for number, case in enumerate(cases):
        if now() >= deadline:
            status = Status.OUT_OF_TIME if number or done else Status.NOT_REACHED
            report.end(item.key, status, now() - start, [left.name for left in cases[number:]])
            say(f"   out of time: {len(cases) - number} of {len(cases)} cases not reached")
            return
        entry = _run_case(case, lab, now)
        report.add(item.key, entry)
        say(_line(entry))
        if entry["ok"] is False and not lab.is_alive():
            report.end(item.key, Status.RUNNING, now() - start)
            raise DeviceLostError(f"the device does not answer after {item.key}, {case.name}")
        lab.clear()
    report.end(item.key, Status.DONE, now() - start)


def _run_case(case: Case, lab: Lab, now: Callable[[], float]) -> Entry:
    start = now()
    try:
        found = dict(case.run())
        lab.synchronize()  # a fault of its kernels is this case's, not that of whoever waits next
    except Exception as error:  # whatever it is, it is what this case has found
        found = {"ok": False, **_failure(error)}
    return {"case": case.name, "ok": found.pop("ok", True), "seconds": now() - start, **found}


def _failure(error: Exception) -> Entry:
    """The first line of an error, and where it was raised."""
    text = (str(error).strip().splitlines() or [""])[0]
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})" for frame in frames[-4:]]
    return {"error": f"{type(error).__name__}: {text}", "where": places}


def _line(entry: Entry) -> str:
    mark = {True: "ok", False: "FAILED", None: "none"}[entry["ok"]]
    detail = {True: entry.get("shown"), False: entry.get("error"), None: entry.get("reason")}[entry["ok"]]
    return f"   {mark:<7} {entry['case']} ({entry['seconds']:.1f} s)" + (f": {detail}" if detail else "")


def worst(report: Report) -> int:
    """The exit code: 1 if a case failed, else 0."""
    return 0 if report.data["ok"] else 1
