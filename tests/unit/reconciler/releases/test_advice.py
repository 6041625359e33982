"""`altershield why` suggests the requests that the reconciler carries out, in every state of a release."""

import pytest

from altershield.api.workload_requests import Result, Verb

from .request_table import TABLE, Make, passed
from .suggested import suggested


@pytest.mark.parametrize("make", [pytest.param(make, id=make.__name__) for make in TABLE])
def test_each_suggested_request_works_and_each_that_works_is_suggested(kind: str, make: Make) -> None:
    works = {verb for verb, (result, _, _) in TABLE[make].items() if result == Result.DONE}
    if make is passed:
        works.remove(Verb.ROLLBACK)  # it works, but nothing is to be done about a release that passed
    found = suggested(make(kind))
    assert set(found) == works
    assert len(found) == len(works), "each is suggested once"
