"""The entries of configurations whose rules select a request."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from kube_sandbox.apiserver.admission.webhooks import match
from kube_sandbox.apiserver.attributes import Attributes, Object

T = TypeVar("T")


class Candidates(Generic[T]):
    """Selects entries by the resource and the operation of a request. The result is kept until the stored objects
    change: most rules select few resources, and each write would compare all of them.

    `lists` returns the stored objects of each kind, `entries` makes the entries from these lists, and `rules` returns
    the rules of an entry."""

    def __init__(
        self,
        lists: Callable[[], Sequence[Sequence[Object]]],
        entries: Callable[..., Iterable[T]],
        rules: Callable[[T], Sequence[Object]],
    ) -> None:
        self._lists = lists
        self._make = entries
        self._rules = rules
        self._stored: Sequence[Sequence[Object]] = ()
        self._entries: Sequence[T] = ()
        self._found: dict[tuple[str, ...], list[T]] = {}

    def of(self, attributes: Attributes) -> Sequence[T]:
        """The entries with a rule that selects the request in any version, in the order of `entries`."""
        stored = self._lists()
        if stored != self._stored:  # fast for the same objects; a stored object is replaced, never changed
            self._stored, self._entries, self._found = stored, list(self._make(*stored)), {}
        key = (attributes.group, attributes.plural, attributes.subresource, attributes.operation)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = [each for each in self._entries if self._selects(each, attributes)]
        return found

    def _selects(self, entry: T, attributes: Attributes) -> bool:
        return any(
            match.has_resource(pattern, attributes)
            for rule in match.rules_for(self._rules(entry), attributes)
            for pattern in rule.get("resources") or ()
        )
