"""The world as the caches show it: a cache that cannot tell must never count as proof that something is gone."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.api import names
from fivespot.contract import Resolved, Unreadable
from fivespot.controllers.scheduledmachine.cluster_api import Known
from fivespot.controllers.scheduledmachine.observe import (
    CLUSTER_KIND,
    MACHINE_KIND,
    machine_resource,
    machine_version,
    named_kinds,
    observe,
    see_machine,
    template_resources,
)
from fivespot.controllers.scheduledmachine.protocols import NamedKind
from fivespot.controllers.scheduledmachine.snapshot import Slot, World
from fivespot.controllers.scheduledmachine.spec import TemplateKind
from fivespot.controllers.scheduledmachine.stored_status import StoredStatus
from fivespot.runtime import ForbiddenError, GroupKind, KindAbsent, KindUnknown, Resource
from fivespot.runtime.objects import KindState
from unit.controllers.build import (
    BOOTSTRAP,
    INFRASTRUCTURE,
    NAME,
    OLD_INFRASTRUCTURE,
    UID,
    head,
    machine,
    ref,
    spec,
    stored_status,
)
from unit.controllers.inputs import HOURS_KIND, Cached, Read, kind, obj, of

FORBIDDEN = ForbiddenError(403, "Forbidden", "no right to list", request="list")


def machines(*served: str, storage: str = "") -> KindState:
    return kind(names.CLUSTER_API_GROUP, "Machine", served=served, storage=storage or next(iter(served), ""))


def owned(api_version: str, kind: str, uid: str) -> dict[str, Any]:
    return {
        "ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": NAME, "uid": uid, "controller": True}]
    }


MACHINE = obj(uid="m-1", metadata=owned(names.API_VERSION, "ScheduledMachine", UID))
OURS = obj(uid="b-1", metadata={"annotations": {names.ANNOTATION_UID: UID}})


def world(inputs: Cached, *, stored: StoredStatus | None = None) -> World:
    return observe(inputs, head(), spec(), stored or stored_status(), see_machine(inputs, head(), None))


def test_the_ordinary_world_is_known_throughout() -> None:
    found = world(Cached())
    assert isinstance(found.resolution, Resolved)
    assert found.resolution.active
    assert (found.capi.installed, found.capi.version) == (Known.YES, "v1beta2")
    assert (found.cluster.exists, found.machine_known, found.children_known) == (Known.YES, Known.YES, Known.YES)
    assert (found.machine, found.children, found.templates.usable) == (None, (), Known.YES)


# The schedule ---------------------------------------------------------------------------------------------------


@pytest.mark.contract("A15")
@pytest.mark.parametrize(
    "cache",
    [
        None,
        Read(synced=False),
        Read(objects=(obj("hours", status={"active": True}),), error_since=5.0, last_error=FORBIDDEN),
    ],
    ids=["not-opened", "not-listed", "synced-once-and-failing-now"],
)
def test_a_schedule_whose_cache_may_be_outdated_gives_no_verdict(cache: Read | None) -> None:
    inputs = Cached()
    del inputs.read[HOURS_KIND]
    if cache is not None:
        inputs.read[HOURS_KIND] = cache
    assert isinstance(world(inputs).resolution, Unreadable)


# Cluster API and the Machine ------------------------------------------------------------------------------------


@pytest.mark.contract("B2.1")
@pytest.mark.parametrize(
    ("state", "installed", "version"),
    [
        (KindAbsent(), Known.NO, ""),
        (KindUnknown("403"), Known.UNKNOWN, ""),
        (machines("v1beta2", "v1beta1", storage="v1beta1"), Known.YES, "v1beta1"),
        (machines("v1beta2", "v1beta1", storage="v1alpha4"), Known.YES, "v1beta2"),
        (machines("v1beta1", storage="v1beta2"), Known.YES, "v1beta1"),
        (machines("v1alpha4"), Known.YES, ""),
        (machines(), Known.YES, ""),
    ],
)
def test_cluster_api_is_absent_only_if_its_definitions_are_read(state: Any, installed: Known, version: str) -> None:
    inputs = Cached()
    inputs.kinds[MACHINE_KIND] = state
    capi = see_machine(inputs, head(), None).capi
    assert (capi.installed, capi.version) == (installed, version)
    assert bool(capi.why) is not bool(version)


@pytest.mark.contract("B2.1")
@pytest.mark.parametrize(
    ("wanted", "version"), [("v1beta1", "v1beta1"), ("v1alpha3", ""), ("v1gamma", "v1beta2"), (None, "v1beta2")]
)
def test_the_version_that_was_asked_for_is_used_if_it_is_served_and_known(wanted: str | None, version: str) -> None:
    assert machine_version(machines("v1beta2", "v1beta1", "v1alpha3"), wanted) == version


@pytest.mark.contract("B2.1")
def test_machines_have_a_resource_only_at_a_served_version() -> None:
    inputs = Cached()
    found = machine_resource(inputs, "v1beta2")
    assert found == Resource(names.CLUSTER_API_GROUP, "v1beta2", "machines", "Machine")
    assert machine_resource(inputs, "v1beta1") is None
    inputs.kinds[MACHINE_KIND] = KindAbsent()
    assert machine_resource(inputs, "v1beta2") is None


@pytest.mark.contract("B1.6")
@pytest.mark.parametrize(
    "cache",
    [
        None,
        Read(synced=False, last_error=FORBIDDEN),
        Read(objects=(obj(spec={"clusterName": 5}),)),
    ],
    ids=["not-opened", "not-listed", "of-another-shape"],
)
def test_whether_there_is_a_machine_is_unknown_until_its_cache_can_tell(cache: Read | None) -> None:
    inputs = Cached(machine_cache=cache)
    found = world(inputs)
    assert (found.machine, found.machine_known) == (None, Known.UNKNOWN)
    assert found.machine_why
    if cache is not None and cache.last_error is not None:
        assert "no right to list" in found.machine_why


@pytest.mark.contract("B3.4")
def test_without_cluster_api_there_is_certainly_no_machine() -> None:
    inputs = Cached(machine_cache=None)
    inputs.kinds[MACHINE_KIND] = KindAbsent()
    assert see_machine(inputs, head(), None).known is Known.NO


@pytest.mark.contract("B2.2")
def test_a_machine_of_somebody_else_is_seen_and_is_not_ours() -> None:
    foreign = obj(uid="m-9", metadata=owned("cluster.x-k8s.io/v1beta2", "MachineSet", "ms-1"))
    for found, ours in ((MACHINE, True), (foreign, False)):
        seen = see_machine(Cached(machine_cache=Read(objects=(found,))), head(), None)
        assert seen.machine is not None
        assert (seen.ours(UID) is seen.machine) is ours


# The Cluster ----------------------------------------------------------------------------------------------------


@pytest.mark.contract("B6.1")
@pytest.mark.parametrize(
    ("cache", "exists"),
    [
        (None, Known.UNKNOWN),
        (Read(synced=False), Known.UNKNOWN),
        (Read(), Known.NO),
        (Read(objects=(obj("prod"),)), Known.YES),
        (Read(objects=(obj("other"),)), Known.NO),
    ],
)
def test_a_cluster_is_absent_only_if_clusters_are_read(cache: Read | None, exists: Known) -> None:
    assert world(Cached(cluster_cache=cache)).cluster.exists is exists


@pytest.mark.contract("B6.1", "B6.2")
def test_a_cluster_that_is_paused_or_being_deleted_is_seen_as_such() -> None:
    paused = obj("prod", spec={"paused": True})
    leaving = obj("prod", metadata={"deletionTimestamp": "2026-11-30T09:00:00Z", "finalizers": ["x"]})
    seen = [world(Cached(cluster_cache=Read(objects=(found,)))).cluster for found in (obj("prod"), paused, leaving)]
    assert [(found.paused, found.deleting) for found in seen] == [(False, False), (True, False), (False, True)]


def test_without_the_definition_of_clusters_there_is_none() -> None:
    inputs = Cached(cluster_cache=None)
    del inputs.kinds[CLUSTER_KIND]
    assert world(inputs).cluster.exists is Known.NO


# Children -------------------------------------------------------------------------------------------------------


def with_bootstrap(cache: Read | None = None, state: Any = None) -> Cached:
    inputs = Cached()
    inputs.read.pop(BOOTSTRAP.group_kind)
    if cache is not None:
        inputs.read[BOOTSTRAP.group_kind] = cache
    if state is not None:
        inputs.kinds[BOOTSTRAP.group_kind] = state
    return inputs


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize(
    ("inputs", "refused"),
    [
        (with_bootstrap(), False),
        (with_bootstrap(Read(synced=False)), False),
        (with_bootstrap(Read(synced=False, last_error=FORBIDDEN, error_since=3.0)), True),
        (with_bootstrap(Read(synced=False, last_error=TimeoutError("slow"), error_since=3.0)), False),
        (with_bootstrap(Read(), KindUnknown("503")), False),
    ],
    ids=["not-opened", "not-listed", "forbidden", "slow", "definition-unreadable"],
)
def test_children_that_cannot_be_read_are_unknown_and_only_a_missing_right_is_refused(
    inputs: Cached, refused: bool
) -> None:
    found = world(inputs)
    assert (found.children_known, found.children_error) == (Known.UNKNOWN, refused)
    assert found.children_why


@pytest.mark.contract("B2.3")
def test_one_kind_that_is_refused_is_reported_though_another_is_only_slow() -> None:
    inputs = with_bootstrap(Read(synced=False, last_error=FORBIDDEN, error_since=3.0))
    inputs.read[INFRASTRUCTURE.group_kind] = Read(INFRASTRUCTURE, synced=False)
    found = world(inputs)
    assert (found.children_known, found.children_error) == (Known.UNKNOWN, True)


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize("change", [{"established": False}, {"served": ()}])
@pytest.mark.parametrize("named", [False, True])
def test_objects_of_a_kind_that_is_not_served_may_exist_if_status_names_them(
    change: dict[str, Any], named: bool
) -> None:
    stored = stored_status(bootstrapRef=ref(BOOTSTRAP)) if named else stored_status()
    found = world(with_bootstrap(state=of(BOOTSTRAP, **change)), stored=stored)
    assert found.children_known is (Known.UNKNOWN if named else Known.YES)


@pytest.mark.contract("B2.3")
def test_objects_of_a_kind_without_a_definition_do_not_exist() -> None:
    found = world(with_bootstrap(state=KindAbsent()), stored=stored_status(bootstrapRef=ref(BOOTSTRAP)))
    assert (found.children_known, found.children) == (Known.YES, ())


@pytest.mark.contract("B2.3")
def test_a_kind_that_is_being_deleted_is_still_searched_for_children() -> None:
    found = world(with_bootstrap(Read(objects=(OURS,)), of(BOOTSTRAP, deleting=True)))
    assert [(child.slot, child.head.uid) for child in found.children] == [(Slot.BOOTSTRAP, "b-1")]


@pytest.mark.contract("B2.2")
def test_children_are_found_by_name_and_told_apart_by_owner() -> None:
    stranger = obj(uid="i-9")
    inputs = with_bootstrap(Read(objects=(OURS, obj("web-2", uid="b-2"))))
    inputs.read[INFRASTRUCTURE.group_kind] = Read(INFRASTRUCTURE, objects=(stranger,))
    found = world(inputs)
    assert [(child.head.uid, child.ours) for child in found.children] == [("b-1", True), ("i-9", False)]
    assert found.children_known is Known.YES


@pytest.mark.contract("B2.3")
def test_kinds_that_only_status_or_the_machine_names_are_searched_too() -> None:
    old = stored_status(infrastructureRef=ref(OLD_INFRASTRUCTURE))
    assert list(named_kinds(spec(), old, machine())) == [
        NamedKind(Slot.BOOTSTRAP, BOOTSTRAP.group_kind, "v1beta2"),
        NamedKind(Slot.INFRASTRUCTURE, INFRASTRUCTURE.group_kind, "v1beta2"),
        NamedKind(Slot.INFRASTRUCTURE, OLD_INFRASTRUCTURE.group_kind, ""),
    ]
    edited = spec(bootstrap=None, infrastructure=None)
    assert list(named_kinds(edited, stored_status(), machine())) == [
        NamedKind(Slot.BOOTSTRAP, BOOTSTRAP.group_kind),
        NamedKind(Slot.INFRASTRUCTURE, INFRASTRUCTURE.group_kind),
    ]


# Templates ------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B2.4")
@pytest.mark.parametrize(
    ("state", "usable", "words"),
    [
        (KindAbsent(), Known.NO, "is not installed"),
        (KindUnknown("503"), Known.UNKNOWN, "503"),
        (of(INFRASTRUCTURE, deleting=True), Known.NO, "is being deleted"),
        (of(INFRASTRUCTURE, established=False), Known.NO, "is not established"),
        (of(INFRASTRUCTURE, namespaced=False), Known.NO, "not namespaced"),
        (of(INFRASTRUCTURE, served=("v1",)), Known.NO, "version v1beta2 is not served"),
        (of(INFRASTRUCTURE, labels={}), Known.NO, "contract label"),
        (of(INFRASTRUCTURE, labels={"cluster.x-k8s.io/v1beta1": "v1"}), Known.YES, ""),
    ],
)
def test_a_machine_is_created_only_from_kinds_that_cluster_api_can_handle(
    state: Any, usable: Known, words: str
) -> None:
    inputs = Cached()
    inputs.kinds[INFRASTRUCTURE.group_kind] = state
    found = world(inputs).templates
    assert found.usable is usable
    assert words in found.why


@pytest.mark.contract("B2.4")
def test_a_kind_that_the_admission_policy_takes_for_another_is_refused() -> None:
    """The right to create the one would be enough to have the other created."""
    irregular = of(INFRASTRUCTURE, plural="twins", crd_name=f"twins.{INFRASTRUCTURE.group}")
    inputs = Cached()
    inputs.kinds[INFRASTRUCTURE.group_kind] = irregular
    assert world(inputs).templates.usable is Known.YES, "an irregular plural alone is no problem"
    other = kind(INFRASTRUCTURE.group, "Standinmachine")
    assert other.plural == of(INFRASTRUCTURE).plural
    inputs.kinds[GroupKind(other.group, other.kind)] = other
    found = world(inputs).templates
    assert found.usable is Known.NO
    assert "takes kind StandInMachine for standinmachines, which are of kind Standinmachine" in found.why


def test_templates_that_are_served_have_a_resource_at_their_version() -> None:
    asked = spec(infrastructure=TemplateKind(INFRASTRUCTURE.group_kind, "v1"))
    found = template_resources(Cached(), asked)
    assert {slot: resource.api_version for slot, resource in found.items()} == {Slot.BOOTSTRAP: BOOTSTRAP.api_version}
