"""Validation of a pod's volumes (k8s.io/kubernetes, pkg/apis/core/validation)."""

from collections.abc import Callable, Sequence

from kube_sandbox import quantities
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Cause, Causes
from kube_sandbox.apiserver.validation.container import MODE, relative_path
from kube_sandbox.apiserver.validation.env import field_selector, resource_selector

_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MAX_DRIVER = 63  # bytes
_MIN_TOKEN_SECONDS = 600
_REQUIRED = {
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "configMap": ("name",),
    "csi": ("driver",),
}


def valid_volumes(volumes: Sequence[Object], path: str) -> tuple[set[str], list[Cause]]:
    """The names of the valid volumes, which containers may mount, and the causes that make the others invalid."""
    names: set[str] = set()
    wrong: list[Cause] = []
    for index, volume in enumerate(volumes):
        found = list(_volume(volume, names, f"{path}[{index}]"))
        wrong += found
        if not found:
            names.add(volume["name"])
    return names, wrong


def _volume(volume: Object, names: set[str], path: str) -> Causes:
    kinds = [kind for kind in _ORDER if kind in volume]
    for kind in kinds[1:]:
        yield causes.forbidden(f"{path}.{kind}", "may not specify more than 1 volume type")
    if not kinds:
        yield causes.required(path, "must specify a volume type")
    else:
        yield from _source(kinds[0], volume[kinds[0]], f"{path}.{kinds[0]}")
    yield from causes.mandatory(f"{path}.name", volume["name"], texts.label_1123)
    if volume["name"] in names:
        yield causes.duplicate(f"{path}.name", volume["name"])


def _source(kind: str, source: Object, path: str) -> Causes:
    for field in _REQUIRED.get(kind, ()):
        yield from causes.non_empty(f"{path}.{field}", source.get(field))
    if kind in _RULES:
        yield from _RULES[kind](source, path)


def _empty_dir(source: Object, path: str) -> Causes:
    if "sizeLimit" in source and quantities.parse(source["sizeLimit"]) < 0:
        yield causes.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Object, path: str) -> Causes:
    if not source["path"]:
        yield causes.required(f"{path}.path")
        return
    if ".." in source["path"].split("/"):
        yield causes.invalid(f"{path}.path", source["path"], "must not contain '..'")
    yield from causes.one_of(f"{path}.type", source.get("type") or "", _HOST_PATH_TYPES)


def _nfs(source: Object, path: str) -> Causes:
    if not source["path"].startswith("/"):
        yield causes.invalid(f"{path}.path", source["path"], "must be an absolute path")


def _downward(source: Object, path: str) -> Causes:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        yield from _downward_file(item, path)


def _ephemeral(source: Object, path: str) -> Causes:
    if (wanted := source.get("volumeClaimTemplate")) is None:
        yield causes.required(f"{path}.volumeClaimTemplate")
    else:
        yield from claim_spec(wanted["spec"], f"{path}.volumeClaimTemplate.spec")


def _csi(source: Object, path: str) -> Causes:
    driver = source["driver"]
    if len(driver) > _MAX_DRIVER:
        yield causes.too_long(f"{path}.driver", _MAX_DRIVER)
    else:
        yield from causes.optional(f"{path}.driver", driver, lambda name: texts.subdomain(name.lower()))


def _image(source: Object, path: str) -> Causes:
    yield from causes.one_of(f"{path}.pullPolicy", source.get("pullPolicy"), _PULL_POLICIES)


def claim(obj: Object, _: Object | None) -> Causes:
    """Validate a PersistentVolumeClaim."""
    yield from claim_spec(obj["spec"], "spec")


def claim_spec(spec: Object, path: str) -> Causes:
    """Validate the spec of a PersistentVolumeClaim."""
    modes = spec.get("accessModes") or ()
    if not modes:
        yield causes.required(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from causes.one_of(f"{path}.accessModes", mode, _ACCESS_MODES)
    where = f"{path}.resources[storage]"
    size = (spec["resources"].get("requests") or {}).get("storage")
    if size is None:
        yield causes.required(where)
    elif quantities.parse(size) <= 0:
        yield causes.invalid(where, size, "must be greater than zero")
    yield from causes.optional(f"{path}.storageClassName", spec.get("storageClassName"), texts.subdomain)
    yield from causes.one_of(f"{path}.volumeMode", spec.get("volumeMode", "Filesystem"), ("Block", "Filesystem"))


def _mode(mode: int | None, path: str) -> Causes:
    if mode is not None and not 0 <= mode <= 0o777:
        yield causes.invalid(path, mode, MODE)


def _files(source: Object, path: str) -> Causes:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        yield from causes.non_empty(f"{where}.key", item["key"])
        yield from causes.non_empty(f"{where}.path", item["path"])
        yield from _local_path(item["path"], f"{where}.path")
        yield from _mode(item.get("mode"), f"{where}.mode")


def _local_path(target: str, path: str) -> Causes:
    yield from relative_path(target, path)
    if target.startswith("..") and not target.startswith("../"):
        yield causes.invalid(path, target, "must not start with '..'")


def _downward_file(item: Object, path: str) -> Causes:
    yield from causes.non_empty(f"{path}.path", item["path"])
    yield from _local_path(item["path"], f"{path}.path")
    if (field := item.get("fieldRef")) is not None:
        yield from field_selector(field, _FIELDS, f"{path}.fieldRef")
        if "resourceFieldRef" in item:
            yield causes.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif "resourceFieldRef" in item:
        yield from resource_selector(item["resourceFieldRef"], f"{path}.resourceFieldRef", in_volume=True)
    else:
        yield causes.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(item.get("mode"), f"{path}.mode")


def _projected(source: Object, path: str) -> Causes:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (files := projection.get(kind)) is not None:
                yield from causes.non_empty(f"{where}.{kind}.name", files.get("name"))
                yield from _files(files, f"{where}.{kind}")
                yield from _distinct(files, taken, files.get("name", ""), path)
        if (files := projection.get("downwardAPI")) is not None:
            for item in files.get("items") or ():
                yield from _downward_file(item, f"{where}.downwardAPI")
            yield from _distinct(files, taken, None, path)
        if (token := projection.get("serviceAccountToken")) is not None:
            seconds = token["expirationSeconds"]
            if seconds < _MIN_TOKEN_SECONDS:
                why = "may not specify a duration less than 10 minutes"
                yield causes.invalid(f"{where}.serviceAccountToken.expirationSeconds", seconds, why)
            if not token["path"]:
                yield causes.required(f"{path}.path")
            else:
                yield from _local_path(token["path"], f"{path}.path")
        if len(projection) > 1:
            yield causes.forbidden(where, "may not specify more than 1 volume type per source")


def _distinct(files: Object, taken: set[str], shown: str | None, path: str) -> Causes:
    for item in files.get("items") or ():
        target = item["path"]
        if target and target in taken:
            yield causes.invalid(path, target if shown is None else shown, "conflicting duplicate paths")
        taken.add(target)


_RULES: dict[str, Callable[[Object, str], Causes]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _files,
    "nfs": _nfs,
    "downwardAPI": _downward,
    "configMap": _files,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
