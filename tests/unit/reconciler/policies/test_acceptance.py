"""Which policies are accepted, and which spec is in force."""

from typing import Any

import msgspec
import pytest

from altershield.api.check_specs import (
    Against,
    CheckPhase,
    CheckSpec,
    Compare,
    HttpCheck,
    JobCheck,
    LogsCheck,
    Phase,
    PrometheusCheck,
    ServerCheck,
)
from altershield.api.policy import DefensePolicy, DefensePolicySpec, DefensePolicyStatus, Mode
from altershield.api.rollout import Rollout
from altershield.api.selectors import Selector
from kube_base.meta import ObjectMeta
from reconciler.outbound.urls import allowed_hosts
from reconciler.policies.acceptance import in_force, problem, rule_of
from reconciler.policies.applied import start_timeout

QUERY = PrometheusCheck("http://prometheus.monitoring", 'up{pod=~"{{pods}}"}', max="1")

GATE, BEFORE, AFTER = HttpCheck("https://gate.tools/"), CheckPhase.PRE_RELEASE, CheckPhase.POST_RELEASE


def spec(**check: object) -> DefensePolicySpec:
    return DefensePolicySpec(checks=(CheckSpec("check", **check),))  # type: ignore[arg-type]


def stepped(**check: object) -> DefensePolicySpec:
    return msgspec.structs.replace(spec(**check), rollout=Rollout(pods=(1,)))


def compared(**fields: Any) -> PrometheusCheck:
    compare = Compare(**{"metric": 'sum(errors{pod=~"$pods", ns="$namespace"})', "max_ratio": "1.2", **fields})
    return PrometheusCheck("http://prometheus.monitoring", compare=compare)


def job(value: object) -> JobCheck:
    container = {"name": "smoke", "env": [{"name": "A", "value": value}, {"name": "B", "valueFrom": {}}]}
    return JobCheck({"spec": {"template": {"spec": {"containers": [container]}}}})


@pytest.mark.parametrize(
    "accepted",
    [
        DefensePolicySpec(),
        spec(prometheus=QUERY),
        spec(prometheus=msgspec.structs.replace(QUERY, query="x{n='{{ namespace }}'}", min="-1.5", max="1.5")),
        spec(prometheus=compared()),
        spec(prometheus=compared(count='sum(x{pod=~"$pods"})', min_samples=100, against=Against.BEFORE)),
        spec(server=ServerCheck(), phases=(Phase.PRE, Phase.POST)),
        spec(server=ServerCheck()),
        spec(http=HttpCheck("https://gate.tools/")),
        spec(logs=LogsCheck("panic|FATAL")),
        stepped(http=GATE, phase=BEFORE),
        stepped(prometheus=msgspec.structs.replace(QUERY, query='x{pod=~"$old_pods"} > $step'), phase=BEFORE),
        spec(prometheus=QUERY, phase=AFTER),
        spec(prometheus=compared(), phase=AFTER),
        spec(job=job("{{version}}")),
        spec(job=job(1)),
        spec(job=JobCheck({"spec": {"template": {"spec": {}}}, "env": "not a list"})),
        DefensePolicySpec(selector=Selector(match_labels={"example.com/a": "", "A_b.c": "d"})),
    ],
)
def test_right_policies_are_accepted(accepted: DefensePolicySpec) -> None:
    assert problem(accepted) is None


@pytest.mark.parametrize(
    ("rejected", "reason", "message"),
    [
        (spec(prometheus=msgspec.structs.replace(QUERY, query="x{{podz}}")), "UnknownPlaceholder", ": query: {{podz}}"),
        (
            spec(prometheus=msgspec.structs.replace(QUERY, count_query="{{}}")),
            "UnknownPlaceholder",
            ": countQuery: {{}}",
        ),
        (
            spec(prometheus=msgspec.structs.replace(QUERY, baseline_query="{{a}}")),
            "UnknownPlaceholder",
            ": baselineQuery: {{a}}",
        ),
        (
            spec(prometheus=msgspec.structs.replace(QUERY, baseline_count_query="{{a}}")),
            "UnknownPlaceholder",
            ": baselineCountQuery: {{a}}",
        ),
        (
            spec(prometheus=msgspec.structs.replace(QUERY, query='x{pod=~"$podz"}')),
            "UnknownPlaceholder",
            ": query: $podz",
        ),
        (spec(prometheus=compared(metric='x{pod=~"$pod"}')), "UnknownPlaceholder", ": compare.metric: $pod is"),
        (spec(prometheus=compared(count='x{pod=~"$pod"}')), "UnknownPlaceholder", ": compare.count: $pod is"),
        (spec(prometheus=compared(max_ratio="")), "InvalidCheck", "there is no bound"),
        (spec(prometheus=msgspec.structs.replace(QUERY, min="2")), "InvalidCheck", "min is above max"),
        (spec(logs=LogsCheck("(a")), "InvalidCheck", "logs.pattern: a ( has no )"),
        (spec(job=JobCheck({"spec": {}})), "InvalidCheck", "the template has no object spec.template"),
        (spec(job=job("{{what}}")), "UnknownPlaceholder", "job.template: {{what}} is not a placeholder"),
        (spec(server=ServerCheck(), phases=(Phase.PRE,)), "InvalidCheck", "in both phases"),
        (spec(http=GATE, phase=BEFORE), "InvalidCheck", "the phase PreRelease needs spec.rollout"),
        (stepped(prometheus=compared(), phase=BEFORE), "InvalidCheck", "compare needs new pods"),
        (stepped(prometheus=QUERY, phase=BEFORE), "InvalidCheck", "{{pods}} has no value with the phase PreRelease"),
        (
            stepped(prometheus=msgspec.structs.replace(QUERY, query='x{pod=~"$new_pods"}'), phase=CheckPhase.PRE_BATCH),
            "InvalidCheck",
            "$new_pods has no value with the phase PreBatch",
        ),
        (stepped(job=job("{{podCount}}"), phase=BEFORE), "InvalidCheck", "{{podCount}} has no value"),
        (stepped(logs=LogsCheck("panic"), phase=BEFORE), "InvalidCheck", "health and logs check the pods of a batch"),
        (spec(server=ServerCheck(), phase=AFTER), "InvalidCheck", "cannot have the phase PostRelease"),
        (
            DefensePolicySpec(selector=Selector(match_labels={"a b": "c"})),
            "InvalidSelector",
            "spec.selector.matchLabels: 'a b' is not the key",
        ),
    ],
)
def test_wrong_policies_are_rejected_with_a_reason(rejected: DefensePolicySpec, reason: str, message: str) -> None:
    found = problem(rejected)
    assert found is not None
    assert found.reason == reason
    assert message in found.message


def test_url_that_the_rule_refuses_is_rejected() -> None:
    for each in (spec(http=HttpCheck("https://gate.tools/")), spec(prometheus=QUERY)):
        found = problem(each, lambda url: f"{url} is not allowed")
        assert found is not None
        assert found.reason == "UrlNotAllowed"


def test_urls_of_allowed_hosts_are_accepted_and_all_urls_if_none_is_requested() -> None:
    rule = rule_of(allowed_hosts(["*.tools"]))
    assert rule("https://gate.tools/") == ""
    assert "gate.shop" in rule("https://gate.shop/")
    assert rule_of(None)("https://gate.shop/") == ""


def test_rejected_edit_leaves_the_last_accepted_spec_in_force() -> None:
    accepted, wrong = DefensePolicySpec(mode=Mode.WARN), spec(server=ServerCheck(), phases=(Phase.PRE,))
    metadata = ObjectMeta(name="p", namespace="shop", generation=3)
    status = DefensePolicyStatus(accepted=accepted, accepted_generation=2)
    found = in_force(DefensePolicy(metadata, wrong, status))
    assert found is not None
    assert (found.spec, found.generation) == (accepted, 2)
    new = in_force(DefensePolicy(metadata, accepted, DefensePolicyStatus()))
    assert new is not None
    assert (new.spec, new.generation) == (accepted, 3)  # it need not wait for the status
    assert in_force(DefensePolicy(metadata, wrong, DefensePolicyStatus())) is None
    gate = DefensePolicy(metadata, spec(http=HttpCheck("https://gate.tools/")), status)
    assert in_force(gate, lambda url: f"{url} is not allowed") == found
    deleted = msgspec.structs.replace(metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert in_force(DefensePolicy(deleted, accepted, status)) is None


@pytest.mark.parametrize(
    ("annotation", "seconds"),
    [("1", 1), ("86400", 86400), ("0", None), ("86401", None), ("", None), ("5m", None), ("-1", None), ("²", None)],
)
def test_annotation_is_a_bounded_number_of_seconds(annotation: str, seconds: int | None) -> None:
    assert start_timeout(annotation) == seconds
