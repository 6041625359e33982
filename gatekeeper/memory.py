"""Memory that a large review took is given back to the system, and its decoding does not set off collections."""

import ctypes
import gc
import time

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
_LARGE = 256 * 1024  # bytes; blocks of this size are returned to the system as soon as they are free
_COLLECT_AFTER = 10_000  # objects more than before


_TRIM_SECONDS = 1.0


def _glibc() -> ctypes.CDLL | None:
    try:
        found = ctypes.CDLL(None)
    except OSError:
        return None
    return found if hasattr(found, "malloc_trim") and hasattr(found, "mallopt") else None  # another C library


_libc = _glibc()
_trimmed = [0.0]


def prepare() -> None:
    """To be called once, after everything is imported. Collections need not walk over what was imported, tens of
    milliseconds each, nor come as often as by default. Without a limit of its own, glibc learns to keep blocks as
    large as the largest review."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    if _libc is not None:
        _libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        _libc.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGE)


def begin_large() -> None:
    """A large text is about to be decoded: that makes many objects and no cycles, so collections would find nothing."""
    gc.disable()


def end_large() -> None:
    """It was decided. What was freed in the middle of the heap goes back to the system, at most once a second."""
    gc.enable()
    now = time.monotonic()
    if _libc is not None and now - _trimmed[0] > _TRIM_SECONDS:
        _trimmed[0] = now
        _libc.malloc_trim(0)
