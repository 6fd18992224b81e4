"""The conformance kit on the included providers, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from fivespot.providers.registry import shipped_providers
from fivespot.providers.sdk import build_controller
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.conformance import RULES, SHIPPED, ConformanceReport, RuleOutcome, check_provider

from .managers import Managers


async def judged(cluster: EmbeddedCluster, kind: str) -> ConformanceReport:
    """The report on an included provider, with restarts."""
    (provider,) = [provider for provider in shipped_providers() if provider.kind == kind]
    await cluster.install(provider.definition())
    managers = Managers()
    await managers.add(kind, partial(cluster.manager, partial(build_controller, provider), name=kind.lower()))

    async def restart() -> None:
        await managers.stop(kind)
        await managers.start(kind)

    subject = replace(SHIPPED[kind], restart=restart)
    report = await check_provider(subject, cluster.client, clock=cluster.clock, rng=cluster.rng)
    await managers.stop_all()
    return report


@pytest.mark.parametrize("kind", sorted(SHIPPED))
async def test_a_shipped_provider_keeps_every_rule(fivespot_cluster: EmbeddedCluster, kind: str) -> None:
    report = await judged(fivespot_cluster, kind)
    # The cluster in memory does not count its requests by resource.
    expected = [rule.id for rule in RULES if rule.id != "redundant-writes"]
    assert [result.rule.id for result in report.of(RuleOutcome.PASSED)] == expected, report.to_text()
