"""The answer to a question, and its report: tables on the terminal, figures in a JSON file."""

import datetime
import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

_WIDTH = 160
"""The least columns of a report: its tables do not fit in a narrow terminal, or in a pipe's 80."""


@dataclass(frozen=True)
class Answer:
    figures: Mapping[str, Any]
    """What can be written as JSON."""
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    """Printed after the tables."""
    wrong: Sequence[str] = ()
    """Messages about exceeded bounds and wrong results. With any, the command exits with 1."""


def report(name: str, options: Mapping[str, Any], answer: Answer, output: Path) -> None:
    """Print the answer, and write its figures to `output`, with the date, the machine and the options."""
    console = Console(width=max(_WIDTH, Console().width), soft_wrap=True, highlight=False)
    for table in answer.tables:
        console.print(table)
    for note in answer.notes:
        console.print(note, markup=False)
    taken = {
        "question": name,
        "taken": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in options.items()},
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({**taken, **answer.figures, "wrong": list(answer.wrong)}, indent=2) + "\n")
    console.print(f"figures in {output}", markup=False)
    for line in answer.wrong:
        console.print(line, style="red", markup=False)


def machine() -> str:
    """The processor and the number of cores of this machine, and its Python."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def fields(title: str, rows: Mapping[str, object]) -> Table:
    """A table with a row for each figure."""
    table = Table("", "", title=title, show_header=False)
    for name, value in rows.items():
        table.add_row(name.replace("_", " "), str(value))
    return table


def exceeded(what: str, found: float, most: float, unit: str = "") -> list[str]:
    """A message if a figure is above its bound."""
    return [f"{what}: {found:g}{unit} is more than {most:g}{unit}"] if found > most else []


def quantile(values: Iterable[float], share: float) -> float:
    """The least of the values that this share of them does not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else 0.0


def quantiles(values: Iterable[float], factor: float = 1.0) -> tuple[int, float, float]:
    """The number of values, their median and their 99th percentile, in another unit."""
    found = list(values)
    return len(found), round(quantile(found, 0.5) * factor, 3), round(quantile(found, 0.99) * factor, 3)
