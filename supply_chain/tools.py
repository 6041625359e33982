"""Finds the applications of the dependency group `tools`. `make tools` installs them in an environment of their own."""

import sys
from pathlib import Path


def find(name: str) -> Path:
    """The path of the application. FileNotFoundError if it is not installed."""
    path = Path(sys.prefix) / "tools" / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: install it with `make tools`")
    return path
