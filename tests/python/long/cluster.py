"""A local Ray cluster of two nodes with a processor each."""

from collections.abc import Iterator
from contextlib import contextmanager

from ray.cluster_utils import Cluster


@contextmanager
def cluster() -> Iterator[str]:
    """Start a cluster and return its address."""
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    try:
        nodes.wait_for_nodes()
        yield nodes.address
    finally:
        nodes.shutdown()
