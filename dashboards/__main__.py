"""`python -m dashboards`: write the dashboards' JSON anew."""

import json
from pathlib import Path

from dashboards import admission, health, releases

DIRECTORY = Path(__file__).parents[1] / "charts" / "altershield" / "files" / "dashboards"
"""The chart takes files from below itself only. Links in this directory lead there."""


def files() -> dict[str, str]:
    """What each file of `DIRECTORY` holds."""
    made = (admission.dashboard(), releases.dashboard(), health.dashboard())
    return {f"{board['uid']}.json": json.dumps(board, indent=2) + "\n" for board in made}


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in files().items():
        (DIRECTORY / name).write_text(text)
