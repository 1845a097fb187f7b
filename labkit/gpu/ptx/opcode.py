"""The name of an instruction taken apart: ``ld.global.v4.f32`` is ld, with modifiers global and v4, and type f32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: PTX type to the NumPy type of its values. bf16 and the packed pairs have none: their bits are carried.
DTYPES: dict[str, type[np.generic]] = {
    "pred": np.bool_,
    "b8": np.uint8, "u8": np.uint8, "s8": np.int8,
    "b16": np.uint16, "u16": np.uint16, "s16": np.int16, "f16": np.float16, "bf16": np.uint16,
    "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32, "f16x2": np.uint32, "bf16x2": np.uint32,
    "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f64": np.float64,
}  # fmt: skip

BYTES: dict[str, int] = {name: np.dtype(dtype).itemsize for name, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Opcode:
    """An instruction's name.

    Attributes:
        name: the first part.
        modifiers: the parts that are no types, in order.
        types: the parts that are types, in order: result first where there are two.
    """

    name: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, text: str) -> Opcode:
        """Take a name apart."""
        name, *parts = text.split(".")
        return cls(name, tuple(p for p in parts if p not in DTYPES), tuple(p for p in parts if p in DTYPES), text)

    def __str__(self) -> str:
        return self.text

    @property
    def type(self) -> str:
        """The only or the last type: that of the operands."""
        return self.types[-1]

    def has(self, modifier: str) -> bool:
        """Whether it carries this modifier."""
        return modifier in self.modifiers
