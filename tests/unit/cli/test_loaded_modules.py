"""The modules that a running process holds. Each megabyte of an idle controller is an import that nothing needs."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from fivespot.apiserver import ApiRequest, ApiServer, HttpListener, kubeconfig, write_kubeconfig
from fivespot.cli.crds.definitions import definitions

PATIENCE = 60.0
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MACHINES = "/apis/5spot.finos.org/v1beta1/namespaces/default/scheduledmachines"
SCHEDULES = "/apis/spotschedules.5spot.finos.org/v1alpha1/namespaces/default"
EXAMPLES = Path(__file__).parents[3] / "manifests" / "examples"

NEVER = {
    "aiohttp": "11 MB; only the renewal of OIDC tokens sends requests with it",
    "cel_expr_python": "for the embedded API server",
    "kubernetes_asyncio": "34 MB of API models; the loader of kubeconfigs is imported without them",
    "matplotlib": "for the timeline",
    "multiprocessing": "nothing runs in processes",
    "opentelemetry": "only where OTEL_* variables ask for traces",
    "prometheus_async": "imports aiohttp",
    "unittest": "for tests",
    "xml": "nothing is XML",
}
"""Modules that no manager loads, and why."""
NEVER_IN_A_LIBRARY = {
    "click": "for the command line",
    "email.message": "comes with importlib.metadata",
    "http.client": "the client has its own transport",
    "http.server": "comes with prometheus_client",
    "importlib.metadata": "with it come zipfile and the mail parser",
    "prometheus_client": "5 MB; the first scrape imports it",
    "pydantic": "8 MB; only programs that use models need it",
    "urllib.request": "comes with prometheus_client",
}
"""Modules that a program on fivespot.runtime does not load, as long as its metrics are not scraped."""

_LISTED_AT_EXIT = """
import atexit, sys
atexit.register(lambda: print(*sys.modules))
"""
_HELLO_WORLD = """
import os, signal
from fivespot.runtime import DONE, Resource, run

class Once:
    async def reconcile(self, key):
        os.kill(os.getpid(), signal.SIGTERM)
        return DONE

def build(context):
    controller = context.controller("maps", Once())
    controller.watches(context.cache.informer(Resource("", "v1", "configmaps", "ConfigMap")))
    return controller

run(lambda manager: manager.add(build), name="hello")
"""
_MANAGER = """
from fivespot.cli import main
sys.argv[1:] = ["manager", "--log-format=json", "--metrics-port=0", "--health-port=0"]
main()
"""


class Process:
    """A program in a process of its own, connected to a server."""

    def __init__(self, url: str, process: asyncio.subprocess.Process) -> None:
        self.url = url
        self._process = process
        self.log = b""

    async def logged(self, pattern: str) -> re.Match[bytes]:
        assert self._process.stderr is not None
        while (found := re.search(pattern.encode(), self.log)) is None:
            line = await self._process.stderr.readline()
            assert line, self.log.decode()
            self.log += line
        return found

    async def modules(self) -> set[str]:
        """The modules that it had at its end."""
        out, rest = await self._process.communicate()
        assert self._process.returncode == 0, (self.log + rest).decode()
        return set(out.decode().split())

    def terminate(self) -> None:
        self._process.terminate()


@contextlib.asynccontextmanager
async def running(server: ApiServer, code: str, folder: Path) -> AsyncIterator[Process]:
    async with HttpListener(server) as front, asyncio.timeout(PATIENCE):
        file = folder / "kubeconfig"
        write_kubeconfig(file, kubeconfig(front.url, token="secret"))
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "KUBERNETES_"))}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _LISTED_AT_EXIT + code),
            env={**environ, "KUBECONFIG": str(file)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield Process(front.url, process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def loaded(modules: set[str], refused: dict[str, str]) -> dict[str, str]:
    return {name: why for name, why in refused.items() if name in modules}


async def create(server: ApiServer, path: str, body: dict[str, Any]) -> None:
    answer = await server.handle(ApiRequest.of("POST", path, body))
    assert answer.status == 201, answer.body


async def read(server: ApiServer, path: str) -> dict[str, Any]:
    answer = await server.handle(ApiRequest.of("GET", path))
    assert isinstance(answer.body, bytes)
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def eventually(server: ApiServer, path: str, holds: Callable[[dict[str, Any]], Any]) -> None:
    while not holds(await read(server, path)):
        await asyncio.sleep(0.02)


def established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions", ())
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def test_the_image_has_no_library_that_another_one_would_import() -> None:
    """structlog imports rich, 5 MB, where it is installed; only ``fivespot demo`` draws with it."""
    lock = (EXAMPLES.parents[1] / "requirements" / "runtime.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9._-]+)==", lock, re.MULTILINE))
    assert {"structlog", "prometheus-client"} <= locked
    assert not {"better-exceptions", "cel-expr-python", "matplotlib", "rich", "twisted"} & locked


async def test_a_program_on_the_runtime_loads_what_it_uses(tmp_path: Path) -> None:
    async with ApiServer() as server:
        await create(server, MAPS, {"metadata": {"name": "a"}})
        async with running(server, _HELLO_WORLD, tmp_path) as program:
            modules = await program.modules()
    assert "fivespot.runtime.reconcile.controller" in modules
    assert loaded(modules, NEVER | NEVER_IN_A_LIBRARY) == {}


async def test_a_manager_that_has_done_everything_once_loads_what_it_uses(tmp_path: Path) -> None:
    """One schedule of each kind, one machine, one event, one scrape."""
    office = list(yaml.safe_load_all((EXAMPLES / "office-hours.yaml").read_text()))
    market = next(iter(yaml.safe_load_all((EXAMPLES / "new-york-exchange.yaml").read_text())))
    manual = {
        "apiVersion": market["apiVersion"],
        "kind": "ManualSchedule",
        "metadata": {"name": "by-hand"},
        "spec": {"enabled": True},
    }
    async with ApiServer() as server:
        for definition in definitions():
            await create(server, DEFINITIONS, definition)
            await eventually(server, f"{DEFINITIONS}/{definition['metadata']['name']}", established)
        for schedule in (office[0], market, manual):
            await create(server, f"{SCHEDULES}/{schedule['kind'].lower()}s", schedule)
        machine = {**office[1], "spec": {**office[1]["spec"], "schedule": {**office[1]["spec"]["schedule"]}}}
        machine["spec"]["schedule"] |= {"kind": "ManualSchedule", "name": "by-hand"}
        await create(server, MACHINES, machine)
        async with running(server, _MANAGER, tmp_path) as program:
            port = (await program.logged(r'"metrics_port":(\d+)'))[1].decode()
            for schedule in (office[0], market, manual):
                path = f"{SCHEDULES}/{schedule['kind'].lower()}s/{schedule['metadata']['name']}"
                await eventually(server, path, lambda found: "active" in found.get("status", {}))
            await eventually(server, f"{MACHINES}/build-worker", lambda found: found.get("status", {}).get("phase"))
            await eventually(server, "/apis/events.k8s.io/v1/events", lambda found: found["items"])
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                assert b"fivespot_controller_info" in await answer.read()
            program.terminate()
            modules = await program.modules()
    assert "prometheus_client" in modules
    assert "pydantic" in modules
    assert loaded(modules, NEVER) == {}


def test_the_names_of_refused_modules_are_those_of_modules() -> None:
    """A misspelt name would be loaded by nobody."""
    names = [*NEVER, *NEVER_IN_A_LIBRARY]
    assert [name for name in names if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize("name", ["prometheus_client", "prometheus_async", "pydantic", "aiohttp", "asyncio"])
async def test_importing_the_runtime_alone_loads_no_library(name: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"import fivespot.runtime{_LISTED_AT_EXIT}"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert name not in out.decode().split()
