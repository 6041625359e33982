"""Settings of memory allocation and garbage collection for large reviews."""

import asyncio
import ctypes
import gc

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
_LARGE = 512 * 1024  # bytes; blocks of this size are returned to the system as soon as they are free
_FREE_AT_END = 4 * 1024 * 1024  # bytes at the end of the heap that are kept
_COLLECT_AFTER = 10_000  # objects more than before
_TRIM_SECONDS = 1.0


def _glibc() -> ctypes.CDLL | None:
    try:
        found = ctypes.CDLL(None)
    except OSError:
        return None
    return found if hasattr(found, "malloc_trim") and hasattr(found, "mallopt") else None  # another C library


_libc = _glibc()
_scheduled: list[asyncio.TimerHandle] = []


def prepare() -> None:
    """Call this once, after all imports. It exempts the imported objects from garbage collections, which would take
    tens of milliseconds each, and makes collections rarer. There is no collection before: it would find about a hundred
    objects.

    It also sets from which size on glibc takes a block from the system and gives it back at once. Without a fixed size,
    glibc learns to keep blocks as large as the largest review. The size must be above 256 KiB: each read of a TLS
    connection allocates so much, and takes eight times as long with a block from the system.
    """
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    if _libc is not None:
        _libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        _libc.mallopt(_M_TRIM_THRESHOLD, _FREE_AT_END)


def begin_large() -> None:
    """Call this before a large text is decoded. It switches garbage collections off: decoding makes many objects and no
    cycles, so that collections find nothing."""
    gc.disable()


def end_large() -> None:
    """Call this after the review was decided."""
    gc.enable()


def give_back_soon() -> None:
    """Call this in the event loop after a large body was freed. Within a second, free memory in the middle of the heap
    is returned to the system."""
    if _libc is not None and not _scheduled:
        _scheduled.append(asyncio.get_running_loop().call_later(_TRIM_SECONDS, _trim, _libc))


def _trim(libc: ctypes.CDLL) -> None:
    _scheduled.clear()
    libc.malloc_trim(0)
