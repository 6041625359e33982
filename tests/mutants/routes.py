"""Mutants of the reconciler's caches and routes."""

from tests.mutants.mutant import Source

_T = "tests/unit/reconciler/"

SOURCES = (
    Source(
        "reconciler/releases/subject.py",
        (_T + "test_routes.py",),
        (
            ("(old.spec, old.status) != (new.spec, new.status)", "old.spec != new.spec"),
            ("(old.spec, old.status) != (new.spec, new.status)", "old.status != new.status"),
            ("(old.spec, old.status) != (new.spec, new.status)", "False"),
            (
                "            for release in self._caches.releases.all():\n                self._queue.add(workload_key(release))\n",
                "            pass\n",
            ),
            ("        for workload in (old, new):\n", "        for workload in (new,):\n"),
            ("        for workload in (old, new):\n", "        for workload in (old,):\n"),
            (
                "        for each in (old, new):\n            if each is not None:\n                key",
                "        for each in (new,):\n            if each is not None:\n                key",
            ),
            (
                "if old is None or new is None or old.owner != new.owner:\n                    # The pods",
                "if old is None or new is None:\n                    # The pods",
            ),
            (
                "if old is None or new is None or old.owner != new.owner:\n                    # The pods",
                "if new is None or old is not None and old.owner != new.owner:\n                    # The pods",
            ),
            (
                "if old is None or new is None or old.owner != new.owner:\n                    # The pods",
                "if True:\n                    # The pods",
            ),
            ("self._groups_cache.on_pod(key, pod, gone=False)", "pass"),
            ("                self._queue.add(key)\n\n    def _pod", "                pass\n\n    def _pod"),
            (
                "        if old is not None and new is not None and _decisive_fields(old) == _decisive_fields(new):\n            return",
                "        if False:\n            return",
            ),
            ("        for pod in (old, new):\n", "        for pod in (new,):\n"),
            ("if pod is new or not stays:", "if True:"),
            ("if pod is new or not stays:", "if pod is new:"),
            ("(old.owner, old.metadata.uid) == (new.owner, new.metadata.uid)", "old.owner == new.owner"),
            ("(old.owner, old.metadata.uid) == (new.owner, new.metadata.uid)", "old.metadata.uid == new.metadata.uid"),
            ("gone=pod is not new)", "gone=False)"),
            ("gone=pod is not new)", "gone=new is None)"),
            ("                self._queue.add(key)\n\n    def _release", "                pass\n\n    def _release"),
            ("        for release in (old, new):\n", "        for release in (new,):\n"),
            ("        for release in (old, new):\n", "        for release in (old,):\n"),
            ("batch = new or old", "batch = old or new"),
            ("batch = new or old", "batch = new"),
            ("gone=new is None)", "gone=False)"),
            ("            self._groups_cache.on_batch(key, batch, release, gone=new is None)\n", ""),
            ("gone=new is None)\n            self._queue.add(key)", "gone=new is None)"),
            ("        pod.metadata.uid,\n", ""),
            ("        pod.owner,\n", ""),
            ("        pod.hash,\n", ""),
            ("        pod.version,\n", ""),
            ("        pod.finished,\n", ""),
            ("        pod.exists,\n", ""),
            ("        pod.ready,\n", ""),
            ("        pod.ready_at,\n", ""),
            ("        pod.restarts,\n", ""),
            ("        pod.node,\n", ""),
            ("        pod.ip,\n", ""),
            ("        pod.unscheduled,\n", ""),
            ("        pod.creating,\n", ""),
            ("        pod.trouble,\n", ""),
            ("            workloads.add_handler(self._workload)\n", "            pass\n"),
            ("            sets.add_handler(self._set)\n", "            pass\n"),
            ("        caches.pods.add_handler(self._pod)\n", ""),
            ("        caches.releases.add_handler(self._release)\n", ""),
            ("        caches.batches.add_handler(self._batch)\n", ""),
            ("        caches.settings.add_handler(self._setting)\n", ""),
        ),
        equivalent=(
            (
                "        if old is not new and (old is None",
                "        if (old is None",
                "On a resync both are the same object, so spec and status are equal too. This saves the comparison.",
            ),
        ),
    ),
    Source(
        "reconciler/settings.py",
        (_T + "test_routes.py",),
        (
            ("        for setting in (old, new):\n", "        for setting in (new,):\n"),
            ("                self._queue.add(key_of(setting.metadata))\n", "                pass\n"),
        ),
    ),
    Source(
        "reconciler/batches/subject.py",
        (_T + "test_routes.py",),
        (
            ("if new is not None and new.unfinished is not None:", "if new is not None:"),
            ("if new is not None and new.unfinished is not None:", "if False:"),
            (" and old.spec.policy != new.spec.policy:", ":"),
            ("                if batch.unfinished is not None:\n", "                if True:\n"),
            ("                    self._queue.add(batch.metadata.key)\n", "                    pass\n"),
        ),
    ),
    Source(
        "reconciler/cluster/caches.py",
        (_T + "cluster/test_caches.py", _T + "test_routes.py"),
        (
            (
                "self.namespaces = Informer(client, NAMESPACES, Namespace, label_selector=governed)",
                "self.namespaces = Informer(client, NAMESPACES, Namespace)",
            ),
            ("read=adapter.read, keep=self._governs\n", "read=adapter.read\n"),
            ("metadata_only=True, keep=self._keeps_set, resync=0", "metadata_only=True, resync=0"),
            ("read=pods.read, keep=self._keeps_pod, resync=0)", "read=pods.read, resync=0)"),
            ("read=projection.read, keep=self._governs)", "read=projection.read)"),
            ("read=self._read_batch, keep=self._governs, resync=0)", "read=self._read_batch, resync=0)"),
            ("        self.settings.add_handler(lambda old, new: self._forget_settings())\n", ""),
            (
                "            *workloads,\n        )",
                "        )",
            ),
            (
                "            self.pods,\n            *self.sets.values(),\n            *(informer for watch",
                "            *workloads,\n            self.pods,\n            *self.sets.values(),\n            *(informer for watch",
            ),
            ("return informer is None or len(informer) > 0", "return informer is not None and len(informer) > 0"),
            ("return informer is None or len(informer) > 0", "return True"),
            (" in self.workloads.items() if self.defined(kind))", " in self.workloads.items())"),
            ("        if self._filling.get(namespace) is filling:\n", "        if True:\n"),
            ("            and found.governed\n", ""),
            ("            and found.metadata.deletion_timestamp is None\n", ""),
            ("            and namespace not in names.never_governed(self.system_namespace)\n", ""),
            ("names.never_governed(self.system_namespace)", "names.never_governed()[:1]"),
            ("names.never_governed(self.system_namespace)", "names.never_governed(self.system_namespace)[1:]"),
            ("if found is not None and self.governed(namespace) else None", "if found is not None else None"),
            ("if governed_at is None or installed is None:", "if governed_at is None:"),
            ("return max(governed_at, unix(installed.metadata.creation_timestamp))", "return governed_at"),
            (
                "return max(governed_at, unix(installed.metadata.creation_timestamp))",
                "return min(governed_at, unix(installed.metadata.creation_timestamp))",
            ),
            ("        self._in_effect = None\n\n    # the objects", "        pass\n\n    # the objects"),
            (
                "return is_workload(each.owner) and self.governed(each.metadata.namespace)",
                "return self.governed(each.metadata.namespace)",
            ),
            (
                "return is_workload(each.owner) and self.governed(each.metadata.namespace)",
                "return is_workload(each.owner)",
            ),
            ("(is_workload(pod.owner) or is_intermediate(pod.owner)) and", "is_workload(pod.owner) and"),
            ("(is_workload(pod.owner) or is_intermediate(pod.owner)) and", "is_intermediate(pod.owner) and"),
            (
                "(is_workload(pod.owner) or is_intermediate(pod.owner)) and self.governed(pod.metadata.namespace)",
                "(is_workload(pod.owner) or is_intermediate(pod.owner))",
            ),
            ("return found is None or found.ready\n", "return found is not None and found.ready\n"),
            ("return found is None or not found.ready\n", "return found is not None and not found.ready\n"),
            ("if found is not None and found.ready else 0.0", "if found is not None else 0.0"),
            ("return found if found is not None and found.uid == pod.owner.uid else None", "return found"),
            ("        if pod.metadata.namespace != workload.metadata.namespace:\n            return False\n", ""),
            ("            return pod.owner.uid == workload.metadata.uid\n", "            return True\n"),
            ("return found is not None and found.owner.uid == workload.metadata.uid", "return found is not None"),
            ("                if pod.metadata.namespace == namespace:\n", "                if True:\n"),
            ("if each.metadata.namespace == workload.metadata.namespace]", "]"),
            ("if each.metadata.namespace == release.metadata.namespace]", "]"),
            ('return "/".join((', 'return "".join(('),
        ),
        equivalent=(
            (
                "        if self._in_effect is None:\n",
                "        if True:\n",
                "The settings are computed each time instead of once per change, with the same result.",
            ),
        ),
    ),
    Source(
        "altershield/workloads/__init__.py",
        (_T + "test_kinds_of_one_name.py",),
        (
            ("    if not reference.api_version:\n", "    if False:\n"),
            ("    if not reference.api_version:\n", "    if True:\n"),
        ),
    ),
    Source(
        "reconciler/cluster/ownership.py",
        (_T + "cluster/test_caches.py", _T + "test_routes.py"),
        (
            ("    if reference.kind:\n", "    if True:\n"),
            ("release.metadata.controller, release.spec.service_name", "release.metadata.controller, reference.name"),
            ("named_kind(owner) if owner is not None else ADAPTERS", "ADAPTERS"),
            (
                "        owner is not None\n        and owner.uid == workload.metadata.uid\n",
                "        owner is not None\n",
            ),
            ("        and (owner.api_version, owner.kind) == (adapter.resource.api_version, workload.kind)\n", ""),
            (
                "(owner.uid, owner.kind) == (release.metadata.uid, CHANGE_WORKLOADS.kind) and",
                "owner.uid == release.metadata.uid and",
            ),
            (
                "(owner.uid, owner.kind) == (release.metadata.uid, CHANGE_WORKLOADS.kind) and",
                "owner.kind == CHANGE_WORKLOADS.kind and",
            ),
            (" and owner.api_version.startswith(\n        GROUP\n    )", ""),
            (
                "return adapter is not None and owner.api_version == adapter.resource.api_version",
                "return adapter is not None",
            ),
            (
                "resource is not None and owner.api_version == resource.api_version",
                "resource is not None",
            ),
        ),
    ),
    Source(
        "reconciler/namespaces.py",
        (_T + "test_namespaces.py", _T + "test_routes.py"),
        (
            (
                "        if not self._caches.namespaces.synced:\n            return",
                "        if False:\n            return",
            ),
            (
                "if old is None or new is None or old.governed != new.governed or _is_deleting(old) != _is_deleting(new):",
                "if old is None or new is None:",
            ),
            (
                "old.governed != new.governed or _is_deleting(old) != _is_deleting(new):",
                "old.governed != new.governed:",
            ),
            (
                "old.governed != new.governed or _is_deleting(old) != _is_deleting(new):",
                "_is_deleting(old) != _is_deleting(new):",
            ),
            (
                "if old is None or new is None or old.governed",
                "if new is not None and old is not None and old.governed",
            ),
            (
                "if old is None or new is None or old.governed != new.governed or _is_deleting(old) != _is_deleting(new):",
                "if True:",
            ),
            ('self._queue.add(("", metadata.name))', 'self._queue.add((metadata.name, ""))'),
            ("        caches.namespaces.add_handler(self._namespace)\n", ""),
            ("namespace = key[1]", "namespace = key[0]"),
            (
                "            if not informer.synced:\n                continue",
                "            if False:\n                continue",
            ),
            ("if self._caches.governed(namespace):", "if not self._caches.governed(namespace):"),
            ("                await informer.refill(namespace)\n", "                pass\n"),
            ("                await informer.evict(namespace)\n", "                pass\n"),
        ),
    ),
)
