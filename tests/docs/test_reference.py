"""The reference pages are up to date."""

from collections.abc import Iterator

import pytest
from jsonschema import Draft202012Validator

from altershield.views.document import Document
from command.app import command_line
from docs.pages import notification_picture, schemas
from docs.reference import DIRECTORY, PAGES, SCHEMAS


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    written = (DIRECTORY / f"{name}.md").read_text(encoding="utf-8")
    assert written == PAGES[name](), "run `make reference` and commit the result"


def test_picture_of_notifications_is_up_to_date() -> None:
    written = (DIRECTORY / "notifications.svg").read_text(encoding="utf-8")
    assert written == notification_picture.picture(), "run `make reference` and commit the result"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_up_to_date(name: str) -> None:
    written = (DIRECTORY / "views" / f"{name}.json").read_text(encoding="utf-8")
    assert written == schemas.text(SCHEMAS[name]), "run `make reference` and commit the result"


def test_each_document_has_a_schema_and_each_schema_a_document() -> None:
    command_line()  # imports all commands
    assert {each.__name__ for each in subclasses(Document)} == {*SCHEMAS}
    assert {each.stem for each in (DIRECTORY / "views").iterdir()} == {*SCHEMAS}


def subclasses(of: type) -> Iterator[type]:
    for each in of.__subclasses__():
        yield each
        yield from subclasses(each)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_valid_and_leaves_nothing_open(name: str) -> None:
    """Each object has only the fields that are named, and all of them."""
    found = schemas.schema(SCHEMAS[name])
    Draft202012Validator.check_schema(found)
    objects = [found, *(each for each in found.get("$defs", {}).values() if each.get("type") == "object")]
    for each in objects:
        assert each["additionalProperties"] is False
        assert set(each["required"]) == set(each["properties"])
        assert each["description"]
        undescribed = {key for key, field in each["properties"].items() if not field.get("description")}
        assert undescribed <= {"apiVersion", "kind"}
