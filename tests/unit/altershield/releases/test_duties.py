"""Who may decide about a release under the separation of duties."""

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkload
from altershield.api.released_by import MAX_USER
from altershield.api.workload_requests import Verb
from altershield.releases.duties import DECISIONS, decided, denial, not_theirs
from tests.unit.altershield.releases.builders import V1, V2, V3, release


def released_by(user: str, version: str = V1) -> ChangeWorkload:
    made = release(version)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, not_decided_by=user))


@pytest.mark.parametrize(
    ("user", "excluded", "may"),
    [
        ("ann", "", True),
        ("", "", True),
        ("ann", "bob", True),
        ("ann", "ann", False),
        ("anna", "ann", True),
        ("", "ann", False),
        ("system:serviceaccount:shop:ci", "system:serviceaccount:shop:ci", False),
        ("u" * 300, "u" * MAX_USER, False),
        ("u" * MAX_USER, "u" * MAX_USER, False),
    ],
)
def test_user_who_released_it_and_nobody_else_may_not_decide(user: str, excluded: str, may: bool) -> None:
    assert (not_theirs(user, [released_by(excluded)]) is None) is may


def test_each_of_several_releases_counts() -> None:
    first, second = released_by("ann"), released_by("bob", V2)
    assert not_theirs("bob", [first, second]) is second
    assert not_theirs("eve", [first, second]) is None
    assert not_theirs("ann", []) is None


def test_denial_names_who_released_it_and_who_may_decide() -> None:
    text = denial(released_by("ann"), "shop")
    assert text.startswith(f"ann released version {V1}, so another user has to decide")
    assert "the ClusterRole altershield-verdicts in namespace shop" in text
    assert text.endswith("everybody may go back to the last version that passed: altershield rollback")


@pytest.mark.parametrize("verb", Verb)
def test_only_a_repair_decides_also_about_the_versions_that_were_rolled_back(verb: Verb) -> None:
    present, other, back = release(V1), release(V2, "Suspend"), release(V3, "Rollback")
    wanted = [] if verb not in DECISIONS else [present, back] if verb == Verb.REPAIR else [present]
    assert decided(verb, present, [other, back]) == wanted
    assert decided(verb, None, []) == []
