"""The CustomResourceDefinitions that a control plane is given: Cluster API's, the stand-ins, a folder of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from .build import Say, cluster_api_source, locked, say_to_stderr
from .versions import CLUSTER_API, cache_root

Crd = dict[str, Any]

_STAND_INS = Path(__file__).with_name("standin.yaml")


def cluster_api_crds(say: Say = say_to_stderr) -> list[Crd]:
    """The CRDs of Cluster API's core, from its Go module; parsed once per machine (parsing the YAML costs a second).

    The files come without a conversion stanza (upstream adds its webhook at release). Strategy None serves all
    versions of an object with nothing changed but ``apiVersion``, which is enough as long as Cluster API's own
    webhook does not run.

    Raises:
        BuildFailed: the module could not be downloaded.
    """
    cached = cache_root() / f"cluster-api-{CLUSTER_API}.json"
    if not cached.is_file():
        with locked(cache_root() / "cluster-api.lock", say):
            if not cached.is_file():
                say(f"fetching the CRDs of Cluster API {CLUSTER_API}: about 10 seconds the first time")
                parsed = read_crds(cluster_api_source(say) / "core" / "config" / "crd" / "bases")
                for crd in parsed:
                    crd["spec"]["conversion"] = {"strategy": "None"}
                fresh = cached.with_suffix(".new")
                fresh.write_text(json.dumps(parsed))
                fresh.replace(cached)
    crds: list[Crd] = json.loads(cached.read_text())
    return crds


def stand_in_crds() -> list[Crd]:
    """Bootstrap and infrastructure kinds of our own that carry Cluster API's contract label."""
    items: list[Crd] = yaml.safe_load(_STAND_INS.read_text())["items"]
    return items


def read_crds(folder: Path) -> list[Crd]:
    """Every CRD in the YAML files of a folder, by file name; empty when the folder is absent."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [
        document
        for path in sorted(folder.glob("*.yaml"))
        for document in yaml.load_all(path.read_text(), Loader=loader)
    ]
    return [document for document in documents if document and document["kind"] == "CustomResourceDefinition"]


def is_established(crd: Crd) -> bool:
    """Whether the server serves the kind."""
    # Right after the creation the server sends `conditions: null`.
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
