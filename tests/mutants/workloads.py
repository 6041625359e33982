"""Mutants of the adapters of the kinds of workloads."""

from tests.mutants.mutant import Source

_KINDS = ("tests/unit/altershield/workloads/test_kinds.py", "tests/unit/altershield/workloads/test_pods.py")

SOURCES = (
    Source(
        "altershield/workloads/start_budget.py",
        ("tests/unit/altershield/workloads/test_starting.py", "tests/unit/altershield/workloads/test_kinds.py"),
        (
            ("self.initial_delay_seconds + self.period_seconds", "self.period_seconds"),
            ("(msgspec.DecodeError, RecursionError)", "RecursionError"),
            ("times += [_until_ready(each, None)", "times += [_until_ready(each, each.startup_probe)"),
            ("if each.restart_policy == _ALWAYS]", "]"),
            ("max(begin, readiness.initial_delay_seconds) +", "begin +"),
            ("PROGRESS_DEADLINE if progress_deadline is None else progress_deadline", "PROGRESS_DEADLINE"),
        ),
    ),
    Source(
        "altershield/workloads/pods.py",
        ("tests/unit/altershield/workloads/test_pods.py", "tests/unit/altershield/workloads/test_starting.py"),
        (
            ("None if is_ready or not status.start_time else", "None if not status.start_time else"),
            ("None if is_ready or not status.start_time else", "None if is_ready else"),
            ("        if each is waits_for:\n            break\n", ""),
            ("if init and waits_for is None and initialized", "if init and initialized"),
            ("if init and waits_for is None and initialized", "if waits_for is None and initialized"),
            ("for each in init if each.name not in sidecars):", "for each in init):"),
            ("runs = bool(waiting) and len(began) == len(waiting)", "runs = bool(began)"),
            ("max(0, int(max(began)))", "int(max(began))"),
            ("max(0, int(max(began)))", "max(0, int(min(began)))"),
            ("bool(container.started) if is_sidecar else ended", "bool(container.started) or ended"),
            ("for each in containers if not each.ready) or containers", "for each in containers)"),
            ("    return started or found\n", "    return found\n"),
            ('status.phase == "Running" and ready is not None', "ready is not None"),
            ("unscheduled = not wire.spec.node_name and (", "unscheduled = ("),
            (
                "(*(status.init_container_statuses or ()), *(status.container_statuses or ()))",
                "status.container_statuses or ()",
            ),
            ("state.waiting.reason not in _BEFORE_START:", 'state.waiting.reason != "ContainerCreating":'),
            ("ended.exit_code == 0 and (part.status.ready or part.ends)", "False"),
            ("ended.exit_code == 0 and (part.status.ready or part.ends)", "ended.exit_code == 0"),
            ("            if each.name in sidecars\n            else", "            if False\n            else"),
            ('status.phase in ("Succeeded", "Failed")', 'status.phase == "Failed"'),
            ("bool(wire.spec.node_name) and _creating(statuses)", "_creating(statuses)"),
            ("not self.metadata.deleting and not self.ended", "not self.ended"),
            ('if last.reason not in ("", "Error") else ""', ""),
            ("if last is not None and part.status.restart_count and not part.status.ready:", "if last is not None:"),
            ("None if stays_ready else _trouble(", "None if is_ready else _trouble("),
            ("None if stays_ready else _trouble(", "_trouble("),
            ('status.reason in _REFUSALS or status.reason.startswith("OutOf")', "status.reason in _REFUSALS"),
            ('status.reason in _REFUSALS or status.reason.startswith("OutOf")', "True"),
            ('scheduled is not None and scheduled.status == "True" else 0', "scheduled is not None else 0"),
        ),
    ),
    Source(
        "altershield/workloads/pod_events.py",
        ("tests/unit/altershield/workloads/test_pod_events.py",),
        (
            ("event.at <= available_at", "event.at < available_at"),
            ("event.reason in _BEFORE_START and event.at <= started_at", "False"),
            ("event.reason in _TELLING and not over(event)", "not over(event)"),
            ("max(found, key=lambda event: event.at)", "found[0]"),
            ("again or self.last_timestamp or self.event_time or", "self.last_timestamp or"),
        ),
    ),
    Source(
        "altershield/workloads/meta.py",
        ("tests/unit/altershield/workloads/test_pods.py",),
        (
            ("            if owner.controller:\n", "            if True:\n"),
            (
                "if known is not None and (known.name, known.kind, known.api_version) == (owner.name, owner.kind, owner.api_version):",
                "if known is not None:",
            ),
        ),
    ),
    Source(
        "altershield/workloads/adapter.py",
        (
            "tests/unit/altershield/workloads/test_kinds.py",
            "tests/unit/altershield/workloads/test_pods.py",
            "tests/unit/altershield/workloads/test_names.py",
        ),
        (
            ("return pod.owner.uid == uid", "return pod.owner.name == name"),
            ('name.endswith(f"-{pod.hash}")', "name.endswith(pod.hash)"),
            ("pod.hash == name or ", ""),
            ("taken = not adapter.change_workload_prefix and any(", "taken = False and any("),
        ),
    ),
    Source(
        "altershield/admission/webhooks.py",
        _KINDS,
        (
            ("'m' if mutating else 'v'", "'v' if mutating else 'm'"),
            (".replace('.', '-')", ""),
        ),
    ),
    Source(
        "altershield/workloads/deployments.py",
        _KINDS,
        (
            ('== "RollingUpdate" else Strategy.RECREATE', '== "Recreate" else Strategy.RECREATE'),
            (".pop(_HASH, None)", ".get(_HASH)"),
            ("template = deepcopy(template)", "template = dict(template)"),
            ('condition.type == "ReplicaFailure" and condition.status == "True"', 'condition.type == "ReplicaFailure"'),
            ("paused=spec.paused", "paused=False"),
        ),
    ),
    Source(
        "altershield/workloads/sets.py",
        _KINDS,
        (("len(value) <= _MAX_DIGITS", "len(value) <= 1"), ("found if found <= _HIGHEST else 0", "found")),
    ),
    Source(
        "altershield/workloads/stateful_sets.py",
        _KINDS,
        (
            ("max(0, spec.replicas - _partition(spec))", "spec.replicas - _partition(spec)"),
            ("max(0, rolling.partition)", "rolling.partition"),
            ("_start(spec) + _partition(spec)", "_partition(spec)"),
            ("0 if on_delete else _start(spec)", "_start(spec)"),
            ("None if on_delete else _reach(spec)", "_reach(spec)"),
            ('== "OrderedReady",', '== "Parallel",'),
            ("update_revision=wire.status.update_revision", 'update_revision=""'),
            ("2**31 - 1", "0"),
        ),
    ),
    Source(
        "altershield/workloads/daemon_sets.py",
        _KINDS,
        (
            ("None if on_delete else desired", "desired"),
            ("Strategy.ON_DELETE if on_delete else Strategy.ROLLING", "Strategy.ROLLING"),
            ("replicas=desired", "replicas=1"),
        ),
    ),
    Source(
        "altershield/workloads/clone_sets.py",
        _KINDS,
        (
            (
                "max(scaled(partition, replicas, round_up=True) or 0, 0), most)",
                "max(scaled(partition, replicas, round_up=True) or 0, 0), 10**9)",
            ),
            (
                "max(scaled(partition, replicas, round_up=True) or 0, 0)",
                "(scaled(partition, replicas, round_up=True) or 0)",
            ),
            ("scaled(partition, replicas, round_up=True)", "scaled(partition, replicas, round_up=False)"),
            ("percent is not None and percent < 100 else replicas", "False else replicas"),
            ("paused=spec.update_strategy.paused", "paused=False"),
            ("update_revision=status.update_revision", 'update_revision=""'),
        ),
    ),
    Source(
        "altershield/workloads/workload.py",
        _KINDS,
        (
            ('"up_to_date": observed_generation >= metadata.generation', '"up_to_date": True'),
            ("*(each.key for each in self.match_expressions)", ""),
            (
                '"processed": own.get(labels.DEFENSE_STATUS) == labels.PROCESSED',
                '"processed": labels.DEFENSE_STATUS in own',
            ),
            ("(orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError)", "orjson.JSONDecodeError"),
            ('parts.append(f"{each.key} notin {values}")', 'parts.append(f"{each.key} in {values}")'),
        ),
    ),
    Source(
        "altershield/workloads/revision_data.py",
        _KINDS,
        (
            ('    found.pop("$patch", None)\n', ""),
            ("found = deepcopy(found)", "pass"),
            ("found if isinstance(found, int) else 0", "found or 0"),
        ),
    ),
)
