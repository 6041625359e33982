"""Checks DefensePolicies by the rules that the schema of the CRD cannot express. Pure functions."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from altershield.api.check_specs import BEFORE_STEP, CheckPhase, CheckSpec, Phase
from altershield.api.policy import DefensePolicy, DefensePolicySpec
from altershield.policies.selection import InForce
from reconciler.checks import job_manifest, line_patterns, promql, samples
from reconciler.checks.placeholders import unknown_placeholder
from reconciler.outbound.urls import AllowedHosts, refusal

_KEY = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SHOWN = 64

UrlRule = Callable[[str], str]
"""Returns the reason why a URL may not be requested; empty if it may."""

_OF_PODS = ("{{pods}}", "{{podCount}}", "$new_pods")
"""Placeholders about the pods of a batch."""

ReceiverRule = Callable[[tuple[str, ...], str], str]
"""Gets the receivers of notifications that a policy names, and the namespace of the policy. Returns a sentence about
the receivers that do not exist; empty if all exist."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a policy is not accepted: reason and message of its condition."""

    reason: str
    message: str


def any_url(url: str) -> str:
    """The rule that allows every URL."""
    return ""


def any_receiver(names: tuple[str, ...], namespace: str) -> str:
    """The rule by which every receiver exists."""
    return ""


def rule_of(allowed: AllowedHosts | None) -> UrlRule:
    """The rule that allows the URLs of these hosts. None: no URL is requested, so every URL is allowed."""
    return any_url if allowed is None else partial(refusal, allowed=allowed)


def problem(spec: DefensePolicySpec, url_rule: UrlRule = any_url) -> Problem | None:
    """Why the spec is not accepted; None if it is."""
    for place, key in _label_keys(spec):
        if _KEY.fullmatch(key) is None:
            return Problem("InvalidSelector", f"spec.{place}: {key[:_SHOWN]!r} is not the key of a label; correct it")
    for check in spec.checks:
        if check.phase in BEFORE_STEP and spec.rollout is None:
            message = f"the phase {check.phase} needs spec.rollout: it runs while a step of the release waits"
            return Problem("InvalidCheck", f"the check {check.name}: {message}; correct it")
        for reason, message in _check(check, url_rule):
            return Problem(reason, f"the check {check.name}: {message}; correct it")
    return None


def in_force(policy: DefensePolicy, url_rule: UrlRule = any_url) -> InForce[DefensePolicySpec] | None:
    """The spec in force: the policy's spec if it is accepted, else the spec that was accepted last; None if no spec was
    accepted."""
    metadata, status = policy.metadata, policy.status
    if metadata.deletion_timestamp is not None:
        return None
    if problem(policy.spec, url_rule) is None:
        return InForce(metadata.namespace, metadata.name, metadata.generation, policy.spec)
    if status.accepted is None:
        return None
    return InForce(metadata.namespace, metadata.name, status.accepted_generation, status.accepted)


def _label_keys(spec: DefensePolicySpec) -> Iterator[tuple[str, str]]:
    """The keys of labels, each with its place."""
    for key in spec.selector.match_labels:
        yield "selector.matchLabels", key
    for number, step in enumerate(spec.rollout.steps if spec.rollout is not None else ()):
        for key in step.node_selector:
            yield f"rollout.steps[{number}].nodeSelector", key


def _check(check: CheckSpec, url_rule: UrlRule) -> Iterator[tuple[str, str]]:
    if check.server is not None and check.phases == (Phase.PRE,):
        yield "InvalidCheck", "the AlterShield server checks every batch in both phases; remove `phases`"
    for url in _urls(check):
        if refusal := url_rule(url):
            yield "UrlNotAllowed", refusal
    for place, sentence in _unknown_placeholders(check):
        yield "UnknownPlaceholder", f"{place}: {sentence}"
    if sentence := _without_batch(check):
        yield "InvalidCheck", sentence
    if sentence := samples.problem(check):
        yield "InvalidCheck", sentence
    if check.logs is not None and (sentence := line_patterns.problem(check.logs.pattern)):
        yield "InvalidCheck", f"logs.pattern: {sentence}"
    if check.job is not None and (sentence := job_manifest.problem(check.job)):
        yield "InvalidCheck", sentence


def _urls(check: CheckSpec) -> Iterator[str]:
    for each in (check.prometheus, check.http):
        if each is not None:
            yield each.url


def _unknown_placeholders(check: CheckSpec) -> Iterator[tuple[str, str]]:
    """The place of each placeholder that does not exist, and a sentence about it."""
    if (found := check.prometheus) is not None:
        sentences = {
            "query": promql.unknown(found.query),
            "baselineQuery": promql.unknown(found.baseline_query),
            "countQuery": promql.unknown(found.count_query),
            "baselineCountQuery": promql.unknown(found.baseline_count_query),
        }
        if found.compare is not None:
            sentences["compare.metric"] = promql.unknown(found.compare.metric, of_pods=True)
            sentences["compare.count"] = promql.unknown(found.compare.count, of_pods=True)
        yield from ((place, sentence) for place, sentence in sentences.items() if sentence)
    if check.job is not None:
        found_in = (unknown_placeholder(text) for text in _environment(check.job.template))
        yield from (("job.template", sentence) for sentence in found_in if sentence)


def _environment(template: object) -> Iterator[str]:
    """The values of env variables in a template of any form."""
    if isinstance(template, dict):
        for key, below in template.items():
            if key == "env" and isinstance(below, list):
                values = (each.get("value") for each in below if isinstance(each, dict))
                yield from (value for value in values if isinstance(value, str))
            else:
                yield from _environment(below)
    elif isinstance(template, list):
        for each in template:
            yield from _environment(each)


def _without_batch(check: CheckSpec) -> str:
    """Why a check that is about no batch of pods cannot run; empty if it can."""
    before = check.phase in BEFORE_STEP
    if (check.health is not None or check.logs is not None) and check.phase is not CheckPhase.POST_BATCH:
        return "health and logs check the pods of a batch: they need the phase PostBatch"
    if check.server is not None and check.phase is CheckPhase.POST_RELEASE:
        return "the AlterShield server checks batches: it cannot have the phase PostRelease"
    if check.prometheus is not None and check.prometheus.compare is not None and before:
        return f"compare needs new pods: it cannot have the phase {check.phase}"
    named = next((name for text in _texts(check) for name in promql.named(text) if name in _OF_PODS), "")
    if named and before:
        return f"{named} has no value with the phase {check.phase}: it runs before the pods of the step exist"
    return ""


def _texts(check: CheckSpec) -> Iterator[str]:
    """The texts with placeholders."""
    if (found := check.prometheus) is not None:
        yield from (found.query, found.baseline_query, found.count_query, found.baseline_count_query)
    if check.job is not None:
        yield from _environment(check.job.template)
