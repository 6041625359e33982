"""The command lines of `altershield protect` and `altershield unprotect`."""

import asyncio
import sys
from typing import Annotated, Any

import typer

from altershield.api.deletion_protection import CASCADING_LABEL, LABEL, MAX_REASON, REASON, Level, level
from altershield.api.protected_kinds import KRUISE, ProtectedKind
from altershield.process import options
from altershield.views import permission
from command.install.deletion_policies import PREFIX
from command.namespace_option import Namespace, require_namespace
from command.output import ObjectFormat, PrintedObject, say, write_objects
from command.protection.arguments import NamedObject, kinds, parse
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, ForbiddenError, NotFoundError
from kube_base.errors import ReportedError, UsageError
from kube_base.resources import ADMISSION_POLICY_BINDINGS

Object = dict[str, Any]


class ProtectionError(ReportedError):
    """The protection of an object could not be changed."""


Arguments = Annotated[
    list[str],
    typer.Argument(
        metavar="TYPE/NAME...|TYPE NAME...",
        autocompletion=kinds,
        help="The objects: deploy/web, ns/shop, crd/widgets.example.com, svc/web, pvc/data, or deploy web api.",
        show_default=False,
    ),
]


def protect(
    target: Arguments,
    wanted: Annotated[
        Level,
        typer.Option(
            "--level",
            help="Always: the object cannot be deleted. Cascading: it cannot be deleted while its deletion would "
            "delete others, such as the pods of a workload or the content of a Namespace.",
        ),
    ] = Level.ALWAYS,
    reason: Annotated[
        str,
        typer.Option("--reason", "-m", help="Why it is protected. Refused deletions quote it.", show_default=False),
    ] = "",
    namespace: Namespace = "",
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Protect objects from deletion.

    It sets the label policy.kruise.io/delete-protection. The API server then refuses to delete the object, for everyone
    and in every namespace, until the label is taken off.
    """
    named = parse(target)
    for each in named:
        if wanted not in each.kind.levels:
            raise UsageError(
                f"{wanted} does not protect {each}: no other object is deleted together with it; use {Level.ALWAYS}"
            )
    if len(reason) > MAX_REASON:
        raise UsageError(f"the reason has {len(reason)} characters; refusals quote at most {MAX_REASON}")
    metadata: Object = {"labels": {LABEL: wanted.value}}
    if reason:
        metadata["annotations"] = {REASON: reason}
    asyncio.run(_patch(context, kubeconfig, namespace, named, metadata, output))


def unprotect(
    target: Arguments,
    namespace: Namespace = "",
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Take the protection from deletion off objects, so that they can be deleted.

    It removes the labels policy.kruise.io/delete-protection and policy.kruise.io/disable-cascading-deletion, and the
    reason.
    """
    metadata: Object = {"labels": {LABEL: None, CASCADING_LABEL: None}, "annotations": {REASON: None}}
    asyncio.run(_patch(context, kubeconfig, namespace, parse(target), metadata, output))


async def _patch(
    context: str | None,
    kubeconfig: str | None,
    namespace: str,
    named: list[NamedObject],
    metadata: Object,
    output: ObjectFormat | None,
) -> None:
    require_namespace(namespace)
    found: list[Object] = []
    async with await Client.connect(kubeconfig, context=context) as client:
        where = namespace or client.namespace
        for each in named:
            resource = each.kind.resource
            inside = where if resource.namespaced else ""
            try:
                obj: Object = await client.patch(resource, {"metadata": metadata}, each.name, inside)
            except NotFoundError as error:
                if error.details:
                    raise ProtectionError(_not_found(each, inside)) from error
                raise UsageError(f"{each}: the cluster has no {each.kind.plural}") from error
            except ForbiddenError as error:
                verb = "protect" if metadata["labels"][LABEL] else "unprotect"
                where_it_is = f" {permission.place(inside)}" if inside else ""
                raise ProtectionError(
                    permission.refused(f"{verb} {each}{where_it_is}", error, _role(each.kind, inside))
                ) from error
            found.append(obj)
            result = level(obj["metadata"].get("labels") or {})
            line = f"{each} {f'is protected: {result}' if result else 'is not protected'}"
            say(line, output)
        if metadata["labels"][LABEL] and not await _enforced(client):
            print(
                "Warning: the cluster has no ValidatingAdmissionPolicies of AlterShield that refuse deletions, so the "
                "label has no effect; install AlterShield with protection.deletion.enabled",
                file=sys.stderr,
            )
    write_objects(found, output, single=len(found) == 1)


def _not_found(each: NamedObject, namespace: str) -> str:
    if not namespace:
        return f"{each} not found; check the name"
    return f'{each} not found in namespace "{namespace}"; check the name, or set another namespace with -n'


def _role(kind: ProtectedKind, namespace: str) -> str:
    """The role that allows to label objects of this kind."""
    if namespace and kind.resource.group != KRUISE:
        return permission.role("edit", namespace)
    return f"a role with the verb patch on {kind.plural}{f' {permission.place(namespace)}' if namespace else ''}"


async def _enforced(client: Client) -> bool:
    """Whether the policies are installed; True if this user may not read them."""
    selector = "app.kubernetes.io/part-of=altershield"
    try:
        bindings: Any = await client.list(ADMISSION_POLICY_BINDINGS, label_selector=selector)
    except ApiError:
        return True
    return any(f"-{PREFIX}" in binding["metadata"]["name"] for binding in bindings.items)
