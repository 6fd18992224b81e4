"""Structural schemas: shape, defaults, pruning, validation and CEL rules of custom resources."""

from .cel_rules import check_rules
from .defaults import apply_defaults, drop_nulls, prune
from .node import Node, compile_schema
from .props import decode_schema
from .structural import ROOT, schema_problems, schema_warnings
from .validation import ABSENT, BLOCKED, is_blocking, validate

__all__ = [
    "ABSENT",
    "BLOCKED",
    "ROOT",
    "Node",
    "apply_defaults",
    "check_rules",
    "compile_schema",
    "decode_schema",
    "drop_nulls",
    "is_blocking",
    "prune",
    "schema_problems",
    "schema_warnings",
    "validate",
]
