"""Which releases slipped past the gate, and that none of the others is ever taken for one."""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from altershield.api.meta import rfc3339
from altershield.api.views import ManagedDeployment, ReplicaSet
from reconciler.decisions.slipped import Slip, behind, doubtful, judge, namesakes, present, relabelled

from .builders import NOW, V1, V2, V3

REVISION = "deployment.kubernetes.io/revision"
LONG_AGO, LATER = NOW - 3600, NOW + 3600


def deployment(
    version: str = V1,
    carried: str | None = None,
    *,
    revision: int = 1,
    generation: int = 1,
    observed: int = 1,
    released: float | None = NOW,
) -> ManagedDeployment:
    """At a template that carries the same version as the Deployment, unless `carried` is given."""
    written = [{"time": rfc3339(released), "fieldsV1": {"f:spec": {"f:template": {}}}}] if released is not None else []
    return msgspec.convert(
        {
            "metadata": {
                "name": "sleep",
                "namespace": "default",
                "generation": generation,
                "labels": labelled(version),
                "annotations": {REVISION: str(revision)},
                "managedFields": written,
            },
            "spec": {"template": {"metadata": {"labels": labelled(version if carried is None else carried)}}},
            "status": {"observedGeneration": observed},
        },
        ManagedDeployment,
    )


def replica_set(
    version: str = V1,
    carried: str | None = None,
    *,
    revision: int = 1,
    hash_: str = "",
    created: float = NOW,
    **metadata: Any,
) -> ReplicaSet:
    hash_ = hash_ or f"hash-{revision}"
    return msgspec.convert(
        {
            "metadata": {
                "name": f"sleep-{hash_}",
                "namespace": "default",
                "uid": hash_,
                "creationTimestamp": rfc3339(created),
                "labels": {**labelled(version), labels.POD_TEMPLATE_HASH: hash_},
                "annotations": {REVISION: str(revision)},
                **metadata,
            },
            "spec": {"template": {"metadata": {"labels": labelled(version if carried is None else carried)}}},
        },
        ReplicaSet,
    )


def labelled(version: str) -> dict[str, str]:
    return {"app": "sleep", **({labels.VERSION: version} if version else {})}


def verdict(
    deployment: ManagedDeployment, *replica_sets: ReplicaSet, templates: dict[str, str], since: float = LONG_AGO
) -> Slip | None:
    """What the controller decides; `templates` are the fingerprints of the ReplicaSets' templates, by hash."""
    now = present(deployment, replica_sets)
    if now is None or not doubtful(deployment, now, replica_sets):
        return None
    others = [templates[other.metadata.uid] for other in namesakes(now, replica_sets)]
    return judge(deployment, now, templates[now.metadata.uid], others, since)


def test_a_version_that_another_template_has() -> None:
    slip = verdict(
        deployment(revision=2),
        replica_set(revision=1),
        replica_set(revision=2),
        templates={"hash-1": V1, "hash-2": V2},
    )

    assert slip is not None
    assert (slip.version, slip.reason) == (V2, "VersionReused")
    assert "sleep-hash-2 (revision 2)" in slip.message
    assert V1 in slip.message


def test_no_version_at_all() -> None:
    slip = verdict(deployment(""), replica_set(""), templates={"hash-1": V1})

    assert slip is not None
    assert (slip.version, slip.reason) == (V1, "NoVersion")


def test_no_version_after_releases_that_had_one() -> None:
    """`kubectl replace` with the gate away."""
    slip = verdict(
        deployment("", revision=2),
        replica_set(revision=1),
        replica_set("", revision=2),
        templates={"hash-1": V1, "hash-2": V2},
    )
    assert slip is not None
    assert (slip.version, slip.reason) == (V2, "NoVersion")


def test_a_label_that_is_no_version_counts_as_none() -> None:
    slip = verdict(deployment("latest"), replica_set("latest"), templates={"hash-1": V1})
    assert slip is not None
    assert (slip.version, slip.reason) == (V1, "NoVersion")


def test_an_undo_that_no_gate_saw() -> None:
    slip = verdict(
        deployment(V2, V1, revision=3),
        replica_set(V1, revision=3),
        replica_set(V2, revision=2),
        templates={"hash-3": V1, "hash-2": V2},
    )
    assert slip is not None
    assert (slip.version, slip.reason) == (V1, "VersionReused")


def test_what_was_interrupted_goes_on_with_the_same_message() -> None:
    """The message says which release was recorded: it must not change once the ReplicaSet has its version."""
    for carried in (V1, ""):
        old, templates = replica_set(revision=1), {"hash-1": V1, "hash-2": V2}
        target = deployment(carried, revision=2)
        before = verdict(target, old, replica_set(carried, revision=2), templates=templates)
        between = verdict(target, old, replica_set(V2, carried, revision=2), templates=templates)
        after = verdict(deployment(V2, carried, revision=2), old, replica_set(V2, carried, revision=2), templates={})
        assert before is not None
        assert (between, after) == (before, None)


def test_an_older_replica_set_in_the_cache_than_in_the_cluster_changes_no_version_back() -> None:
    """The Deployment has its version already, so its ReplicaSet has, too."""
    replica_sets = replica_set(revision=1), replica_set(V1, revision=2)
    slip = verdict(deployment(V2, V1, revision=2), *replica_sets, templates={"hash-1": V1, "hash-2": V2})
    before = verdict(deployment(V1, revision=2), *replica_sets, templates={"hash-1": V1, "hash-2": V2})
    assert slip is not None
    assert slip == before, "recorded before"


# no false alarms


@pytest.mark.parametrize(
    ("target", "replica_sets"),
    [
        pytest.param(deployment(), [replica_set()], id="a release"),
        pytest.param(
            deployment(V2, revision=2), [replica_set(V1, revision=1), replica_set(V2, revision=2)], id="another one"
        ),
        pytest.param(deployment(V2, generation=2), [replica_set(V1)], id="the controller has yet to see it"),
        pytest.param(
            deployment(V2, generation=2, observed=2), [replica_set(V1)], id="paused, so without its ReplicaSet"
        ),
        pytest.param(
            deployment(V1), [replica_set(V1), replica_set(V2, revision=2)], id="the Deployment in the cache is older"
        ),
        pytest.param(deployment(V2, revision=2), [replica_set(V1)], id="the ReplicaSet in the cache is older"),
        pytest.param(deployment(), [], id="no ReplicaSet yet"),
        pytest.param(
            deployment(V1, revision=3),
            [replica_set(V1, revision=3), replica_set(V2, revision=2)],
            id="an undo, the old ReplicaSet has the next revision",
        ),
        pytest.param(
            deployment(V2, revision=3, generation=3, observed=2),
            [replica_set(V1, revision=3, hash_="a"), replica_set(V2, revision=3, hash_="b")],
            id="two of one revision, in the middle of an undo",
        ),
        pytest.param(
            deployment(V2, V1, revision=1),
            [replica_set(V1, deletionTimestamp=rfc3339(NOW))],
            id="a ReplicaSet that is being deleted",
        ),
        pytest.param(
            deployment(V2, revision=2),
            [replica_set(V2, "", revision=1, hash_="a"), replica_set(V2, revision=2, hash_="b")],
            id="released by the gate after it had slipped",
        ),
        pytest.param(
            deployment(V2, V1, revision=2),
            [replica_set(V1, revision=1), replica_set(V2, V1, revision=2)],
            id="recorded",
        ),
    ],
)
def test_nothing_to_look_closer_at(target: ManagedDeployment, replica_sets: list[ReplicaSet]) -> None:
    now = present(target, replica_sets)
    assert now is None or not doubtful(target, now, replica_sets)


@pytest.mark.parametrize(
    "templates",
    [
        pytest.param({"hash-1": V2, "hash-3": V1}, id="an undo to what the version is of"),
        pytest.param({"hash-1": V1, "hash-3": V1}, id="twins by a collision of hashes"),
        pytest.param({"hash-1": V3, "hash-3": V3}, id="twins, and a newer API server that has more defaults"),
    ],
)
def test_two_replica_sets_with_one_version_that_are_none(templates: dict[str, str]) -> None:
    target, replica_sets = deployment(revision=3), [replica_set(revision=1), replica_set(revision=3)]
    assert doubtful(target, replica_sets[1], replica_sets)
    assert verdict(target, *replica_sets, templates=templates) is None


def test_a_lone_version_is_believed_whatever_the_fingerprint_is_now() -> None:
    """Defaults that came with a newer API server, another webhook that adds to the template."""
    assert judge(deployment(), replica_set(), V2, [], LONG_AGO) is None


@pytest.mark.parametrize(
    ("released", "created", "since"),
    [
        pytest.param(LONG_AGO, LONG_AGO, NOW, id="all of it before the gate"),
        pytest.param(LONG_AGO, LATER, NOW, id="its ReplicaSet was made, or made again, after"),
        pytest.param(LATER, LONG_AGO, NOW, id="its template was written again as it was"),
        pytest.param(NOW, NOW, NOW, id="in the same second"),
        pytest.param(None, LATER, NOW, id="nobody knows when it was released"),
        pytest.param(LATER, LATER, float("inf"), id="nobody knows since when the gate is there"),
    ],
)
def test_what_may_be_from_before_the_gate_was_there_is_legal(
    released: float | None, created: float, since: float
) -> None:
    for version in ("", "latest"):
        target, now = deployment(version, released=released), replica_set(version, created=created)
        assert verdict(target, now, templates={"hash-1": V1}, since=since) is None
    copied = deployment("", V1, released=released)  # applied from an export of which labels were taken off
    assert verdict(copied, replica_set(created=created), templates={"hash-1": V1}, since=since) is None


@pytest.mark.parametrize(
    ("target", "more_to_come"),
    [
        (deployment("", revision=0), True),
        (deployment("", generation=2), True),
        (deployment("", revision=1), False),
        (deployment("", revision=2), False),  # of a ReplicaSet that is none of ours
    ],
)
def test_only_an_unfinished_deployment_is_waited_for(target: ManagedDeployment, more_to_come: bool) -> None:
    assert behind(target, [replica_set("")]) == more_to_come
    assert not behind(target, [])


# any history


def of(content: int) -> str:
    return f"{content:032x}"


@dataclass(frozen=True)
class Made:
    """A ReplicaSet: what is in its template, and its labels."""

    content: int
    carried: str
    version: str
    revision: int


@dataclass
class World:
    """A Deployment, its controller, the gate, and the reconciler as far as it versions what slipped."""

    content: int = 0
    carried: str = of(0)
    version: str = of(0)
    revision: int = 0
    generation: int = 1
    observed: int = 0
    paused: bool = False
    made: dict[tuple[int, str], Made] = field(default_factory=dict)

    def write(self, content: int, carried: str, version: str) -> None:
        self.generation += (content, carried) != (self.content, self.carried)
        self.content, self.carried, self.version = content, carried, version

    def do(self, action: str, content: int) -> None:
        past = sorted(self.made.values(), key=lambda made: made.revision)
        undone = past[content % len(past)] if past else None
        match action:
            case "release" if content != self.content:
                self.write(content, of(content), of(content))
            case "undo" if undone is not None and undone.content != self.content:
                self.write(undone.content, of(undone.content), of(undone.content))
            # with a version of which there never was a ReplicaSet there are no two of them
            case "set image past the gate" if not self.carried or any(made.carried == self.carried for made in past):
                self.write(content, self.carried, self.version)
            case "replace past the gate":
                self.write(content, "", "")
            case "undo past the gate" if undone is not None:
                self.write(undone.content, undone.carried, self.version)
            case "pause":
                self.paused = True
            case "resume":
                self.paused = False
            case "scale":
                self.generation += 1
            case "control":
                self.control()
            case _:
                pass

    def control(self) -> None:
        """What the deployment controller does."""
        key = self.content, self.carried
        last = max((made.revision for made in self.made.values()), default=0)
        if key not in self.made and not self.paused:
            self.made[key] = Made(self.content, self.carried, self.carried, last + 1)
        elif key in self.made and self.made[key].revision < last and not self.paused:
            self.made[key] = replace(self.made[key], revision=last + 1)
        if key in self.made and not self.paused:
            self.revision = self.made[key].revision
        self.observed = self.generation

    def follow_up(self) -> Slip | None:
        """What the reconciler does."""
        slip = verdict(self.deployment, *self.replica_sets, templates=self.templates)
        if slip is not None:
            key = max(self.made, key=lambda key: self.made[key].revision)
            self.made[key] = replace(self.made[key], version=slip.version)
            self.version = slip.version
        return slip

    @property
    def deployment(self) -> ManagedDeployment:
        return deployment(
            self.version, self.carried, revision=self.revision, generation=self.generation, observed=self.observed
        )

    @property
    def replica_sets(self) -> list[ReplicaSet]:
        return [
            replica_set(made.version, made.carried, revision=made.revision, hash_=f"{made.content}-{made.carried}")
            for made in self.made.values()
        ]

    @property
    def templates(self) -> dict[str, str]:
        return {f"{made.content}-{made.carried}": of(made.content) for made in self.made.values()}


seen_by_the_gate = st.sampled_from(["release", "undo", "pause", "resume", "scale", "control"])
past_the_gate = st.sampled_from(["set image past the gate", "replace past the gate", "undo past the gate"])
contents = st.integers(0, 4)


@given(st.lists(st.tuples(seen_by_the_gate, contents), max_size=20), st.data())
def test_what_passed_the_gate_never_slipped_however_old_the_caches_are(
    history: list[tuple[str, int]], data: st.DataObject
) -> None:
    world, deployments, families = World(), [World().deployment], [World().replica_sets]
    for action, content in history:
        world.do(action, content)
        deployments.append(world.deployment)
        families.append(world.replica_sets)
    target, replica_sets = data.draw(st.sampled_from(deployments)), data.draw(st.sampled_from(families))

    now = present(target, replica_sets)

    assert now is None or not doubtful(target, now, replica_sets)


@given(st.lists(st.tuples(seen_by_the_gate | past_the_gate | st.just("follow up"), contents), max_size=20))
def test_in_the_end_every_release_has_the_version_of_its_template(history: list[tuple[str, int]]) -> None:
    world = World()
    world.control()
    for action, content in history:
        if action == "follow up":
            world.follow_up()
        else:
            world.do(action, content)
    world.paused = False
    world.control()

    slip = world.follow_up()

    (now,) = [made for made in world.made.values() if made.revision == world.revision]
    assert now.version == world.version == of(world.content)
    assert slip is None or slip.version == of(world.content)
    assert world.follow_up() is None, "once"
    assert relabelled(replica_set(now.version, now.carried)) == (now.carried != of(world.content))
