"""The rules as pytest tests: one test for each rule, over one run of the kit."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest

from fivespot.providers.sdk import Provider
from fivespot.runtime import SystemClock, connect
from fivespot.runtime.clock import ThreadOffload, system_random

from .host import with_provider
from .report import ConformanceReport, RuleOutcome
from .rules import RULES
from .runner import check_provider
from .subject import Restart, Subject, Timing

__all__ = ["ProviderConformance"]


class ProviderConformance:
    """Base class of the conformance tests of a provider. Subclass it under a name that pytest collects::

        class TestConformance(ProviderConformance):
            provider = PROVIDER
            subject = Subject(kind="OfficeHours", active={...}, inactive={...}, invalid={...})

    All rules are checked in one run before the first test, in a thread with its own event loop.

    :cvar subject: the provider under test; or override the fixture ``conformance_subject``.
    :cvar provider: a provider written with the SDK, which is installed, run and restarted for the tests. None if its
        kind is installed and its controller runs already; override the fixture ``conformance_kubeconfig`` to set up
        both.
    :cvar timing: limits of the run.
    :cvar namespace: an existing namespace to work in; None creates one for the run.
    :cvar skip: ids of rules to leave out.
    """

    subject: ClassVar[Subject]
    provider: ClassVar[Provider[Any] | None] = None
    timing: ClassVar[Timing] = Timing()
    namespace: ClassVar[str | None] = None
    skip: ClassVar[tuple[str, ...]] = ()

    @pytest.fixture(scope="class")
    @classmethod
    def conformance_kubeconfig(cls) -> str:
        """The kubeconfig of the server to run against: ``KUBECONFIG``, or the tests are skipped."""
        found = os.environ.get("KUBECONFIG", "")
        if not found:
            pytest.skip("KUBECONFIG is not set, so there is no server to check the provider on")
        return found

    @pytest.fixture(scope="class")
    @classmethod
    def conformance_subject(cls) -> Subject:
        """The provider under test."""
        return cls.subject

    @pytest.fixture(scope="class")
    @classmethod
    def conformance_report(cls, conformance_kubeconfig: str, conformance_subject: Subject) -> ConformanceReport:
        """The report of the run."""

        async def run() -> ConformanceReport:
            clock, rng = SystemClock(), system_random()
            connection = await connect(
                kubeconfig=conformance_kubeconfig,
                user_agent="fivespot-conformance",
                field_manager="fivespot-conformance",
                clock=clock,
                rng=rng,
                offload=ThreadOffload(),
            )
            check = partial(
                check_provider,
                client=connection.client,
                clock=clock,
                rng=rng,
                namespace=cls.namespace,
                timing=cls.timing,
                skip=cls.skip,
            )

            async def work(restart: Restart) -> ConformanceReport:
                return await check(replace(conformance_subject, restart=restart))

            async with connection:
                if cls.provider is None:
                    return await check(conformance_subject)
                return await with_provider(
                    cls.provider, connection.client, work, clock=clock, kubeconfig=conformance_kubeconfig
                )

        # In a thread, because pytest plugins may keep an event loop for this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, run()).result()

    @pytest.mark.parametrize("rule", [rule.id for rule in RULES])
    def test_rule(self, rule: str, conformance_report: ConformanceReport) -> None:
        """The provider does not break this rule."""
        result = conformance_report[rule]
        if result.outcome is RuleOutcome.FAILED:
            pytest.fail(result.message, pytrace=False)
        if result.outcome is RuleOutcome.SKIPPED:
            pytest.skip(result.seen)
