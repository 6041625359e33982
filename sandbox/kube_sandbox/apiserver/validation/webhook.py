"""Validation of webhook configurations (k8s.io/kubernetes, pkg/apis/admissionregistration/validation)."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.schema import cel_optionals
from kube_sandbox.apiserver.schema.cel_library import cel
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.meta import label_key, label_selector

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REVIEWS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


def webhook_configuration(obj: Object, _: Object | None) -> Causes:
    names: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        yield from _webhook(webhook, path)
        yield from _review_versions(webhook["admissionReviewVersions"] or [], f"{path}.admissionReviewVersions")
        if webhook["name"] and webhook["name"] in names:
            yield causes.duplicate(f"{path}.name", webhook["name"])
        names.add(webhook["name"])


def _webhook(webhook: Object, path: str) -> Causes:
    name = webhook["name"]
    if not name:
        yield causes.required(f"{path}.name")
    elif wrong := texts.subdomain(name):
        yield causes.invalid(f"{path}.name", name, ",".join(wrong))
    elif name.count(".") < 2:
        yield causes.invalid(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from operation_rule(rule, f"{path}.rules[{index}]")
    for field, known in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        yield from causes.one_of(f"{path}.{field}", webhook[field], known)
    if webhook["sideEffects"] is None:
        yield causes.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    elif webhook["sideEffects"] not in _SIDE_EFFECTS:
        yield causes.unsupported(f"{path}.sideEffects", webhook["sideEffects"], _SIDE_EFFECTS)
    if not 1 <= webhook["timeoutSeconds"] <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        yield causes.invalid(f"{path}.timeoutSeconds", webhook["timeoutSeconds"], why)
    for field in ("namespaceSelector", "objectSelector"):
        yield from label_selector(webhook[field], f"{path}.{field}")
    yield from causes.one_of(
        f"{path}.reinvocationPolicy", webhook.get("reinvocationPolicy", "Never"), ("IfNeeded", "Never")
    )
    yield from client_config(webhook["clientConfig"], f"{path}.clientConfig")
    yield from match_conditions(webhook.get("matchConditions") or (), f"{path}.matchConditions")


def match_conditions(conditions: Sequence[Object], path: str) -> Causes:
    if len(conditions) > 64:
        yield causes.too_many(path, len(conditions), 64)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        expression = condition["expression"].strip()
        if not expression:
            yield causes.required(f"{where}.expression")
        else:
            yield from cel_expression(expression, f"{where}.expression")
        if not condition["name"]:
            yield causes.required(f"{where}.name")
        else:
            yield from label_key(condition["name"], f"{where}.name")
            if condition["name"] in names:
                yield causes.duplicate(f"{where}.name", condition["name"])
            names.add(condition["name"])


def cel_expression(expression: str, path: str) -> Causes:
    try:
        cel.compile(cel_optionals.rewritten(expression))
    except ValueError as error:
        # The library's parser prints the same text as cel-go, except for the indentation.
        why = str(error).partition("': ")[2].replace("\n|", "\n |")
        yield causes.invalid(path, expression, f"compilation failed: {why}")


def operation_rule(rule: Object, path: str) -> Causes:
    operations = rule.get("operations") or []
    yield from causes.non_empty(f"{path}.operations", operations)
    if len(operations) > 1 and "*" in operations:
        yield causes.invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        yield from causes.one_of(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        yield from causes.non_empty(f"{path}.{field}", values)
        if len(values) > 1 and "*" in values:
            yield causes.invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {what}")
    for index, version in enumerate(rule.get("apiVersions") or ()):
        yield from causes.non_empty(f"{path}.apiVersions[{index}]", version)
    yield from _resources(rule.get("resources") or [], f"{path}.resources")
    yield from causes.one_of(f"{path}.scope", rule["scope"], _SCOPES)


def _resources(resources: list[str], path: str) -> Causes:
    yield from causes.non_empty(path, resources)
    all_below: set[str] = set()
    all_above: set[str] = set()
    plain = False
    for index, name in enumerate(resources):
        if not name:
            yield causes.required(f"{path}[{index}]")
            continue
        resource, slash, subresource = name.partition("/")
        if not slash:
            plain = name != "*"
            continue
        if resource in all_below:
            why = f"if '{resource}/*' is present, must not specify {name}"
            yield causes.invalid(f"{path}[{index}]", name, why)
        if subresource in all_above:
            why = f"if '*/{subresource}' is present, must not specify {name}"
            yield causes.invalid(f"{path}[{index}]", name, why)
        if subresource == "*":
            all_below.add(resource)
        if resource == "*":
            all_above.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        yield causes.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        yield causes.invalid(path, resources, why)


def _review_versions(versions: list[str], path: str) -> Causes:
    if not versions:
        yield causes.required(path, f"must specify one of {', '.join(_REVIEWS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield causes.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from causes.invalid_each(f"{path}[{index}]", version, texts.label_1035(version))
    if not set(_REVIEWS) & set(versions):
        yield causes.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")


def client_config(config: Object, path: str) -> Causes:
    """Validate a clientConfig: a URL or a Service."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield causes.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    elif service is not None:
        yield from _service(service, f"{path}.service")


def _url(url: str, path: str) -> Causes:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError as error:
        yield causes.required(path, f"url must be a valid URL: parse {causes.shown(url)}: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield causes.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield causes.invalid(path, "", f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        yield causes.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield causes.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield causes.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service(service: Object, path: str) -> Causes:
    # The real server exchanges the name and the namespace in these messages.
    for field, value in (("name", service["namespace"]), ("namespace", service["name"])):
        yield from causes.non_empty(f"{path}.{field}", value)
    if wrong := texts.port_number(service["port"]):
        yield causes.invalid(f"{path}.port", service["port"], f"port is not valid: {', '.join(wrong)}")
    target = service.get("path") or "/"
    if target == "/":
        return
    if target == "//":
        yield causes.invalid(f"{path}.path", target, "segment[0] may not be empty")
        return
    if not target.startswith("/"):
        yield causes.invalid(f"{path}.path", target, "must start with a '/'")
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            yield causes.invalid(f"{path}.path", target, f"segment[{index}] may not be empty")
        else:
            wrong = [f"segment[{index}]: {why}" for why in texts.subdomain(step)]
            yield from causes.invalid_each(f"{path}.path", target, wrong)
