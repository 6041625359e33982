"""The batches of one release, and the newest batch of each of its pods. Without I/O."""

from collections.abc import Iterable

from altershield.api.pod_verdicts import Verdict
from reconciler.cluster.batch import Batch, Member


class Membership:
    """A batch of a pod, and the pod's entry in it."""

    __slots__ = ("batch", "member")

    def __init__(self, batch: Batch, member: Member) -> None:
        self.batch = batch
        self.member = member

    @property
    def fails(self) -> bool:
        """Whether the explicit verdict fails the pod."""
        return bool(self.member.verdict) and self.member.verdict != Verdict.PASS


class Memberships:
    """`highest_batch`: the highest number of its ChangePods, including those that a retry deleted."""

    def __init__(self, highest_batch: int) -> None:
        self.highest_batch = highest_batch
        self._batches: dict[str, Batch] = {}
        self._waiting: dict[str, Batch] = {}
        self._newest: dict[str, Membership] = {}  # by uid
        self._named: dict[str, Membership] = {}  # by pod name: batches without uids

    @property
    def batch_count(self) -> int:
        """The number of ChangePods."""
        return len(self._batches)

    def batches(self) -> Iterable[Batch]:
        """The ChangePods of the release."""
        return self._batches.values()

    def waiting_batches(self) -> Iterable[Batch]:
        """The ChangePods that wait for a person because a check has no result."""
        return self._waiting.values()

    def newest(self, uid: str) -> Membership | None:
        """The newest batch of the pod with this uid, or None."""
        return self._newest.get(uid)

    def giver(self, uid: str) -> str:
        """The `Giver` of the verdict that fails the pod with this uid; empty if no verdict fails it."""
        newest = self.newest(uid)
        return newest.batch.giver if newest is not None else ""

    def lacks_failing_batch(self, uid: str, *, by_health: bool) -> bool:
        """Whether the batch does not exist that failed the pod with this uid. `by_health`: our own health checks failed
        the pod, which may have passed in an earlier batch."""
        newest = self.newest(uid)
        return newest is None or (by_health and not newest.fails and not newest.member.overruled)

    def newest_named(self, name: str) -> Membership | None:
        """The newest batch that has a pod of this name without a uid, or None. An older release of AlterShield wrote
        such batches."""
        return self._named.get(name)

    def update_batch(self, batch: Batch) -> None:
        """Take over a new or changed batch, without its pods."""
        self._batches[batch.metadata.name] = batch
        self._waiting.pop(batch.metadata.name, None)
        if batch.why_waiting:
            self._waiting[batch.metadata.name] = batch
        self.highest_batch = max(self.highest_batch, batch.number)

    def add(self, uid: str, membership: Membership) -> bool:
        """Take over a pod of a batch. Returns whether this is its newest batch."""
        known = self._newest.get(uid)
        if known is not None and known.batch.number > membership.batch.number:
            return False
        self._newest[uid] = membership
        return True

    def add_named(self, membership: Membership) -> bool:
        """Take over a pod of a batch without uids. Returns whether this is its newest batch."""
        name = membership.member.pod
        known = self._named.get(name)
        if known is not None and known.batch.number > membership.batch.number:
            return False
        self._named[name] = membership
        return True
