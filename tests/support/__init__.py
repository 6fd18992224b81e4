"""Helpers that tests share. Nothing here uses the product's own client."""

from harness.wait import eventually, eventually_async

from .cluster import CLUSTER_NAME, cluster_objects, make_namespace, unique_name

__all__ = ["CLUSTER_NAME", "cluster_objects", "eventually", "eventually_async", "make_namespace", "unique_name"]
