"""Links between the documents lead to existing files and headings."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("https://", "http://", "mailto:")


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub creates them."""
    text = re.sub(r"```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if link.startswith(_ELSEWHERE):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_linked_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(index.read_text())}
    folders = {path for path in linked if path.is_dir()}
    pages = [page for page in PAGES if ROOT / "docs" in page.parents and page != index]
    assert [page for page in pages if page not in linked and page.parent not in folders] == []
    assert "docs/README.md" in (ROOT / "README.md").read_text()
