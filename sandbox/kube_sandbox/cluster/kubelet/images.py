"""The behaviour of images. They are not run: the name of an image decides what its containers do.

The name is the last part of the reference with its tag, for example `app:v2-crash` in
`registry.example/team/app:v2-crash`. docs/reference/sandbox.md of the repository has the table of names. `slow` can be
combined with the others; times have the form `3s` or `500ms`.
"""

import hashlib
import re
from typing import NamedTuple

_NOT_THERE = ("nosuch", "missing", "pull-fail")
_CRASHING = ("crash",)
_NEVER_READY = ("never-ready", "unready")
_TIMED = re.compile(
    r"(exits|exits-once|completes|oom|oom-once|unready|ready)-after-(\d+(?:\.\d+)?)(ms|s)|flaps-every-(\d+(?:\.\d+)?)(ms|s)"
)
_ENDS = {"exits": (1, "Error"), "completes": (0, "Completed"), "oom": (137, "OOMKilled")}


class End(NamedTuple):
    """How a container exits `after` seconds of running."""

    after: float
    exit_code: int = 1
    reason: str = "Error"
    once: bool = False
    """Whether only the first run of the container exits."""


class Image(NamedTuple):
    """The behaviour that an image name selects."""

    exists: bool = True
    crashes: bool = False
    """Whether its container exits with 1 after `SimulationSettings.crash`."""
    becomes_ready: bool = True
    is_slow: bool = False
    end: End | None = None
    unready_after: float | None = None
    """The container is ready for this many seconds, and unready afterwards."""
    ready_after: float = 0.0
    """For this many seconds, the startup and readiness probes of the container fail."""
    flaps: float | None = None
    """The interval in seconds at which the container becomes unready and ready again."""
    mounts: bool = True
    attaches: bool = True
    has_secret: bool = True
    has_network: bool = True
    """If a volume does not mount or attach, or its secret or the network is missing, the pod does not start."""
    is_configured: bool = True


def behaviour(reference: str) -> Image:
    name = reference.partition("@")[0].rpartition("/")[2].lower()
    plain, ends, unready_after, ready_after, flaps = _TIMED.sub("", name), None, None, 0.0, None
    for what, number, unit, period, period_unit in _TIMED.findall(name):
        if period:
            flaps = _seconds(period, period_unit)
        elif what == "unready":
            unready_after = _seconds(number, unit)
        elif what == "ready":
            ready_after = _seconds(number, unit)
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
        ready_after=ready_after,
        flaps=flaps,
        mounts="nomount" not in plain,
        attaches="noattach" not in plain,
        has_secret="nosecret" not in plain,
        has_network="nonetwork" not in plain,
        is_configured="badconfig" not in plain,
    )


def _seconds(number: str, unit: str) -> float:
    return float(number) / (1000 if unit == "ms" else 1)


def full_reference(reference: str) -> str:
    """The complete reference, as container runtimes report it: `docker.io/library/busybox:latest` for `busybox`."""
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
    """The error of a container runtime for an image that the registry does not have."""
    full = full_reference(reference)
    return (
        f'failed to pull and unpack image "{full}": failed to resolve reference "{full}": pull access denied, '
        "repository does not exist or may require authorization: server message: "
        "insufficient_scope: authorization failed"
    )


def _says(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name for word in words)
