"""Random stories of release gates: what gatekeepers admit and deny is what the rules say, whatever happens before."""

import copy
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from altershield.api import labels, released_by
from altershield.api.policy import Mode
from altershield.api.resources import RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_OVERRIDES, RELEASE_WINDOWS
from altershield.api.selectors import Selector
from gatekeeper.response import Answer
from kube_base.resources import Resource
from kube_base.times import rfc3339, unix
from tests.support import workloads
from tests.support.random_runs import random_runs

from . import oracle
from .oracle import Asked, Verdict
from .settled import Settled
from .stories import DAY, HOUR, PLACES, STARTS, TEAMS, Gate, Release, allows, gates, limits, releases
from .world import KINDS, NAMESPACES_OF_TENANTS, Object, Workload, World, own_labels

RESTARTED = "kubectl.kubernetes.io/restartedAt"
DAYS = 45
"""The stories are so long."""


class Gates(RuleBasedStateMachine):
    @initialize(
        several=st.lists(gates, min_size=1, max_size=6)
        | st.lists(allows, min_size=2, max_size=4)
        | st.lists(limits, min_size=1, max_size=2),
        start=st.sampled_from(STARTS),
        errors=st.sampled_from([(0.0, 0.0), (-15.0, 15.0), (0.0, 30.0)]),
    )
    def begin(self, several: list[Gate], start: int, errors: tuple[float, float]) -> None:
        self.world = World(start, errors)
        self.images = 0
        self.settled = Settled(self.world)
        self.admitted: dict[str, list[float]] = {}
        """When each limit admitted releases, by its uid."""
        self.unsure_until = 0.0
        """Before this time, nobody counted what gatekeepers admitted."""
        for namespace, name in PLACES[1:]:
            self._released(namespace, name)
        self.world.pass_time(60.0)
        self._write(several)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()

    # gates

    @rule(several=st.lists(gates, min_size=1, max_size=4))
    def write(self, several: list[Gate]) -> None:
        self._write(several)

    def _write(self, several: list[Gate]) -> None:
        """Create gates, or edit windows; others are created in place of those of their name."""
        for gate in several:
            resource, obj = gate(self.world.now)
            if resource is not RELEASE_WINDOWS:
                self.world.api.delete(resource, obj.metadata.namespace, obj.metadata.name)
            self.world.api.put(resource, obj)

    @rule(
        resource=st.sampled_from((RELEASE_WINDOWS, RELEASE_FREEZES, RELEASE_FREEZES, RELEASE_LIMITS)),
        which=st.integers(0, 7),
        end=st.booleans(),
    )
    def remove(self, resource: Resource, which: int, end: bool) -> None:
        """Delete a gate, or end a freeze."""
        found = self.world.api.of(resource)
        if not found:
            return
        gate = found[which % len(found)]
        if not end or resource is not RELEASE_FREEZES:
            self.world.api.delete(resource, gate.metadata.namespace, gate.metadata.name)
            return
        until = max(self.world.now, unix(gate.spec.from_ or None))
        spec = msgspec.structs.replace(gate.spec, until=rfc3339(until), ended_by="ann")
        self.world.api.put(RELEASE_FREEZES, msgspec.structs.replace(gate, spec=spec))

    # time, caches and faults

    @rule(seconds=st.sampled_from([None, None, 1.0, 31.0, 90.0, 600.0, HOUR, 5.5 * HOUR, DAY, 3 * DAY, 36 * DAY]))
    def wait(self, seconds: float | None) -> None:
        """Time passes; None: until an edge of a gate, or some seconds less."""
        world, end = self.world, self.world.start + DAYS * DAY
        if seconds is None:
            edges = [unix(each.status.next_transition_time or None) for each in world.api.of(RELEASE_WINDOWS)]
            freezes = world.api.of(RELEASE_FREEZES)
            edges += [unix(at) for each in freezes for at in (each.spec.from_, each.spec.until) if at]
            for limit in world.api.of(RELEASE_LIMITS):
                periods = (limit.spec.quiet_seconds, limit.spec.rate.period_seconds if limit.spec.rate else None)
                edges += [each.at + period + 1 for each in world.begun for period in periods if period]
            edge = min((each for each in edges if each > world.now), default=world.now)
            seconds = edge - world.now - (20.0 if int(edge) // 60 % 2 else 0.0)
        if seconds > 0 and world.now + seconds < end:
            world.process_all()
            world.settle()
            self.what_the_reconcilers_have_written_is_right()
            world.pass_time(seconds)
        if world.away:
            self.unsure_until = world.now

    @rule(which=st.integers(0, 2), kinds=st.sets(st.sampled_from([each.plural for each in KINDS])))
    def follow(self, which: int, kinds: set[str]) -> None:
        """Some caches of a gatekeeper come up to date, or all that is on its way arrives."""
        if which == 2:
            self.world.settle()
        else:
            self.world.gatekeepers[which].watching.follow(sorted(kinds))

    @rule(what=st.sampled_from(["away", "back", "kill", "kill"]), writes=st.integers(0, 3), after=st.booleans())
    def disturb(self, what: str, writes: int, after: bool) -> None:
        """The reconcilers stop, another process begins, or they are killed before or after one of their next
        writes."""
        world = self.world
        if what == "kill":
            world.api.writes_left, world.api.after = writes, after
            world.settle()
            world.api.writes_left = None
            return
        world.away = what == "away"
        if not world.away:
            world.reconcilers.start()

    # releases

    def _template(self, name: str) -> Object:
        self.images += 1
        return workloads.template(name, f"image-{self.images}")

    def _released(self, namespace: str, name: str) -> None:
        """A workload as it was before the story."""
        world = self.world
        workload = world.workloads[namespace, name] = Workload(namespace, name)
        template = self._template(name)
        stamped, answer = world.send(
            world.gatekeepers[0], world.manifest(workload, template, {"team": "a"}), None, dry_run=False
        )
        assert answer.denial is None
        self._stored(workload, stamped, None, template, "Create")
        world.process(workload)
        world.succeed(workload)

    @rule(several=st.lists(releases, min_size=1, max_size=5))
    def release(self, several: list[Release]) -> None:
        """Releases, or creations where there is no workload. They may change labels in the same request."""
        self._releases(several)

    def _releases(self, several: list[Release]) -> None:
        for each in several:
            self._release(each)

    @rule(several=st.lists(releases, min_size=2, max_size=5))
    def release_more(self, several: list[Release]) -> None:
        """A rule of its own, so that there are more of them."""
        self._releases(several)

    @rule(which=st.integers(0, 1), number=st.integers(2, 5))
    def release_at_once(self, which: int, number: int) -> None:
        """Several releases by one gatekeeper, before anybody counts them."""
        for each in range(number):
            place = PLACES[1 + each % 3]
            self._release(Release(place, which, "new", None, repairs=False, mode=Mode.ENFORCE, then="", quiet=False))

    @rule(place=st.sampled_from(PLACES[1:]), which=st.integers(0, 1))
    def go_back_and_forth(self, place: tuple[str, str], which: int) -> None:
        """A version that was left is released again, and left again."""
        for what in ("new", "back", "left", "back"):
            self._release(
                Release(place, which, what, None, repairs=False, mode=Mode.ENFORCE, then="succeed", quiet=True)
            )

    def _release(self, each: Release) -> None:
        world, gatekeeper = self.world, self.world.gatekeepers[each.gatekeeper]
        if each.quiet:
            world.process_all()
            world.settle()
            self.what_the_reconcilers_have_written_is_right()
        workload = world.workloads.get(each.place) or Workload(*each.place)
        old = world.stored(workload)
        if old is None:
            workload = Workload(*each.place)
        template = self._wanted(workload, old, each.what)
        if template is None:
            return
        before = own_labels(old) if old is not None else {}
        own = before if each.own is None else {"app": workload.name, **each.own}
        new = world.manifest(workload, template, own)
        if each.repairs and old is not None and labels.SUSPEND in old["metadata"]["labels"]:
            new["metadata"]["labels"][labels.IGNORED_SUSPEND] = "true"
        kind = "Create" if old is None else _kind(template, workload.templates[workload.present])
        if self._ask(workload, new, old, template, gatekeeper, kind):
            workload.mode = each.mode
            self._go_on(workload, each.then, quiet=each.quiet)

    def _go_on(self, workload: Workload, what: str, *, quiet: bool = False) -> None:
        """The release gets its ChangeWorkload, succeeds or fails."""
        if what:
            self.world.process(workload)
        if quiet:
            self.world.settle()
            self.what_the_reconcilers_have_written_is_right()
        if what in ("succeed", "fail"):
            (self.world.succeed if what == "succeed" else self.world.fail)(workload)

    def _wanted(self, workload: Workload, old: Object | None, what: str) -> Object | None:
        """The template of the release; None: there is no such version."""
        if old is None or what == "new":
            return self._template(workload.name)
        if what == "restart":
            self.images += 1
            template = copy.deepcopy(workload.templates[workload.present])
            template["metadata"]["annotations"] = {RESTARTED: str(self.images)}
            return template
        left = next((each for each in workload.templates if each in workload.left), "")
        version = workload.before if what == "back" else left
        return workload.templates.get(version or "") if version != workload.present else None

    @rule(place=st.sampled_from(PLACES), what=st.sampled_from(["relabel", "delete", "process", "succeed", "fail"]),
          which=st.integers(0, 1), own=st.sampled_from(TEAMS))  # fmt: skip
    def change(self, place: tuple[str, str], what: str, which: int, own: dict[str, str]) -> None:
        """What happens to a workload beside its releases."""
        world, workload = self.world, self.world.workloads.get(place)
        old = world.stored(workload) if workload is not None else None
        if workload is None or old is None:
            return
        if what == "relabel":  # nothing is released, so it is always admitted
            new = world.manifest(workload, workload.templates[workload.present], {"app": workload.name, **own})
            new["spec"] = copy.deepcopy(old["spec"])
            stamped, answer = world.send(world.gatekeepers[which], new, old, dry_run=False)
            assert answer.denial is None
            world.store(workload, stamped)
        elif what == "delete":
            world.delete(world.workloads.pop(place))
        else:
            self._go_on(workload, what)

    def _ask(
        self, workload: Workload, new: Object, old: Object | None, template: Object, gatekeeper: Any, kind: str
    ) -> bool:
        """Ask a gatekeeper, without an effect and then in earnest. Whether it admits the release."""
        world = self.world
        before = self._traces(gatekeeper)
        stamped, dry = world.send(gatekeeper, new, old, dry_run=True)
        assert self._traces(gatekeeper) == before, "a dry run leaves a trace"
        version = stamped["metadata"]["labels"][labels.VERSION]
        asked = self._asked(workload, stamped, old, version, kind)
        view, now = world.view(gatekeeper), gatekeeper.now
        found = oracle.verdict(asked, view, now)
        late = gatekeeper.watching.is_late
        uses = {self._place(each): each.status.uses for each in world.api.of(RELEASE_OVERRIDES)}
        stamped, real = world.send(gatekeeper, new, old, dry_run=False)
        if not late:
            assert (real.denial is None) is (dry.denial is None), "a dry run has another answer"
        suspended = old is not None and labels.SUSPEND in old["metadata"]["labels"] and not asked.repairs
        self._judge(workload, asked, view, found, dry, now, suspended=suspended)
        if real.denial is not None:
            return False
        self._check_uses(uses, asked)
        back = self._is_back(workload, asked) or workload.before is None
        if not (back or suspended or "override" in real.audit):
            self._count_admitted(asked, view)
        for limit in view.limits if old is not None else ():  # the one of a creation has no uid yet
            if oracle.selects(limit, asked):
                gatekeeper.admitted.setdefault(limit.metadata.uid, []).append((now, asked.workload, asked.version))
        self._stored(workload, stamped, old, template, kind)
        return True

    def _asked(self, workload: Workload, new: Object, old: Object | None, version: str, kind: str) -> Asked:
        found = [own_labels(each) for each in (old, new) if each is not None]
        if workload.last_labels and old is not None:
            found.append(workload.last_labels)
        release = self.world.present(workload)
        succeeded = release is not None and release.status.status == "Success"
        return Asked(
            workload.named,
            NAMESPACES_OF_TENANTS[workload.namespace],
            tuple(found),
            kind,
            version,
            workload.uid,
            repairs=labels.IGNORED_SUSPEND in new["metadata"]["labels"] and release is not None,
            succeeded=release.status.entry_time_unix if succeeded else 0.0,
        )

    def _traces(self, gatekeeper: Any) -> tuple[Any, ...]:
        recent = gatekeeper.listers.admissions.recent(gatekeeper.now)
        return dict(self.world.api.versions), {place: list(each) for place, each in recent.items()}

    @staticmethod
    def _place(obj: Any) -> tuple[str, str]:
        return obj.metadata.namespace, obj.metadata.name

    def _judge(
        self, workload: Workload, asked: Asked, view: oracle.View, found: Verdict, answer: Answer, now: float, *,
        suspended: bool,
    ) -> None:  # fmt: skip
        """Whether the answer is what the rules say."""
        admits = answer.denial is None
        back = self._is_back(workload, asked)
        if suspended:
            assert not admits, "a suspension is passed"
            return
        text = answer.denial.message if answer.denial is not None else ""
        if self.world.is_late and (asked.version in workload.templates or text.endswith("is suspended")):
            return  # the gatekeeper does not know yet which version was before, or that a failure is repaired
        if back:
            assert admits, f"going back is denied: {answer.denial}"
            return
        if workload.before is None and asked.version in workload.passed:
            return
        closed = bool(found.closed or found.allows)
        overridden = oracle.all_passed(found, view.overrides, asked, now)
        if admits:
            assert not closed or overridden, f"it is admitted, and closed are {found}"
            return
        assert closed or found.perhaps, f"it is denied, and all is open: {answer.denial}"
        if not found.perhaps:
            assert not overridden, f"an override passes {found}, and it is denied: {answer.denial}"
        self._check_causes(found, answer)
        self._check_opening(asked, view, answer, now)

    @staticmethod
    def _is_back(workload: Workload, asked: Asked) -> bool:
        return asked.version == workload.before and asked.version not in workload.left

    @staticmethod
    def _check_causes(found: Verdict, answer: Answer) -> None:
        """The denial names each closed gate, and no other one."""
        assert answer.denial is not None
        named = {(each.reason, *each.field.split("/")) for each in answer.denial.causes if each.field}
        allows: set[Any] = set().union(*found.allows.values())
        assert named <= found.closed | allows | found.perhaps, f"{named} {found}"
        if len(named) < 8:  # more are not listed
            assert found.closed <= named, f"{named} {found}"
            for each in found.allows.values():
                assert len(each & named) == 1, f"{named} {found}"

    def _check_opening(self, asked: Asked, view: oracle.View, answer: Answer, now: float) -> None:
        """It opens at the time that the denial names, and not before."""
        assert answer.denial is not None
        time = next((unix(each.message) for each in answer.denial.causes if each.reason == "OpensAt"), 0.0)
        if not time or view.limits or not view.windows + view.freezes:
            return
        known = [unix(each.status.computed_until or None) for each in view.windows if each.status.accepted]
        if time >= min(known, default=time + 1):
            return
        at_time = oracle.verdict(asked, view, time)
        closed = at_time.closed or at_time.allows
        assert not closed, f"it is closed at {rfc3339(time)}: {at_time}"
        for part in range(10):
            at = now + (time - now) * part / 10
            earlier = oracle.verdict(asked, view, at)
            assert earlier.closed or earlier.allows, f"it is open at {rfc3339(at)} already, before {rfc3339(time)}"

    def _count_admitted(self, asked: Asked, view: oracle.View) -> None:
        """Two gatekeepers admit no more than twice what a limit says."""
        now = self.world.now
        for limit in view.limits:
            rate, own = limit.spec.rate, limit.metadata
            if rate is None or limit.spec.mode != "enforce" or not oracle.selects(limit, asked):
                continue
            times = self.admitted.setdefault(own.uid, [])
            times.append(now)
            begin = max(now - rate.period_seconds + oracle.CLOCKS, self.unsure_until)
            if limit.spec.selector == Selector():  # a label that changes in the request changes what counts
                assert sum(at > begin for at in times) <= 2 * rate.releases, f"{times} {rate}"

    def _check_uses(self, before: dict[tuple[str, str], Any], asked: Asked) -> None:
        """What passed a closed gate is recorded, and no use more."""
        for each in self.world.api.of(RELEASE_OVERRIDES):
            new = each.status.uses[len(before[self._place(each)]) :]
            assert len(new) <= 1
            assert all((use.uid, use.version) == (asked.uid, asked.version) for use in new)

    def _stored(self, workload: Workload, stamped: Object, old: Object | None, template: Object, kind: str) -> None:
        """A release was admitted."""
        world, version = self.world, stamped["metadata"]["labels"][labels.VERSION]
        if old is None:
            world.workloads[workload.namespace, workload.name] = workload
        release = world.present(workload) if old is not None else None
        succeeded = release is not None and release.status.status == "Success"
        if old is not None:
            is_back = version == workload.before and version not in workload.left
            if is_back:
                workload.left.add(workload.present)
            if succeeded:
                workload.before = workload.present
            elif is_back or workload.before in workload.left:
                workload.before = None
        workload.present = version
        workload.templates[version] = template
        workload.created = old is None or (workload.created and release is None)
        recorded = released_by.read(stamped["metadata"]["annotations"][released_by.ANNOTATION])
        workload.last_labels = recorded.labels if recorded is not None else {}
        world.store(workload, stamped)

    # what has to hold

    @invariant()
    def overrides_are_not_used_more_often_than_they_say(self) -> None:
        for each in self.world.api.of(RELEASE_OVERRIDES):
            uses = [(use.uid, use.version) for use in each.status.uses]
            assert len(uses) == len(set(uses)) <= each.spec.uses

    @invariant()
    def what_the_reconcilers_have_written_is_right(self) -> None:
        if not self.world.away and not self.world.reconcilers.watching.is_late:
            self.settled.check()


def _kind(new: Object, old: Object) -> str:
    """A release that changes nothing but the time of a restart is one."""
    found = []
    for each in (new, old):
        metadata = {key: value for key, value in each["metadata"].items() if key != "annotations"}
        found.append({**each, "metadata": metadata})
    return "Restart" if found[0] == found[1] else "Update"


Gates.TestCase.settings = random_runs(90, steps=30)
TestGates = Gates.TestCase
