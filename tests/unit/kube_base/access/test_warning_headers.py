"""The texts in Warning headers."""

import pytest

from kube_base.access.transport import warning_texts


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('299 - "deprecated"', ["deprecated"]),
        (r'299 kube "a \"quoted\" word and a \\"', ['a "quoted" word and a \\']),
        ('299 - "one", 299 - "two"', ["one", "two"]),
        ('299 - "dated" "Sat, 25 Aug 2012 23:34:45 GMT"', ["dated"]),
        ('199 - "of a proxy"', []),
        ("299 - unquoted", []),
        ("", []),
    ],
)
def test_only_warnings_of_api_servers_are_read(header: str, found: list[str]) -> None:
    assert warning_texts([header]) == found
