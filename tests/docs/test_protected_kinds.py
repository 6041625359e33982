"""The table of the protected kinds in docs/protect.md is that of the code."""

from docs.pages.protected import protected_kinds
from tests.docs.pages import ROOT


def test_page_has_the_table_of_the_protected_kinds() -> None:
    assert protected_kinds() in (ROOT / "docs" / "protect.md").read_text(), "replace the table by this one"
