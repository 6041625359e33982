"""Quantities such as "500m" and "1Gi": their values and canonical texts, as resource.Quantity of
k8s.io/apimachinery."""

import math
import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d{1,4}|)")
_BINARY = {suffix: 1024 ** (power + 1) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BY_POWER = {power: suffix for suffix, power in _DECIMAL.items()}
_MAX_LENGTH = 64

ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(text: str) -> Fraction:
    """The value. Raises ValueError with the message of kube-apiserver."""
    return _read(text)[0]


def canonical(text: str) -> str:
    """The text that kube-apiserver writes: no fraction, nothing smaller than a thousandth, the largest suffix that
    keeps the value. Raises ValueError.
    """
    value, suffix = _read(text)
    if suffix in _BINARY and abs(value) >= 1024 and value.denominator == 1:
        for name, size in reversed(_BINARY.items()):
            if value % size == 0:
                return f"{value // size}{name}"
        return str(value)
    number, power = math.ceil(abs(value) * 1000) * (-1 if value < 0 else 1), -3
    exponent = suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix not in _BINARY
    while number and number % 1000 == 0 and (exponent or power < 18):
        number, power = number // 1000, power + 3
    if number == 0:
        return "0"
    if exponent:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_BY_POWER[power]}"


def _read(text: str) -> tuple[Fraction, str]:
    match = _FORM.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(ERROR)
    sign, digits, suffix = match.groups()
    value = Fraction(f"{sign}0{digits}" if digits.startswith(".") else sign + digits.rstrip("."))
    if suffix in _BINARY:
        return value * _BINARY[suffix], suffix
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if abs(power) > 40:
        raise ValueError(ERROR)
    return value * Fraction(10) ** power, suffix
