"""Writes the serving certificate to files for the gatekeeper in the same pod.

The layout and the atomic replacement are those of a Secret that the kubelet mounts, without its delay of a minute.

    tls.crt -> ..data/tls.crt        ..data -> ..5f1c2a (replaced by one rename)
    tls.key -> ..data/tls.key        ..5f1c2a/tls.crt, tls.key
"""

import hashlib
import os
import shutil
from pathlib import Path

from kube_base.errors import UsageError
from kube_base.pki import KeyPair

_CURRENT = "..data"


def write(directory: Path, pair: KeyPair) -> bool:
    """Replace both files at once. False if `directory` has this pair already. UsageError if it cannot be written."""
    version = ".." + hashlib.sha256(pair.certificate + pair.key).hexdigest()[:16]
    try:
        if _linked(directory / _CURRENT) == version and all(
            (directory / name).exists() for name in ("tls.crt", "tls.key")
        ):
            return False
        (directory / version).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
            file = directory / version / name
            file.touch(mode=0o600)
            file.write_bytes(content)
            _link(directory / name, f"{_CURRENT}/{name}")
        _link(directory / _CURRENT, version)
        for old in directory.glob("..*"):
            if old.is_dir() and not old.is_symlink() and old.name != version:
                shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"the certificate cannot be written to {directory}: {error.strerror}") from error
    return True


def _linked(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _link(link: Path, path: str) -> None:
    """Replace `link` by a link to `path` atomically."""
    new = link.with_name(f"..{link.name.lstrip('.')}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(path)
    new.replace(link)
