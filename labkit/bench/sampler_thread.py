"""One thread that samples gauges a few times a second, for several readers at once, and says what it costs itself."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from labkit.provenance import Figure, Origin

T = TypeVar("T")

#: From 2 to 10 samples a second: NVML's performance metrics need 0.1 s between two, a person sees 2 as moving.
SHORTEST_S, LONGEST_S = 0.1, 0.5

#: A driver that hangs in a call must not hang whoever waits for a sample.
_PATIENCE_S = 10.0


class Subscription(Generic[T]):
    """The newest samples, for one reader: the sampler never waits for it.

    Attributes:
        dropped: samples that were overwritten before they were taken.
    """

    def __init__(self, most: int | None) -> None:
        """Keep ``most`` samples, the newest; None: all."""
        self._samples: deque[T] = deque(maxlen=most)
        self._lock = threading.Lock()
        self.dropped = 0

    def put(self, sample: T) -> None:
        """Called by the sampler."""
        with self._lock:
            self.dropped += len(self._samples) == self._samples.maxlen
            self._samples.append(sample)

    def take(self) -> list[T]:
        """What has come since the last time, the oldest first."""
        with self._lock:
            samples = list(self._samples)
            self._samples.clear()
        return samples


class SamplerThread(Generic[T]):
    """Calls ``read`` on its own daemon thread, at a fixed rate, until it is stopped.

    One sampler serves all readers: a run that is measured and a strip on the screen share it.

    Attributes:
        interval_s: between two samples.
        failure: what ``read`` raised, which ended the sampling; None otherwise.
    """

    def __init__(self, read: Callable[[], T], interval_s: float = 0.2) -> None:
        """Prepare; nothing runs before :meth:`start`.

        Args:
            read: takes one sample; on the sampler's thread only.
            interval_s: 0.1 to 0.5 seconds.

        Raises:
            ValueError: an interval outside.
        """
        if not SHORTEST_S <= interval_s <= LONGEST_S:
            raise ValueError(
                f"a sampler samples every {SHORTEST_S:g} to {LONGEST_S:g} s, got {interval_s:g}: take 0.2 for 5 Hz."
            )
        self._read, self.interval_s = read, interval_s
        self._readers: list[Subscription[T]] = []
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = self._wanted = False
        self._begun = self._taken = 0
        self._cpu_s = self._wall_s = 0.0
        self.failure: BaseException | None = None

    @property
    def running(self) -> bool:
        """Its thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def subscribe(self, most: int | None = None) -> Subscription[T]:
        """Become a reader, also while it runs.

        Args:
            most: samples to keep, the newest; None: all that come.
        """
        reader: Subscription[T] = Subscription(most)
        with self._change:
            self._readers.append(reader)
        return reader

    def unsubscribe(self, reader: Subscription[T]) -> None:
        """Get no more samples; what has come can still be taken."""
        with self._change:
            self._readers.remove(reader)

    def start(self) -> None:
        """Start the thread and wait for its first sample.

        Raises:
            RuntimeError: it runs already, or the first sample raised.
        """
        if self.running:
            raise RuntimeError("this sampler runs already: subscribe to it")
        self._forget()
        self._thread = threading.Thread(target=self._run, name="labkit-sampler", daemon=True)
        with self._change:
            self._thread.start()
            self._await_sample()
        if self.failure is not None:
            self.stop()

    def sample_now(self) -> None:
        """Have a sample taken at once, and wait for it: the border of a run."""
        with self._change:
            if self.running:
                self._await_sample()

    def stop(self) -> None:
        """End the thread and wait for its end. Stopping twice does nothing.

        Raises:
            RuntimeError: ``read`` had raised (the cause is attached), or hangs in the driver.
        """
        with self._change:
            self._stopping = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
        if self.running:
            raise RuntimeError(f"the sampler hangs in a sample for more than {_PATIENCE_S:g} s: is the driver there?")
        if self.failure is not None:
            raise RuntimeError(f"the sampler ended early: {self.failure}") from self.failure

    def overhead(self) -> Figure:
        """CPU time of the sampler's thread over wall time: its share of one core. Up to the newest sample."""
        if not self._wall_s:
            return Figure(None, "1", None, "the sampler has not run")
        return Figure(self._cpu_s / self._wall_s, "1", Origin.MEASURED, "CPU time of the sampler's thread / wall time")

    def _forget(self) -> None:
        self._stopping, self.failure = False, None
        self._cpu_s = self._wall_s = 0.0

    def _await_sample(self) -> None:
        """Holding the lock: until a sample that begins after this call is there, or there will be none."""
        number, self._wanted = self._begun + 1, True
        self._change.notify_all()
        self._change.wait_for(lambda: self._taken >= number or self.failure is not None or self._stopping, _PATIENCE_S)

    def _run(self) -> None:
        begun_s, cpu_s = time.monotonic(), time.thread_time()
        try:
            while not self._stopping:
                self._sample()
                self._cpu_s, self._wall_s = time.thread_time() - cpu_s, time.monotonic() - begun_s
                self._pause()
        except BaseException as error:  # handed to whoever stops the sampler
            with self._change:
                self.failure = error
                self._change.notify_all()

    def _sample(self) -> None:
        with self._change:
            self._begun += 1
            self._wanted = False
        sample = self._read()
        with self._change:
            for reader in self._readers:
                reader.put(sample)
            self._taken += 1
            self._change.notify_all()

    def _pause(self) -> None:
        """Until the next sample is due or wanted, or the end. From end to begin: never less than the interval apart."""
        with self._change:
            self._change.wait_for(lambda: self._stopping or self._wanted, self.interval_s)
