"""Mapped watches: a change of one object leads to runs for all objects that refer to it.

Pages are ConfigMaps that name a template, another ConfigMap, in an annotation. ``data.rendered`` of a page follows the
page and its template. Shows an index, a mapper that uses it, and what to do while a reference cannot be resolved.
Try it::

    python examples/mapped_watches.py --kubeconfig ~/.kube/config &
    kubectl create configmap hello --from-literal='text=Hello, $who!'
    kubectl label configmap hello example.com/role=template
    kubectl create configmap world --from-literal=who=world
    kubectl annotate configmap world example.com/template=hello
    kubectl label configmap world example.com/role=page
    kubectl get configmap world -o jsonpath='{.data.rendered}'
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from string import Template

from fivespot.runtime import (
    DONE,
    Change,
    Controller,
    Key,
    ManagerContext,
    Object,
    Resource,
    Result,
    Selector,
    merge_patch,
    run,
)

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
ROLE = "example.com/role"
TEMPLATE = "example.com/template"
BY_TEMPLATE = "template"


def template_of(page: Object) -> Key | None:
    name = page.head.annotations.get(TEMPLATE)
    return Key(page.key.namespace, name) if name else None


def templates_of(change: Change) -> Iterable[str]:
    """The index: under which template a page is found."""
    key = template_of(change.object)
    return [] if key is None else [str(key)]


def render(page: Object, template: Object | None) -> str | None:
    """Pure, so that it can be tested without a cluster. None: there is nothing to render with."""
    if template is None:
        return None
    values = {name: text for name, text in page.decode().get("data", {}).items() if name != "rendered"}
    return Template(template.decode().get("data", {}).get("text", "")).safe_substitute(values)


class PageReconciler:
    def __init__(self, context: ManagerContext, namespace: str) -> None:
        self.client = context.client
        self.pages = context.cache.informer(CONFIG_MAPS, namespace=namespace, selector=Selector.labels({ROLE: "page"}))
        self.templates = context.cache.informer(
            CONFIG_MAPS, namespace=namespace, selector=Selector.labels({ROLE: "template"})
        )
        self.pages.add_index(BY_TEMPLATE, templates_of)

    def pages_of(self, change: Change) -> Iterable[Key]:
        """The mapper: which pages a change of a template concerns. Also one that is deleted, or has just come."""
        return self.pages.keys_by_index(BY_TEMPLATE, str(change.key))

    async def reconcile(self, key: Key) -> Result:
        page = self.pages.get(key)
        if page is None or page.head.deleting:
            return DONE
        reference = template_of(page)
        text = render(page, self.templates.get(reference) if reference else None)
        # No timer is needed while a template is missing: its coming is a change, and the mapper finds this page.
        if page.decode().get("data", {}).get("rendered") != text:
            # With the version that was read: if somebody else was faster, ConflictError leads to another run.
            await self.client.patch(CONFIG_MAPS, key, merge_patch({"data": {"rendered": text}}, page.head))
        return DONE


def build(namespace: str, context: ManagerContext) -> Controller:
    reconciler = PageReconciler(context, namespace)
    controller = context.controller("page", reconciler)
    controller.watches(reconciler.pages)
    controller.watches(reconciler.templates, reconciler.pages_of)
    return controller


def main() -> None:
    parser = argparse.ArgumentParser(description="Renders pages from templates.")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--namespace", default="default")
    args = parser.parse_args()
    run(
        lambda manager: manager.add(partial(build, args.namespace)),
        name="page-example",
        kubeconfig=args.kubeconfig,
        log_format="text",
    )


if __name__ == "__main__":
    main()
