"""Objects can be read as types, and referred to as owners and in events."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import CRDS, Key, Object, Resource, owner_reference
from fivespot.runtime.telemetry import ObjectRef

FLEETS = Resource("example.com", "v1", "fleets", "Fleet")


class Spec(msgspec.Struct):
    size: int


class Fleet(msgspec.Struct):
    spec: Spec


@dataclass
class FleetData:
    spec: Spec


class SpecModel(BaseModel):
    size: int


class FleetModel(BaseModel):
    spec: SpecModel


def fleet(**spec: Any) -> Object:
    metadata = {"name": "north", "namespace": "prod", "uid": "u1", "resourceVersion": "7"}
    return Object.parse(msgspec.json.encode({"kind": "Fleet", "metadata": metadata, "spec": spec}))


def test_an_object_is_read_as_a_struct_a_dataclass_or_a_pydantic_model() -> None:
    obj = fleet(size=3, other=[1])
    assert obj.read(Fleet).spec.size == obj.read(FleetData).spec.size == obj.read(FleetModel).spec.size == 3
    assert obj.read(Fleet) is not obj.read(Fleet), "each reader gets a copy of its own"


@pytest.mark.parametrize("model", [Fleet, FleetData, FleetModel])
def test_a_field_of_another_type_is_a_protocol_error_that_names_object_and_field(model: type) -> None:
    with pytest.raises(ProtocolError, match=r"(?s)prod/north: .*spec.size"):
        fleet(size="many").read(model)


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    program = "import sys, fivespot.runtime.objects; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_owner_reference_names_the_owner() -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "north", "uid": "u1"}
    assert owner_reference(FLEETS, fleet()) == {**owner, "controller": True, "blockOwnerDeletion": True}
    assert owner_reference(FLEETS, fleet().head, controller=False, block=False) == {
        **owner,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def test_an_event_refers_to_an_object_or_its_head() -> None:
    ref = ObjectRef("example.com/v1", "Fleet", "prod", "north", "u1")
    assert ObjectRef.of(FLEETS, fleet()) == ObjectRef.of(FLEETS, fleet().head) == ref


def test_the_resource_of_definitions_is_cluster_scoped() -> None:
    key = Key("", FLEETS.qualified)
    assert CRDS.object_path(key) == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/fleets.example.com"
