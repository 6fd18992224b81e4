"""Structural schemas: shape, defaults, pruning, validation and CEL rules of custom resources."""

from .checking import ABSENT, BLOCKED, is_blocking, validate
from .node import Node, compile_schema
from .rules import check_rules
from .shaping import apply_defaults, prune
from .structural import ROOT, schema_problems

__all__ = [
    "ABSENT",
    "BLOCKED",
    "ROOT",
    "Node",
    "apply_defaults",
    "check_rules",
    "compile_schema",
    "is_blocking",
    "prune",
    "schema_problems",
    "validate",
]
