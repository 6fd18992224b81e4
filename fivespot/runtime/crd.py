"""Custom resource definitions from pydantic models.

A root model with `spec` and `status` becomes a CustomResourceDefinition:

    class Spec(BaseModel):
        replicas: Annotated[int, Cel("self % 2 == 1", "replicas must be odd")] = 1

    class Widget(BaseModel):
        "A widget, as `kubectl explain widget` describes it."
        spec: Spec

    crd(group="example.org", kind="Widget", plural="widgets", singular="widget",
        versions=[CrdVersion("v1", Widget)])

Types, bounds, patterns, defaults, enumerations and docstrings (with `use_attribute_docstrings`) are read from the
model; the annotations here add what pydantic cannot express. Output is deterministic, so a generated file can be
committed and compared. Not re-exported by `fivespot.runtime`: a manager does not need it.
"""

from fivespot.runtime._crd.annotations import (
    RULE_BROKEN,
    Cel,
    Extra,
    RuledModel,
    list_atomic,
    list_map,
    list_set,
    matches,
    nullable,
    preserve_unknown_fields,
    undefaulted,
)
from fivespot.runtime._crd.definition import Column, CrdVersion, crd
from fivespot.runtime._crd.schema import SchemaError, structural_schema

__all__ = [
    "RULE_BROKEN",
    "Cel",
    "Column",
    "CrdVersion",
    "Extra",
    "RuledModel",
    "SchemaError",
    "crd",
    "list_atomic",
    "list_map",
    "list_set",
    "matches",
    "nullable",
    "preserve_unknown_fields",
    "structural_schema",
    "undefaulted",
]
