"""The option `-o` of commands that print a document, or an object of the API."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from altershield.views import document
from altershield.views.document import Document
from altershield.views.names import object_name
from altershield.views.releases import objects

Object = dict[str, Any]


class Format(StrEnum):
    JSON = "json"
    YAML = "yaml"


Printed = Annotated[
    Format | None,
    typer.Option("--output", "-o", help="The format: json or yaml. Without this option: text.", show_default=False),
]


def write(made: Document, output: StrEnum) -> None:
    """Print the document. `output`: a format that is JSON, else it is YAML."""
    whole = document.data(made)
    sys.stdout.write(objects.to_json(whole) if output == Format.JSON else objects.to_yaml(whole))


class ObjectFormat(StrEnum):
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


PrintedObject = Annotated[
    ObjectFormat | None,
    typer.Option("--output", "-o", help="Print the object: json, yaml or name.", show_default=False),
]


def say(line: str, output: ObjectFormat | None) -> None:
    """Print a sentence: to stderr, if stdout gets the object."""
    print(line, file=sys.stderr if output else sys.stdout, flush=True)


def write_objects(found: Sequence[Object], output: ObjectFormat | None, *, single: bool) -> None:
    """Print objects of the API, as kubectl does. `single`: the command is about one, and not about a list."""
    if output is None:
        return
    if output is ObjectFormat.NAME:
        sys.stdout.writelines(f"{object_name(each)}\n" for each in found)
        return
    for each in found:
        each["metadata"].pop("managedFields", None)
    whole = found[0] if single else objects.as_list(found)
    sys.stdout.write(objects.to_json(whole) if output is ObjectFormat.JSON else objects.to_yaml(whole))
