"""`fivespot.runtime` is a product: one list of names, light to import, with the usual parts put together."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from fivespot import runtime
from fivespot.runtime.backoff import Backoff
from fivespot.runtime.client import REQUEST_LIMITS, WATCH_LIMITS, RetryPolicy
from fivespot.runtime.manager import ElectionTimings

HEAVY = [
    "aiohttp",
    "pydantic",
    "kubernetes_asyncio",
    "anyio",
    "opentelemetry",
    "prometheus_client",
    "prometheus_async",
    "yaml",
]
HOMES = ["cache", "client", "clock", "errors", "manager", "objects", "reconcile", "telemetry"]

_REPORT = f"""
import sys
loaded = sorted({{name.partition(".")[0] for name in sys.modules}} & set({HEAVY!r}))
print(",".join(loaded))
"""

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: secret}}]
contexts: [{name: here, context: {cluster: here, user: me, namespace: mine}}]
"""


def loaded_by(code: str) -> str:
    command = [sys.executable, "-c", code + _REPORT]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_runtime_loads_nothing_heavy_even_when_its_names_are_used() -> None:
    assert loaded_by("import fivespot.runtime") == ""
    assert loaded_by("from fivespot.runtime import *") == ""


def test_rendering_metrics_loads_their_library_alone() -> None:
    assert loaded_by("from fivespot.runtime import Metrics; Metrics().render()") == "prometheus_client"


def test_the_names_are_those_that_a_controller_needs() -> None:
    assert len(runtime.__all__) <= 75, "the rest is public by its package"
    assert len(set(runtime.__all__)) == len(runtime.__all__)
    assert set(runtime.__all__) <= set(dir(runtime))


def test_every_name_resolves_to_that_of_exactly_one_package() -> None:
    for name in runtime.__all__:
        homes = [home for home in HOMES if name in import_module(f"fivespot.runtime.{home}").__all__]
        assert len(homes) == 1, name
        assert getattr(runtime, name) is getattr(import_module(f"fivespot.runtime.{homes[0]}"), name)


def test_every_name_is_used_in_an_example_or_on_a_page() -> None:
    root = Path(__file__).parents[3]
    places = [*(root / "examples").glob("*.py"), *(root / "docs").rglob("*.md"), root / "README.md"]
    text = "\n".join(path.read_text() for path in places)
    assert [name for name in runtime.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"fivespot\.runtime.*Operator"):
        getattr(runtime, "Operator")  # noqa: B009 - the type checker knows better


def test_every_public_class_and_function_says_what_it_is() -> None:
    values = {name: getattr(runtime, name) for name in runtime.__all__}
    silent = [
        name
        for name, value in values.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and not _says_something(value)
    ]
    assert not silent


def _says_something(value: type | object) -> bool:
    # Dataclasses and msgspec write a signature where nobody wrote words.
    words = value.__doc__ or ""
    return bool(words) and not words.startswith(f"{getattr(value, '__name__', '')}(")


def test_public_classes_of_weight_state_what_they_do_not_promise() -> None:
    weighty = ["Cache", "Client", "Controller", "EventRecorder", "Informer", "Manager"]
    assert [name for name in weighty if "Not guaranteed:" not in (getattr(runtime, name).__doc__ or "")] == []


async def test_a_manager_is_put_together_from_a_kubeconfig_and_closes_its_connection(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    async with runtime.open_manager("my-program", kubeconfig=str(file), namespaces=["mine"]) as manager:
        context = manager.context
        assert context.settings.namespaces == ("mine",)
        assert context.metrics.leading, "who stands for no election leads"
        controller = context.controller("things", _Never(), workers=2)
        assert (controller.name, controller.workers) == ("things", 2)
        assert b'controller_runtime_max_concurrent_reconciles{controller="things"} 2.0' in context.metrics.render()
    with pytest.raises(runtime.FivespotError):
        await context.client.raw("GET", "/version")


class _Never:
    async def reconcile(self, key: runtime.Key) -> runtime.Result:
        raise AssertionError("nothing runs")


async def test_stopping_ends_a_manager_that_never_reached_a_server(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    stop, ran = asyncio.Event(), asyncio.Event()

    async def once() -> None:
        ran.set()
        stop.set()

    async with runtime.open_manager("my-program", kubeconfig=str(file)) as manager:
        manager.add_runnable("once", once, may_end=True)
        await manager.run(stop)
    assert ran.is_set()


def test_a_missing_kubeconfig_ends_the_program_with_one_line(tmp_path: Path) -> None:
    code = f"""
from fivespot.runtime import run
run(lambda manager: None, name="my-program", kubeconfig={str(tmp_path / "absent")!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("my-program: ")
    assert "absent" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_numbers_on_the_page_of_guarantees_are_those_of_the_code() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "runtime" / "guarantees.md").read_text().split())
    backoff, request, election = Backoff(), REQUEST_LIMITS, ElectionTimings()
    timeout = inspect.signature(runtime.Controller).parameters["timeout"].default
    for stated in (
        f"noticed within {WATCH_LIMITS.read:g} seconds",
        f"after {backoff.base * 1000:g} ms, doubling up to {backoff.cap:g} seconds",
        f"at most {backoff.jitter * 100:g} % earlier",
        f"longer than `timeout` ({timeout:g} seconds)",
        f"{request.connect:g} seconds to connect, {request.read:g} between two reads, {request.total:g} in all",
        f"at most {RetryPolicy().attempts} attempts",
        f"one retry period ({election.retry_period:g} seconds)",
        f"the grace period ({runtime.ManagerSettings().grace:g} seconds)",
    ):
        assert stated in page
    assert backoff.factor == 2
    assert election.lease_duration / election.renew_deadline == 1.5, "by more than a half"
