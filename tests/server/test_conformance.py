"""The conformance kit on the real API server: conforming providers pass, and each violation is reported by its rule."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from controlplane import Api, ControlPlane
from fivespot.providers.registry import shipped_provider
from fivespot.runtime import ConfigError, Connection, SystemClock, connect
from fivespot.runtime.clock import ThreadOffload, system_random
from fivespot.testing.conformance import (
    MANAGER,
    RULES,
    SHIPPED,
    ConformanceReport,
    Restart,
    RuleOutcome,
    Subject,
    Timing,
    check_provider,
    with_provider,
)
from harness import ManagerProcess
from support import make_namespace
from support.faulty_providers import WRONG
from support.sample_provider import FollowingToy, Running, Toy, following_subject, toy_subject

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
TIMING = Timing(settle=12.0, steady=4.0)
"""Longer than a verdict takes on a busy machine."""

IMPATIENT = Timing(settle=10.0, steady=4.0)
"""For what will not come; the others of thirty providers have to come in that time, too."""

ALWAYS_ALONG = ("flip", "verdict")
"""They make happen what the rules about everything that was seen look at."""


@pytest.fixture(scope="module")
def toys(control_plane: ControlPlane) -> Iterator[None]:
    kinds: list[type[Toy]] = [Toy, FollowingToy, *WRONG]
    control_plane.install_crds([toy.definition() for toy in kinds])
    for resource in (toy.make_resource() for toy in kinds):
        # Waits until discovery lists the kind, by which the kit finds it.
        control_plane.api.list(resource.api_version, resource.kind)
    yield
    for toy in kinds:
        control_plane.api.delete(*CRD, toy.make_resource().qualified, missing_ok=True)


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Connection]:
    async with await connect(
        kubeconfig=str(kubeconfig),
        user_agent=MANAGER,
        field_manager=MANAGER,
        clock=SystemClock(),
        rng=system_random(),
        offload=ThreadOffload(),
    ) as connection:
        yield connection


async def check(connection: Connection, subject: Subject, **more: object) -> ConformanceReport:
    options: dict[str, object] = {"clock": SystemClock(), "rng": system_random(), "timing": TIMING, **more}
    return await check_provider(subject, connection.client, **options)  # type: ignore[arg-type]


def test_the_wrong_providers_cover_every_rule() -> None:
    assert len(WRONG) >= 15
    assert {rule for toy in WRONG for rule in toy.rules} == {rule.id for rule in RULES}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_each_wrong_provider_is_caught_by_name(control_plane: ControlPlane, toys: None) -> None:
    async with connected(control_plane.admin_kubeconfig) as connection, asyncio.TaskGroup() as group:
        running = Running(control_plane.admin_kubeconfig, group)

        async def judge(toy: type[Toy]) -> ConformanceReport:
            await running.start(toy)
            subject = toy_subject(toy, restart=partial(running.restart, toy))
            return await check(connection, subject, only=[*toy.rules, *ALWAYS_ALONG], timing=IMPATIENT)

        reports = await asyncio.gather(*map(judge, WRONG))
        await running.stop_all()
    missed = []
    for toy, report in zip(WRONG, reports, strict=True):
        for rule in toy.rules:
            found = report[rule]
            expected = RuleOutcome.FAILED if found.rule.required else RuleOutcome.WARNING
            if (
                found.outcome is not expected
                or f"rule {rule} " not in found.message
                or found.rule.fix not in found.message
            ):
                missed.append(f"{toy.__name__}: {found.outcome}: {found.message}")
        if not any(toy.words in report[rule].seen for rule in toy.rules):
            missed.append(f"{toy.__name__}: says nothing of {toy.words!r}: {report.to_text()}")
    assert not missed, "\n".join(missed)


class Together:
    """One restart of a process that several runs want restarted: when all have come to it."""

    def __init__(self, parties: int, restart: Callable[[], None]) -> None:
        self._barrier = asyncio.Barrier(parties)
        self._restart = restart

    async def restart(self) -> None:
        async with asyncio.timeout(60):
            if await self._barrier.wait() == 0:
                await asyncio.to_thread(self._restart)
            await self._barrier.wait()


@pytest.mark.contract("C9", "C10")
@pytest.mark.timeout(240)
async def test_conforming_providers_pass_all_rules_including_the_shipped_ones(
    control_plane: ControlPlane, manager: ManagerProcess, toys: None
) -> None:
    kinds = sorted(SHIPPED)
    together = Together(len(kinds), manager.restart)
    async with connected(control_plane.admin_kubeconfig) as connection, asyncio.TaskGroup() as group:
        running = Running(control_plane.admin_kubeconfig, group)
        for toy in (Toy, FollowingToy):
            await running.start(toy)
        subjects = [
            following_subject(restart=partial(running.restart, FollowingToy)),
            toy_subject(Toy, restart=partial(running.restart, Toy)),
        ]
        subjects += [replace(SHIPPED[kind], restart=together.restart) for kind in kinds]
        reports = await asyncio.gather(*(check(connection, subject) for subject in subjects))
        await running.stop_all()
    followed = reports.pop(0)
    unjudged = {result.rule.id for result in followed.of(RuleOutcome.SKIPPED)}
    assert followed.passed, followed.to_text()
    assert unjudged == {"boundary", "next-transition"}, followed.to_text()
    for report in reports:
        assert [result.rule.id for result in report.of(RuleOutcome.PASSED)] == [rule.id for rule in RULES], (
            report.to_text()
        )
        # 20 s where nothing else runs.
        assert report.seconds < 120, report.to_text()


async def test_a_provider_that_is_not_there_or_dies_is_the_first_thing_reported(
    control_plane: ControlPlane, toys: None
) -> None:
    quick = Timing(settle=3.0, steady=2.0)
    async with connected(control_plane.admin_kubeconfig) as connection, asyncio.TaskGroup() as group:
        absent = await check(connection, toy_subject(Toy), timing=quick)
        running = Running(control_plane.admin_kubeconfig, group)
        await running.start(Toy)

        async def kill() -> None:
            await running.stop(Toy)

        # It is not started again.
        dead = await check(connection, toy_subject(Toy, restart=kill), timing=quick, only=["verdict", "restart"])
    assert [result.rule.id for result in absent.of(RuleOutcome.FAILED)] == ["verdict"], absent.to_text()
    assert absent.to_text().startswith(
        "note  nothing wrote the status of a new object within 3 s: is the controller of"
    )
    assert absent.seconds < 20, absent.to_text()
    assert dead["verdict"].outcome is RuleOutcome.PASSED, dead.to_text()
    assert dead.to_text().startswith("note  the provider has stopped: "), dead.to_text()
    assert "Its last write was seen at 20" in dead.note


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_run_and_removes_what_it_made(
    control_plane: ControlPlane, manager: ManagerProcess, api: Api, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "fivespot.cli", "conformance", "--kind", "ManualSchedule", "--progress"]
    before = namespaces(api)
    process = await asyncio.create_subprocess_exec(
        *command,
        "--kubeconfig",
        str(control_plane.admin_kubeconfig),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        shown = await process.stderr.readline()
        process.send_signal(number)
        _, rest = await process.communicate()
    assert b"/" in shown
    assert process.returncode == 143, rest
    assert b"stopped; the objects of the run were removed" in rest
    assert namespaces(api) <= before


def namespaces(api: Api) -> set[str]:
    return {
        body["metadata"]["name"]
        for body in api.list("v1", "Namespace")
        if body["metadata"]["name"].startswith("conformance-") and not body["metadata"].get("deletionTimestamp")
    }


async def test_nothing_is_left_behind_in_a_namespace_that_was_given(
    control_plane: ControlPlane, manager: ManagerProcess, api: Api
) -> None:
    namespace = make_namespace(api, "conformance-place", cluster=None)
    kind = "TimeBasedSpotSchedule"
    async with connected(control_plane.admin_kubeconfig) as connection:
        report = await check(connection, SHIPPED[kind], namespace=namespace, only=["deletion", "flip"])
    assert report["deletion"].outcome is RuleOutcome.PASSED, report.to_text()
    assert api.list("spotschedules.5spot.finos.org/v1alpha1", kind, namespace) == []
    api.delete("v1", "Namespace", namespace)


async def test_an_obstacle_to_the_run_is_reported_at_once(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, own_user: Callable[[str], Path]
) -> None:
    shipped = SHIPPED["TimeBasedSpotSchedule"]
    refused = Subject(kind=shipped.kind, active={"timezone": "!"}, inactive={})
    settings = {"kind": "ConfigMap", "metadata": {"name": "settings"}}
    unfinished = Subject(kind=shipped.kind, active={}, inactive={}, prerequisites=[settings])
    nowhere = Subject(kind="NowhereSchedule", active={}, inactive={})
    async with connected(control_plane.admin_kubeconfig) as connection:
        with pytest.raises(ConfigError, match=r"the active spec is refused: .*timezone"):
            await check(connection, refused, namespace=namespace)
        with pytest.raises(ConfigError, match="there is no rule stady"):
            await check(connection, shipped, namespace=namespace, skip=["stady"])
        with pytest.raises(ConfigError, match=r"ConfigMap settings: apiVersion, kind"):
            await check(connection, unfinished, namespace=namespace)
        absent = await check(connection, nowhere, namespace=namespace)
    assert absent["kind-served"].outcome is RuleOutcome.FAILED
    assert "NowhereSchedule" in absent["kind-served"].seen
    assert len(absent.of(RuleOutcome.SKIPPED)) == len(RULES) - 1
    async with connected(own_user("nobody")) as connection:
        with pytest.raises(ConfigError, match=r"a permission is missing: .*nobody"):
            await check(connection, shipped, namespace=namespace)
        with pytest.raises(ConfigError, match=r"definition of ManualSchedule cannot be installed: .*nobody"):
            await with_provider(
                shipped_provider("ManualSchedule"), connection.client, fail_to_come_here, clock=SystemClock()
            )


async def fail_to_come_here(restart: Restart) -> None:
    raise AssertionError("nothing may be done for a provider that is not there")


@pytest.fixture
def own_user(control_plane: ControlPlane, tmp_path: Path) -> Callable[[str], Path]:
    """A kubeconfig of a person without any right."""
    return lambda name: control_plane.user_kubeconfig(tmp_path / name, name)
