"""On the Kubernetes that the end-to-end tests run on: what `python -m bench.availability` measures, for shorter."""

from tests.e2e.conftest import cluster as cluster
from tests.e2e.conftest import directory as directory
