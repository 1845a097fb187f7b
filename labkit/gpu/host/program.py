"""A built kernel: launching it in a process of its own, and reading back what it did."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import KernelLaunchError
from labkit.gpu.host.buffers import SharedMemory, SparseBuffer
from labkit.gpu.host.outcome import read_outcome
from labkit.gpu.host.process import MOST_PRINTED_BYTES, run_program
from labkit.gpu.host.reports import HostRun, Report, ReportKind
from labkit.gpu.host.signature import Argument, Parameter, array_of, check_arguments
from labkit.gpu.host.symbols import Variable
from labkit.gpu.host.toolchain import Mode

#: Of every device since compute capability 3.0. Source: CUDA C++ Programming Guide, "Technical Specifications per
#: Compute Capability"; shared memory of a block: the 227 KiB of 9.0, the most of any.
MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_SHARED_BYTES = 227 * 1024

#: Reports of AddressSanitizer come on standard error; leaks are the runtime's own, it ends without tidying up.
_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:handle_segv=1",
    "UBSAN_OPTIONS": "print_stacktrace=0",
}


class Order(StrEnum):
    """Which of the threads that can run goes first; in lockstep, each warp runs instruction by instruction."""

    FORWARD = "forward"
    REVERSE = "reverse"
    RANDOM = "random"
    LOCKSTEP = "lockstep"


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel source, built for the CPU.

    Attributes:
        path: the executable.
        source_name: name of the source file.
        mode: what is checked while it runs.
        kernels: name expression to its parameters.
        variables: shared, device and constant variables of the source.
    """

    path: Path
    source_name: str
    mode: Mode
    kernels: Mapping[str, tuple[Parameter, ...]]
    variables: tuple[Variable, ...]

    def launch(
        self,
        kernel: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Argument],
        *,
        shared_bytes: int = 0,
        order: Order = Order.FORWARD,
        seed: int = 0,
        timeout_s: float = 60.0,
        first_block: int = 0,
        kept: dict[str, bytes] | None = None,
    ) -> HostRun:
        """Runs the kernel once and writes its results back into the arrays that it may write.

        Args:
            kernel: one of ``kernels``.
            grid: blocks along x, y, z; missing ones are 1.
            block: threads along x, y, z; missing ones are 1.
            arguments: for each parameter an array, a ``SparseBuffer``, a NumPy scalar of exactly its type, or None for
                a null pointer.
            shared_bytes: dynamic shared memory of a block.
            order: which thread goes first; ``lockstep`` counts memory requests, and needs the checked mode.
            seed: of the random order.
            timeout_s: after that the program is ended, and the run reports it.
            first_block: the blocks before it are left out, of a grid that would take too long.
            kept: values of the source's ``__device__`` variables, read before the launch and written after it, as a
                module keeps them; empty at first. None: each launch starts as the source says.

        Raises:
            KernelArgumentError: an argument is not what the kernel's parameter says.
            KernelLaunchError: no such kernel, a grid, block or shared size that no device accepts, lockstep in a mode
                that cannot count, or a program that ended without a result.

        Cost: a process (about 5 ms) and a copy of each array, there and back.
        """
        if kernel not in self.kernels:
            raise KernelLaunchError(
                f"{self.source_name} has no kernel {kernel!r}: built are {', '.join(self.kernels)}."
            )
        order = Order(order)
        if order is Order.LOCKSTEP and self.mode is not Mode.CHECKED:
            raise KernelLaunchError(f"lockstep needs a program built in mode checked, got {self.mode}: build it so.")
        variables = [entry for entry in self.variables if entry.kernel in (None, kernel)]
        _check_sizes(grid, block, shared_bytes, sum(entry.bytes for entry in variables if entry.shared))
        parameters = self.kernels[kernel]
        check_arguments(kernel, parameters, arguments)
        job = [
            f"order {order}",
            f"seed {seed}",
            f"first_block {first_block}",
            f"kernel {list(self.kernels).index(kernel)}",
            f"shared_bytes {shared_bytes}",
            "grid " + " ".join(map(str, _three(grid))),
            "block " + " ".join(map(str, _three(block))),
            *(f"variable {v.address:x} {v.bytes} {int(v.shared)} {int(v.writable)} {v.name}" for v in variables),
        ]
        if kept is None:
            return self._run(job, parameters, arguments, [], timeout_s)
        own = [entry for entry in variables if _is_kept(entry)]
        memories = {v.name: SharedMemory(v.bytes) for v in own}
        try:
            for v in own:
                memory = memories[v.name]
                job.append(f"keep {memory.file} {int(v.name in kept)} {v.address:x} {v.bytes}")
                if v.name in kept:
                    memory.array((v.bytes,), np.dtype(np.uint8))[:] = np.frombuffer(kept[v.name], np.uint8)
            run = self._run(job, parameters, arguments, [memory.file for memory in memories.values()], timeout_s)
            if run.completed:  # else they were not written
                kept |= {v.name: memories[v.name].array((v.bytes,), np.dtype(np.uint8)).tobytes() for v in own}
            return run
        finally:
            for memory in memories.values():
                memory.release()

    def _run(
        self,
        job: list[str],
        parameters: Sequence[Parameter],
        arguments: Sequence[Argument],
        files: list[int],
        timeout_s: float,
    ) -> HostRun:
        copies: list[tuple[Argument, Parameter, SharedMemory]] = []
        files = [*files]
        for place, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            if argument is None:
                job.append(f"value {bytes(8).hex()}")
            elif isinstance(argument, np.generic):
                job.append(f"value {argument.tobytes().hex()}")
            else:
                memory = argument.memory if isinstance(argument, SparseBuffer) else _copy_in(argument)
                if not isinstance(argument, SparseBuffer):
                    copies.append((argument, parameter, memory))
                files.append(memory.file)
                size, writable = array_of(argument).nbytes, int(not parameter.constant)
                job.append(f"buffer {memory.file} {size} {writable} argument {place} ({parameter.spelling})")
        try:
            run = self._execute("\n".join(job) + "\n", files, timeout_s)
            for argument, parameter, memory in copies:
                if not parameter.constant and isinstance(argument, np.ndarray):
                    argument[...] = memory.array(argument.shape, argument.dtype)
            return run
        finally:
            for _, _, memory in copies:
                memory.release()

    def _execute(self, job: str, files: Sequence[int], timeout_s: float) -> HostRun:
        result = os.memfd_create("labkit-kernel-result")
        try:
            done = run_program(
                [str(self.path), str(result)],
                job,
                timeout_s=timeout_s,
                files=(*files, result),
                environment={**os.environ, **_ENVIRONMENT},
            )
            written = os.pread(result, os.fstat(result).st_size, 0).decode(errors="replace")
        finally:
            os.close(result)
        if done.flooded:
            text = (
                f"the kernel printed more than {MOST_PRINTED_BYTES >> 20} MiB and was ended: print from one thread, or "
                "not at all"
            )
            return HostRun((Report(ReportKind.OUTPUT, None, None, text),), (), completed=False, printed=done.stdout)
        return read_outcome(self.path, self.source_name, written, done, timeout_s)


def _is_kept(variable: Variable) -> bool:
    """A ``__device__`` variable of the file, which a launch may change."""
    return variable.writable and not variable.shared and variable.kernel is None


def _check_sizes(grid: Sequence[int], block: Sequence[int], shared_bytes: int, static_bytes: int) -> None:
    for what, sizes, most in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        if not 1 <= len(sizes) <= 3 or any(not 1 <= size <= top for size, top in zip(sizes, most, strict=False)):
            raise KernelLaunchError(
                f"a {what} has 1 to 3 sizes from 1 to {most}, got {tuple(sizes)}: launch nothing where nothing is to "
                "be done, and put what is large along x."
            )
    threads = math.prod(_three(block))
    if threads > MAX_THREADS:
        raise KernelLaunchError(f"a block has at most {MAX_THREADS} threads, got {threads}: take more blocks.")
    if not 0 <= shared_bytes <= MAX_SHARED_BYTES - static_bytes:
        raise KernelLaunchError(
            f"a block has at most {MAX_SHARED_BYTES} bytes of shared memory, got {shared_bytes} dynamic ones and "
            f"{static_bytes} of the source: take smaller tiles."
        )


def _copy_in(array: NDArray[Any]) -> SharedMemory:
    memory = SharedMemory(array.nbytes)
    memory.array(array.shape, array.dtype)[...] = array
    return memory


def _three(sizes: Sequence[int]) -> tuple[int, ...]:
    return (*sizes, 1, 1)[:3]
