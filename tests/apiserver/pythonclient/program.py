"""A program on the official Python client, run in a process of its own; it judges nothing and tells what it saw.

program.py exercise KUBECONFIG NAMESPACE GROUP     one JSON object: the account
program.py lead KUBECONFIG NAMESPACE NAME          a line when it is a candidate, and one when it leads
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

Json = dict[str, Any]

LEASE_SECONDS = 6


def refused(act: Callable[[], Any]) -> Json:
    """Return the code of a refused request and the part of its Status that is the same on every server."""
    try:
        act()
    except ApiException as error:
        status = json.loads(error.body)
        causes = [{"reason": each.get("reason"), "field": each.get("field")} for each in _causes(status)]
        return {"code": error.status, "reason": status["reason"], "message": status["message"], "causes": causes}
    return {"code": 200}


def _causes(status: Json) -> list[Json]:
    return (status.get("details") or {}).get("causes") or []


def events(stream: Iterator[Any], until: int) -> list[str]:
    """The first events of a watch, as type and name."""
    seen: list[str] = []
    for event in stream:
        found = event["object"]
        metadata = found["metadata"] if isinstance(found, dict) else found.metadata
        name = metadata["name"] if isinstance(metadata, dict) else metadata.name
        seen.append(f"{event['type']} {name}")
        if len(seen) == until:
            return seen
    return seen


class Exercise:
    """The parts of the program."""

    def __init__(self, api: client.ApiClient, namespace: str, group: str) -> None:
        self.api, self.ns, self.group = api, namespace, group
        self.core = client.CoreV1Api(api)

    def account(self) -> Json:
        """All that was seen, under the name of each part."""
        return {
            "typed": self.typed(),
            "pages": self.pages(),
            "watched": self.watched(),
            "informed": self.informed(),
            "definition": self.definition(),
            "custom": self.custom(),
            "dynamic": self.dynamic(),
        }

    def _map(self, name: str, **data: str) -> Any:
        return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"of": "typed"}), data=data)

    def typed(self) -> Json:
        core, ns = self.core, self.ns
        made = core.create_namespaced_config_map(ns, self._map("one", a="1"))
        patched = core.patch_namespaced_config_map("one", ns, {"data": {"a": None, "b": "2"}})
        listed = core.patch_namespaced_config_map("one", ns, [{"op": "add", "path": "/data/c", "value": "3"}])
        made.data = {"z": "9"}
        stale = refused(lambda: core.replace_namespaced_config_map("one", ns, made))
        made.metadata.resource_version = None
        replaced = core.replace_namespaced_config_map("one", ns, made)
        secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"}, type="Opaque")
        kept = core.create_namespaced_secret(ns, secret)
        tried = core.create_namespaced_config_map(ns, self._map("tried"), dry_run="All")
        gone = core.delete_namespaced_config_map("one", ns, body=client.V1DeleteOptions())
        return {
            "patched": patched.data,
            "patched by JSON": listed.data,
            "stale": {**stale, "message": "..."},
            "replaced": replaced.data,
            "uid stays": replaced.metadata.uid == made.metadata.uid,
            "secret": kept.data,
            "tried": [tried.metadata.name, refused(lambda: core.read_namespaced_config_map("tried", ns))],
            "again": refused(lambda: core.create_namespaced_secret(ns, secret)),
            "gone": [
                gone["status"],
                gone["details"]["kind"],
                gone["details"]["name"],
                refused(lambda: core.read_namespaced_config_map("one", ns)),
            ],
            "invalid": refused(lambda: core.create_namespaced_config_map(ns, self._map("No_Good"))),
            "nowhere": refused(lambda: core.create_namespaced_config_map("not-there", self._map("one"))),
        }

    def pages(self) -> Json:
        for index in range(5):
            self.core.create_namespaced_config_map(self.ns, self._map(f"page-{index}", n=str(index)))
        chosen: Json = {"label_selector": "of=typed", "limit": 2}
        pages: list[list[str]] = []
        rest: str | None = None
        while rest != "":
            page = self.core.list_namespaced_config_map(self.ns, **chosen, **({"_continue": rest} if rest else {}))
            pages.append([item.metadata.name for item in page.items])
            rest = page.metadata._continue or ""
        by_field = self.core.list_namespaced_config_map(self.ns, field_selector="metadata.name=page-3")
        self.core.delete_collection_namespaced_config_map(self.ns, label_selector="of=typed")
        left = self.core.list_namespaced_config_map(self.ns, label_selector="of=typed")
        return {"pages": pages, "by field": [item.metadata.name for item in by_field.items], "left": len(left.items)}

    def watched(self) -> Json:
        core, ns = self.core, self.ns
        start = core.list_namespaced_config_map(ns).metadata.resource_version
        core.create_namespaced_config_map(ns, self._map("seen", a="1"))
        core.patch_namespaced_config_map("seen", ns, {"metadata": {"labels": {"of": "other"}}})
        core.delete_namespaced_config_map("seen", ns)
        arguments: Json = {"resource_version": start, "timeout_seconds": 30}
        every = watch.Watch().stream(core.list_namespaced_config_map, ns, **arguments)
        labelled = watch.Watch().stream(core.list_namespaced_config_map, ns, label_selector="of=typed", **arguments)
        return {
            "every": events(every, 3),
            "of a label": events(labelled, 2),
            "ends": events(watch.Watch().stream(core.list_namespaced_secret, ns, timeout_seconds=1), 9),
        }

    def informed(self) -> Json:
        told: list[str] = []
        heard = threading.Semaphore(0)

        def tell(event: str) -> Callable[[Any], None]:
            def hear(found: Any) -> None:
                told.append(f"{event} {found.metadata.name}")
                heard.release()

            return hear

        self.core.create_namespaced_config_map(self.ns, self._map("before"))
        informer = SharedInformer(
            list_func=self.core.list_namespaced_config_map, namespace=self.ns, label_selector="of=typed"
        )
        for event in ("ADDED", "MODIFIED", "DELETED"):
            informer.add_event_handler(event, tell(event))
        informer.start()
        try:
            steps: list[Callable[[], Any]] = [
                lambda: None,
                lambda: self.core.create_namespaced_config_map(self.ns, self._map("later")),
                lambda: self.core.patch_namespaced_config_map("later", self.ns, {"data": {"x": "1"}}),
                lambda: self.core.delete_namespaced_config_map("before", self.ns),
            ]
            for step in steps:
                step()
                if not heard.acquire(timeout=60):
                    told.append("nothing within a minute")
            kept = sorted(found.metadata.name for found in informer.cache.list())
        finally:
            informer.stop()
        self.core.delete_namespaced_config_map("later", self.ns)
        return {"told": told, "kept": kept}

    def definition(self) -> Json:
        size = client.V1JSONSchemaProps(type="integer", minimum=1)
        spec = client.V1JSONSchemaProps(
            type="object", required=["size"], properties={"size": size, "color": _text("blue")}
        )
        status = client.V1JSONSchemaProps(type="object", properties={"phase": _text(None)})
        schema = client.V1JSONSchemaProps(type="object", properties={"spec": spec, "status": status})
        version = client.V1CustomResourceDefinitionVersion(
            name="v1",
            served=True,
            storage=True,
            schema=client.V1CustomResourceValidation(open_apiv3_schema=schema),
            subresources=client.V1CustomResourceSubresources(status={}),
        )
        names = client.V1CustomResourceDefinitionNames(kind="Gadget", plural="gadgets", short_names=["gg"])
        name = f"gadgets.{self.group}"
        body = client.V1CustomResourceDefinition(
            api_version="apiextensions.k8s.io/v1",
            kind="CustomResourceDefinition",
            metadata=client.V1ObjectMeta(name=name),
            spec=client.V1CustomResourceDefinitionSpec(
                group=self.group, scope="Namespaced", names=names, versions=[version]
            ),
        )
        definitions = client.ApiextensionsV1Api(self.api)
        definitions.create_custom_resource_definition(body)
        stream = watch.Watch().stream(
            definitions.list_custom_resource_definition, field_selector=f"metadata.name={name}", timeout_seconds=30
        )
        for event in stream:
            found = event["object"]
            conditions = {each.type: each.status for each in found.status.conditions or ()}
            if conditions.get("Established") == "True":
                return {"conditions": conditions, "stored": found.status.stored_versions}
        return {"established": False}

    def custom(self) -> Json:
        objects = client.CustomObjectsApi(self.api)
        place = (self.group, "v1", self.ns, "gadgets")
        made = objects.create_namespaced_custom_object(*place, self._gadget("one", size=3))
        patched = objects.patch_namespaced_custom_object(*place, "one", {"spec": {"size": 4}, "status": {"phase": "x"}})
        said = objects.patch_namespaced_custom_object_status(*place, "one", {"status": {"phase": "Up"}, "spec": None})
        said["spec"]["size"] = 5
        replaced = objects.replace_namespaced_custom_object(*place, "one", said)
        objects.patch_namespaced_custom_object(*place, "one", {"metadata": {"finalizers": [f"{self.group}/held"]}})
        deleting = objects.delete_namespaced_custom_object(*place, "one")
        let_go = objects.patch_namespaced_custom_object(*place, "one", {"metadata": {"finalizers": []}})
        return {
            "defaulted": made["spec"],
            "patched": [patched["spec"], patched.get("status"), patched["metadata"]["generation"]],
            "status": [said["status"], said["metadata"]["generation"]],
            "replaced": [replaced["spec"]["size"], replaced["status"], replaced["metadata"]["generation"]],
            "deleting": "deletionTimestamp" in deleting["metadata"],
            "let go": let_go["metadata"].get("finalizers"),
            "gone": refused(lambda: objects.get_namespaced_custom_object(*place, "one")),
            "invalid": refused(lambda: objects.create_namespaced_custom_object(*place, self._gadget("two", size=0))),
            "unknown field": refused(
                lambda: objects.create_namespaced_custom_object(
                    *place, self._gadget("two", size=1, weight=2), field_validation="Strict"
                )
            ),
        }

    def dynamic(self) -> Json:
        gadgets = DynamicClient(self.api).resources.get(api_version=f"{self.group}/v1", kind="Gadget")
        start = gadgets.get(namespace=self.ns).metadata.resourceVersion
        gadgets.create(body=self._gadget("dyn", size=1), namespace=self.ns)
        apply = partial(gadgets.server_side_apply, namespace=self.ns, name="dyn")
        red, green = self._gadget("dyn", color="red"), self._gadget("dyn", color="green")
        # The default belongs to who created the object.
        applied = apply(body=red, field_manager="painter", force_conflicts=True)
        try:
            apply(body=green, field_manager="rival")
            conflict = None
        except ConflictError as error:
            conflict = json.loads(error.body)["details"]["causes"][0]
        forced = apply(body=green, field_manager="rival", force_conflicts=True)
        owners = sorted(f"{each.manager} {each.operation}" for each in forced.metadata.managedFields)
        gadgets.delete(name="dyn", namespace=self.ns)
        stream = gadgets.watch(namespace=self.ns, resource_version=start, timeout=30)
        return {
            "short names": gadgets.short_names,
            "applied": applied.spec.to_dict(),
            "conflict": conflict,
            "forced": [forced.spec.color, [owner for owner in owners if "Apply" in owner]],
            "watched": events(stream, 4),
            "left": [item.metadata.name for item in gadgets.get(namespace=self.ns).items],
        }

    def _gadget(self, name: str, **spec: Any) -> Json:
        return {"apiVersion": f"{self.group}/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


def _text(default: str | None) -> Any:
    return client.V1JSONSchemaProps(type="string", default=default)


def lead(namespace: str, name: str) -> None:
    """Tell when it is a candidate and when it leads; the client's election ends only with its process."""

    def tell(what: str) -> None:
        sys.stdout.write(f"{what}\n")
        sys.stdout.flush()

    chosen = electionconfig.Config(
        LeaseLock("leader", namespace, name),
        lease_duration=LEASE_SECONDS,
        renew_deadline=LEASE_SECONDS - 1,
        retry_period=1,
        onstarted_leading=partial(tell, "leading"),
        onstopped_leading=partial(tell, "stopped"),
    )
    tell("candidate")
    leaderelection.LeaderElection(chosen).run()


def main(command: str, kubeconfig: str, namespace: str, last: str) -> None:
    config.load_kube_config(kubeconfig)
    if command == "lead":
        lead(namespace, last)
        return
    with client.ApiClient() as api:
        json.dump(Exercise(api, namespace, last).account(), sys.stdout, indent=1, sort_keys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
