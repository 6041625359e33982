"""What the steps of a release would have done that was made without them. Pure functions.

The pods get the version in the same order as they did. A step would not have lasted longer than its soak, and a person
would have promoted it at once. So a failure is not said to have been found earlier than it would have been.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from altershield.api.rollout import Rollout
from altershield.rollout.steps import step_pods, steps_of


@dataclass(frozen=True, slots=True)
class HeldStep:
    """A step that would have been held."""

    number: int
    pods: int
    """How many pods would have had the version."""
    soak_seconds: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A pod that failed."""

    place: int
    """How many pods had got the version when this one had got it, itself included."""
    seconds: int
    """For how long it had been up before; 0: its first verdict failed it."""


def held_steps(rollout: Rollout, replicas: int, selected: Sequence[int] = ()) -> Iterator[HeldStep]:
    """The held steps, each with more pods than the one before. `selected`: for each held step of the policy, the pods
    on the nodes that it selects; empty: no step selects nodes."""
    reached = 0
    for number, step in enumerate(steps_of(rollout)[:-1], 1):
        pods = max(step_pods(rollout, number, replicas), selected[number - 1] if selected else 0)
        if pods > reached:
            yield HeldStep(number, pods, step.soak_seconds)
        reached = max(reached, pods)


def stopping_step(steps: Sequence[HeldStep], failures: Iterable[Failure]) -> HeldStep | None:
    """The step in which the first of these failures would have stopped the release; None: the last step, in which all
    pods have the version. `steps`: the held steps, each with more pods than the one before."""
    found = (_index(steps, each) for each in failures)
    first = min(found, default=len(steps))
    return steps[first] if first < len(steps) else None


def _index(steps: Sequence[HeldStep], failure: Failure) -> int:
    index = next((each for each, step in enumerate(steps) if step.pods >= failure.place), len(steps))
    left = failure.seconds
    while index < len(steps) and left > steps[index].soak_seconds:
        left -= steps[index].soak_seconds
        index += 1
    return index
