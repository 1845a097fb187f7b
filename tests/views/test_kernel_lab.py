"""What the kernel notebook shows, from results made by hand."""

from __future__ import annotations

import json
import re

import numpy as np

from labkit.experiments.kernel_counts import Counted, KernelCounts
from labkit.experiments.kernel_time import KernelTime, RecordedTime
from labkit.experiments.regime_shares import regime_shares
from labkit.gpu.host.reports import LineCounts
from labkit.gpu.resources import Resources
from labkit.gpu.verify.proof import Finding, Proof
from labkit.lengths.histogram import LengthHistogram
from labkit.provenance import Figure, Origin
from labkit.views.kernel_lines import line_figures, marks_as_json
from labkit.views.kernel_listing import KernelListing
from labkit.views.kernel_proof import KernelProof, verdict
from labkit.views.kernel_tables import counts_table, resources_table, time_table
from labkit.views.regime_figure import regime_figure

SOURCES = {"a.cu": "first <b>\nsecond\n", "rows.cuh": "third\n", "unused.cuh": "none\n"}
GLOBAL = LineCounts("a.cu", 2, "load", "global", 16, 4, 64, 30, 20, None)
SHARED = LineCounts("a.cu", 2, "store", "shared", 16, 2, 32, None, None, 6)
NAMELESS = LineCounts("an unknown line", 0, "load", "global", 4, 1, 1, 1, 1, None)
RACE = Finding("race", "rows.cuh", 1, "write-read race: thread 1 & thread 2", 7)
WRONG = Finding("wrong_result", None, None, "sums: 3 are wrong")


def proof(*reports: Finding, not_proved: tuple[str, ...] = ()) -> Proof:
    return Proof("op", "a.cu", ("k",), not reports, reports, (GLOBAL,), {}, 5, not_proved)


def test_figures_of_a_line_are_sums_of_its_accesses() -> None:
    (line,) = line_figures([GLOBAL, SHARED, NAMELESS])
    assert (line.file, line.line, line.requests, line.lanes) == ("a.cu", 2, 6, 16.0)
    assert line.sectors == 1.5
    assert line.passes == 6 / (32 * 16 / 128)
    assert line.tip.splitlines() == [
        "global load of 16 bytes a lane: 4 requests, 16.0 of 32 lanes active, 30 sectors where 20 would do",
        "shared store of 16 bytes a lane: 2 requests, 16.0 of 32 lanes active, 6 bank passes where 4 would do",
    ]


def test_marks_with_a_line_come_first_and_have_a_title() -> None:
    marks = marks_as_json([WRONG, RACE])
    assert [(mark["title"], mark["line"], mark["count"]) for mark in marks] == [
        ("race", 1, 7),
        ("wrong result", None, 1),
    ]


def test_the_listing_draws_bars_and_puts_what_is_wrong_below_its_line() -> None:
    listing = KernelListing(SOURCES, line_figures([GLOBAL, SHARED]), (RACE,))
    page = listing._repr_html_()
    assert "first &lt;b&gt;" in page
    assert "unused.cuh" not in page
    assert '--share:50%" title="global load' in page  # 16 of 32 lanes
    assert '--share:33%" title="global load' in page  # a third of the sectors is waste
    assert re.search(
        r'<tr class="wrong"><td class="number">1</td>.*?third</td></tr><tr>.*?<b>race</b>: write-read', page
    )
    assert "thread 1 &amp; thread 2" in page
    assert repr(listing) == "a.cu:2     16.0 lanes    1.50× sectors   1.50× banks  second"


def test_a_listing_without_counts_says_so() -> None:
    assert repr(KernelListing(SOURCES, ())) == "no line asks for memory"


def test_the_verdict_says_what_was_looked_at() -> None:
    assert "✓ proved" in verdict(proof())
    assert "no race, no access out of bounds" in verdict(proof())
    assert "✗ not proved" in verdict(proof(RACE))
    assert "no race" not in verdict(proof(RACE))
    assert "no race" not in verdict(proof(not_proved=("PTX: no NVRTC",)))


def test_a_proof_lists_every_report_and_what_is_missing() -> None:
    page = KernelProof(proof(RACE, WRONG, not_proved=("PTX: pip install 'labkit[gpu]'",)), SOURCES)._repr_html_()
    assert "<code>rows.cuh:1</code>: write-read race: thread 1 &amp; thread 2 <i>(7 times)</i>" in page
    assert "pip install &#x27;labkit[gpu]&#x27;" in page
    missing = KernelProof(None, SOURCES, "no g++ here: sudo apt-get install g++")
    assert "sudo apt-get install g++" in missing._repr_html_()
    assert repr(missing) == "not proved: no g++ here: sudo apt-get install g++"


def test_the_counts_compare_with_a_thread_a_sequence() -> None:
    kinds = {"short": (GLOBAL,), "all rows": (GLOBAL, SHARED), "thread_per_sequence": ()}
    counts = KernelCounts(tuple(Counted(name, 2, 9, lines) for name, lines in kinds.items()), ())
    short, whole, thread = counts_table(counts).rows
    assert short == ("short: a group of lanes a row", "2", "9", "4", "16.0", "1.50", "–")
    assert whole[-1] == "1.50"
    assert thread == ("compared: a thread a sequence (one feature)", "2", "9", "0", "–", "–", "–")
    assert counts_table(counts).note.startswith("modelled")


def test_registers_and_what_limits_occupancy_stand_side_by_side() -> None:
    takes = Resources(40, 0, 0, 4096, 256, 0.75, "registers")
    spills = Resources(64, 16, 8, 4096, 256, 0.5, "registers")
    table = resources_table({"sm_80": {"k<float, 4>": takes, "k<f16, 4>": takes}, "sm_90": {"k<float, 4>": spills}})
    assert table.header == ("kernel", "sm_80 Ampere: A100", "sm_90 Hopper: H100, H200")
    assert table.rows == (("k<float, 4>", "40 · 75% (registers)", "64 · 50% (registers) · 16 B local"),)


def test_a_time_that_does_not_exist_shows_its_reason_and_a_recorded_one_its_source() -> None:
    missing = Figure(None, "s", None, "no CUDA device")
    recorded = Figure(2e-3, "s", Origin.RECORDED, "recorded on H200, 2026-12-01, commit abc")
    time = KernelTime(
        "segment_sum", 3, 6, missing, missing, None, Figure(4000, "bytes", Origin.EXACT),
        Figure(2e-6, "s", Origin.MODELLED, "once"), "H100",
        (RecordedTime("zipf", recorded, Figure(None, "1", None, "no")),),
    )  # fmt: skip
    text = repr(time_table(time))
    assert re.search(r"time on this machine +– +no CUDA device", text)
    assert re.search(r"floor of the bytes +2.00 us modelled +H100, data sheet +once", text)
    assert re.search(r"recorded, zipf lengths +2.00 ms recorded +recorded on H200, 2026-12-01, commit abc", text)
    assert json.loads(json.dumps(time.as_json))["reason"]["time_s"] == "no CUDA device"


def test_the_figure_of_the_regimes_names_their_shares() -> None:
    histogram = LengthHistogram(np.array([1, 4, 8, 64]), np.array([4, 4, 1, 1]))
    figure = regime_figure(histogram, regime_shares(histogram, (4, 8, 16)))
    texts = [note.text for note in figure.layout.annotations]
    assert [text.split("</b>")[0] for text in texts] == ["<b>short", "<b>medium", "<b>giant"]
    assert "80.0 % of rows" in texts[0]
    lines = [shape.x0 for shape in figure.layout.shapes if shape.type == "line"]
    assert lines == [np.log2(4.5), np.log2(8.5)]
