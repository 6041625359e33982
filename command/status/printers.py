"""Prints releases in one of the formats: all of them, or only the changed ones."""

import sys
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum

from rich.console import Console
from rich.text import Text

from altershield.views.releases import objects
from altershield.views.releases.model import Release, StoredRelease
from command.columns import Columns, room
from command.status.table import Layout, Row, row


class Output(StrEnum):
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    WIDE = "wide"


class Printer:
    """Prints releases to stdout. An empty `namespace` means all namespaces. `console`: where tables go, stdout by
    default."""

    def __init__(self, output: Output | None, namespace: str, console: Console | None = None) -> None:
        self._output = output
        self.is_table = output in (None, Output.WIDE)
        self._layout = Layout(namespaces=not namespace, wide=output is Output.WIDE)
        self._columns = Columns(len(self._layout.header))
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._room = room(wide=output is Output.WIDE, console=self._console)
        self._has_header = False
        self._printed: dict[object, object] = {}

    def whole(self, releases: Sequence[Release]) -> None:
        """Print all releases."""
        match self._output:
            case Output.JSON:
                sys.stdout.write(objects.to_json(objects.as_list(objects.objects(_releases(releases)))))
            case Output.YAML:
                sys.stdout.write(objects.to_yaml(objects.as_list(objects.objects(_releases(releases)))))
            case Output.NAME:
                _lines(objects.names(_releases(releases)))
            case _:
                self._table([row(release, self._layout, time.time()) for release in releases])

    def known(self, releases: Sequence[Release]) -> None:
        """Let `changes` print these releases only when they change."""
        if self.is_table:
            list(self._changed_rows(releases))

    def changes(self, releases: Sequence[Release]) -> None:
        """Print the releases that changed since the last call. The first call prints all of them."""
        if self.is_table:
            self._table(list(self._changed_rows(releases)))
        else:
            self._objects(list(self._changed_releases(releases)))
        sys.stdout.flush()

    @property
    def console(self) -> Console:
        return self._console

    def more(self, lines: Sequence[str]) -> None:
        """Print lines below the table."""
        if lines:
            _lines(["", *lines])
            sys.stdout.flush()

    def _table(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        header = [] if self._has_header else [self._layout.header]
        self._has_header = True
        for line in self._lines(header, rows):
            self._console.print(line)

    def _lines(self, header: Sequence[Sequence[str]], rows: Sequence[Row]) -> list[Text]:
        lines = self._columns.lines([*header, *(each.cells for each in rows)], self._room)
        styles = [*("bold" for _ in header), *(each.style for each in rows)]
        return [Text(line, style) for line, style in zip(lines, styles, strict=True)]

    def _objects(self, stored_releases: Sequence[StoredRelease]) -> None:
        if self._output is Output.NAME:
            _lines(objects.names(stored_releases))
            return
        for obj in objects.objects(stored_releases):
            sys.stdout.write(objects.to_json(obj) if self._output is Output.JSON else f"---\n{objects.to_yaml(obj)}")

    def _changed_rows(self, releases: Sequence[Release]) -> Iterator[Row]:
        for release in releases:
            made = row(release, self._layout, time.time())
            if self._is_changed(made.key, made.constant):
                yield made

    def _changed_releases(self, releases: Sequence[Release]) -> Iterator[StoredRelease]:
        for each in _releases(releases):
            if self._is_changed((each.metadata.namespace, each.metadata.name), each.metadata.resource_version):
                yield each

    def _is_changed(self, key: object, value: object) -> bool:
        before, self._printed[key] = self._printed.get(key), value
        return before != value


def _releases(releases: Sequence[Release]) -> list[StoredRelease]:
    return [release.stored for release in releases if release.stored is not None]


def _lines(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
