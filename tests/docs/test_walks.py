"""docs/reference/walks.md lists the files of one review and of one pod event, and the turns back."""

from pathlib import Path

import pytest

from tests.structure import walks
from tests.structure.bounds import long_walks


async def test_page_of_the_walks_is_up_to_date(tmp_path: Path) -> None:
    assert walks.PAGE.read_text() == await walks.page(tmp_path), "run `make reference` and commit the result"


@pytest.mark.parametrize("heading", walks.WALKS)
async def test_walk_enters_no_more_files_than_its_bound(heading: str, tmp_path: Path) -> None:
    assert long_walks({heading: await walks.WALKS[heading](tmp_path)}) == []
