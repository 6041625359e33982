"""Memory that a large review took is given back to the system, and its decoding does not set off collections."""

import contextlib
import ctypes
import gc

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
_LARGE = 256 * 1024  # bytes; blocks of this size are returned to the system as soon as they are free
_COLLECT_AFTER = 10_000  # objects more than before


def prepare() -> None:
    """To be called once, after everything is imported. Collections need not walk over what was imported, tens of
    milliseconds each, nor come as often as by default. Without a limit of its own, glibc learns to keep blocks as
    large as the largest review."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGE)


def begin_large() -> None:
    """A large text is about to be decoded: that makes many objects and no cycles, so collections would find nothing."""
    gc.disable()


def end_large() -> None:
    gc.enable()
