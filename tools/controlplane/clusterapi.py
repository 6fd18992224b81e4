"""One release of Cluster API, made from its Go module: the core manager's program and the manifests that it needs.

Once per machine and release. The manager's webhook server listens on every interface and has no flag that says
otherwise, so the program is built from a copy of the source with one line added, which takes the host from an
environment variable.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from .build import MINIMUM_GO, BuildFailed, Say, build_once, download, locked, run_go, say_to_stderr
from .gotool import find_go
from .versions import cache_root, cluster_api_dir, cluster_api_version

Json = dict[str, Any]

WEBHOOK_HOST = "CAPI_WEBHOOK_HOST"
"""The environment variable from which the program takes the address of its webhook server."""

_MODULE = "sigs.k8s.io/cluster-api"
_API_MODULE = f"{_MODULE}/api"
_OPTIONS = "webhook.Options{\n"
_ADDED = f'Host: os.Getenv("{WEBHOOK_HOST}"),\n'


@dataclass(frozen=True)
class Manifests:
    """The manifests of a release apart from its Deployment."""

    definitions: list[Json]
    webhooks: list[Json]
    rules: list[Json]
    """Of the core manager's ClusterRole."""


def cluster_api_manifests(version: str | None = None, say: Say = say_to_stderr) -> Manifests:
    """The manifests of a release, parsed once per machine (parsing the YAML costs a second).

    Raises:
        BuildFailed: the module could not be downloaded.
    """
    version = version or cluster_api_version()
    cached = cluster_api_dir(version) / "manifests.json"
    if not cached.is_file():
        cluster_api_dir(version).mkdir(parents=True, exist_ok=True)
        with locked(cache_root() / f"cluster-api-{version}.lock", say):
            if not cached.is_file():
                say(f"fetching the manifests of Cluster API {version}: about 10 seconds the first time")
                fresh = cached.with_suffix(".new")
                fresh.write_text(json.dumps(_read_manifests(_source(version, say))))
                fresh.replace(cached)
    return Manifests(**json.loads(cached.read_text()))


def build_cluster_api(version: str | None = None, say: Say = say_to_stderr) -> Path:
    """The core manager's program of a release, built now unless it is there. Safe to call from several processes.

    Raises:
        BuildFailed: a compiler or download error, or a source that is not as expected.
        GoUnavailable: there is no Go compiler and none could be installed.
    """
    version = version or cluster_api_version()
    binary = cluster_api_dir(version) / "bin" / "cluster-api-core"
    what = f"the core manager of Cluster API {version}"
    make = partial(_build, version, binary, say)
    return build_once(binary, what, "two minutes", make, lock=f"cluster-api-{version}", say=say)


def read_yaml(path: Path) -> list[Json]:
    """The documents of a YAML file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(path.read_text(), Loader=loader) if document]


def add_webhook_host(program: str) -> str:
    """The source of the manager's main file with the one line added.

    Raises:
        BuildFailed: there is no single place for it.
    """
    if program.count(_OPTIONS) != 1 or '"os"\n' not in program:
        raise BuildFailed("the core manager's main.go makes its webhook server in a way that is not known here")
    return program.replace(_OPTIONS, _OPTIONS + _ADDED)


def _source(version: str, say: Say) -> Path:
    """The unpacked source in Go's module cache (downloaded when absent, some seconds)."""
    return Path(download(find_go(MINIMUM_GO, say), f"{_MODULE}@v{version}")["Dir"])


def _core(source: Path) -> Path:
    """Return the folder of the core manager; older releases have it at the top."""
    return source / "core" if (source / "core" / "config" / "crd").is_dir() else source


def _read_manifests(source: Path) -> dict[str, list[Json]]:
    config = _core(source) / "config"
    documents = [d for path in sorted((config / "crd" / "bases").glob("*.yaml")) for d in read_yaml(path)]
    roles = [d for d in read_yaml(config / "rbac" / "role.yaml") if d["kind"] == "ClusterRole"]
    return {
        "definitions": [d for d in documents if d["kind"] == "CustomResourceDefinition"],
        "webhooks": read_yaml(config / "webhook" / "manifests.yaml"),
        "rules": [rule for role in roles for rule in role["rules"]],
    }


def _build(version: str, binary: Path, say: Say) -> None:
    go = find_go(MINIMUM_GO, say)
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=cluster_api_dir(version)) as scratch:
        source = Path(scratch) / "source"
        # The module cache is read-only, and so would be a copy that kept its modes.
        shutil.copytree(_source(version, say), source, copy_function=shutil.copyfile)
        for folder in (source, *(path for path in source.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        core = _core(source)
        main = core / "main.go"
        main.write_text(add_webhook_host(main.read_text()))
        _replace_api(go, source, version)
        fresh = Path(scratch) / "cluster-api-core.new"
        package = "./core" if core != source else "."
        flags = ["-trimpath", "-ldflags", linker_flags(version)]
        run_go([str(go), "build", *flags, "-o", str(fresh), package], cwd=source)
        fresh.replace(binary)


def _replace_api(go: Path, source: Path, version: str) -> None:
    """The API types are a module of their own since 1.11, which upstream finds by a path that the archive lacks."""
    upstream = json.loads(run_go([str(go), "mod", "edit", "-json"], cwd=source))
    if any(item["Old"]["Path"] == _API_MODULE for item in upstream.get("Replace") or ()):
        run_go([str(go), "mod", "edit", f"-replace={_API_MODULE}={_API_MODULE}@v{version}"], cwd=source)


def replaces_api(version: str) -> bool:
    """Whether the API types of a release are a module of their own."""
    major, minor, _ = (int(part) for part in version.split("."))
    return (major, minor) >= (1, 11)


def linker_flags(version: str) -> str:
    """Return the linker flags that set a program's version."""
    major, minor, _ = version.split(".")
    facts = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitCommit": "module"}
    return " ".join(["-s", "-w", *(f"-X {_MODULE}/version.{name}={value}" for name, value in facts.items())])
