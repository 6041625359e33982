"""Imports of a process that must be ready soon after its start."""

import contextlib
import gc
import os
from collections.abc import Iterator

_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # where OpenSSL looks for the certificate authorities of the system


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import aiohttp for the first time inside of this block, and all that takes long.

    aiohttp reads the certificate authorities of the system when it is imported, for connections without an SSLContext
    of their own. That takes about a quarter of the start of a gatekeeper. After this block, such connections trust
    nobody: use it only in a process whose connections all have an SSLContext of their own.

    Imported modules are no garbage, so they are exempt from all garbage collections.
    """
    before = {name: os.environ.get(name) for name in _AUTHORITIES}
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # first: the next allocation would begin a collection of all new objects
        gc.enable()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
