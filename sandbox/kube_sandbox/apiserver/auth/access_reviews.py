"""Reviews about users and their permissions: `authentication.k8s.io` and `authorization.k8s.io`.

Clients create reviews; the server does not store them. Validation and texts follow kube-apiserver's
`pkg/registry/{authentication,authorization}` and `pkg/apis/authorization/validation`.
"""

import json

from kube_base.times import now
from kube_sandbox.apiserver.attributes import Attributes, Object, User
from kube_sandbox.apiserver.auth.authentication import Authenticator
from kube_sandbox.apiserver.auth.authorization import Authorizer
from kube_sandbox.apiserver.auth.tokens import AUDIENCES, TokenError
from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.gotext import aggregated

_SUBJECT = ("SubjectAccessReview", "LocalSubjectAccessReview")


class AccessReviews:
    """Answers reviews. The caller has checked the types of their fields."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def create(self, review: Object, user: User, namespace: str = "") -> Object:
        """The review with its status. Raises StatusError 400 or 422 for an invalid review."""
        kind = review["kind"]
        if kind == "SelfSubjectReview":
            return self._self_subject(review, user)
        if kind == "TokenReview":
            return self._token(review)
        if kind == "SelfSubjectRulesReview":
            return self._rules(review, user)
        return self._access(review, user, namespace)

    def _self_subject(self, review: Object, user: User) -> Object:
        return {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {"creationTimestamp": now()},
            "status": {"userInfo": user_info(user)},
        }

    def _token(self, review: Object) -> Object:
        spec = review.get("spec") or {}
        token = spec.get("token")
        if not token:
            raise StatusError(400, "token is required for TokenReview in authentication")
        audiences = tuple(spec.get("audiences") or AUDIENCES)
        problems = ["invalid bearer token"]
        try:
            found = self._authenticator.review(token, audiences)
        except TokenError as error:
            problems.append(str(error))
            found = None
        if found is None:
            return {**review, "status": {"user": {}, "error": aggregated(problems)}}
        user, common = found
        return {
            **review,
            "status": {"authenticated": True, "user": user_info(user), "audiences": common},
        }

    def _rules(self, review: Object, user: User) -> Object:
        namespace = (review.get("spec") or {}).get("namespace")
        if not namespace:
            raise StatusError(400, "no namespace on request")
        rules, problems = self._authorizer.rules_for(user, namespace)
        status: Object = {
            "resourceRules": [
                {key: rule[key] for key in ("verbs", "apiGroups", "resources", "resourceNames") if rule.get(key)}
                for rule in rules
                if rule.get("resources")
            ],
            "nonResourceRules": [
                {key: rule[key] for key in ("verbs", "nonResourceURLs")}
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        if problems:
            status["evaluationError"] = aggregated(problems)
        api_version, kind = review["apiVersion"], review["kind"]
        return {"kind": kind, "apiVersion": api_version, "metadata": {}, "spec": {}, "status": status}

    def _access(self, review: Object, user: User, namespace: str) -> Object:
        spec = review.get("spec") or {}
        _validate(review, spec, namespace)
        if review["kind"] in _SUBJECT:
            extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
            user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
        decision = self._authorizer.decide(_attributes(spec, user))
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return {**review, "status": status}


def user_info(user: User) -> Object:
    """A user as a `UserInfo` object, for reviews and AdmissionReviews."""
    info: Object = {"username": user.name} if user.name else {}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _attributes(spec: Object, user: User) -> Attributes:
    resource, url = spec.get("resourceAttributes"), spec.get("nonResourceAttributes") or {}
    if resource is None:
        return Attributes(user, verb=url.get("verb", ""), path=url.get("path", ""))
    return Attributes(
        user,
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        plural=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )


def _validate(review: Object, spec: Object, namespace: str) -> None:
    resource, url = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes: list[tuple[str, object, str]] = []
    if resource is not None and url is not None:
        shown = {"Path": url.get("path", ""), "Verb": url.get("verb", "")}
        why = "cannot be specified in combination with resourceAttributes"
        causes.append(("spec.nonResourceAttributes", shown, why))
    if resource is None and url is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(("spec.resourceAttributes", None, why))
    if review["kind"] in _SUBJECT and not spec.get("user") and not spec.get("groups"):
        causes.append(("spec.user", "", "at least one of user or group must be specified"))
    metadata = dict(review.get("metadata") or {})
    local = review["kind"] == "LocalSubjectAccessReview"
    ignored = {"managedFields", "namespace"} if local else {"managedFields"}
    if any(value for key, value in metadata.items() if key not in ignored):
        causes.append(("metadata", metadata, "must be empty except for namespace" if local else "must be empty"))
    if local and resource is not None and resource.get("namespace", "") != namespace:
        why = "must match metadata.namespace"
        causes.append(("spec.resourceAttributes.namespace", resource.get("namespace", ""), why))
    if local and url is not None:
        causes.append(("spec.nonResourceAttributes", url, "disallowed on this kind of request"))
    if causes:
        raise _invalid(causes)


def _invalid(causes: list[tuple[str, object, str]]) -> StatusError:
    texts = [
        f"Invalid value: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}: {why}"
        for _, value, why in causes
    ]
    listed = [
        {"reason": "FieldValueInvalid", "message": text, "field": field}
        for (field, _, _), text in zip(causes, texts, strict=True)
    ]
    return invalid("authorization.k8s.io", "", "", listed)
