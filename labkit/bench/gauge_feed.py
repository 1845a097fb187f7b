"""GaugeFeed: hands the newest reading of the one sampler to a screen, a few times a second, until it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

from labkit.bench.machine_gauges import MachineGauges, MachineReading
from labkit.bench.sampler_thread import SamplerThread
from labkit.provenance import Figure, Origin

#: Gets the gauges, a reading and what feeding costs; answers whether anybody looks.
Give = Callable[[MachineGauges, MachineReading, Figure], bool]


class GaugeFeed:
    """Opens the gauges, samples them, hands the newest on, closes them: all on threads of its own.

    It ends when it is stopped, or when nobody looks any more.

    Args:
        give: gets every reading.
        ended: called once, at the end, when nothing is sampled any more: with what ended it, or with None.
        interval_s: between two readings, 0.1 to 0.5 s.
    """

    def __init__(self, give: Give, ended: Callable[[Exception | None], object], interval_s: float = 0.4) -> None:
        """Start at once; nothing here waits for the driver."""
        self._give, self._ended, self._interval_s = give, ended, interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="labkit-gauges", daemon=True)
        self._thread.start()

    def stop(self, *, wait: bool = False) -> None:
        """End the feed; ``wait``: until its threads are gone."""
        self._stop.set()
        if wait and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            with closing(MachineGauges()) as gauges:
                self._feed(gauges)
        except Exception as raised:  # shown by whoever wanted the readings
            error = raised
        self._ended(error)

    def _feed(self, gauges: MachineGauges) -> None:
        sampler = SamplerThread(gauges.read, self._interval_s)
        newest, begun, looked = sampler.subscribe(most=1), time.monotonic(), True
        sampler.start()
        try:
            while looked and not self._stop.wait(self._interval_s):
                for reading in newest.take():
                    looked = self._give(gauges, reading, _cost(sampler, begun))
        finally:
            sampler.stop()


def _cost(sampler: SamplerThread[MachineReading], begun: float) -> Figure:
    """CPU time of both threads, the sampler's and this one, as a share of one core."""
    sampling = sampler.overhead()
    if sampling.value is None:
        return sampling
    own = time.thread_time() / (time.monotonic() - begun)
    why = "CPU time of reading the gauges and of sending them, over wall time: a share of one core"
    return Figure(sampling.value + own, "1", Origin.MEASURED, why)
