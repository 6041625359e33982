"""The fields of Jobs that the simulation reads."""

import msgspec

from kube_sandbox.cluster.kinds import Condition, LabelSelector, Meta, Object


class JobSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    template: Object
    selector: LabelSelector = LabelSelector()
    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False


class JobStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: JobSpec
    status: JobStatus = JobStatus()
