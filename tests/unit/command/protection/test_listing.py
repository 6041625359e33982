"""What `altershield protected` prints."""

import pytest

from altershield.views.protection import Found
from command.protection import listing
from kube_base.errors import ReportedError


@pytest.mark.parametrize("output", [None, *listing.Format])
def test_kinds_that_cannot_be_listed_are_not_shown_as_no_objects(
    output: listing.Format | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def forbidden(*_: object) -> tuple[Found, str]:
        return Found(problems=["cannot list jobs.batch: 403 Forbidden"]), "shop"

    monkeypatch.setattr(listing, "_find", forbidden)
    with pytest.raises(ReportedError, match=r"^cannot list jobs\.batch: 403 Forbidden$"):
        listing.protected(output=output)
    assert capsys.readouterr() == ("", "")
