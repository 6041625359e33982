"""Chooses the scripted fault of a call."""

from collections import Counter
from fnmatch import fnmatchcase

from kube_sandbox.altershield_server import chance
from kube_sandbox.altershield_server.script import Fault, Script
from kube_sandbox.altershield_server.vocabulary import Call

_KEPT = 100_000


class _Uses:
    def __init__(self, fault: Fault) -> None:
        self.fault = fault  # keeps the object, so that its id is not used again
        self.calls = 0
        self.failed = 0


class Faults:
    def __init__(self) -> None:
        self._uses: dict[int, _Uses] = {}
        self._attempts: Counter[tuple[Call, str, int | None]] = Counter()

    def choose(self, script: Script, call: Call, order: str, batch: int | None) -> Fault | None:
        """The fault that applies to this call, or None. `share` is decided by the order, the batch, and how often this
        call was made for them."""
        self._uses = {id(fault): self._uses.get(id(fault)) or _Uses(fault) for fault in script.faults}
        if len(self._attempts) > _KEPT:
            self._attempts.clear()
        self._attempts[call, order, batch] += 1
        attempt = self._attempts[call, order, batch]
        for index, fault in enumerate(script.faults):
            if (fault.calls and call not in fault.calls) or not fnmatchcase(order, fault.order):
                continue
            uses = self._uses[id(fault)]
            uses.calls += 1
            if uses.calls <= fault.skip or (fault.times is not None and uses.failed >= fault.times):
                continue
            if chance.happens(fault.share, script.seed, "fault", index, call, order, batch, attempt):
                uses.failed += 1
                return fault
        return None
