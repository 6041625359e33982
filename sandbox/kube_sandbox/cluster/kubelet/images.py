"""Images are not run: what their containers do is known from their names.

The name is the last part of the reference with its tag, as `app:v2-crash` in `registry.example/team/app:v2-crash`.
The table is in docs/reference/sandbox.md. `slow` goes together with the others; times are `3s` or `500ms`.
"""

import hashlib
import re
from typing import NamedTuple

_NOT_THERE = ("nosuch", "missing", "pull-fail")
_CRASHING = ("crash",)
_NEVER_READY = ("never-ready", "unready")
_TIMED = re.compile(
    r"(exits|exits-once|completes|oom|oom-once|unready)-after-(\d+(?:\.\d+)?)(ms|s)|flaps-every-(\d+(?:\.\d+)?)(ms|s)"
)
_ENDS = {"exits": (1, "Error"), "completes": (0, "Completed"), "oom": (137, "OOMKilled")}


class End(NamedTuple):
    """How a container ends by itself, `after` seconds of running."""

    after: float
    exit_code: int = 1
    reason: str = "Error"
    once: bool = False
    """Only in its first run."""


class Image(NamedTuple):
    """What is known of an image by its name."""

    exists: bool = True
    crashes: bool = False
    """It ends with 1 after `SimulationSettings.crash`."""
    becomes_ready: bool = True
    is_slow: bool = False
    end: End | None = None
    unready_after: float | None = None
    """Seconds for which it stays ready."""
    flaps: float | None = None
    """Seconds after which it turns unready, and ready again."""
    mounts: bool = True
    attaches: bool = True
    """Where one of the two is not so, its pod's volumes keep it from starting."""
    is_configured: bool = True


def known(reference: str) -> Image:
    name = reference.partition("@")[0].rpartition("/")[2].lower()
    plain, ends, unready_after, flaps = _TIMED.sub("", name), None, None, None
    for what, number, unit, period, period_unit in _TIMED.findall(name):
        if period:
            flaps = _seconds(period, period_unit)
        elif what == "unready":
            unready_after = _seconds(number, unit)
        else:
            kind, _, once = what.partition("-")
            ends = End(_seconds(number, unit), *_ENDS[kind], once=bool(once))
    return Image(
        exists=not _says(plain, _NOT_THERE) and ("busybo" not in plain or "busybox" in plain),
        crashes=_says(plain, _CRASHING),
        becomes_ready=not _says(plain, _NEVER_READY),
        is_slow="slow" in plain,
        end=ends,
        unready_after=unready_after,
        flaps=flaps,
        mounts="nomount" not in plain,
        attaches="noattach" not in plain,
        is_configured="badconfig" not in plain,
    )


def _seconds(number: str, unit: str) -> float:
    return float(number) / (1000 if unit == "ms" else 1)


def full_reference(reference: str) -> str:
    """As a container runtime reports it: `busybox` is `docker.io/library/busybox:latest`."""
    host, slash, _ = reference.partition("/")
    if not slash:
        reference = f"docker.io/library/{reference}"
    elif "." not in host and ":" not in host and host != "localhost":
        reference = f"docker.io/{reference}"
    name = reference.rpartition("/")[2]
    return reference if ":" in name or "@" in name else f"{reference}:latest"


def image_id(reference: str) -> str:
    full = full_reference(reference)
    repository = full.partition("@")[0]
    if ":" in repository.rpartition("/")[2]:
        repository = repository.rpartition(":")[0]
    return f"{repository}@sha256:{hashlib.sha256(full.encode()).hexdigest()}"


def pull_error(reference: str) -> str:
    """What a container runtime says of an image that its registry does not have."""
    full = full_reference(reference)
    return (
        f'failed to pull and unpack image "{full}": failed to resolve reference "{full}": pull access denied, '
        "repository does not exist or may require authorization: server message: "
        "insufficient_scope: authorization failed"
    )


def _says(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name for word in words)
