"""The recorded answers of a real kube-apiserver: `tests/apiserver/answers/*.json`."""

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "apiserver" / "answers"


def recorded(name: str) -> Any:
    """The content of `<name>.json`."""
    return json.loads((_FOLDER / f"{name}.json").read_text())
