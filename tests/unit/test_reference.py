"""The reference pages say what the code says."""

import pytest

from docs.reference import DIRECTORY, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    written = (DIRECTORY / f"{name}.md").read_text(encoding="utf-8")
    assert written == PAGES[name](), "run `make reference` and commit what it writes"
