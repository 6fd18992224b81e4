"""A client generated from Kubernetes' OpenAPI document, on the embedded server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client import ApiClient, ApiException

from fivespot.apiserver import ApiServer, HttpListener, kubeconfig, write_kubeconfig


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[ApiClient]:
    async with ApiServer() as server, HttpListener(server) as front:
        path = tmp_path / "kubeconfig"
        write_kubeconfig(path, kubeconfig(front.url, token="anyone"))
        settings = client.Configuration()
        await config.load_kube_config(str(path), client_configuration=settings)
        async with ApiClient(settings) as made:
            yield made


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


async def test_objects_come_change_and_go(api: ApiClient) -> None:
    core = client.CoreV1Api(api)
    made = await core.create_namespaced_config_map("default", config_map("a", x="1"))
    assert made.metadata.uid
    assert (await core.read_namespaced_config_map("a", "default")).data == {"x": "1"}
    patched = await core.patch_namespaced_config_map("a", "default", {"data": {"y": "2"}})
    assert patched.data == {"x": "1", "y": "2"}
    with pytest.raises(ApiException) as caught:
        await core.create_namespaced_config_map("default", config_map("a"))
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")
    made.data = {"x": "9"}
    with pytest.raises(ApiException) as caught:
        await core.replace_namespaced_config_map("a", "default", made)
    assert caught.value.status == 409
    listed = await core.list_namespaced_config_map("default", limit=1)
    assert [item.metadata.name for item in listed.items] == ["a"]
    assert not listed.metadata._continue
    deleted = await core.delete_namespaced_config_map("a", "default")
    assert deleted.status == "Success"


async def test_a_watch_tells_what_happens(api: ApiClient) -> None:
    core = client.CoreV1Api(api)
    seen = []

    async def look() -> None:
        async with watch.Watch() as stream:
            async for event in stream.stream(core.list_namespaced_config_map, "default", timeout_seconds=5):
                seen.append((event["type"], event["object"].metadata.name))
                if event["type"] == "DELETED":
                    return

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        await core.create_namespaced_config_map("default", config_map("a"))
        await core.patch_namespaced_config_map("a", "default", {"data": {"y": "2"}})
        await core.delete_namespaced_config_map("a", "default")
    assert seen[-1] == ("DELETED", "a")
    assert [name for _, name in seen] == ["a"] * len(seen)


async def test_custom_resources(api: ApiClient) -> None:
    schema = client.V1JSONSchemaProps(type="object", x_kubernetes_preserve_unknown_fields=True)
    version = client.V1CustomResourceDefinitionVersion(
        name="v1", served=True, storage=True, schema=client.V1CustomResourceValidation(open_apiv3_schema=schema)
    )
    names = client.V1CustomResourceDefinitionNames(kind="Widget", plural="widgets")
    spec = client.V1CustomResourceDefinitionSpec(
        group="example.com", scope="Namespaced", names=names, versions=[version]
    )
    body = client.V1CustomResourceDefinition(
        api_version="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        metadata=client.V1ObjectMeta(name="widgets.example.com"),
        spec=spec,
    )
    definitions = client.ApiextensionsV1Api(api)
    await definitions.create_custom_resource_definition(body)
    read = await definitions.read_custom_resource_definition("widgets.example.com")
    assert {each.type: each.status for each in read.status.conditions}["Established"] == "True"
    place = ("example.com", "v1", "default", "widgets")
    objects = client.CustomObjectsApi(api)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "any": {"thing": [1]}}
    made = await objects.create_namespaced_custom_object(*place, widget)
    assert made["any"] == {"thing": [1]}
    listed = await objects.list_namespaced_custom_object(*place)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]


async def test_a_lease_is_held_by_one(api: ApiClient) -> None:
    leases = client.CoordinationV1Api(api)
    spec = client.V1LeaseSpec(holder_identity="one", lease_duration_seconds=15)
    body = client.V1Lease(metadata=client.V1ObjectMeta(name="leader"), spec=spec)
    held = await leases.create_namespaced_lease("default", body)
    first, second = await leases.read_namespaced_lease("leader", "default"), held
    first.spec.lease_transitions = 1
    await leases.replace_namespaced_lease("leader", "default", first)
    second.spec.holder_identity = "two"
    with pytest.raises(ApiException) as caught:
        await leases.replace_namespaced_lease("leader", "default", second)
    assert caught.value.status == 409
