"""Writes the reference pages from the code: `make reference`.

A page is what a function of `docs.pages` returns. A test compares the files with what the code says now.
"""

from collections.abc import Callable
from pathlib import Path

from docs.pages import (
    commands,
    events,
    kinds,
    labels,
    metrics,
    modules,
    notification_picture,
    notifications,
    schemas,
    settings,
    views,
)

DIRECTORY = Path(__file__).with_suffix("")

PAGES: dict[str, Callable[[], str]] = {
    "commands": commands.page,
    "events": events.page,
    "kinds": kinds.page,
    "labels": labels.page,
    "metrics": metrics.page,
    "notifications": notifications.page,
    "packages": modules.packages,
    "settings": settings.page,
    "views": views.page,
}
"""The file's name, without its suffix, and what gives its text."""

SCHEMAS = {each.__name__: each for each in views.DOCUMENTS}
"""The name of a file in `views/`, without its suffix, and the document whose schema it has."""


def main() -> None:
    DIRECTORY.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (DIRECTORY / f"{name}.md").write_text(page(), encoding="utf-8")
    (DIRECTORY / "notifications.svg").write_text(notification_picture.picture(), encoding="utf-8")
    folder = DIRECTORY / "views"
    folder.mkdir(exist_ok=True)
    for name, document in SCHEMAS.items():
        (folder / f"{name}.json").write_text(schemas.text(document), encoding="utf-8")


if __name__ == "__main__":
    main()
