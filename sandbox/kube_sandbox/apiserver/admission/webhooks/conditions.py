"""CEL expressions about the request: `matchConditions` of webhook configurations, and ValidatingAdmissionPolicies.

The variables are those of kube-apiserver: object, oldObject, request, authorizer and namespaceObject (for webhooks
always null, also in kube-apiserver). The texts of common runtime errors are cel-go's. Of the CEL functions of
Kubernetes, only those of the authorizer are supported. Of optional values, only those that `cel_optionals` rewrites
are supported.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kube_sandbox.apiserver.admission.webhooks import cel_fields
from kube_sandbox.apiserver.admission.webhooks.cel_fields import Path
from kube_sandbox.apiserver.admission.webhooks.review import Invocation, request, versioned
from kube_sandbox.apiserver.attributes import Attributes, Object, User
from kube_sandbox.apiserver.auth.authorization import Authorizer
from kube_sandbox.apiserver.auth.tokens import service_account_groups
from kube_sandbox.apiserver.schema import cel_optionals
from kube_sandbox.apiserver.schema.cel_library import add_library, cel

_Value = dict[str, Any]


@dataclass(slots=True)
class Outcome:
    """The result of the conditions: whether one was false, and the error texts of those that failed."""

    false: bool = False
    errors: list[str] = field(default_factory=list)


class EvaluationError(Exception):
    """An expression cannot be evaluated. The text is that of cel-go."""


class Evaluation:
    """Evaluates expressions about one request. `attributes` contains the objects in the version of the invocation.

    `namespace` is the value of `namespaceObject`. `variables` are those of a policy, in order: an expression uses them
    as `variables.NAME`. A variable that cannot be evaluated is missing.

    The conversion of an object to CEL takes longer than most expressions. Therefore a field is converted when the first
    expression that uses the field runs. The functions of the authorizer are added for the first expression that uses
    the authorizer.
    """

    def __init__(
        self,
        attributes: Attributes,
        invocation: Invocation,
        authorizer: Authorizer | None,
        *,
        namespace: Object | None = None,
        variables: Sequence[Object] = (),
    ) -> None:
        self._context = cel.Context()
        add_library(self._context)
        self._values = {
            "object": attributes.obj,
            "oldObject": attributes.old,
            "namespaceObject": namespace,
            "request": request(attributes, invocation),
        }
        self._converted: dict[str, frozenset[Path]] = {}
        self._authorizer = authorizer
        self._attributes = attributes
        if variables:
            named = self._values["variables"] = {}
            for variable in variables:
                with contextlib.suppress(EvaluationError):
                    named[variable["name"]] = self.run(variable["expression"])
                    self._converted.pop("variables", None)

    def run(self, expression: str) -> Any:
        """The value of the expression. Raises EvaluationError."""
        try:
            program, used = _program(expression)
            if self._authorizer is not None and "authorizer" in used:
                _add_authorizer(self._context, self._authorizer, self._attributes)
                self._authorizer = None
            for name in self._values.keys() & used.keys():
                self._convert(name, used[name])
            return program.execute(self._context)
        except _RUNTIME_ERRORS as error:
            raise EvaluationError(_text(error, expression, self._values)) from error

    def _convert(self, name: str, paths: frozenset[Path]) -> None:
        converted = self._converted.get(name)
        if converted is None or cel_fields.missing(paths, converted):
            self._converted[name] = paths | (converted or frozenset())
            self._context.add_variable(name, cel_fields.only(self._values[name], self._converted[name]))


class Evaluations:
    """The evaluations of the match conditions for one request. All webhooks and policies that receive the same version
    of the objects share one evaluation: the conversion of a value takes a hundred times as long as most conditions."""

    def __init__(self, attributes: Attributes, authorizer: Authorizer | None) -> None:
        self.authorizer = authorizer
        self._attributes = attributes
        self._obj = attributes.obj
        self._found: dict[Invocation, Evaluation] = {}

    def of(self, invocation: Invocation) -> Evaluation:
        """The evaluation for the version of the invocation."""
        if self._attributes.obj is not self._obj:  # a webhook has changed the object
            self._found.clear()
            self._obj = self._attributes.obj
        found = self._found.get(invocation)
        if found is None:
            received = replace(
                self._attributes,
                obj=versioned(self._attributes.obj, self._attributes, invocation),
                old=versioned(self._attributes.old, self._attributes, invocation),
            )
            found = self._found[invocation] = Evaluation(received, invocation, self.authorizer)
        return found


def evaluate(conditions: Sequence[Object], evaluation: Evaluation) -> Outcome:
    """Evaluate the conditions until one is false."""
    outcome = Outcome()
    for condition in conditions:
        expression = condition["expression"]
        try:
            if evaluation.run(expression) is False:
                outcome.false = True
                return outcome
        except EvaluationError as error:
            outcome.errors.append(f"expression '{expression}' resulted in error: {error}")
    return outcome


_RUNTIME_ERRORS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


@functools.lru_cache(maxsize=256)
def _program(expression: str) -> tuple[cel.Program, Mapping[str, frozenset[Path]]]:
    """The compiled expression and the fields that it uses."""
    plain = cel_optionals.rewritten(expression)
    return cel.compile(plain), cel_fields.used(plain)


def _text(error: Exception, expression: str, variables: _Value) -> str:
    if isinstance(error, KeyError):
        return f"no such key: {error.args[0]}"
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, IndexError):
        return str(error)
    if found := re.match(r"Function '(\w+)' error: string parse error", str(error)):
        return f"type conversion error from 'string' to '{found[1]}'"
    for name, value in variables.items():
        # cel-go reports a field of null as a missing key.
        if value is None and (found := re.search(rf"\b{name}\.(\w+)", expression)):
            return f"no such key: {found[1]}"
    return "no such overload" if isinstance(error, TypeError) else str(error)


def _add_authorizer(context: cel.Context, authorizer: Authorizer, attributes: Attributes) -> None:
    """Add the functions for expressions such as
    `authorizer.group('apps').resource('deployments').namespace('x').check('get').allowed()`.

    Each step is a function. It takes the map of the previous steps and returns it with one more value.
    """

    def check(steps: _Value, verb: str) -> _Value:
        requested = Attributes(
            user=_user(steps, attributes.user),
            verb=verb,
            group=steps.get("group", ""),
            plural=steps.get("resource", ""),
            subresource=steps.get("subresource", ""),
            namespace=steps.get("namespace", ""),
            name=steps.get("name", ""),
            path=steps.get("path", ""),
        )
        decision = authorizer.decide(requested)
        return {"allowed": decision.allowed, "reason": decision.reason}

    def setter(key: str) -> Callable[[_Value, str], _Value]:
        return lambda steps, value: {**steps, key: value}

    resource = {
        "group": attributes.group,
        "resource": attributes.plural,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace_or_self,
        "name": attributes.name,
    }
    context.add_variable("authorizer", {"requestResource": resource})
    for key in ("path", "group", "resource", "subresource", "namespace", "name"):
        context.add_function(key, setter(key))
    context.add_function("serviceAccount", lambda steps, ns, name: {**steps, "account": [ns, name]})
    context.add_function("check", check)
    context.add_function("allowed", lambda decision: decision["allowed"])
    context.add_function("reason", lambda decision: decision["reason"])
    context.add_function("errored", lambda decision: False)
    context.add_function("error", lambda decision: "")


def _user(steps: _Value, user: User) -> User:
    if "account" not in steps:
        return user
    namespace, name = steps["account"]
    groups = (*service_account_groups(namespace), "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups)
