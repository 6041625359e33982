"""Values of fields: when two are the same, which of them a text may show, and how a ChangeWorkload keeps them.

Values of the environment, of commands and of annotations may be secrets. So a text shows numbers and truth values, and
those texts of which the field is known to have none.
"""

import enum
import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import orjson


class Absent(enum.Enum):
    """The type of ABSENT."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The value of a field that does not exist."""

MAX_DEPTH = 64
"""The maximum number of levels below a field that are compared as fields; deeper ones are compared as they are."""

MAX_KEPT = 64
"""The maximum length of a value that a ChangeWorkload keeps as text."""

_SHOWN = 40  # characters
_MAX_NUMBER = 32  # characters of a quantity
_MAX_EXPONENT = 30
_EXACT = 2**53
_DIGITS = frozenset("0123456789")

_SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}  # fmt: skip

_DEFAULTS: dict[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "protocol": "TCP",
    "scheme": "HTTP",
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    "defaultMode": 420,
}
"""What the API server adds to a pod template where the field is not set (pkg/apis/core/v1/defaults.go)."""

_PARENTS: dict[str, frozenset[str]] = {
    "restartPolicy": frozenset({"spec"}),
    "dnsPolicy": frozenset({"spec"}),
    "schedulerName": frozenset({"spec"}),
    "terminationGracePeriodSeconds": frozenset({"spec"}),
    "terminationMessagePath": frozenset({"containers", "initContainers"}),
    "terminationMessagePolicy": frozenset({"containers", "initContainers"}),
    "protocol": frozenset({"ports"}),
    "scheme": frozenset({"httpGet"}),
    **dict.fromkeys(
        ("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
        frozenset({"livenessProbe", "readinessProbe", "startupProbe"}),
    ),
    "defaultMode": frozenset({"configMap", "secret", "projected", "downwardAPI"}),
}
"""The fields below which these are."""

_EMPTY = frozenset({"resources", "limits", "requests", "securityContext", "labels", "annotations", "nodeSelector"})
"""The maps that mean the same if they are empty and if they do not exist. Others, as `emptyDir`, do not."""

_QUANTITIES = frozenset({"limits", "requests"})
_SECRET = frozenset(
    {"env", "envFrom", "command", "args", "annotations", "httpHeaders", "volumeAttributes", "options", "exec"}
)
_PLAIN_BELOW = frozenset({"resources", "securityContext", "nodeSelector", "labels", "tolerations"})
_PLAIN = frozenset(
    {
        "image", "imagePullPolicy", "name", "serviceAccountName", "serviceAccount", "priorityClassName",
        "schedulerName", "runtimeClassName", "restartPolicy", "dnsPolicy", "preemptionPolicy", "nodeName",
        "mountPath", "subPath", "claimName", "medium", "sizeLimit",
    }
)  # fmt: skip


def default(fields: Sequence[str]) -> Any:
    """The value that the API server gives to a field that is not set; ABSENT: none."""
    if len(fields) < 2 or fields[-2] not in _PARENTS.get(fields[-1], ()):
        return ABSENT
    return _DEFAULTS[fields[-1]]


def quantity(value: Any) -> Fraction | None:
    """A number, or a quantity of Kubernetes, as `500m` or `1Gi`; None: it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Fraction(value) if abs(value) < 10**_MAX_EXPONENT else None
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_NUMBER:
        return None
    sign, text = (-1, value[1:]) if value[0] == "-" else (1, value.removeprefix("+"))
    end = 0
    while end < len(text) and (text[end] in _DIGITS or text[end] == "."):
        end += 1
    number, suffix = text[:end], text[end:]
    whole, _, fraction = number.partition(".")
    if not (whole or fraction) or not _DIGITS.issuperset(whole + fraction):
        return None
    scale = _SUFFIXES.get(suffix) or _exponent(suffix)
    return sign * Fraction(int(whole + fraction), 10 ** len(fraction)) * scale if scale is not None else None


def _exponent(suffix: str) -> Fraction | None:
    digits = suffix[1:].lstrip("+-")
    if suffix[:1] not in ("e", "E") or not digits or not _DIGITS.issuperset(digits) or len(suffix) - len(digits) > 2:
        return None
    exponent = int(suffix[1:])
    return Fraction(10) ** exponent if abs(exponent) <= _MAX_EXPONENT else None


def normal(value: Any, fields: Sequence[str]) -> Any:
    """The value without what means nothing: members that are null, empty, or what the API server adds. Quantities have
    one form. `fields`: the names of the fields down to this one."""
    return _normal(value, (*fields[-2:],), MAX_DEPTH)


def _normal(value: Any, fields: tuple[str, ...], depth: int) -> Any:
    if value is None or value == [] or (value == {} and fields and fields[-1] in _EMPTY):
        return ABSENT
    if depth == 0 or value is ABSENT:
        return value
    if isinstance(value, dict):
        kept = {}
        for key, each in value.items():
            below = (*fields[-1:], key)
            found = _normal(each, below, depth - 1)
            if found is not ABSENT and found != default(below):
                kept[key] = found
        return ABSENT if not kept and fields and fields[-1] in _EMPTY else kept
    if isinstance(value, list):
        return [_normal(each, fields, depth - 1) for each in value]
    if isinstance(value, bool):
        return "true", value  # Python takes True for 1
    if len(fields) > 1 and fields[-2] in _QUANTITIES:
        amount = quantity(value)
        return str(amount) if amount is not None else value
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value


def same(one: Any, other: Any, fields: Sequence[str]) -> bool:
    """Whether two values of a field mean the same."""
    return bool(normal(one, fields) == normal(other, fields))


def shown(value: Any, fields: Sequence[str]) -> str:
    """The value in a text for people, shortened; empty: it may be a secret, or it is no single value."""
    if value is ABSENT:
        return "not set"
    if not _SECRET.isdisjoint(fields):
        return ""
    if isinstance(value, bool | int | float):
        return orjson.dumps(value).decode()[:_SHOWN]
    if not isinstance(value, str):
        return ""
    if fields[-1] not in _PLAIN and _PLAIN_BELOW.isdisjoint(fields):
        return ""
    text = value if value.isascii() and value.isprintable() else ascii(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def kept(value: Any, fields: Sequence[str]) -> str:
    """The value as a ChangeWorkload keeps it: in JSON, if people may see it, or a digest. Not for ABSENT."""
    if shown(value, fields):
        text = orjson.dumps(value).decode()
        if len(text) <= MAX_KEPT:
            return text
    form = orjson.dumps(normal(value, fields), default=str, option=orjson.OPT_SORT_KEYS)
    return f"sha256:{hashlib.sha256(form).hexdigest()[:16]}"


def is_kept(stored: str | None, value: Any, fields: Sequence[str]) -> bool:
    """Whether `stored`, which a ChangeWorkload kept, is this value. None: the field was not set."""
    if stored is None or value is ABSENT:
        return stored is None and value is ABSENT
    if stored == kept(value, fields):
        return True
    return not stored.startswith("sha256:") and same(orjson.loads(stored), value, fields)


def shown_kept(stored: str | None, fields: Sequence[str]) -> str:
    """The value that a ChangeWorkload kept, in a text for people; empty: it may be a secret."""
    if stored is None:
        return "not set"
    return "" if stored.startswith("sha256:") else shown(orjson.loads(stored), fields)
