"""The only module that scales numbers for people: counts, shares and bytes as short texts.

Everything else stores SI base units with a suffix (``_s``, ``_bytes``). GB = 1e9, GiB = 2**30.
"""

from __future__ import annotations

GB = 10**9
GIB = 2**30

_MOST_SHOWN = 60
_COUNT_STEPS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def shown(value: object, most: int = _MOST_SHOWN) -> str:
    """A value as an error message echoes it: as Python writes it, and not longer than a line can bear."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        return "a number of thousands of digits"
    if len(text) <= most:
        return text
    return text[:most] + "..." + (text[-1] if isinstance(value, str) else "")


def counted(number: int, noun: str) -> str:
    """A count with its noun: ``1 step``, ``1,200 batches``, ``2 strategies``."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def format_count(value: float) -> str:
    """Write a count with three significant digits: ``1.47 M``, ``12 345`` becomes ``12.3 k``.

    Counts under 10 000 are written in full, ``943``; an estimate keeps one digit after the point there.
    """
    if abs(value) < 9_999.95:
        return f"{value:,.0f}".replace(",", " ") if float(value).is_integer() else f"{value:,.1f}".replace(",", " ")
    for step, suffix in _COUNT_STEPS:
        # 999 950 would round to "1000 k": hand it to the next larger step
        if abs(value) >= step * 0.9995:
            scaled = value / step
            digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
            return f"{scaled:.{digits}f} {suffix}"
    raise AssertionError(f"unreachable: {value}")


def format_share(value: float) -> str:
    """Write a share of one as a percentage: ``0.3412`` -> ``34.1 %``; a tiny share never reads as zero."""
    percent = 100 * value
    if percent == 0:
        return "0 %"
    if abs(percent) < 0.01:
        return "< 0.01 %" if percent > 0 else "> -0.01 %"
    if abs(percent) < 1:
        return f"{percent:.2f} %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %"


def format_bytes(value: float) -> str:
    """Write bytes in decimal units: ``1.5e9`` -> ``1.50 GB``."""
    for step, suffix in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if abs(value) >= step * 0.999995:  # 999 999 would round to "1000.00 kB"
            return f"{value / step:.2f} {suffix}"
    return f"{value:.0f} B"


def format_seconds(value: float) -> str:
    """Write a duration with three significant digits: ``0.0123`` -> ``12.3 ms``; from 10 000 s on in full seconds."""
    for step, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= step * 0.9995:  # 999.6 ms would round to "1000 ms"
            scaled = value / step
            digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
            return f"{scaled:.{digits}f} {unit}"
    return f"{value / 1e-9:.0f} ns"
