"""The books of the releases that are at work, kept up to date by what the watches tell."""

from collections import OrderedDict
from collections.abc import Callable

from altershield.api.kinds import SourceRef
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from reconciler.batches.batch import Batch
from reconciler.caches import Caches, WorkloadKey, is_record_of
from reconciler.releases.book import Book
from reconciler.releases.health import Timing
from reconciler.releases.kept import Kept

_MAX_PODS = 50_000  # in books of releases at rest; those are made anew from the caches when they are needed
_SMALL = 100  # pods that are quickly looked through


class Books:
    def __init__(self, caches: Caches, timing: Timing, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._timing = timing
        self._clock = clock
        self._books: OrderedDict[WorkloadKey, Book] = OrderedDict()

    def open(self, key: WorkloadKey, workload: Workload, record: Kept, source: SourceRef) -> Book:
        """The book of a release, as of now."""
        now = self._clock()
        book = self._books.get(key)
        if book is None or not book.is_of(workload, record, source):
            book = Book(workload, record, source, self._caches, self._timing)
            for batch in self._caches.batches_of(record):
                if is_record_of(batch, record):
                    book.judge(batch)
                else:
                    book.highest = max(book.highest, batch.number)
            for pod in self._caches.pods_of(workload):
                book.put(pod, now)
            self._books[key] = book
        self._books.move_to_end(key)
        book.refresh(workload, now)
        return book

    def pod(self, key: WorkloadKey, pod: Pod, *, gone: bool) -> None:
        """A pod that seems to be the workload's came, changed or went."""
        book = self._books.get(key)
        if book is None:
            return
        if gone or not self._caches.owns(book.workload, pod):
            book.drop(pod.metadata.uid)
        else:
            book.put(pod, self._clock())

    def batch(self, key: WorkloadKey, batch: Batch, record: Kept, *, gone: bool) -> None:
        book = self._books.get(key)
        if book is None or book.record_uid != record.metadata.uid:
            return
        if gone:
            self.close(key)  # what the batches before it say counts again
        elif is_record_of(batch, record):
            book.judge(batch)

    def close(self, key: WorkloadKey) -> None:
        """It is not needed any more, or not right."""
        self._books.pop(key, None)

    def rest(self, key: WorkloadKey) -> None:
        """Nothing of the release becomes due: its book may go, if it is not the only one that knows something."""
        book = self._books.get(key)
        if book is not None and book.at_rest and len(book) < _SMALL:
            del self._books[key]
        if sum(map(len, self._books.values())) > _MAX_PODS:
            for other in [other for other, kept in self._books.items() if kept.at_rest]:
                del self._books[other]
