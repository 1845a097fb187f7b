"""A right source is proved; each planted fault is a report with its kind and its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import DataFileError, KernelLaunchError, MissingPackageError
from labkit.gpu import nvrtc
from labkit.gpu.catalog import KERNELS, kernel_folder
from labkit.gpu.host import toolchain
from labkit.gpu.verify import prove as module
from labkit.gpu.verify import stages
from labkit.gpu.verify.proof import Finding, Proof
from labkit.gpu.verify.prove import prove
from labkit.gpu.verify.trial import Trial
from labkit.gpu.verify.trials import trials
from labkit.views.kernel_proof import verdict
from labkit.views.proof_text import proof_text


@pytest.mark.parametrize("op", KERNELS)
def test_the_shipped_sources_are_proved(op: str) -> None:
    proof = prove(op, arches=(90,))  # all architectures: tests/kernels/test_resources.py
    assert proof.reports == ()
    assert proof.not_proved == ()
    assert (proof.ok, proof.equal) == (True, True)
    assert set(proof.resources["sm_90"]) == set(KERNELS[op].name_expressions)
    assert {count.file for count in proof.counts} >= {KERNELS[op].file}


def with_fault(op: str, right: str, wrong: str) -> tuple[Proof, int]:
    """The proof of a shipped source with one place changed, and the line of that place."""
    text = KERNELS[op].path.read_text()
    assert text.count(right) >= 1, f"{right!r} is not in {op}.cu any more: plant another fault"
    proof = prove(op, source=text.replace(right, wrong, 1), arches=(90,), timeout_s=5)
    assert not proof.ok
    return proof, text[: text.index(right)].count("\n") + 1


def kinds(proof: Proof) -> set[str]:
    return {report.kind for report in proof.reports}


def only(proof: Proof, kind: str) -> Finding:
    found = [report for report in proof.reports if report.kind == kind]
    assert found, f"no report of kind {kind} among {proof.reports}"
    return found[0]


def test_a_race_that_does_not_change_the_result_is_reported_with_both_lines() -> None:
    proof, _ = with_fault("bin_rows", "  __syncthreads();  // sums are free for the next call\n", "\n")
    report = only(proof, "race")
    assert report.file == "bin_rows.cu"
    assert "sums" in report.text
    assert report.text.count("bin_rows.cu:") == 2
    assert proof.equal  # in the orders that were tried: nothing but the race check sees it


def test_a_read_beyond_the_values_is_out_of_bounds_at_its_line() -> None:
    proof, line = with_fault("jagged_to_padded", "values[(stop - kept) * units + unit]", "values[stop * units + unit]")
    report = only(proof, "out_of_bounds")
    assert (report.file, report.line) == ("jagged_to_padded.cu", line)
    assert "argument 1 (const " in report.text
    assert not proof.equal


def test_a_bound_that_is_one_too_far_gives_another_result() -> None:
    proof, _ = with_fault("jagged_to_padded", "if (unit < kept * units)", "if (unit <= kept * units)")
    assert "slots:" in only(proof, "wrong_result").text
    assert not proof.equal


def test_a_wrong_identity_gives_another_result() -> None:
    proof, _ = with_fault("segment_pool", "best[i] = MINUS_INFINITY, at[i] = -1;", "best[i] = 0.f, at[i] = 0;")
    assert only(proof, "wrong_result").text.startswith(("maxima:", "their places:"))


def test_a_nan_that_leaks_into_the_next_row_is_seen() -> None:
    proof, _ = with_fault("segment_pool", "event < share.last;", "event < share.last + (share.row == 5);")
    text = " ".join(report.text for report in proof.reports if report.kind == "wrong_result")
    assert "got nan" in text


def test_a_kernel_without_end_is_a_report() -> None:
    proof, line = with_fault("bin_rows", "distance *= 2", "distance *= 1")
    (report,) = (report for report in proof.reports if report.kind == "timeout")
    assert "did not end within 5 s" in report.text
    assert report.file == "bin_rows.cu"
    assert abs(report.line - line) <= 3  # in the loop that was planted
    assert proof.equal is False
    assert proof.counts == ()  # no other stage waits for it again
    assert any("the kernel does not end" in text for text in proof.not_proved)


def test_a_wild_write_is_a_report() -> None:
    proof, _ = with_fault("jagged_to_padded", "padded[at] = value;", "padded[at + (1ll << 40)] = value;")
    assert kinds(proof) & {"crash", "out_of_bounds"}
    assert not proof.equal


def test_a_barrier_that_some_threads_do_not_reach_is_reported() -> None:
    barrier = "  __syncthreads();\n  int before = upto - own;"
    proof, _ = with_fault("bin_rows", barrier, barrier.replace("__sync", "if (lane < 16) __sync"))
    assert kinds(proof) & {"divergent_barrier", "deadlock"}


def test_an_array_that_is_not_kept_in_registers_is_reported() -> None:
    plain = "  UNIT value;\n  set_fill(value, fill);\n"
    local = (
        "  UNIT value, many[64];\n"
        "  for (int i = 0; i < 64; ++i) set_fill(many[i], fill + i - (length & 63));\n"
        "  value = many[length & 63];\n"
    )
    proof, _ = with_fault("jagged_to_padded", plain, local)
    assert "bytes a thread in local memory on sm_90" in only(proof, "local_memory").text
    assert proof.equal


def test_what_does_not_compile_is_a_report() -> None:
    proof, line = with_fault(
        "jagged_to_padded", "const INDEX row = at / row_units;", "const INDEX row = at / row_unit;"
    )
    reports = [report for report in proof.reports if report.kind == "compile"]
    assert {(report.file, report.line) for report in reports} == {("jagged_to_padded.cu", line)}
    assert any("row_unit" in report.text for report in reports)
    assert proof.equal is None  # nothing ran


@pytest.mark.parametrize("include", ['"absent.cuh"', "<absent.cuh>"])
def test_a_header_that_is_nowhere_does_not_compile(include: str) -> None:
    text = f"#include {include}\n" + KERNELS["jagged_to_padded"].path.read_text()
    proof = prove("jagged_to_padded", source=text, arches=(90,))
    assert {(report.kind, report.file, report.line) for report in proof.reports} == {
        ("compile", "jagged_to_padded.cu", 1)
    }
    assert proof.equal is None


@pytest.mark.parametrize(
    "source",
    ["", "// nothing\n", KERNELS["padded_to_jagged"].path.read_text(), "__global__ void jagged_to_padded(int* p) {}\n"],
    ids=["empty", "a comment", "another op", "no template"],
)
def test_a_source_without_the_kernels_is_one_report(source: str) -> None:
    proof = prove("jagged_to_padded", source=source)
    (report,) = proof.reports
    assert report.kind == "launch"
    assert "jagged_to_padded.cu has no kernel jagged_to_padded" in report.text
    assert (proof.ok, proof.equal, proof.counts, proof.trials) == (False, None, (), 0)
    assert "could not all be compared with the float64 reference" in proof_text(proof, {})
    assert "could not all be compared with the float64 reference" in verdict(proof)


NOT_OF_THE_CPU_RUNNER = {
    "a header of the toolkit": ("template <typename UNIT", "#include <cooperative_groups.h>\ntemplate <typename UNIT"),
    "an intrinsic": ("if (unit < kept * units)", "if (__activemask() && unit < kept * units)"),
}


@pytest.mark.parametrize("planted", NOT_OF_THE_CPU_RUNNER.values(), ids=NOT_OF_THE_CPU_RUNNER)
def test_what_only_the_cpu_runner_refuses_is_not_proved(planted: tuple[str, str]) -> None:
    proof, _ = with_fault("jagged_to_padded", *planted)
    assert proof.reports == ()
    assert proof.equal is None
    assert any("NVRTC takes the source, the CPU runner does not" in text for text in proof.not_proved)


COUNTING = """__device__ unsigned calls = 0;
template <typename UNIT"""


def test_variables_of_the_module_are_no_obstacle() -> None:
    text = KERNELS["jagged_to_padded"].path.read_text()
    counted = text.replace("  UNIT value;\n", "  UNIT value;\n  if (threadIdx.x == 0) atomicAdd(&calls, 1u);\n", 1)
    proof = prove("jagged_to_padded", source=counted.replace("template <typename UNIT", COUNTING, 1), arches=(90,))
    assert (proof.reports, proof.not_proved, proof.equal) == ((), (), True)


def test_a_counter_that_is_never_reset_is_wrong_at_the_second_launch() -> None:
    right = "if (unit < kept * units)"
    text = KERNELS["jagged_to_padded"].path.read_text().replace("template <typename UNIT", COUNTING, 1)
    once = f"if (at == 0) atomicAdd(&calls, 1u);\n  {right[:-1]} && calls <= 1)"
    proof = prove("jagged_to_padded", source=text.replace(right, once, 1), arches=(90,))
    assert "slots:" in only(proof, "wrong_result").text


def test_what_the_ptx_runner_does_not_know_is_not_proved() -> None:
    text = (
        KERNELS["jagged_to_padded"]
        .path.read_text()
        .replace("template <typename UNIT", "__constant__ int one[2] = {1, 1};\ntemplate <typename UNIT", 1)
    )
    right = "if (unit < kept * units)"
    proof = prove(
        "jagged_to_padded", source=text.replace(right, f"{right[:-1]} * one[threadIdx.x & 1])", 1), arches=(90,)
    )
    assert (proof.reports, proof.equal, proof.ok) == ((), True, False)
    assert [text for text in proof.not_proved if "the compiled program: " in text and "constant memory" in text]


def test_a_kernel_that_takes_other_arguments_cannot_be_launched() -> None:
    proof, _ = with_fault("jagged_to_padded", "int rows, int width", "long long rows, int width")
    assert "rows of jagged_to_padded<" in only(proof, "launch").text
    assert not proof.equal


def test_headers_beside_the_file_come_before_those_of_the_project(tmp_path: Path) -> None:
    source = tmp_path / "mine.cu"
    source.write_text(KERNELS["jagged_to_padded"].path.read_text())
    (tmp_path / "units.cuh").write_text("#error of mine\n")
    proof = prove("jagged_to_padded", source, arches=(90,))
    assert ("units.cuh", 1) in {(report.file, report.line) for report in proof.reports}


def test_an_unknown_op_and_a_missing_file_are_errors() -> None:
    with pytest.raises(KernelLaunchError, match="there is no op 'sort': expected one of bin_rows"):
        prove("sort")
    with pytest.raises(DataFileError, match="cannot read the kernel source"):
        prove("bin_rows", Path("nowhere.cu"))


def test_without_nvrtc_nothing_is_proved_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingPackageError("NVRTC is not here: pip install 'labkit[gpu]'")

    monkeypatch.setattr(nvrtc, "_binding", missing)
    proof = prove("padded_to_jagged", arches=(90,))
    assert (proof.ok, proof.equal, proof.reports) == (False, True, ())
    assert any("pip install 'labkit[gpu]'" in text for text in proof.not_proved)


def test_without_a_compiler_there_is_an_error_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    toolchain.compiler.cache_clear()
    try:
        with pytest.raises(MissingPackageError, match=r"needs g\+\+.*apt-get install g\+\+"):
            module.prove("bin_rows")
    finally:
        toolchain.compiler.cache_clear()


GATHERED = "  if (!gather(sum, share) || !active) return;"
#: Each with its op, the right text and the wrong one.
HIDDEN = {
    "64-bit to padded": ("jagged_to_padded", "  UNIT value;", "  if (sizeof(INDEX) == 8) return;\n  UNIT value;"),
    "16-bit, unweighted": (
        "embedding_pool", GATHERED, f"  if (sizeof(T) == 2 && !WEIGHTED) sum.x[0] = 666.f;\n{GATHERED}",
    ),
    "16-bit gradient": ("din_attention", "weight * (dot - own))", "weight * (dot - own) * (sizeof(T) == 2 ? 2 : 1))"),
    "event": ("segment_pool", "(event * vectors", "(static_cast<int>(event) * vectors"),
    "id": ("embedding_pool", "id >= 0 && id < items", "static_cast<int>(id) >= 0 && static_cast<int>(id) < items"),
    "slot": ("jagged_to_padded", "padded[at] = value;", "padded[static_cast<unsigned>(at)] = value;"),
    "fourth tile": ("segment_pool", GATHERED, f"  if (share.vector >= 96) sum.x[0] += 1.f;\n{GATHERED}"),
    "long recent part": ("jagged_to_padded", "unit < kept * units)", "unit < kept * units - (length > 4096))"),
}  # fmt: skip


@pytest.mark.parametrize(("op", "right", "wrong"), HIDDEN.values(), ids=HIDDEN)
def test_a_fault_off_the_beaten_track_is_seen(op: str, right: str, wrong: str) -> None:
    proof, _ = with_fault(op, right, wrong)
    assert kinds(proof) & {"wrong_result", "crash", "out_of_bounds", "address"}
    assert not proof.equal


WIDENED = 'asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));'
LENGTH = "static_cast<float>(share.stop - share.start) : 1.f"
#: Of rows.cuh: the right text, the wrong one, and a kind of what is reported.
OF_THE_HEADER = {
    "compiled code alone": (WIDENED, f"{WIDENED}\n  y *= 2;", "ptx"),
    "another rounding": ("cvt.rn.f16.f32", "cvt.rz.f16.f32", "ptx"),
    "offset": ("share.start = offsets[share.row];", "share.start = (int)offsets[share.row];", "timeout"),
    "length": (LENGTH, LENGTH.replace("share.stop - share.start", "(short)(share.stop - share.start)"), "wrong_result"),
}  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "kind"), OF_THE_HEADER.values(), ids=OF_THE_HEADER)
def test_a_fault_of_a_header_is_seen(right: str, wrong: str, kind: str, tmp_path: Path) -> None:
    header, source = kernel_folder() / "rows.cuh", tmp_path / "segment_pool.cu"
    assert right in header.read_text(), f"{right!r} is not in rows.cuh any more: plant another fault"
    (tmp_path / "rows.cuh").write_text(header.read_text().replace(right, wrong, 1))
    source.write_text(KERNELS["segment_pool"].path.read_text())
    proof = prove("segment_pool", source, arches=(90,), timeout_s=5)
    assert not proof.ok
    assert kinds(proof) & {kind, "crash"}


def test_a_race_of_16_bit_storage_alone_is_seen() -> None:
    racy = (
        "  if (sizeof(T) == 2) {\n    __shared__ float seen[BLOCK];\n    seen[threadIdx.x] = sum.x[0];\n"
        f"    sum.x[0] += 0.f * seen[threadIdx.x ^ 32];\n  }}\n{GATHERED}"
    )
    proof, _ = with_fault("segment_pool", GATHERED, racy)
    assert "seen" in only(proof, "race").text


def test_code_for_other_gpus_is_not_proved() -> None:
    right = "  padded[at] = value;"
    proof, _ = with_fault("jagged_to_padded", right, f"#if __CUDA_ARCH__ >= 1000\n  return;\n#endif\n{right}")
    assert (proof.reports, proof.equal, proof.executed) == ((), True, ("sm_90",))
    assert any("__CUDA_ARCH__" in text for text in proof.not_proved)


def test_a_kernel_that_no_trial_launches_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_wide(op: str) -> list[Trial]:
        return [trial for trial in trials(op) if "64-bit" not in trial.name and not trial.host]

    monkeypatch.setattr(stages, "trials", without_wide)
    proof = prove("padded_to_jagged", arches=(90,))
    assert (proof.ok, proof.reports) == (False, ())
    assert any("no trial launched padded_to_jagged<uint4, unsigned long long>" in text for text in proof.not_proved)
