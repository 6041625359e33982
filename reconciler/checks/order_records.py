"""Creates the records of open orders."""

from altershield.api.change_workload import ChangeWorkload
from kube_base.access.errors import AlreadyExistsError, KubernetesError
from kube_base.access.informer import Informer
from kube_base.resources import CONFIG_MAPS
from reconciler.cluster.open_orders import OpenOrder, manifest, record_name
from reconciler.cluster.writer import Writer
from reconciler.server.server_errors import UnavailableError


class OrderRecords:
    """The records. `informer` is that of the records in the namespace `namespace`."""

    def __init__(self, informer: Informer[OpenOrder], writer: Writer, namespace: str) -> None:
        self._informer = informer
        self._writer = writer
        self._namespace = namespace

    async def record(self, release: ChangeWorkload) -> None:
        """Create the record of the order of a release, if it does not exist. UnavailableError if this fails: without
        the record, the order is not created."""
        name = record_name(release)
        if self._informer.get(self._namespace, name) is not None:
            return
        try:
            made = await self._writer.create_uncached(CONFIG_MAPS, manifest(release, self._namespace), self._namespace)
        except AlreadyExistsError:
            return
        except KubernetesError as error:
            message = f"the order cannot be recorded in the ConfigMap {self._namespace}/{name}: {error}"
            raise UnavailableError(message, delivered=False) from error
        self._informer.observe(self._informer.read(made))
