"""`python -m dashboards`: write the dashboards' JSON files into the chart."""

import json
from pathlib import Path

from dashboards import admission, gates, health, protections, releases
from dashboards.panels import Object

DIRECTORY = Path(__file__).parents[1] / "charts" / "altershield" / "files" / "dashboards"
"""A chart can only contain files in its own directory. dashboards/*.json are symbolic links to these files."""


def boards() -> list[Object]:
    """The dashboards."""
    return [each.dashboard() for each in (admission, releases, gates, protections, health)]


def files() -> dict[str, str]:
    """The content of each file in `DIRECTORY`, by file name."""
    return {f"{board['uid']}.json": json.dumps(board, indent=2) + "\n" for board in boards()}


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in files().items():
        (DIRECTORY / name).write_text(text)
