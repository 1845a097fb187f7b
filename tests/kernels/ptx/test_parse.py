"""PTX text to kernels: scopes, labels, source lines, parameters, memory; what is not understood is refused."""

from __future__ import annotations

import pytest

from labkit.errors import PtxError
from labkit.gpu.ptx.bind import bind
from labkit.gpu.ptx.parse import Line, parse
from tests.kernels.ptx.programs import kernel

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def test_an_instruction_is_taken_apart() -> None:
    (instruction,) = kernel("@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%q1+8];").code[:1]
    assert (instruction.opcode.name, instruction.opcode.types) == ("ld", ("f32",))
    assert instruction.opcode.modifiers == ("global", "nc", "v2")
    assert instruction.operands == ("{%f1, %f2}", "[%q1+8]")
    assert (instruction.guard, instruction.guard_negated) == ("%p1", True)
    assert str(instruction) == "@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%q1+8]"


def test_labels_lead_to_the_instruction_that_follows() -> None:
    found = kernel("bra $L2;\n$L1: mov.u32 %r1, 1;\n$L2:\n  mov.u32 %r1, 2;")
    assert found.labels == {"$L1": 1, "$L2": 2}


def test_instructions_carry_the_source_line_that_was_named_last() -> None:
    text = HEAD + (
        ".visible .entry f()\n{\n.reg .b32 %r<3>;\n.loc 1 12 3\nmov.u32 %r1, 1;\n"
        ".loc 2 7 5, function_name $L__info_string0, inlined_at 1 20 5\nmov.u32 %r1, 2;\n.loc 1 0 0\nret;\n}\n"
        '.file 1 "/home/somebody/a.cu"\n.file 2 "rows.cuh"\n'
    )
    lines = [instruction.line for instruction in parse(text)["f"].code]
    # line 0 is the compiler's own: it stays with what came before
    assert lines == [Line("a.cu", 12), Line("rows.cuh", 7), Line("rows.cuh", 7)]
    assert str(lines[0]) == "a.cu:12"


def test_names_of_inline_assembly_are_local_to_their_braces() -> None:
    body = """
    { .reg .pred p; .reg .b32 t; setp.eq.u32 p, %r1, 0; @p mov.b32 t, 1; }
    { .reg .b64 t; mov.b64 t, 2; bra SKIP; SKIP: mov.b64 %q1, t; }
    { cvt.f32.f16 %f1, %h1;}
    """
    found = kernel(body)
    names = [instruction.operands[0] for instruction in found.code[:3]]
    assert names[1] != names[2]  # two registers called t
    assert found.register_type(names[1]) == "b32"
    assert found.register_type(names[2]) == "b64"
    assert found.code[1].guard == names[0]
    bind(found)  # SKIP leads somewhere


def test_parameters_keep_their_order_and_sizes() -> None:
    text = (
        "(.param .u64 .ptr .align 1 a, .param .u64 .ptr .global .align 16 b, .param .f32 c, .param .align 8 .b8 d[24])"
    )
    found = parse(f"{HEAD}.visible .entry f{text}\n.maxntid 64, 2, 1\n.minnctapersm 2\n{{ ret; }}")["f"]
    assert found.params == {"a": ("u64", 8), "b": ("u64", 8), "c": ("f32", 4), "d": ("b8", 24)}
    assert found.max_threads == 128


def test_shared_arrays_are_aligned_and_the_dynamic_one_comes_last() -> None:
    text = (
        HEAD + ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 other[8];\n"
        ".visible .entry f()\n{\n.reg .b64 %q<3>;\n.shared .align 4 .b8 a[12];\n.shared .align 16 .b8 b[20];\n"
        "mov.u64 %q1, dynamic;\nmov.u64 %q2, b;\nret;\n}\n.visible .entry g() { ret; }"
    )
    found = parse(text)
    # a at 0, b at 16 (12 rounded up), 36 bytes in all; the dynamic one from 48 on, rounded up to 16
    assert found["f"].shared == {"a": 0, "b": 16, "dynamic": 48}
    assert found["f"].shared_bytes == 48
    assert found["g"].shared == {}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mma.sync.f32 %r1, %r2;", r"^f, \(no source line\), `mma\.sync\.f32 %r1, %r2`: .*unknown to the PTX runner$"),
        ("bra nowhere;", "label nowhere is not in the kernel"),
        ("mov.u32 %r1, %r99;", "register %r99 is unknown"),
        ("mov.u32 %r1, %clock;", "register %clock is unknown"),
        ("mov.u32 %r1, table;", "operand 'table' is neither a register nor a number nor an array"),
        ("add.s32 %r1, %r2;", "expected 2 operands after the first, got 1"),
        ("cvt.u64.u32 %r1, %r2;", "register %r1 of 4 bytes cannot hold a .u64"),
        ("ld.const.f32 %f1, [%q1];", "constant memory is unknown"),
        ("ld.global.sparkling.f32 %f1, [%q1];", r"modifier \.sparkling"),
        ("shfl.bfly.b32 %r1, %r2, 1, 31;", r"without \.sync"),
        ("bar.sync 0, 64;", "unknown to the PTX runner"),
        ("call foo;", "unknown to the PTX runner"),
    ],
)
def test_what_is_not_known_is_refused_with_its_name(body: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        bind(kernel(body))


def test_text_that_is_cut_off_is_refused() -> None:
    with pytest.raises(PtxError, match="the PTX ends inside a kernel"):
        parse(HEAD + ".visible .entry f() { mov.u32 %r1, 1;")


def test_text_that_is_no_ptx_is_refused() -> None:
    with pytest.raises(PtxError, match="not understood as PTX: '%%%"):
        parse(HEAD + ".visible .entry f() { %%% what; }")
