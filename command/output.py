"""The option `-o json|yaml` of commands that print a document."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from altershield.views import document
from altershield.views.document import Document
from altershield.views.releases import objects


class Format(StrEnum):
    JSON = "json"
    YAML = "yaml"


Printed = Annotated[
    Format | None,
    typer.Option("--output", "-o", help="The format: json or yaml. Without this option: text.", show_default=False),
]


def write(made: Document, output: Format) -> None:
    """Print the document."""
    whole = document.data(made)
    sys.stdout.write(objects.to_json(whole) if output is Format.JSON else objects.to_yaml(whole))
