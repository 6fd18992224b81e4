"""The client against the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from structlog.testing import capture_logs

from controlplane import Api, ControlPlane
from fivespot.runtime import (
    Client,
    Connection,
    Discovery,
    GroupKind,
    Key,
    Object,
    Resource,
    Selector,
    SystemClock,
    connect,
    errors,
    json_patch,
    merge_patch,
)
from fivespot.runtime.client import Propagation, Watch, WatchEnd, WatchEnded
from fivespot.runtime.clock import ThreadOffload, system_random
from fivespot.runtime.objects import Write, finalizer_patch

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
FINALIZER = "tests.example/hold"


@dataclass
class Recorder:
    told: list[tuple[Any, ...]] = field(default_factory=list)

    def known_version(self, resource: Resource, key: Key | None) -> int:
        return 0

    def rewound(self, version: int) -> None:
        self.told.append(("rewound", version))

    def wrote(self, resource: Resource, obj: Object, write: Write) -> None:
        self.told.append(("wrote", obj.key, obj.head.version))

    def removed(self, resource: Resource, key: Key, uid: str, write: Write) -> None:
        self.told.append(("removed", key, uid))


async def connection_to(path: Path) -> Connection:
    return await connect(
        kubeconfig=str(path),
        user_agent="fivespot-tests/1.0",
        clock=SystemClock(),
        rng=system_random(1),
        offload=ThreadOffload(),
    )


@pytest.fixture
async def connection(control_plane: ControlPlane) -> AsyncIterator[Connection]:
    made = await connection_to(control_plane.admin_kubeconfig)
    async with made:
        yield made


@pytest.fixture
def client(connection: Connection) -> Client:
    return connection.client


def config_map(name: str, **extra: Any) -> dict[str, Any]:
    metadata = {"name": name, **extra.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}, **extra}


async def test_the_life_of_an_object_and_what_observers_hear_of_it(client: Client, namespace: str) -> None:
    recorder = Recorder()
    client.add_observer(recorder)
    key = Key(namespace, "one")
    created = await client.create(CONFIG_MAPS, config_map("one"), namespace=namespace)
    read = await client.get(CONFIG_MAPS, key)
    assert read.head == created.head
    patched = await client.patch(CONFIG_MAPS, key, merge_patch({"data": {"a": "2"}}, created.head))
    assert patched.head.version > created.head.version
    body = patched.decode()
    body["data"]["b"] = "3"
    replaced = await client.replace(CONFIG_MAPS, body)
    assert replaced.decode()["data"] == {"a": "2", "b": "3"}
    applied = await client.apply(
        CONFIG_MAPS, key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"c": "4"}}
    )
    assert applied.decode()["data"] == {"a": "2", "b": "3", "c": "4"}
    assert await client.delete(CONFIG_MAPS, key, uid=created.head.uid) is None
    versions = [obj.head.version for obj in (created, patched, replaced, applied)]
    assert recorder.told == [("wrote", key, version) for version in versions] + [("removed", key, created.head.uid)]
    with pytest.raises(errors.NotFoundError) as caught:
        await client.get(CONFIG_MAPS, key)
    assert caught.value.reason == "NotFound"
    assert await client.delete(CONFIG_MAPS, key, uid=created.head.uid) is None


async def test_the_last_finalizer_takes_the_object_with_it(client: Client, namespace: str) -> None:
    """The answer shows the object at its old version; observers hear that it is gone."""
    recorder = Recorder()
    client.add_observer(recorder)
    key = Key(namespace, "held")
    created = await client.create(
        CONFIG_MAPS, config_map("held", metadata={"finalizers": [FINALIZER]}), namespace=namespace
    )
    deleting = await client.delete(CONFIG_MAPS, key, uid=created.head.uid, propagation=Propagation.FOREGROUND)
    assert deleting is not None
    assert deleting.head.deleting
    assert deleting.head.version > created.head.version
    # Foreground deletion adds a finalizer of its own, which the garbage collector takes away.
    remaining = deleting
    while "foregroundDeletion" in remaining.head.finalizers:
        await asyncio.sleep(0.05)
        remaining = await client.get(CONFIG_MAPS, key)
    patch = finalizer_patch(remaining.head, FINALIZER, present=False)
    assert patch is not None
    last = await client.patch(CONFIG_MAPS, key, patch)
    assert last.head.version == remaining.head.version
    assert recorder.told[-1] == ("removed", key, created.head.uid)
    with pytest.raises(errors.NotFoundError):
        await client.get(CONFIG_MAPS, key)


async def test_preconditions_hold(client: Client, namespace: str) -> None:
    key = Key(namespace, "guarded")
    created = await client.create(CONFIG_MAPS, config_map("guarded"), namespace=namespace)
    changed = await client.patch(CONFIG_MAPS, key, merge_patch({"data": {"a": "2"}}))
    with pytest.raises(errors.ConflictError):
        await client.delete(CONFIG_MAPS, key, uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(errors.ConflictError):
        await client.delete(CONFIG_MAPS, key, uid=created.head.uid, version=created.head.version)
    with pytest.raises(errors.ConflictError):
        await client.patch(CONFIG_MAPS, key, merge_patch({"data": {"a": "3"}}, created.head))
    with pytest.raises(errors.ConflictError):
        await client.replace(CONFIG_MAPS, created.raw)
    with pytest.raises(errors.InvalidError):
        await client.patch(CONFIG_MAPS, key, json_patch([{"op": "test", "path": "/metadata/uid", "value": "x"}]))
    with pytest.raises(errors.AlreadyExistsError):
        await client.create(CONFIG_MAPS, config_map("guarded"), namespace=namespace)
    assert (await client.get(CONFIG_MAPS, key)).head.version == changed.head.version


async def test_a_patch_that_changes_nothing_keeps_the_version(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("same"), namespace=namespace)
    same = await client.patch(CONFIG_MAPS, created.key, merge_patch({"data": {"a": "1"}}))
    assert same.head.version == created.head.version


async def test_dry_runs_change_nothing_and_tell_nobody(client: Client, namespace: str) -> None:
    recorder = Recorder()
    client.add_observer(recorder)
    key = Key(namespace, "never")
    obj = await client.create(CONFIG_MAPS, config_map("never"), namespace=namespace, dry_run=True)
    assert obj.key == key
    with pytest.raises(errors.NotFoundError):
        await client.get(CONFIG_MAPS, key)
    kept = await client.create(CONFIG_MAPS, config_map("kept"), namespace=namespace)
    await client.patch(CONFIG_MAPS, kept.key, merge_patch({"data": {"a": "2"}}), dry_run=True)
    await client.replace(CONFIG_MAPS, kept.raw, dry_run=True)
    await client.apply(CONFIG_MAPS, kept.key, {"apiVersion": "v1", "kind": "ConfigMap"}, dry_run=True)
    assert await client.delete(CONFIG_MAPS, kept.key, uid=kept.head.uid, dry_run=True) is None
    assert (await client.get(CONFIG_MAPS, kept.key)).head.version == kept.head.version
    assert recorder.told == [("wrote", kept.key, kept.head.version)]


def machine(namespace: str, **spec: Any) -> dict[str, Any]:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "StandInMachine", "name": "m"}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": namespace},
        "spec": {
            "clusterName": "prod",
            "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": reference,
            **spec,
        },
    }


async def test_what_the_schema_refuses_names_the_fields(client: Client, namespace: str) -> None:
    with pytest.raises(errors.InvalidError) as caught:
        await client.create(MACHINES, machine(namespace, clusterName=7))
    assert any("spec.clusterName" in cause.field for cause in caught.value.causes)
    with pytest.raises(errors.BadRequestError, match=r'unknown field "spec\.foo"'):
        await client.create(MACHINES, machine(namespace, foo=1), strict=True)
    with capture_logs() as logs:
        await client.create(MACHINES, machine(namespace, foo=1))
    assert [entry["warning"] for entry in logs if "warning" in entry] == ['unknown field "spec.foo"']


async def test_lists_are_read_in_pages_and_by_selector(client: Client, api: Api, namespace: str) -> None:
    api.create_many(
        config_map(f"cm-{n}", metadata={"namespace": namespace, "labels": {"odd": str(n % 2)}}) for n in range(7)
    )
    everything = {obj.key.name for obj in await client.list(CONFIG_MAPS, namespace, limit=2)}
    assert everything >= {f"cm-{n}" for n in range(7)}
    odd = await client.list(CONFIG_MAPS, namespace, selector=Selector.labels({"odd": "1"}), limit=2)
    assert [obj.key.name for obj in odd] == ["cm-1", "cm-3", "cm-5"]
    one = await client.list(CONFIG_MAPS, namespace, selector=Selector(fields="metadata.name=cm-4"))
    assert [obj.key.name for obj in one] == ["cm-4"]
    first = await client.page(CONFIG_MAPS, namespace, limit=3)
    assert (len(first.items), first.remaining) == (3, len(everything) - 3)
    second = await client.page(CONFIG_MAPS, namespace, limit=3, continue_token=first.continue_token)
    assert second.version == first.version
    with pytest.raises(errors.BadRequestError):
        await client.page(CONFIG_MAPS, namespace, continue_token="nonsense")


async def test_metadata_alone_crosses_the_wire(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("slim"), namespace=namespace)
    read = await client.get(CONFIG_MAPS, created.key, metadata_only=True)
    assert (read.head, read.decode()["kind"]) == (created.head, "PartialObjectMetadata")
    assert "data" not in read.decode()
    listed = await client.list(CONFIG_MAPS, namespace, metadata_only=True)
    assert all("data" not in obj.decode() for obj in listed)
    watch = await client.watch(
        CONFIG_MAPS, namespace, version="", initial_events=True, metadata_only=True, server_timeout=30
    )
    async with watch:
        event = await watch.next()
        assert msgspec.json.decode(event.object)["kind"] == "PartialObjectMetadata"


async def end_of(watch: Watch) -> WatchEnded:
    while True:
        try:
            assert (await watch.next()).type == "BOOKMARK"
        except WatchEnded as ended:
            return ended


async def test_a_watch_starts_after_its_version_and_ends_when_agreed(client: Client, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map("w"), namespace=namespace)
    # Before the watch, whose time is short.
    await client.patch(CONFIG_MAPS, first.key, merge_patch({"data": {"a": "2"}}))
    await client.delete(CONFIG_MAPS, first.key, uid=first.head.uid)
    watch = await client.watch(
        CONFIG_MAPS,
        namespace,
        selector=Selector(fields="metadata.name=w"),
        version=str(first.head.version),
        server_timeout=2,
    )
    async with watch:
        events = [await watch.next(), await watch.next()]
        assert [event.type for event in events] == ["MODIFIED", "DELETED"]
        assert (await end_of(watch)).reason is WatchEnd.CLEAN


async def test_a_streamed_list_ends_in_a_marked_bookmark(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("s"), namespace=namespace)
    watch = await client.watch(CONFIG_MAPS, namespace, version="", initial_events=True, server_timeout=30)
    async with watch:
        names = set()
        while (event := await watch.next()).type == "ADDED":
            names.add(Object.parse(bytes(event.object)).key.name)
        assert "s" in names
        assert event.type == "BOOKMARK"
        annotations = msgspec.json.decode(event.object)["metadata"]["annotations"]
        assert annotations["k8s.io/initial-events-end"] == "true"


async def test_a_watch_of_what_is_not_served_or_not_allowed_is_refused(
    control_plane: ControlPlane, client: Client, tmp_path: Path
) -> None:
    unserved = Resource("nowhere.example", "v1", "things", "Thing")
    with pytest.raises(WatchEnded) as ended:
        await client.watch(unserved, version="1", server_timeout=30)
    assert ended.value.reason is WatchEnd.REFUSED
    assert isinstance(ended.value.error, errors.NotServedError)
    assert "page not found" in ended.value.error.message
    path = control_plane.user_kubeconfig(tmp_path / "nobody", "nobody")
    async with await connection_to(path) as nobody:
        with pytest.raises(WatchEnded) as ended:
            await nobody.client.watch(CONFIG_MAPS, version="1", server_timeout=30)
        assert isinstance(ended.value.error, errors.ForbiddenError)
        with pytest.raises(errors.ForbiddenError, match="nobody"):
            await nobody.client.list(CONFIG_MAPS)


async def test_discovery_finds_plurals_and_scopes_and_new_kinds(client: Client, api: Api) -> None:
    discovery = Discovery(client)
    assert await discovery.resource(GroupKind("cluster.x-k8s.io", "Machine"), prefer=["v1beta2"]) == MACHINES
    assert await discovery.resource(GroupKind("", "Namespace")) == NAMESPACES
    with pytest.raises(errors.KindNotServedError):
        await discovery.resource(GroupKind("nowhere.example", "Thing"))
    with pytest.raises(errors.KindNotServedError):
        await discovery.resource(GroupKind("cluster.x-k8s.io", "Thing"))


async def test_a_service_account_and_a_certificate_are_known_to_the_server(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    review = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": namespace}})
    robot = control_plane.service_account_kubeconfig(namespace, "robot", tmp_path / "robot")
    jane = control_plane.user_kubeconfig(tmp_path / "jane", "jane")
    names = []
    for file in (robot, jane):
        async with await connection_to(file) as connection:
            answer = msgspec.json.decode(await connection.client.raw("POST", path, body=review))
            names.append(answer["status"]["userInfo"]["username"])
    assert names == [f"system:serviceaccount:{namespace}:robot", "jane"]


async def test_a_kubeconfig_that_impersonates_acts_as_whom_it_names(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    content = yaml.safe_load(control_plane.admin_kubeconfig.read_text())
    extra = {"example.com/team": ["blue", "red"]}
    content["users"][0]["user"] |= {"as": "jane", "as-uid": "4711", "as-groups": ["editors"], "as-user-extra": extra}
    path = tmp_path / "impersonating"
    path.write_text(yaml.safe_dump(content))
    review = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
    async with await connection_to(path) as connection:
        answer = await connection.client.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
        with pytest.raises(errors.ForbiddenError, match="jane"):
            await connection.client.list(Resource("", "v1", "secrets", "Secret"), "kube-system")
    shown = msgspec.json.decode(answer)["status"]["userInfo"]
    assert (shown["username"], shown["uid"], shown["extra"]) == ("jane", "4711", extra)
    assert set(shown["groups"]) == {"editors", "system:authenticated"}


async def test_credentials_that_the_server_does_not_know_are_told_in_one_line(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    path = control_plane.kubeconfig(tmp_path / "stranger", token="not-a-token")
    async with await connection_to(path) as connection:
        with pytest.raises(errors.ConfigError, match=r"stranger, context .* does not accept the credentials") as caught:
            await connection.check()
    assert "\n" not in str(caught.value)


async def test_the_server_is_checked_by_its_certificate(control_plane: ControlPlane, tmp_path: Path) -> None:
    content = yaml.safe_load(control_plane.admin_kubeconfig.read_text())
    del content["clusters"][0]["cluster"]["certificate-authority-data"]
    path = tmp_path / "untrusting"
    path.write_text(yaml.safe_dump(content))
    async with await connection_to(path) as connection:
        with pytest.raises(errors.ConfigError, match="certificate"):
            await connection.check()
