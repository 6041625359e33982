"""Whether a DefensePolicy is accepted: by the API server, and by the rules of the reconciler."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from altershield.api.policy import DefensePolicy, DefensePolicySpec
from altershield.api.resources import DEFENSE_POLICIES
from altershield.views import permission
from command.install.structural_schema import Schema, structural_schema
from command.policy.file import Object
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import BadRequestError, ForbiddenError, InvalidError, NotFoundError, ServerError
from kube_base.errors import UsageError
from reconciler.policies.acceptance import problem

_DRY_RUN = {"dryRun": "All", "fieldManager": "altershield-policy-check", "force": "true", "fieldValidation": "Strict"}
_UNKNOWN_FIELD = "failed to create typed patch object"
"""The beginning of the message about a field that the schema does not have. The API server answers it with 500."""
_MAX_UNKNOWN = 5  # fields that a message names


@dataclass(frozen=True, slots=True)
class Checked:
    """A policy, and why it is not accepted."""

    name: str
    """`NAMESPACE/NAME`."""
    spec: DefensePolicySpec | None
    """None if it cannot be decoded."""
    problem: str
    """Empty if it is accepted."""


def locally(obj: Object, namespace: str) -> Checked:
    """Check the policy without a cluster."""
    name = _name(obj, namespace)
    unknown = list(unknown_fields(structural_schema(DefensePolicy)["properties"]["spec"], obj.get("spec"), "spec"))
    if unknown:
        return Checked(name, None, f"unknown fields: {', '.join(unknown[:_MAX_UNKNOWN])}")
    try:
        spec = msgspec.convert(obj.get("spec") or {}, DefensePolicySpec)
    except msgspec.ValidationError as error:
        return Checked(name, None, f"spec: {error}")
    rollout = spec.rollout
    if rollout is not None and bool(rollout.steps) == bool(rollout.pods):
        return Checked(name, None, "spec.rollout: rollout has either steps or pods")
    for number, step in enumerate(rollout.steps if rollout is not None else ()):
        if step.pods is None and not step.node_selector:
            return Checked(name, None, f"spec.rollout.steps[{number}]: a step has pods, a nodeSelector, or both")
    return _by_reconciler(name, spec)


async def on_server(client: Client, obj: Object, namespace: str) -> Checked:
    """Check the policy by a dry run. UsageError: AlterShield is not installed, or the user may not write policies."""
    name = _name(obj, namespace)
    where, own = name.split("/")
    try:
        answer = await client.request(
            "PATCH",
            DEFENSE_POLICIES.path(where, own),
            query=_DRY_RUN,
            body={**obj, "metadata": {**obj["metadata"], "namespace": where}},
            content_type=PatchType.APPLY,
        )
    except NotFoundError as error:
        raise UsageError(
            f"cannot ask the API server about DefensePolicy {name}: {error}; check that AlterShield is installed and "
            "that the namespace exists, or add --offline"
        ) from None
    except ForbiddenError as error:
        if not permission.is_missing(error):
            return Checked(name, None, str(error))  # an admission policy
        attempt, role = f"ask the API server about DefensePolicy {name}", permission.role("altershield-policies", where)
        raise UsageError(f"{permission.refused(attempt, error, role)}, or add --offline") from error
    except (InvalidError, BadRequestError) as error:
        return Checked(name, None, str(error))
    except ServerError as error:
        if _UNKNOWN_FIELD not in str(error):
            raise
        return Checked(name, None, str(error))
    return _by_reconciler(name, msgspec.json.decode(answer, type=DefensePolicy).spec)


def _by_reconciler(name: str, spec: DefensePolicySpec) -> Checked:
    found = problem(spec)
    return Checked(name, spec, "" if found is None else f"{found.reason}: {found.message}")


def _name(obj: Object, namespace: str) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or namespace or 'default'}/{metadata['name']}"


def unknown_fields(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """The paths of fields that a structural schema does not have."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from unknown_fields(schema.get("items", {}), each, f"{path}[{index}]")
    elif isinstance(value, dict) and "properties" in schema:
        for key, below in value.items():
            if key in schema["properties"]:
                yield from unknown_fields(schema["properties"][key], below, f"{path}.{key}")
            else:
                yield f"{path}.{key}"
