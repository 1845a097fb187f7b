"""Runs mutants until something notices them: results first, then every access checked, then the sanitizers."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import torch

from labkit.errors import KernelLaunchError
from labkit.gpu.catalog import KERNELS
from labkit.gpu.host.program import Order
from labkit.gpu.host.toolchain import Mode
from labkit.gpu.verify.programs import Programs
from labkit.gpu.verify.schemata import ASK_WHO_IS_REACHED, CHOSEN, Mutant, mutants_of
from labkit.gpu.verify.stand_in import CpuDevice, LaunchEnded, standing_in
from labkit.gpu.verify.trial import Trial
from labkit.gpu.verify.trials import trials

#: What tells a mutant: ``Mutant.key``.
Key = tuple[str, str, str, int]

#: A launch of a trial takes well under a second; a mutant that takes this long has no end.
_HANGS_AFTER_S = 10.0

#: Cheapest first. Once-trials run in the first alone.
_STAGES = (
    (Mode.FAST, Order.FORWARD),
    (Mode.CHECKED, Order.RANDOM),
    (Mode.FAST, Order.REVERSE),
    (Mode.ASAN, Order.FORWARD),
)


@dataclass(frozen=True, slots=True)
class Hunted:
    """What became of a mutant.

    Attributes:
        mutant: the change.
        op: whose trials noticed it, or that were all tried last.
        caught: what noticed it: ``"wrong_result"`` or the kind of a report; None: it survived.
        by: the trial, or the report; "" for survivors.
    """

    mutant: Mutant
    op: str
    caught: str | None
    by: str = ""


@cache
def schemata(op: str) -> tuple[tuple[Mutant, ...], Programs]:
    """The mutants of an op's source, and the programs that hold them."""
    path = KERNELS[op].path
    mutants, text = mutants_of(path)
    return tuple(mutants), Programs(op, path, text)


def every_mutant() -> dict[Key, list[tuple[str, Mutant]]]:
    """Each mutant once, with the ops in whose programs it is; those of a header are in several."""
    found: dict[Key, list[tuple[str, Mutant]]] = {}
    for op in KERNELS:
        for mutant in schemata(op)[0]:
            found.setdefault(mutant.key, []).append((op, mutant))
    return found


def shard(keys: Iterable[Key], part: int, parts: int) -> list[Key]:
    """One of ``parts`` parts, by a hash of each key: the same whatever else there is."""

    def chosen(key: Key) -> bool:
        return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4]) % parts == part

    return [key for key in keys if chosen(key)]


def hunt(
    keys: Sequence[Key],
    *,
    workers: int = 2,
    told: Callable[[Hunted], None] = lambda _: None,
) -> list[Hunted]:
    """Run these mutants, each until it is caught or all its trials are over.

    Args:
        keys: of ``every_mutant``.
        workers: processes; 1: this one.
        told: called with each outcome as it comes.

    Returns:
        Outcomes in the order of ``keys``.

    Raises:
        MissingPackageError: no g++ here.

    Cost: one build of each op, mode and storage type for all mutants; then about half a second of one core a mutant
    that is caught, 10 to 30 s one that survives.
    """
    known, outcomes = every_mutant(), {}
    if workers == 1:
        for key in keys:
            outcomes[key] = _hunt_one(known[key])
            told(outcomes[key])
        return list(outcomes.values())
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(_hunt_one, known[key]): key for key in keys}
        for done in as_completed(waiting):
            outcomes[waiting[done]] = done.result()
            told(done.result())
    return [outcomes[key] for key in keys]


def _hunt_one(places: Sequence[tuple[str, Mutant]]) -> Hunted:
    torch.set_num_threads(1)
    for op, mutant in places:
        found = notice(op, mutant.number)
        if found is not None:
            return Hunted(mutant, op, *found)
    op, mutant = places[-1]
    return Hunted(mutant, op, None)


def notice(op: str, number: int) -> tuple[str, str] | None:
    """What notices a mutant of an op, and where; None where nothing does. Number 0 is the source as it is."""
    reached = [trial for trial in _in_order(op) if not number or number in _reached(op)[trial.name]]
    with _alive(str(number)):
        for mode, order in _STAGES:
            for trial in reached:
                if _takes(trial, mode, order) and (found := _noticed(op, trial, mode, order)):
                    return found
    return None


@cache
def _reached(op: str) -> dict[str, frozenset[int]]:
    """The mutants whose place is reached by each trial, so that the others need not be run."""
    found = {}
    with _alive(ASK_WHO_IS_REACHED):
        for trial in trials(op):
            device = _device(op, Mode.FAST, Order.FORWARD)
            with standing_in(device):
                list(trial.run())
            found[trial.name] = frozenset(int(n) for _, run in device.launched for n in run.printed.split())
    return found


@contextmanager
def _alive(chosen: str) -> Iterator[None]:
    """Programs that start in here run this mutant."""
    before = os.environ.get(CHOSEN, "0")
    os.environ[CHOSEN] = chosen
    try:
        yield
    finally:
        os.environ[CHOSEN] = before


def _device(op: str, mode: Mode, order: Order) -> CpuDevice:
    _, programs = schemata(op)
    return CpuDevice(lambda _, expression: programs.of(mode, expression), order, timeout_s=_HANGS_AFTER_S)


def _noticed(op: str, trial: Trial, mode: Mode, order: Order) -> tuple[str, str] | None:
    device = _device(op, mode, order)
    try:
        with standing_in(device):
            for compared in trial.run():
                if compared.difference:
                    return "wrong_result", f"{trial.name}: {compared.difference}"
    except LaunchEnded:
        pass
    except KernelLaunchError as error:  # the program ended without saying why
        return "crash", f"{trial.name}: {error}"
    for _, run in device.launched:
        if run.reports:
            return str(run.reports[0].kind), f"{trial.name}: {run.reports[0].text}"
    return None


@cache
def _in_order(op: str) -> tuple[Trial, ...]:
    """Those that find most first."""
    return tuple(sorted(trials(op), key=lambda trial: (not trial.sample, trial.once)))


def _takes(trial: Trial, mode: Mode, order: Order) -> bool:
    """Sanitizers see the samples; what is tried once is tried in the first stage alone."""
    return trial.sample or (mode is not Mode.ASAN and (not trial.once or (mode, order) == _STAGES[0]))
