"""`altershield why` suggests what this user may run, says who may run the rest, and leaves out nothing."""

from collections.abc import Callable, Collection, Mapping
from itertools import chain, combinations, pairwise
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.views.access import Access
from altershield.views.why.advice import accesses, advice
from altershield.views.why.explanation import Facts, explanation, proposed
from altershield.views.why.model import Advice, ReleaseExplanation
from altershield.views.why.text import lines
from command.install.rbac import READER_RIGHTS, user_roles
from kube_sandbox.apiserver.attributes import Attributes, User
from kube_sandbox.apiserver.auth import authorization, default_roles

from .states import STATES

BUILT_IN = {each["metadata"]["name"]: each.get("rules") or [] for each in default_roles.objects() if "rules" in each}
_READ = [right.rule for right in READER_RIGHTS]
_VIEW = [*BUILT_IN["system:aggregate-to-view"], *_READ]
ROLES: Mapping[str, list[Any]] = {
    **{each["metadata"]["name"]: list(each["rules"]) for each in user_roles()},
    "view": _VIEW,
    "edit": [*_VIEW, *BUILT_IN["system:aggregate-to-edit"]],
}
BOUND = ("view", "edit", "altershield-verdicts", "altershield-approvals", "altershield-breakglass")
SUBSETS = list(chain.from_iterable(combinations(BOUND, count) for count in range(len(BOUND) + 1)))


def grants(role: str, wanted: Access) -> bool:
    """Whether a ClusterRole allows a request in the namespace in which it is bound."""
    asked = Attributes(
        User("ann"), verb=wanted.verb, group=wanted.resource.group, plural=wanted.resource.plural,
        subresource=wanted.subresource, namespace=wanted.namespace, name=wanted.name,
    )  # fmt: skip
    return any(authorization.allows(rule, asked) for rule in ROLES[role])


def answers(facts: Facts, may: Callable[[Access], bool]) -> dict[Access, bool]:
    return {each: may(each) for each in accesses(proposed(facts, "altershield"))}


def told(facts: Facts, may: Mapping[Access, bool], user: str = "bob") -> ReleaseExplanation:
    return explanation(facts, advice(proposed(facts, "altershield"), may, user))


def runs(found: Collection[Advice]) -> list[str]:
    return [each.command for each in found if each.allowed]


@pytest.mark.parametrize("state", STATES)
def test_role_that_is_named_allows_the_command(state: str) -> None:
    for each in proposed(STATES[state], "altershield"):
        for proposal in (each, *([each.instead] if each.instead is not None else [])):
            assert proposal.needs
            assert {need.namespace for need in proposal.needs} == {proposal.where}
            assert all(grants(proposal.role, need) for need in proposal.needs), proposal.command


@pytest.mark.parametrize("state", STATES)
def test_each_set_of_rights_gets_what_it_allows_and_nothing_is_left_out(state: str) -> None:
    facts = STATES[state]
    all_proposals = proposed(facts, "altershield")
    for roles in SUBSETS:
        may = answers(facts, lambda need, roles=roles: any(grants(role, need) for role in roles))
        found = told(facts, may)
        assert len(found.advice) == len(all_proposals)
        for proposal, each in zip(all_proposals, found.advice, strict=True):
            variants = [each for each in (proposal, proposal.instead) if each is not None]
            works = [one for one in variants if all(may[need] for need in one.needs)]
            assert each.allowed is bool(works)
            assert each.command == (works or variants)[0].command
        assert said(lines(found)) == {
            (f"  # {each.when}", f"  {each.command}"): "" if each.allowed else who_may(each) for each in found.advice
        }


def said(shown: list[str]) -> dict[tuple[str, str], str]:
    """The commands with their comments, and who may run each; empty: you."""
    found, who = {}, ""
    for line, below in pairwise(shown):
        if " may run, with the ClusterRole " in line:
            who = line
        elif line.startswith("  # "):
            found[line, below] = who
    return found


def who_may(each: Advice) -> str:
    users = f"Users other than {' and '.join(each.other_than)}" if each.other_than else "Others"
    return f'{users} may run, with the ClusterRole {each.role} in namespace "{each.role_namespace}":'


@pytest.mark.parametrize("state", STATES)
def test_user_without_any_right_is_told_whom_to_ask(state: str) -> None:
    facts = STATES[state]
    found = told(facts, answers(facts, lambda _: False))
    assert runs(found.advice) == []
    first = "What to do: ask somebody who may" if found.advice else "What to do: nothing"
    assert first in lines(found)


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_kept_back_if_the_api_server_does_not_say_what_the_user_may_do(state: str) -> None:
    found = told(STATES[state], {})
    assert all(each.allowed is None for each in found.advice)
    assert not any(said(lines(found)).values())


def test_user_who_may_only_release_gets_the_label_that_repairs() -> None:
    facts = STATES["suspended"]
    found = told(facts, answers(facts, lambda need: grants("edit", need)))
    assert runs(found.advice) == [
        f"kubectl label --overwrite deployment -n shop web {labels.IGNORED_SUSPEND}=true",
        "kubectl delete pod -n shop web-1",
    ]
    decides = told(facts, answers(facts, lambda _: True))
    assert not any("kubectl label" in each for each in runs(decides.advice))


def test_step_with_approval_needs_the_right_to_approve_and_another_user() -> None:
    facts = STATES["waits for approval"]
    verdicts = told(facts, answers(facts, lambda need: grants("altershield-verdicts", need)))
    assert not any("promote" in each for each in runs(verdicts.advice))
    may = answers(facts, lambda need: grants("altershield-approvals", need))
    assert sum("promote" in each for each in runs(told(facts, may).advice)) == 2
    releaser = told(facts, may, user="ann")
    assert not any("promote" in each for each in runs(releaser.advice))
    who = 'Users other than ann may run, with the ClusterRole altershield-approvals in namespace "shop":'
    assert who in lines(releaser)
    held = STATES["held by a person"]  # in a step without approval
    found = told(held, answers(held, lambda need: grants("altershield-verdicts", need)))
    assert [each for each in runs(found.advice) if "promote" in each] == [
        'altershield promote deployment/web -n shop -m "REASON"'
    ]


def separated(facts: Facts, user: str) -> Facts:
    """The same state, in which this user released every version, with separation of duties."""
    found = []
    for each in facts.releases:
        stored = each.stored
        if stored is not None:
            spec = msgspec.structs.replace(stored.release.spec, not_decided_by=user)
            stored = msgspec.structs.replace(stored, release=msgspec.structs.replace(stored.release, spec=spec))
        found.append(each._replace(stored=stored))
    return facts._replace(releases=found)


DECIDES = (*(f"altershield {verb} " for verb in ("approve", "repair", "resume", "retry")), labels.IGNORED_SUSPEND)


@pytest.mark.parametrize("state", STATES)
def test_user_who_released_what_failed_gets_no_command_that_separation_of_duties_refuses(state: str) -> None:
    plain, facts = STATES[state], separated(STATES[state], "bob")
    may = answers(facts, lambda _: True)
    decisions = [each for each in runs(told(plain, may).advice) if any(verb in each for verb in DECIDES)]
    found = told(facts, may)
    assert not [each for each in runs(found.advice) if any(verb in each for verb in DECIDES)]
    refused = [each for each in found.advice if not each.allowed]
    assert [each.command for each in refused if each.other_than == ("bob",)] == decisions
    assert runs(told(facts, may, user="carol").advice) == runs(told(plain, may).advice)


def test_user_who_released_what_was_rolled_back_is_told_who_may_let_it_pass() -> None:
    facts = separated(STATES["after a rollback"], "bob")
    found = told(facts, answers(facts, lambda _: True))
    assert any(each.startswith("Users other than bob may run, with the ClusterRole") for each in lines(found))
