"""Writes the reference pages from the code: `make reference`.

A page is what a function of `docs.pages` returns. A test compares the files with what the code says now.
"""

from collections.abc import Callable
from pathlib import Path

from docs.pages import commands, events, kinds, labels, metrics, notifications, settings

DIRECTORY = Path(__file__).with_suffix("")

PAGES: dict[str, Callable[[], str]] = {
    "commands": commands.page,
    "events": events.page,
    "kinds": kinds.page,
    "labels": labels.page,
    "metrics": metrics.page,
    "notifications": notifications.page,
    "settings": settings.page,
}
"""The file's name, without its suffix, and what gives its text."""


def main() -> None:
    DIRECTORY.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (DIRECTORY / f"{name}.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
