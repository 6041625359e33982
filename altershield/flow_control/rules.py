"""The rules of a policy, with their intervals in seconds."""

from dataclasses import dataclass

from altershield.api import durations
from altershield.api.flow_control import COOLDOWN, FlowControlSpec


@dataclass(frozen=True, slots=True)
class Rule:
    """At most `limit` deletions in any interval of `seconds`."""

    seconds: int
    interval: str
    """The interval as the spec has it."""
    limit: int

    def __str__(self) -> str:
        return f"{self.interval}/{self.limit}"


def rules_of(spec: FlowControlSpec) -> tuple[Rule, ...]:
    """The rules of a spec, in its order. The schema refuses wrong intervals. A rule with a wrong interval that is
    stored nevertheless is left out, because it must not stop all deletions."""
    found: dict[int, Rule] = {}
    for each in spec.limit_rules:
        try:
            seconds = durations.seconds(each.interval)
        except ValueError:
            continue
        found.setdefault(seconds, Rule(seconds, each.interval, each.limit))
    return tuple(found.values())


def shortest(rules: tuple[Rule, ...]) -> Rule | None:
    """The rule with the shortest interval."""
    return min(rules, key=lambda rule: rule.seconds, default=None)


def useless(rules: tuple[Rule, ...]) -> tuple[Rule, Rule] | None:
    """A rule whose limit is never reached, and the reason: a rule with a longer interval and no higher limit, which is
    reached first. None: there is no such rule."""
    for rule in rules:
        for longer in rules:
            if longer.seconds > rule.seconds and longer.limit <= rule.limit:
                return rule, longer
    return None


def cooldown(spec: FlowControlSpec) -> int:
    """The seconds for which the breaker stays open."""
    try:
        return durations.seconds(spec.breaker.cooldown)
    except ValueError:
        return durations.seconds(COOLDOWN)
