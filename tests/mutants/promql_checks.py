"""Mutants of the check by PromQL."""

from tests.mutants.mutant import Source

_T = "tests/unit/reconciler/checks/"
_PROMQL = (_T + "test_promql.py",)
_SAMPLES = (_T + "test_samples.py",)
_ANSWERS = (_T + "test_prometheus_answers.py",)
_CHECK = (_T + "test_prometheus_check.py",)

SOURCES = (
    Source(
        "reconciler/checks/placeholders.py",
        _PROMQL,
        (
            ("    if _NAME.fullmatch(name) is None:\n", "    if False:\n"),
            ('    return name.replace(".", "[.]")\n', "    return name\n"),
            ("for name, text in plain.items() if text}", "for name, text in plain.items()}"),
            ("adapter.intermediate is None or ", ""),
            ("not 1 < len(prefix) <= _MAX_GENERATED_PREFIX", "not 1 < len(prefix)"),
            ("not 1 < len(prefix) <= _MAX_GENERATED_PREFIX", "not 0 < len(prefix) <= _MAX_GENERATED_PREFIX"),
            ("if match[1] in NAMES else match[0], text)", "if match[1] else match[0], text)"),
        ),
    ),
    Source(
        "reconciler/checks/promql.py",
        _PROMQL,
        (
            ("    if sentence := unknown_placeholder(query):\n        return sentence\n", ""),
            ('        if token.kind == "open":\n', "        if False:\n"),
            ('if token.kind == "string" and "\\\\{{" in token.text:', "if False:"),
            ('if token.kind == "other" and (outside', 'if token.kind == "never" and (outside'),
            ("[name for name in names if name not in NUMBERS]", "[name for name in names]"),
            ("not token.is_pattern and (found", "False and (found"),
            ("    if len(text) > MAX_QUERY:\n", "    if False:\n"),
            ("        if found is None:\n", "        if False:\n"),
            ("found.pattern if token.is_pattern else found.text", "found.text"),
            ("found.pattern if token.is_pattern else found.text", "found.pattern"),
            ('before + match[0] if kind == "other" else ""', "match[0]"),
            ('        if kind != "comment":\n', "        if True:\n"),
            ('    if token.kind == "comment":\n        return token.text\n', ""),
        ),
    ),
    Source(
        "reconciler/checks/prometheus_answers.py",
        _ANSWERS,
        (
            ("answer.warnings + answer.infos", "answer.warnings"),
            ("answer.warnings + answer.infos", "answer.infos"),
            ("if not text.startswith(_HARMLESS)]", "if text]"),
            ('answer.data.result_type != "matrix"', "False"),
            ("if readings[index] is NO_DATA else", "if True else"),
            ("if math.isfinite(value) else", "if True else"),
            ("if _NUMBER.fullmatch(text) else math.nan", "if text else math.nan"),
            ('answer.status == "error" or status != 200', 'answer.status == "error"'),
            ("not 0 <= index < count or ", ""),
            (" or abs(start + index * step - time) > _CLOCK_STEP", ""),
            (
                "    except (msgspec.DecodeError, RecursionError) as error:\n        shown",
                "    except msgspec.DecodeError as error:\n        shown",
            ),
            ('shown = f"HTTP {status}" if status != 200 else one_line(str(error), _MAX_TEXT)', "shown = body.decode()"),
        ),
    ),
    Source(
        "reconciler/checks/samples.py",
        _SAMPLES,
        (
            ("started + check.initial_delay_seconds + check.interval_seconds", "started + check.initial_delay_seconds"),
            ("age = min(now, deadline) - check.lag_seconds", "age = now - check.lag_seconds"),
            ("age = min(now, deadline) - check.lag_seconds", "age = min(now, deadline)"),
            ("return 0 if age < 0 else min(MAX_TIMES, ", "return max(0, "),
            ("            if failed > check.failure_limit:\n", "            if failed >= check.failure_limit:\n"),
            ("        if known == check.samples:\n", "        if known + 1 == check.samples:\n"),
            ("            doubt = judgement.reason\n            continue\n", "            doubt = judgement.reason\n"),
            ("return Unknown(progress) if last else Pending(progress)", "return Pending(progress)"),
            ("sample.value < bounds.min", "sample.value <= bounds.min"),
            ("sample.value > bounds.max", "sample.value >= bounds.max"),
            ("value - baseline <= bounds.max_increase", "value - baseline < bounds.max_increase"),
            ("value <= baseline * bounds.max_ratio", "value < baseline * bounds.max_ratio"),
            ("if baseline > 0 and value <= baseline", "if value <= baseline"),
            ("        if baseline <= 0 and bounds.max_increase is None:\n", "        if False:\n"),
            ("            if baseline == 0 and value <= 0:\n", "            if False:\n"),
            ("return None if count >= least else", "return None if count > least else"),
            ("return None if count >= least else", "return None if True else"),
            ("and needed > check.timeout_seconds", "and needed >= check.timeout_seconds"),
        ),
    ),
    Source(
        "reconciler/checks/prometheus_check.py",
        _CHECK,
        (
            ("if len(samples) != count or (last and count):", "if count:"),
            ("if len(samples) != count or (last and count):", "if len(samples) != count:"),
            ("                if is_complete:\n", "                if True:\n"),
            ("is_complete=not early", "is_complete=True"),
            ("        if len(self._latest) > _REMEMBERED:\n", "        if False:\n"),
            ("        self._latest.pop(_key(subject), None)\n", "        pass\n"),
            (
                "subject.release.spec.policy.namespace, check.secret_ref.name",
                "subject.change_pod.metadata.namespace, check.secret_ref.name",
            ),
            ("min(now, there), subject.deadline", "now, subject.deadline"),
            ("        end = start + (count - 1) * step\n", "        end = start + count * step\n"),
            ("    if sentence := problem(subject.check):\n        raise ValueError(sentence)\n", ""),
            ("                credentials=credentials,\n", ""),
        ),
    ),
)
