"""The metrics of kube-apiserver about admission webhooks."""

from collections import Counter
from dataclasses import dataclass

from kube_sandbox.apiserver.errors import StatusError

_PREFIX = "apiserver_admission_webhook_"
_HELP = {
    "fail_open_count": "Failed calls of webhooks that were ignored (failurePolicy Ignore).",
    "rejection_count": "Requests that a webhook denied or that failed because of a failed call.",
    "request_total": "Calls of webhooks.",
}
_MAX_CODE = 600  # the real server limits codes in the same way, to limit the number of time series

_Labels = tuple[tuple[str, str], ...]


class AdmissionMetrics:
    """Counters by metric and labels. `text` returns them in the Prometheus exposition format."""

    def __init__(self) -> None:
        self.counters: Counter[tuple[str, _Labels]] = Counter()

    def of(self, name: str, type_: str, operation: str) -> "HookCounters":
        """The counters for one call. `type_` is `admit` or `validating`."""
        return HookCounters(self, name, type_, operation)

    def text(self) -> str:
        lines = []
        for metric, what in _HELP.items():
            lines += [f"# HELP {_PREFIX}{metric} {what}", f"# TYPE {_PREFIX}{metric} counter"]
            lines += [
                f"{_PREFIX}{metric}{{{','.join(f'{key}={_escaped(value)}' for key, value in labels)}}} {count}"
                for (counted, labels), count in sorted(self.counters.items())
                if counted == metric
            ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class HookCounters:
    metrics: AdmissionMetrics
    name: str
    type: str
    operation: str

    def called(self, code: int, *, rejected: bool) -> None:
        self._count(
            "request_total",
            code=str(min(code, _MAX_CODE)),
            name=self.name,
            operation=self.operation,
            rejected=str(rejected).lower(),
            type=self.type,
        )

    def failed_call(self, code: int, *, ignored: bool) -> None:
        self.called(code, rejected=not ignored)
        if ignored:
            self._count("fail_open_count", name=self.name, type=self.type)
        else:
            self._rejection("calling_webhook_error", code)

    def rejected(self, error: StatusError) -> None:
        internal = error.code == 500 and error.reason == "InternalError"
        code = 0 if internal else error.code
        self.called(code, rejected=True)
        self._rejection("apiserver_internal_error" if internal else "no_error", code)

    def _rejection(self, error_type: str, code: int) -> None:
        self._count(
            "rejection_count",
            error_type=error_type,
            name=self.name,
            operation=self.operation,
            rejection_code=str(min(code, _MAX_CODE)),
            type=self.type,
        )

    def _count(self, metric: str, **labels: str) -> None:
        self.metrics.counters[metric, tuple(labels.items())] += 1


def _escaped(value: str) -> str:
    text = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{text}"'
