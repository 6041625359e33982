"""What `altershield why pod/NAME` asks, and what it reads from the answers."""

from typing import Any

import pytest

from altershield.views.asking import RequestError
from altershield.views.why.pod import ask_about
from altershield.views.why.refusal import Outcome, PodExplanation, answer, explain_pod
from kube_base.access.errors import from_status
from kube_base.resources import PODS
from tests.support.stub_api import answer as answered
from tests.support.stub_api import serving

POD = {"metadata": {"name": "web-1", "namespace": "shop", "uid": "uid-1"}}
BUDGET = "PodUnavailableBudget web: 3 of 3 pods are available and 3 must be (maxUnavailable 0)"
LIMIT = "PodDeletionFlowControl guard: 100 of 100 pod deletions in 10m are used"
OPEN = "PodDeletionFlowControl guard is open since 2026-11-23T04:28:12Z (rule 10m/100)"
PDB = "Cannot evict pod as it would violate the pod's disruption budget"
NOT_PERMITTED = 'pods "web-1" is forbidden: User "ann" cannot delete resource "pods" in API group ""'
NOBODY = "you may not do this, so nobody else was asked"


def denial(text: str) -> str:
    return f'admission webhook "vpod.kb.io" denied the request: {text}'


@pytest.mark.parametrize(
    ("code", "message", "causes", "outcome", "by", "shown"),
    [
        (403, denial(BUDGET), (), Outcome.REFUSED, "PodUnavailableBudget web (webhook vpod.kb.io)", BUDGET),
        (429, denial(LIMIT), (), Outcome.REFUSED, "PodDeletionFlowControl guard (webhook vpod.kb.io)", LIMIT),
        (403, denial(OPEN), (), Outcome.REFUSED, "PodDeletionFlowControl guard (webhook vpod.kb.io)", OPEN),
        (429, denial(f"{PDB} a."), (), Outcome.REFUSED, "PodDisruptionBudget a (webhook vpod.kb.io)", f"{PDB} a."),
        (403, denial("no, not today"), (), Outcome.REFUSED, "webhook vpod.kb.io", "no, not today"),
        (403, 'admission webhook "x.io" denied the request', (), Outcome.REFUSED, "webhook x.io", "it gives no reason"),
        (
            422,
            "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'all' denied request: kept",
            (), Outcome.REFUSED, "ValidatingAdmissionPolicy keep", "kept",
        ),
        (
            429, f"{PDB}.",
            ({"reason": "DisruptionBudget", "message": "The disruption budget web.v2 needs 3 pods and has 3"},),
            Outcome.REFUSED, "PodDisruptionBudget web.v2", "The disruption budget web.v2 needs 3 pods and has 3",
        ),
        (
            500, 'failed calling webhook "x.io": timeout', (), Outcome.REFUSED, "webhook x.io, which does not answer",
            'failed calling webhook "x.io": timeout',
        ),
        (
            500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.", (),
            Outcome.REFUSED, "the API server",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ),
        (403, "node restriction", (), Outcome.REFUSED, "the API server", "node restriction"),
        (403, NOT_PERMITTED, (), Outcome.UNKNOWN, "", f"{NOBODY}: {NOT_PERMITTED}"),
        (429, "too many requests", (), Outcome.UNKNOWN, "", "too many requests"),
        (
            400, 'admission webhook "x.io" does not support dry run', (), Outcome.UNKNOWN, "",
            'admission webhook "x.io" does not support dry run',
        ),
    ],
)  # fmt: skip
def test_object_that_refuses_is_read_from_the_answer(
    code: int, message: str, causes: Any, outcome: Outcome, by: str, shown: str
) -> None:
    found = answer(from_status(code, {"message": message, "details": {"causes": list(causes)}}), ())
    assert (found.outcome, found.by, found.message) == (outcome, by, shown)


async def test_both_requests_are_dry_runs_in_the_query_and_in_the_options() -> None:
    async with serving() as (api, client):
        await api.put(PODS, POD)
        seen: list[tuple[str, str, Any]] = []

        async def keep(request: Any) -> Any:
            body = await request.json()
            seen.append((request.method, request.query_string, body.get("deleteOptions", body)))
            return await answered(403, "no")(request)

        api.fault(lambda request: request.method in ("DELETE", "POST"), keep, times=2)
        answers = await ask_about(client, "shop", "web-1")
        assert api.get(PODS, "web-1", "shop") is not None
    assert [each[:2] for each in seen] == [("DELETE", "dryRun=All"), ("POST", "dryRun=All")]
    assert all(options["dryRun"] == ["All"] and options["preconditions"] == {"uid": "uid-1"} for *_, options in seen)
    assert [each.outcome for each in answers] == [Outcome.REFUSED] * 2


async def test_warnings_belong_to_the_request_that_they_answer() -> None:
    async with serving() as (api, client):
        await api.put(PODS, POD)
        warning = r'299 - "AlterShield: wait \"a bit\""'
        api.fault(lambda request: request.method == "DELETE", answered(403, "no", Warning=warning))
        api.fault(lambda request: request.method == "POST", answered(201))
        deletion, eviction = await ask_about(client, "shop", "web-1")
    assert (deletion.warnings, eviction.warnings) == (('AlterShield: wait "a bit"',), ())
    assert explain_pod(PodExplanation("shop", "web-1", deletion, eviction)) == [
        "pod/web-1 in namespace shop",
        "Deletion:  refused by the API server",
        "           403 no",
        '           Warning: AlterShield: wait "a bit"',
        "Eviction:  allowed",
    ]


async def test_pod_that_is_not_there_or_is_being_deleted_already_is_an_error() -> None:
    async with serving() as (api, client):
        with pytest.raises(RequestError, match='there is no pod web-1 in namespace "shop"'):
            await ask_about(client, "shop", "web-1")
        metadata = {**POD["metadata"], "deletionTimestamp": "2026-11-23T04:28:12Z"}
        await api.put(PODS, {"metadata": metadata})
        with pytest.raises(RequestError, match="is being deleted since 2026-11-23T04:28:12Z"):
            await ask_about(client, "shop", "web-1")
