"""Mutants of requests to URLs of policies, and of the checks by HTTP and by Job."""

from tests.mutants.mutant import Source

_OUTBOUND = "tests/unit/reconciler/outbound/"
_CHECKS = "tests/unit/reconciler/checks/"
_URLS = (_OUTBOUND + "test_urls.py",)
_CLIENT = (_OUTBOUND + "test_client.py",)
_SECRETS = (_OUTBOUND + "test_secrets.py",)
_HTTP = (_CHECKS + "test_http_check.py",)
_JOB = (_CHECKS + "test_job_check.py",)

SOURCES = (
    Source(
        "reconciler/outbound/urls.py",
        _URLS,
        (
            (
                "destination.host.endswith(self.suffixes)",
                "destination.host.endswith(tuple(s[1:] for s in self.suffixes))",
            ),
            ("net.num_addresses == 1 and destination.address in net", "destination.address in net"),
            ('destination.host == "localhost" and destination.host in self.names', "destination.host in self.names"),
            ("destination.address is None and _API_SERVER.fullmatch(destination.host)", "False"),
            ("    if not allowed.allows(destination):\n", "    if False:\n"),
            ("not 0 < port < 65536", "not 0 <= port < 65536"),
            ("not 0 < port < 65536", "not 0 < port <= 65536"),
            ("_URL.fullmatch(url)", "_URL.match(url)"),
            ('(name := host.removesuffix("."))', '(name := host.rstrip("."))'),
            ("if len(url) > MAX_URL:", "if False:"),
        ),
    ),
    Source(
        "reconciler/outbound/addresses.py",
        _URLS,
        (
            ("    if address in _METADATA:\n", "    if False:\n"),
            ('return "" if loopback else "a loopback address"', 'return ""'),
            ("address.is_unspecified or address in _THIS_NETWORK", "address.is_unspecified"),
            ("address.is_link_local or address in _SITE_LOCAL", "address in _SITE_LOCAL"),
            ("    if address.is_multicast:\n", "    if False:\n"),
            ("and address.is_reserved", "and False"),
            ("    if address in _LOCAL_TRANSLATION:\n", "    if False:\n"),
            ("    if address.sixtofour is not None:\n", "    if False:\n"),
            ("yield from address.teredo", "yield address.teredo[0]"),
            ("    if any(address in network for network in _TRANSLATED):\n", "    if False:\n"),
        ),
    ),
    Source(
        "reconciler/outbound/outbound_client.py",
        _CLIENT,
        (
            ("allow_redirects=False,", "allow_redirects=True,"),
            ("trust_env=False,", "trust_env=True,"),
            ("auto_decompress=False,", "auto_decompress=True,"),
            ("                if len(content) > limit:\n", "                if len(content) >= limit:\n"),
            ("                if len(content) > limit:\n", "                if False:\n"),
            (
                "asyncio.timeout(timeout), self._slot(destination.host)",
                "asyncio.timeout(60), self._slot(destination.host)",
            ),
            ("async with slots.semaphore, self._slots:", "async with self._slots:"),
            ("async with slots.semaphore, self._slots:", "async with slots.semaphore:"),
            ("                del self._hosts[host]\n", "                pass\n"),
            ("context or self._trust", "self._trust"),
            ("found.add(ApiServer(host, port if local else None))", "found.add(ApiServer(host, None))"),
            ("        reason = error.message  #", "        reason = str(error)  #"),
            ("    if progress.sent:\n        return NoAnswerError(", "    if False:\n        return NoAnswerError("),
        ),
    ),
    Source(
        "reconciler/outbound/secrets.py",
        _SECRETS,
        (
            ("if secret.metadata.labels.get(CREDENTIALS) != CREDENTIALS_VALUE:", "if False:"),
            ("if not _NAME.fullmatch(name):", "if False:"),
            ("if not 0 < len(value) <= _MAX_VALUE:", "if not 0 <= len(value) <= _MAX_VALUE:"),
            ("if not 0 < len(value) <= _MAX_VALUE:", "if not 0 < len(value):"),
            ("if not _HEADER.fullmatch(token):", "if not token:"),
            ('if b":" in username:', "if False:"),
            ("key = secret.metadata.uid, secret.metadata.resource_version", "key = secret.metadata.uid, ''"),
        ),
    ),
    Source(
        "reconciler/checks/http_check.py",
        _HTTP,
        (
            ("    if 300 <= status < 400:\n", "    if False:\n"),
            ("    if status in _NOT_YET:\n", "    if False:\n"),
            ("Pending(message or said) if status == 202 else Pass(message)", "Pass(message)"),
            ("if last and isinstance(answer, Pending) else answer", "if False else answer"),
            ("pods[:_MAX_PODS]", "pods"),
            ("if credentials is not None and credentials.hmac:", "if credentials is not None:"),
            ("    if status >= 300 or status < 200:\n", "    if status >= 500:\n"),
            ("        if handle.startswith(_BY_CALLBACK):\n", "        if False:\n"),
            ("unique=bool(answer.handle))", "unique=False)"),
            ("            if why_not:\n", "            if False:\n"),
            ("        if self._callback_url is None:\n", "        if not self._callback_url:\n"),
            ('return "" if credentials.hmac else', 'return "" if True else'),
            (" and reply.status == 202 and why_not:", " and why_not and False:"),
            ("{} if self._no_callback(check, credentials) else self._offer(subject)", "self._offer(subject)"),
            ("if self._callback_url else {})", "if True else {})"),
        ),
    ),
    Source(
        "reconciler/checks/signing.py",
        _HTTP,
        (('b"%d." % timestamp + body', "body"), ("hashlib.sha256", "hashlib.sha1")),
    ),
    Source(
        "reconciler/checks/identity.py",
        _HTTP,
        (
            ("_RUN.fullmatch(text)", "_RUN.match(text)"),
            ('_PHASES[found["phase"]], int', "Phase.POST, int"),
            ("(?P<namespace>[a-z0-9-]{1,63})", "(?P<namespace>[a-z0-9./-]{1,99})"),
        ),
    ),
    Source(
        "reconciler/checks/job_manifest.py",
        _JOB,
        (
            ('min(left, _seconds(spec, "activeDeadlineSeconds", left))', "left"),
            ("min(_LONGEST_TTL, max(_SHORTEST_TTL, ttl))", "min(_LONGEST_TTL, ttl)"),
            ("min(_LONGEST_TTL, max(_SHORTEST_TTL, ttl))", "max(_SHORTEST_TTL, ttl)"),
            ("copy.deepcopy(check.template)", "dict(check.template)"),
            ("if _OURS not in str(key)", "if True"),
            ("own is None or (active_deadline or 0) < own", "True"),
            ("own is None or (active_deadline or 0) < own", "own is None and False"),
        ),
    ),
    Source(
        "reconciler/checks/job_check.py",
        _JOB,
        (
            ("        if namespace == self._system_namespace:\n", "        if False:\n"),
            ("            if found.metadata.uid != handle:\n", "            if False:\n"),
            ("if not ours or metadata.annotations.get(labels.CHECK_ID) != check_id(subject):", "if not ours:"),
            (
                "if not ours or metadata.annotations.get(labels.CHECK_ID) != check_id(subject):",
                "if metadata.annotations.get(labels.CHECK_ID) != check_id(subject):",
            ),
            ('each.type == type_ and each.status == "True"', "each.type == type_"),
            ("if pod.metadata.controlled_by(found.metadata.uid)", "if True"),
            ("max(ends, key=lambda each: each[0])", "ends[0]"),
            ("        if self._clock() >= subject.deadline:\n            return await self._existing(subject)\n", ""),
            (
                "            if _is_deleted(found):\n                return Unknown",
                "            if False:\n                return Unknown",
            ),
            (
                "        if _is_deleted(found):\n            return NotStarted",
                "        if False:\n            return NotStarted",
            ),
            (" is not None and not ended", " is not None"),
            ("each.state == CheckState.FAILED for", "False for"),
        ),
    ),
)
