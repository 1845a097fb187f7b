"""Exact fits: quantities of traced steps as sums of terms, by integer arithmetic, without a residual."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from labkit.cost.shapes import BatchShape, Shapes, Term, terms_of
from labkit.errors import CostError


class Fit:
    """Coefficients of a basis from as many shapes as it has terms.

        quantity(shape) = sum over terms of coefficient * term(shape)

    Everything is an integer or a fraction of integers, so that a fit has no rounding: it is the only one there is.

    Args:
        basis: the terms.
        shapes: as many as there are terms, in general position.

    Raises:
        CostError: the shapes do not tell the terms apart.
    """

    def __init__(self, basis: tuple[Term, ...], shapes: Sequence[BatchShape]) -> None:
        """Invert the matrix of the terms."""
        self.basis = basis
        self._inverse = _inverse([[Fraction(int(x)) for x in row] for row in terms_of(Shapes.of(shapes), basis)])

    def coefficients(self, values: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Fit many quantities at once.

        Args:
            values: for each shape, the quantities, whole numbers.

        Returns:
            (terms, quantities) float64, each coefficient exactly what it is.

        Raises:
            CostError: a coefficient that a float64 cannot hold.
        """
        columns = [self._solve(column) for column in zip(*values, strict=True)]
        return np.array(columns, dtype=np.float64).reshape(-1, len(self.basis)).T

    def _solve(self, column: Sequence[int]) -> list[float]:
        if len(set(column)) == 1:  # the same for every shape: the term 1 alone, as always for views
            return [float(column[0]) if term is Term.ONE else 0.0 for term in self.basis]
        exact = [sum((a * y for a, y in zip(row, column, strict=True)), Fraction(0)) for row in self._inverse]
        floats = [float(value) for value in exact]
        if any(Fraction(number) != value for number, value in zip(floats, exact, strict=True)):
            scale = lcm(*(value.denominator for value in exact))
            names = ", ".join(self.basis)
            raise CostError(f"a coefficient in parts of {scale} is no float64: the basis {names} does not fit.")
        return floats


def evaluate(coefficients: NDArray[np.float64], basis: tuple[Term, ...], shapes: Shapes) -> NDArray[np.float64]:
    """(n, quantities) at (n,) shapes. Exact where the shapes and the results are whole numbers below 2**53."""
    values: NDArray[np.float64] = terms_of(shapes, basis) @ coefficients
    return values


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """Inverse of a square matrix by Gauss-Jordan elimination in fractions."""
    size = len(matrix)
    if any(len(row) != size for row in matrix):
        raise CostError(f"a fit needs as many shapes as terms: got {size} shapes for {len(matrix[0])} terms.")
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = next((r for r in range(i, size) if rows[r][i]), None)
        if pivot is None:
            raise CostError(f"the {size} traced shapes do not tell the terms of the basis apart: choose other shapes.")
        rows[i], rows[pivot] = rows[pivot], rows[i]
        head = rows[i][i]
        rows[i] = [x / head for x in rows[i]]
        for r in range(size):
            if r != i and rows[r][i]:
                factor = rows[r][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[size:] for row in rows]
