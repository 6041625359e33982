"""Images are not run: what their containers do is known from their names.

The name is the last part of the reference with its tag, as `app:v2-crash` in `registry.example/team/app:v2-crash`.

| the name contains                                      | its containers                                        |
| ------------------------------------------------------ | ----------------------------------------------------- |
| `nosuch`, `missing`, `pull-fail`, `busybo` (no `busybox`) | never start: ErrImagePull, then ImagePullBackOff   |
| `crash`                                                | start and exit with 1: CrashLoopBackOff               |
| `never-ready`, `unready`                               | run, but never become ready                           |
| `slow`                                                 | start after `SimulationSettings.slow_start`           |
| anything else                                          | start, become ready and run until they are deleted    |

`slow` goes together with the others.
"""

import hashlib
from typing import NamedTuple

_NOT_THERE = ("nosuch", "missing", "pull-fail")
_CRASHING = ("crash",)
_NEVER_READY = ("never-ready", "unready")


class Image(NamedTuple):
    """What is known of an image by its name."""

    exists: bool
    crashes: bool
    becomes_ready: bool
    is_slow: bool


def known(reference: str) -> Image:
    name = reference.partition("@")[0].rpartition("/")[2].lower()
    return Image(
        exists=not _says(name, _NOT_THERE) and ("busybo" not in name or "busybox" in name),
        crashes=_says(name, _CRASHING),
        becomes_ready=not _says(name, _NEVER_READY),
        is_slow="slow" in name,
    )


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
