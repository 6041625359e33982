"""Python's garbage collector in a process that serves the sandbox."""

import gc

_COLLECT_AFTER = 10_000  # new objects


def collect_less_often() -> None:
    """Collect after 10,000 new objects, and never visit the imported modules again. With Python's default of 700 new
    objects, the collector visits the stored objects so often that it takes more than a tenth of the CPU time."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
