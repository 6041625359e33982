"""Which releases are recognised as ungated, and that no other release ever is."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef
from altershield.workloads.workload import Workload
from reconciler.cluster import release as projection
from reconciler.cluster.release import Release
from reconciler.releases.findings.ungated import (
    Refresh,
    Restore,
    Revision,
    UngatedReason,
    UngatedRelease,
    classify,
    current_revision,
    may_be_ungated,
)
from tests.support.workloads import BY_NAME
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import NOW, V1, V2, V3

LONG_AGO, LATER = NOW - 3600, NOW + 3600
KINDS = sorted(BY_NAME)
each_kind = pytest.mark.parametrize("kind", KINDS)
Found = UngatedRelease | Restore | Refresh | None


def workload(version: str = V1, template: str = V1, *, kind: str = "Deployment", rolls_out: str = "") -> Workload:
    """A workload with this version in its label and this fingerprint of its template. The template has no version."""
    made = builders.workload(version, kind=kind)
    return msgspec.structs.replace(made, fingerprint=template, update_revision=rolls_out)


def revision(
    template: str = V1,
    carried: str | None = None,
    *,
    number: int = 1,
    uid: str = "",
    created: int = NOW,
    name: str = "",
) -> Revision:
    """A revision with this template. `carried` is the version in the template; by default the template's own."""
    uid = uid or f"revision-{number}"
    version = template if carried is None else carried
    return Revision(SourceRef("ReplicaSet", name or f"sleep-{uid}", uid, version, template), created, number)


def release(version: str = V1, source: Revision | None = None, shown: str = "") -> Release:
    """A release of this version. `shown`: the fingerprint that the template had when the release was stored."""
    status = ChangeWorkloadStatus(status="Success")
    if source is not None:
        status = msgspec.structs.replace(
            status,
            source=msgspec.structs.replace(
                source.source, version=version, fingerprint=shown or source.source.fingerprint
            ),
        )
    return projection.read(msgspec.json.encode(builders.release(version, status)))


def verdict(
    target: Workload,
    *revisions: Revision,
    own_releases: tuple[Release, ...] = (),
    released: float | None = NOW,
    since: float = LONG_AGO,
) -> Found:
    """What the reconciler decides about the workload."""
    own = next((each for each in own_releases if each.metadata.name.endswith(target.version or "-")), None)
    if not may_be_ungated(target, own):
        return None
    return classify(target, own_releases, revisions, released_at=released, governed_since=since)


# ungated releases


@each_kind
def test_version_of_another_template_is_an_ungated_release(kind: str) -> None:
    first, second = revision(V1), revision(V2, V1, number=2)
    ungated = verdict(workload(V1, V2, kind=kind), first, second, own_releases=(release(V1, first),))

    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V2, UngatedReason.VERSION_REUSED)
    assert "sleep-revision-2 (revision 2)" in ungated.message
    assert f"still has the version {V1} of an earlier release" in ungated.message


def test_version_of_another_template_is_an_ungated_release_without_its_change_workload() -> None:
    ungated = verdict(workload(V1, V2), revision(V1, V1), revision(V2, V1, number=2))
    assert isinstance(ungated, UngatedRelease)
    ungated = verdict(workload(V1, V2), revision(V1, V1), revision(V2, V1, number=2), own_releases=(release(V1),))
    assert isinstance(ungated, UngatedRelease), "or the status of its release is empty"


@each_kind
def test_workload_without_a_version_is_an_ungated_release(kind: str) -> None:
    ungated = verdict(workload("", V1, kind=kind), revision(V1, ""))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V1, UngatedReason.NO_VERSION)
    assert "its pod template has no version" in ungated.message


def test_workload_without_a_version_after_gated_releases_is_an_ungated_release() -> None:
    """`kubectl replace` without a gatekeeper removes the version."""
    first, second = revision(V1), revision(V2, "", number=2)
    ungated = verdict(workload("", V2), first, second, own_releases=(release(V1, first),))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V2, UngatedReason.NO_VERSION)


def test_invalid_version_label_counts_as_no_version() -> None:
    ungated = verdict(workload("latest", V1), revision(V1, "latest"))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V1, UngatedReason.NO_VERSION)


def test_ungated_undo_gets_its_old_version() -> None:
    first, second = revision(V1, number=3), revision(V2, number=2)
    ungated = verdict(workload(V2, V1), first, second, own_releases=(release(V1, first), release(V2, second)))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V1, UngatedReason.VERSION_REUSED)


def test_old_template_keeps_the_version_of_its_change_workload() -> None:
    """Its fingerprint has changed, because the API server has other defaults."""
    first, second = revision(V3, V1, number=3), revision(V2, number=2)
    ungated = verdict(workload(V2, V3), first, second, own_releases=(release(V1, first, V1), release(V2, second)))
    assert isinstance(ungated, UngatedRelease)
    assert ungated.version == V1


def test_interrupted_handling_of_an_ungated_release_continues_with_the_same_message() -> None:
    first, second = revision(V1), revision(V2, V1, number=2)
    before = verdict(workload(V1, V2), first, second, own_releases=(release(V1, first),))
    between = verdict(workload(V1, V2), first, second, own_releases=(release(V1, first), release(V2, second)))
    after = verdict(workload(V2, V2), first, second, own_releases=(release(V1, first), release(V2, second)))
    assert before is not None
    assert (between, after) == (before, None)


def test_template_stored_as_another_version_is_an_ungated_release_if_its_own_has_no_status() -> None:
    """Two ungated releases. The second one happened before the first one was stored."""
    first, second = revision(V1), revision(V2, V1, number=2)
    ungated = verdict(workload(V2, V1), first, second, own_releases=(release(V1, first), release(V2)))
    assert isinstance(ungated, UngatedRelease)
    assert ungated.version == V1


# no ungated releases


def test_lost_version_label_of_a_workload_is_restored() -> None:
    first = revision(V1)
    for lost in ("", "latest"):
        assert verdict(workload(lost, V1), first, own_releases=(release(V1, first),)) == Restore(V1)


def test_template_with_new_defaults_of_the_api_server_is_not_a_release() -> None:
    now = revision(V2, V1)
    found = verdict(workload(V1, V2), now, own_releases=(release(V1, now, V1),))
    assert isinstance(found, Refresh)
    assert (found.source.uid, found.source.version, found.source.fingerprint) == (now.source.uid, V1, V2)
    refreshed = (release(V1, now, V2),)
    assert classify(workload(V1, V2), refreshed, [now], released_at=NOW, governed_since=LONG_AGO) is None, (
        "it is refreshed once"
    )


@pytest.mark.parametrize(
    ("target", "revisions", "own_releases"),
    [
        pytest.param(workload(), [revision()], (), id="gated release"),
        pytest.param(workload(V2, V2), [revision(), revision(V2, number=2)], (), id="second gated release"),
        pytest.param(
            workload(V2, V2), [revision()], (release(V1, revision()),), id="controller has not seen the template"
        ),
        pytest.param(workload(V1, V2), [revision()], (release(V1, revision()),), id="no revision has the template"),
        pytest.param(workload(V1, V2), [], (), id="no revision yet"),
        pytest.param(workload(V1, V2), [revision(V2, V1)], (), id="only one revision has the version"),
        pytest.param(
            workload(V1, V1),
            [revision(uid="recreated")],
            (release(V1, revision(V3, uid="gone")),),
            id="own revision created again",
        ),
        pytest.param(workload("", ""), [revision("", "")], (), id="template without fingerprint"),
        pytest.param(
            workload(V1, V2),
            [revision(V2, V1), revision(V3, V3, number=2)],
            (),
            id="other template with another version",
        ),
        pytest.param(
            workload(V1, V2),
            [revision(V2, V1), revision(V2, V1, number=2)],
            (),
            id="two revisions of one template after a hash collision",
        ),
        pytest.param(
            workload(V1, V2), [revision(V3, V1), revision(V2, "", number=2)], (), id="template without the version"
        ),
    ],
)
def test_gated_release_is_not_ungated(
    target: Workload, revisions: list[Revision], own_releases: tuple[Release, ...]
) -> None:
    assert verdict(target, *revisions, own_releases=own_releases) is None


@pytest.mark.parametrize(
    ("released", "created", "since"),
    [
        pytest.param(LONG_AGO, LONG_AGO, NOW, id="released and revision created before"),
        pytest.param(LONG_AGO, LATER, NOW, id="revision created after"),
        pytest.param(LATER, LONG_AGO, NOW, id="released after, revision created before"),
        pytest.param(NOW, NOW, NOW, id="same second"),
        pytest.param(None, LATER, NOW, id="release time unknown"),
        pytest.param(LATER, LATER, inf, id="governed since unknown"),
    ],
)
def test_release_possibly_older_than_governance_is_not_ungated(
    released: float | None, created: int, since: float
) -> None:
    for version in ("", "latest"):
        target = workload(version, V1)
        assert verdict(target, revision(V1, version, created=created), released=released, since=since) is None
    assert verdict(workload("", V1), revision(created=created), released=released, since=since) is None


# which revision is the present one


def test_present_revision_is_the_newest_with_the_template_of_the_workload() -> None:
    older, newer = revision(number=1, uid="a"), revision(number=3, uid="b")
    assert current_revision(workload(), [newer, older, revision(V2, number=9)]) is newer
    assert current_revision(workload(), [revision(V2)]) is None
    twins = [revision(uid="a", created=NOW), revision(uid="b", created=NOW + 1)]
    assert current_revision(workload(), twins) is twins[1]


def test_present_revision_is_the_one_that_the_controller_rolls_out() -> None:
    older, newer = revision(number=1, uid="a", name="sleep-a"), revision(number=3, uid="b")
    assert current_revision(workload(rolls_out="sleep-a"), [newer, older]) is older
    other = revision(V2, number=9, name="sleep-x")
    assert current_revision(workload(rolls_out="sleep-x"), [newer, other]) is newer


@pytest.mark.parametrize(
    ("version", "template", "source", "expected"),
    [
        (V1, V1, None, False),
        (V1, V2, None, True),
        ("", V1, None, True),
        (V1, "", None, False),
        (V1, V2, V2, False),
        (V1, V2, V1, True),
        (V1, V1, V2, True),
    ],
)
def test_workload_may_be_ungated_if_version_template_or_source_differ(
    version: str, template: str, source: str | None, expected: bool
) -> None:
    known = release(V1, revision(source)) if source is not None else None
    assert may_be_ungated(workload(version, template), known) is expected
    assert may_be_ungated(workload(version, template), release(V1) if known is None else known) is expected


# random histories


def of(content: int) -> str:
    return f"{content:032x}"


@dataclass
class World:
    """A workload, its controller, the gatekeeper, and the part of the reconciler that handles ungated releases.
    Templates are numbers. An upgrade of the API server changes the fingerprints of all of them."""

    content: int = 0
    carried: str = of(0)
    version: str = of(0)
    shift: int = 0
    numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    releases: dict[str, Release] = field(default_factory=dict)

    def do(self, action: str, content: int) -> None:
        past = sorted(self.numbers, key=lambda key: self.numbers[key])
        undone = past[content % len(past)] if past else None
        match action:
            case "release":
                if content != self.content:
                    self.content, self.carried = content, of(content + self.shift)
                    self.version = self.carried
            case "set image ungated" if any(carried == self.carried for _, carried in past):
                self.content = content
            case "replace ungated":
                self.content, self.carried, self.version = content, "", ""
            case "undo ungated" if undone is not None:
                self.content, self.carried = undone
            case "upgrade":
                self.shift += 1000
            case "control":
                self.control()
            case _:
                pass

    def control(self) -> None:
        key = self.content, self.carried
        newest = max(self.numbers.values(), default=0)
        if self.numbers.get(key) != newest or not newest:
            self.numbers[key] = newest + 1

    @property
    def revisions(self) -> list[Revision]:
        return [
            revision(of(content + self.shift), carried, number=number, uid=f"{content}-{carried}")
            for (content, carried), number in self.numbers.items()
        ]

    @property
    def workload(self) -> Workload:
        return workload(self.version, of(self.content + self.shift))

    def follow_up(self) -> Found:
        """One pass of the reconciler."""
        target, revisions = self.workload, self.revisions
        found: Found = None
        if may_be_ungated(target, self.releases.get(self.version)):
            known = tuple(self.releases.values())
            found = classify(target, known, revisions, released_at=NOW, governed_since=LONG_AGO)
        match found:
            case UngatedRelease(version) | Restore(version):
                self.version = version
            case Refresh(source):
                self.releases[self.version] = release_of(self.version, source)
            case None:
                now = current_revision(target, revisions)
                if now is not None and self.version and self.version not in self.releases:
                    self.releases[self.version] = release_of(self.version, now.source)
        return found


def release_of(version: str, source: SourceRef) -> Release:
    held: Any = msgspec.structs.replace(source, version=version)
    made = builders.release(version, ChangeWorkloadStatus(status="Success", source=held))
    return projection.read(msgspec.json.encode(made))


gated_actions = st.sampled_from(["release", "control"])
ungated_actions = st.sampled_from(["set image ungated", "replace ungated", "undo ungated"])
contents = st.integers(0, 4)


@given(st.lists(st.tuples(gated_actions | st.sampled_from(["upgrade", "look"]), contents), max_size=25))
def test_gated_releases_are_never_recognised_as_ungated(history: list[tuple[str, int]]) -> None:
    world = World()
    for action, content in history:
        world.do(action, content)
        if action in ("upgrade", "look"):
            world.control()
            assert not isinstance(world.follow_up(), UngatedRelease | Restore)


@given(st.lists(st.tuples(gated_actions | ungated_actions, contents), max_size=25))
def test_every_release_finally_has_the_version_of_its_template(history: list[tuple[str, int]]) -> None:
    world = World()
    world.control()
    world.follow_up()
    for action, content in history:
        world.do(action, content)
        world.control()
        world.follow_up()  # a release that is replaced before the reconciler sees it is not stored
        world.follow_up()
    world.control()
    world.follow_up()
    assert world.version == of(world.content)
    world.follow_up()
    assert world.follow_up() is None, "nothing is left to do"
