"""Mutants of names, labels and versions."""

from tests.mutants.mutant import Source

_NAMES = ("tests/unit/altershield/api/test_names.py", "tests/unit/altershield/workloads/test_names.py")

SOURCES = (
    Source(
        "altershield/api/names.py",
        _NAMES,
        (
            ('f"system:serviceaccount:{namespace}:{name}"', 'f"system:serviceaccount:{name}:{namespace}"'),
            ('re.fullmatch("[0-9a-f]{32}", label)', 're.match("[0-9a-f]{32}", label)'),
            ('"[0-9a-f]{32}"', '"[0-9a-z]{32}"'),
            ("if taken or len(own) >= _ROOM:", "if taken or len(own) > _ROOM:"),
            ("if taken or len(own) >= _ROOM:", "if taken:"),
            ("if taken or len(own) >= _ROOM:", "if len(own) >= _ROOM:"),
            ("if taken or len(own) >= _ROOM:", "if taken or len(own) >= _ROOM - 1:"),
            ('sha256(f"{prefix}/{workload}".encode())', "sha256(workload.encode())"),
            ('sha256(f"{prefix}/{workload}".encode())', "sha256(own.encode())"),
            ('sha256(f"{prefix}/{workload}".encode())', "sha256(own[:_ROOM].encode())"),
            (".hexdigest()[:_DIGEST_DIGITS]", ".hexdigest()[:8]"),
            ("kept = own[: _ROOM - _DIGEST_DIGITS - 1]", "kept = own[: _ROOM - _DIGEST_DIGITS]"),
            ('_DIGEST_DIGITS - 1].rstrip("-.")', "_DIGEST_DIGITS - 1]"),
            ('_DIGEST_DIGITS - 1].rstrip("-.")', '_DIGEST_DIGITS - 1].rstrip("-")'),
            ("{digest:0>{_ROOM - len(kept) - 1}}", "{digest}"),
            ("{digest:0>{_ROOM - len(kept) - 1}}", "{digest:0>{_ROOM - len(kept)}}"),
            ("change_workload.rpartition(_SEPARATOR)[2]", "change_workload.partition(_SEPARATOR)[2]"),
            ("change_pod.rpartition(_SEPARATOR)[0]", "change_pod.partition(_SEPARATOR)[0]"),
            ("tail.isascii() and tail.isdigit()", "tail.isdigit()"),
            ("and len(tail) <= _BATCH_DIGITS else 0", "else 0"),
            ("and len(tail) <= _BATCH_DIGITS else 0", "and len(tail) < _BATCH_DIGITS else 0"),
            ("name.rpartition(_SEPARATOR)[2]", "name.partition(_SEPARATOR)[2]"),
            ("if len(workload) <= _MAX_LABEL_VALUE:", "if len(workload) < _MAX_LABEL_VALUE:"),
            ("if len(workload) <= _MAX_LABEL_VALUE:", "if len(workload) <= _MAX_LABEL_VALUE + 1:"),
            ("workload[: _MAX_LABEL_VALUE - 11]", "workload[: _MAX_LABEL_VALUE - 10]"),
            ("_MAX_LABEL_VALUE - 11].rstrip('-.')", "_MAX_LABEL_VALUE - 11]"),
            ('-{digest}"', '"'),
            ("_MAX_NAME = 253", "_MAX_NAME = 254"),
            ("_MAX_LABEL_VALUE = 63", "_MAX_LABEL_VALUE = 64"),
            ("_MAX_NAME - 2 * len(_SEPARATOR)", "_MAX_NAME - len(_SEPARATOR)"),
        ),
    ),
    Source(
        "altershield/api/fingerprint.py",
        (
            "tests/unit/gatekeeper/handlers/releases/test_fingerprint.py",
            "tests/unit/gatekeeper/handlers/releases/test_version.py",
        ),
        (
            ("digest.hexdigest()[:_DIGITS]", "digest.hexdigest()"),
            ("hashlib.sha256()", "hashlib.sha1()"),
            ("_SHA256.copy()", "_SHA256"),
            ("option=orjson.OPT_SORT_KEYS", "option=None"),
            ("            value.pop(labels.VERSION, None)\n", ""),
            ("            for label in labels.NOT_IN_TEMPLATES:\n                value.pop(label, None)\n", ""),
            ("            value = value.copy()\n", ""),
            ('if key == "labels" and isinstance', "if isinstance"),
            (
                "if value or (value is not None and key not in",
                "if value is not None or (value is not None and key not in",
            ),
            ("if value or (value is not None and key not in", "if value or (key not in"),
            ('key not in ("labels", "annotations")', 'key != "labels"'),
            ('key not in ("labels", "annotations")', 'key != "annotations"'),
            ('if value or (value is not None and key not in ("labels", "annotations")):', "if value:"),
            ("return kept or None", "return kept"),
            ('{"metadata": metadata(template)', '{"metadata": template.metadata'),
            ("if template.spec else None", "if template.spec else {}"),
        ),
    ),
    Source(
        "altershield/api/json_patch.py",
        ("tests/unit/altershield/api/test_json_patch.py",),
        (("{escape(key)}", "{key}"), ('f"{labels}/', 'f"/metadata/labels/')),
    ),
    Source(
        "altershield/api/labels.py",
        (
            "tests/unit/gatekeeper/handlers/releases/test_template_labels.py",
            "tests/unit/gatekeeper/handlers/releases/test_ownership.py",
        ),
        (
            ("OWNED = (VERSION, DEFENSE_STATUS, SUSPEND)", "OWNED = (VERSION, DEFENSE_STATUS)"),
            ("OWNED = (VERSION, DEFENSE_STATUS, SUSPEND)", "OWNED = (VERSION, SUSPEND)"),
            ("OWNED = (VERSION, DEFENSE_STATUS, SUSPEND)", "OWNED = (DEFENSE_STATUS, SUSPEND)"),
            (
                "NOT_IN_TEMPLATES = (DEFENSE_STATUS, OPERATE_FINISHED, SUSPEND)",
                "NOT_IN_TEMPLATES = (DEFENSE_STATUS, SUSPEND)",
            ),
            (
                "NOT_IN_TEMPLATES = (DEFENSE_STATUS, OPERATE_FINISHED, SUSPEND)",
                "NOT_IN_TEMPLATES = (OPERATE_FINISHED, SUSPEND)",
            ),
            (
                "NOT_IN_TEMPLATES = (DEFENSE_STATUS, OPERATE_FINISHED, SUSPEND)",
                "NOT_IN_TEMPLATES = (DEFENSE_STATUS, OPERATE_FINISHED)",
            ),
        ),
    ),
)
