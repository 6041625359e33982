"""Links between the documents lead to existing files and headings."""

import re
from pathlib import Path

import pytest

from altershield.api import pages
from tests.docs.pages import PAGES, ROOT, anchors

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("https://", "http://", "mailto:")


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


def test_pages_that_messages_name_exist() -> None:
    urls = [value for name, value in vars(pages).items() if name.isupper() and not name.startswith("_")]
    assert urls
    for url in urls:
        file, _, anchor = url.partition("/blob/main/")[2].partition("#")
        assert not anchor or anchor in anchors(ROOT / file), url
        assert (ROOT / file).exists(), url
