"""Shared caches of API objects: listed, watched, indexed, and in step with this process's own writes."""

from .cache import Cache
from .index import IndexFunction
from .informer import Informer, Subscription
from .kinds import Kinds
from .reflector_state import ReflectorSettings
from .shared_informer import Handler, InformerStatus

__all__ = [
    "Cache",
    "Handler",
    "IndexFunction",
    "Informer",
    "InformerStatus",
    "Kinds",
    "ReflectorSettings",
    "Subscription",
]
