"""The CustomResourceDefinitions that a control plane is given: Cluster API's, the stand-ins, a folder of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .build import Say, say_to_stderr
from .clusterapi import cluster_api_manifests, read_yaml

Crd = dict[str, Any]

_STAND_INS = Path(__file__).with_name("standin.yaml")


def cluster_api_crds(say: Say = say_to_stderr) -> list[Crd]:
    """The CRDs of Cluster API's core, for a server without its manager.

    The files come without a conversion stanza (upstream adds its webhook at release). Strategy None serves all
    versions of an object with nothing changed but ``apiVersion``, which is enough as long as Cluster API's own
    webhook does not run.

    Raises:
        BuildFailed: the module could not be downloaded.
    """
    crds = cluster_api_manifests(say=say).definitions
    for crd in crds:
        crd["spec"]["conversion"] = {"strategy": "None"}
    return crds


def stand_in_crds() -> list[Crd]:
    """Bootstrap and infrastructure kinds of our own that carry Cluster API's contract label."""
    items: list[Crd] = yaml.safe_load(_STAND_INS.read_text())["items"]
    return items


def read_crds(folder: Path) -> list[Crd]:
    """Every CRD in the YAML files of a folder, by file name; empty when the folder is absent."""
    return [
        document
        for path in sorted(folder.glob("*.yaml"))
        for document in read_yaml(path)
        if document["kind"] == "CustomResourceDefinition"
    ]


def is_established(crd: Crd) -> bool:
    """Whether the server serves the kind."""
    # Right after the creation the server sends `conditions: null`.
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
