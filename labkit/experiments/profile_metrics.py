"""The metrics of Nsight Compute that matter for ragged sequences, and what each of them means.

Source: Nsight Compute, "Profiling Guide", sections and metrics reference; names as in its section files
SpeedOfLight, MemoryWorkloadAnalysis, Occupancy, LaunchStats, WarpStateStats.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: as ``ncu --metrics`` takes it.
        meaning: what it says about a kernel, and when to look at it.
    """

    name: str
    meaning: str


#: What ``ncu --section`` shows beside the single metrics.
SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "Occupancy", "LaunchStats")

METRICS = (
    Metric("gpu__time_duration.sum", "how long the kernel runs; a few microseconds only: launches are what costs"),
    Metric(
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "SM throughput, % of peak: high alone means bound by computing",
    ),
    Metric(
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "DRAM throughput, % of peak: high means bound by bandwidth; low as SM throughput is: by latency, or too small",
    ),
    Metric(
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "busiest part of the memory system, % of peak: high with idle DRAM means caches or shared memory are the bound",
    ),
    Metric(
        "dram__bytes.sum",
        "bytes to and from DRAM: against the bytes that inputs and outputs have, what is moved in vain",
    ),
    Metric("dram__bytes_read.sum", "of these, bytes read: padding that is loaded shows here"),
    Metric("dram__bytes_write.sum", "of these, bytes written"),
    Metric(
        "lts__t_sector_hit_rate.pct", "share of L2 accesses that hit: repeated items of an embedding table stay in L2"
    ),
    Metric(
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "32-byte sectors a global load of a warp: 4 is coalesced for float32, 32 is scattered",
    ),
    Metric(
        "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
        "share of the cycles in which an SM had a warp; low means too few blocks, or a long tail",
    ),
    Metric("smsp__cycles_active.avg", "cycles in which a scheduler of an SM had a warp"),
    Metric("sm__warps_active.avg.pct_of_peak_sustained_active", "achieved occupancy: resident warps, % of the most"),
    Metric("sm__maximum_warps_per_active_cycle_pct", "theoretical occupancy: what registers and shared memory allow"),
    Metric(
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "threads that take part in an instruction, of 32: rows of unequal length in a warp bring it down",
    ),
    Metric("launch__grid_size", "blocks of the launch"),
    Metric("launch__block_size", "threads of a block"),
    Metric("launch__registers_per_thread", "registers of a thread"),
    Metric(
        "launch__waves_per_multiprocessor", "waves of blocks over the GPU: just above a whole number wastes most of one"
    ),
)
