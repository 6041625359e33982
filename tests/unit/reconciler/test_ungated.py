"""Which ungated releases, and that none of the others is ever taken for one."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.kinds import ChangeWorkloadStatus, SourceRef
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload
from reconciler.releases import projection
from reconciler.releases.projection import Release
from reconciler.releases.ungated import (
    Refresh,
    Restore,
    Revision,
    UngatedReason,
    UngatedRelease,
    classify,
    may_be_ungated,
    present,
)

from . import builders
from .builders import NOW, V1, V2, V3

LONG_AGO, LATER = NOW - 3600, NOW + 3600
KINDS = sorted(BY_KIND)
each_kind = pytest.mark.parametrize("kind", KINDS)
Found = UngatedRelease | Restore | Refresh | None


def workload(version: str = V1, template: str = V1, *, kind: str = "Deployment", rolls_out: str = "") -> Workload:
    """At this template, which says nothing of its version."""
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
    """The template in it carries its own version, unless `carried` is given."""
    uid = uid or f"revision-{number}"
    version = template if carried is None else carried
    return Revision(SourceRef("ReplicaSet", name or f"sleep-{uid}", uid, version, template), created, number)


def release(version: str = V1, source: Revision | None = None, shown: str = "") -> Release:
    """`shown`: the fingerprint that the API server gave its template then."""
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
    all_releases: tuple[Release, ...] = (),
    released: float | None = NOW,
    since: float = LONG_AGO,
) -> Found:
    """What the controller makes of it."""
    own = next((each for each in all_releases if each.metadata.name.endswith(target.version or "-")), None)
    if not may_be_ungated(target, own):
        return None
    return classify(target, all_releases, revisions, released_at=released, governed_since=since)


# what ungated


@each_kind
def test_a_version_that_another_template_has(kind: str) -> None:
    first, second = revision(V1), revision(V2, V1, number=2)
    ungated = verdict(workload(V1, V2, kind=kind), first, second, all_releases=(release(V1, first),))

    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V2, UngatedReason.VERSION_REUSED)
    assert "sleep-revision-2 (revision 2)" in ungated.message
    assert f"still has the version {V1} of an earlier release" in ungated.message


def test_a_version_that_another_template_has_whose_record_is_gone() -> None:
    ungated = verdict(workload(V1, V2), revision(V1, V1), revision(V2, V1, number=2))
    assert isinstance(ungated, UngatedRelease)
    ungated = verdict(workload(V1, V2), revision(V1, V1), revision(V2, V1, number=2), all_releases=(release(V1),))
    assert isinstance(ungated, UngatedRelease), "or not begun"


@each_kind
def test_no_version_at_all(kind: str) -> None:
    ungated = verdict(workload("", V1, kind=kind), revision(V1, ""))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V1, UngatedReason.NO_VERSION)
    assert "its pod template has no version" in ungated.message


def test_no_version_after_releases_that_had_one() -> None:
    """`kubectl replace` with the gate away."""
    first, second = revision(V1), revision(V2, "", number=2)
    ungated = verdict(workload("", V2), first, second, all_releases=(release(V1, first),))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V2, UngatedReason.NO_VERSION)


def test_a_label_that_is_no_version_counts_as_none() -> None:
    ungated = verdict(workload("latest", V1), revision(V1, "latest"))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V1, UngatedReason.NO_VERSION)


def test_an_undo_that_no_gate_saw_gets_its_old_version() -> None:
    first, second = revision(V1, number=3), revision(V2, number=2)
    ungated = verdict(workload(V2, V1), first, second, all_releases=(release(V1, first), release(V2, second)))
    assert isinstance(ungated, UngatedRelease)
    assert (ungated.version, ungated.reason) == (V1, UngatedReason.VERSION_REUSED)


def test_an_old_template_keeps_the_version_that_it_was_recorded_as() -> None:
    """Its fingerprint is another one since the API server has other defaults."""
    first, second = revision(V3, V1, number=3), revision(V2, number=2)
    ungated = verdict(workload(V2, V3), first, second, all_releases=(release(V1, first, V1), release(V2, second)))
    assert isinstance(ungated, UngatedRelease)
    assert ungated.version == V1


def test_what_was_interrupted_goes_on_with_the_same_message() -> None:
    first, second = revision(V1), revision(V2, V1, number=2)
    before = verdict(workload(V1, V2), first, second, all_releases=(release(V1, first),))
    between = verdict(workload(V1, V2), first, second, all_releases=(release(V1, first), release(V2, second)))
    after = verdict(workload(V2, V2), first, second, all_releases=(release(V1, first), release(V2, second)))
    assert before is not None
    assert (between, after) == (before, None)


def test_a_template_on_record_as_another_version_ungated_also_where_its_own_is_not_begun() -> None:
    """Two releases past the gate, the second one before the first was on record."""
    first, second = revision(V1), revision(V2, V1, number=2)
    ungated = verdict(workload(V2, V1), first, second, all_releases=(release(V1, first), release(V2)))
    assert isinstance(ungated, UngatedRelease)
    assert ungated.version == V1


# what did not


def test_a_workload_that_lost_the_label_of_its_version_gets_it_back() -> None:
    first = revision(V1)
    for lost in ("", "latest"):
        assert verdict(workload(lost, V1), first, all_releases=(release(V1, first),)) == Restore(V1)


def test_a_template_that_an_api_server_shows_otherwise_than_before_is_no_release() -> None:
    now = revision(V2, V1)
    found = verdict(workload(V1, V2), now, all_releases=(release(V1, now, V1),))
    assert isinstance(found, Refresh)
    assert (found.source.uid, found.source.version, found.source.fingerprint) == (now.source.uid, V1, V2)
    told = (release(V1, now, V2),)
    assert classify(workload(V1, V2), told, [now], released_at=NOW, governed_since=LONG_AGO) is None, "once"


@pytest.mark.parametrize(
    ("target", "revisions", "all_releases"),
    [
        pytest.param(workload(), [revision()], (), id="a release"),
        pytest.param(workload(V2, V2), [revision(), revision(V2, number=2)], (), id="another one"),
        pytest.param(workload(V2, V2), [revision()], (release(V1, revision()),), id="its controller has yet to see it"),
        pytest.param(workload(V1, V2), [revision()], (release(V1, revision()),), id="no revision holds its template"),
        pytest.param(workload(V1, V2), [], (), id="no revision yet"),
        pytest.param(workload(V1, V2), [revision(V2, V1)], (), id="a lone version is believed"),
        pytest.param(
            workload(V1, V1), [revision(uid="anew")], (release(V1, revision(V3, uid="gone")),), id="its own, made anew"
        ),
        pytest.param(workload("", ""), [revision("", "")], (), id="no canonical form"),
        pytest.param(
            workload(V1, V2), [revision(V2, V1), revision(V3, V3, number=2)], (), id="another template, another version"
        ),
        pytest.param(
            workload(V1, V2), [revision(V2, V1), revision(V2, V1, number=2)], (), id="twins by a collision of hashes"
        ),
        pytest.param(
            workload(V1, V2), [revision(V3, V1), revision(V2, "", number=2)], (), id="a version it does not carry"
        ),
    ],
)
def test_what_is_no_slip(target: Workload, revisions: list[Revision], all_releases: tuple[Release, ...]) -> None:
    assert verdict(target, *revisions, all_releases=all_releases) is None


@pytest.mark.parametrize(
    ("released", "created", "since"),
    [
        pytest.param(LONG_AGO, LONG_AGO, NOW, id="all of it before the gate"),
        pytest.param(LONG_AGO, LATER, NOW, id="its revision was made, or made again, after"),
        pytest.param(LATER, LONG_AGO, NOW, id="its template was written again as it was"),
        pytest.param(NOW, NOW, NOW, id="in the same second"),
        pytest.param(None, LATER, NOW, id="nobody knows when it was released"),
        pytest.param(LATER, LATER, inf, id="nobody knows since when the gate is there"),
    ],
)
def test_what_may_be_from_before_the_gate_was_there_is_legal(
    released: float | None, created: int, since: float
) -> None:
    for version in ("", "latest"):
        target = workload(version, V1)
        assert verdict(target, revision(V1, version, created=created), released=released, since=since) is None
    assert verdict(workload("", V1), revision(created=created), released=released, since=since) is None


# which revision is the present one


def test_the_newest_with_the_workloads_template_is_present() -> None:
    older, newer = revision(number=1, uid="a"), revision(number=3, uid="b")
    assert present(workload(), [newer, older, revision(V2, number=9)]) is newer
    assert present(workload(), [revision(V2)]) is None
    twins = [revision(uid="a", created=NOW), revision(uid="b", created=NOW + 1)]
    assert present(workload(), twins) is twins[1]


def test_the_one_that_its_controller_rolls_out_goes_first() -> None:
    older, newer = revision(number=1, uid="a", name="sleep-a"), revision(number=3, uid="b")
    assert present(workload(rolls_out="sleep-a"), [newer, older]) is older
    other = revision(V2, number=9, name="sleep-x")
    assert present(workload(rolls_out="sleep-x"), [newer, other]) is newer


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
def test_when_it_pays_to_look_closer(version: str, template: str, source: str | None, expected: bool) -> None:
    known = release(V1, revision(source)) if source is not None else None
    assert may_be_ungated(workload(version, template), known) is expected
    assert may_be_ungated(workload(version, template), release(V1) if known is None else known) is expected


# any history


def of(content: int) -> str:
    return f"{content:032x}"


@dataclass
class World:
    """A workload, its controller, the gate, and the reconciler as far as it versions what ungated. Templates are
    numbers; an upgrade of the API server shows all of them otherwise."""

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
            case "set image past the gate" if any(carried == self.carried for _, carried in past):
                self.content = content
            case "replace past the gate":
                self.content, self.carried, self.version = content, "", ""
            case "undo past the gate" if undone is not None:
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
        """What the reconciler does."""
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
                now = present(target, revisions)
                if now is not None and self.version and self.version not in self.releases:
                    self.releases[self.version] = release_of(self.version, now.source)
        return found


def release_of(version: str, source: SourceRef) -> Release:
    held: Any = msgspec.structs.replace(source, version=version)
    made = builders.release(version, ChangeWorkloadStatus(status="Success", source=held))
    return projection.read(msgspec.json.encode(made))


by_the_gate = st.sampled_from(["release", "control"])
past_the_gate = st.sampled_from(["set image past the gate", "replace past the gate", "undo past the gate"])
contents = st.integers(0, 4)


@given(st.lists(st.tuples(by_the_gate | st.sampled_from(["upgrade", "look"]), contents), max_size=25))
def test_what_passed_the_gate_never_ungated(history: list[tuple[str, int]]) -> None:
    world = World()
    for action, content in history:
        world.do(action, content)
        if action in ("upgrade", "look"):
            world.control()
            assert not isinstance(world.follow_up(), UngatedRelease | Restore)


@given(st.lists(st.tuples(by_the_gate | past_the_gate, contents), max_size=25))
def test_in_the_end_every_release_has_the_version_of_its_template(history: list[tuple[str, int]]) -> None:
    world = World()
    world.control()
    world.follow_up()
    for action, content in history:
        world.do(action, content)
        world.control()
        world.follow_up()  # a release that nobody looked at before the next one is not on record: nothing tells of it
        world.follow_up()
    world.control()
    world.follow_up()
    assert world.version == of(world.content)
    world.follow_up()
    assert world.follow_up() is None, "once"
