"""The reference pages are up to date."""

import pytest

from docs.reference import DIRECTORY, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    written = (DIRECTORY / f"{name}.md").read_text(encoding="utf-8")
    assert written == PAGES[name](), "run `make reference` and commit the result"
