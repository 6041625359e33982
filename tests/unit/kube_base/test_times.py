import pytest

from kube_base.times import rfc3339, unix


def test_times_are_utc() -> None:
    assert rfc3339(1683791189.9) == "2023-05-11T07:46:29Z"
    assert unix("2023-05-11T07:46:29Z") == 1683791189
    assert unix("2023-05-11T07:46:29.5+00:00") == 1683791189.5
    assert unix(None) == 0


@pytest.mark.parametrize("text", ["0000-01-01T00:00:00Z", "10000-01-01T00:59:59Z", "soon", ""])
def test_text_that_is_no_time_counts_as_no_time(text: str) -> None:
    assert unix(text) == 0
