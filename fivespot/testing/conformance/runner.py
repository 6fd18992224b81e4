"""Runs the rules against a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import structlog

from fivespot.runtime.client import Client, Discovery
from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConfigError,
    ConflictError,
    DeadlineError,
    FivespotError,
    ForbiddenError,
    InvalidError,
    KindNotServedError,
    NotFoundError,
)
from fivespot.runtime.objects import GroupKind, Key, Resource, group_of

from .errors import known_error
from .harness import Rig, UnjudgedError, ViolationError
from .report import LEFT_OUT, ConformanceReport, RuleOutcome, RuleResult
from .rules import RULES, CheckPhase, ConformanceRule
from .subject import Spec, Subject, Timing

__all__ = ["check_provider"]

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_LETTERS = "bcdfghjklmnpqrstvwxz"
_CLEAN_UP = 30.0
_SAID = 200
_log = structlog.get_logger(__name__)


async def check_provider(
    subject: Subject,
    client: Client,
    *,
    clock: Clock,
    rng: Random,
    namespace: str | None = None,
    timing: Timing = Timing(),  # noqa: B008 - frozen
    skip: Collection[str] = (),
    only: Collection[str] = (),
) -> ConformanceReport:
    """Look at a provider from outside, through the API server alone.

    Its CustomResourceDefinition is installed and its controller runs. About 30 objects are made and removed again.

    :param client: its user may create, patch and delete objects of the kind and patch their status; and create and
        delete namespaces, unless one is given.
    :param namespace: an existing one to work in; None makes one and removes it.
    :param skip: ids of rules not to look at.
    :param only: ids of the rules to look at; none given means all. Rules about everything that was seen judge what
        the others among them make happen.
    :raises ConfigError: it cannot be looked at: a sample is refused, a right is missing, an id is unknown.
    :raises TransportError: the API server is not there.
    :raises RecordingLostError: the API server could not tell everything that happened.
    """
    known = {rule.id for rule in RULES}
    unknown = {*skip, *only} - known
    if unknown:
        raise ConfigError(f"there is no rule {', '.join(sorted(unknown))}")
    left_out = {*skip, *(known - set(only) if only else ())}
    begun = clock.monotonic()
    try:
        resource = await _find(subject, client)
    except KindNotServedError as error:
        return _hopeless(subject.kind, str(error), clock.monotonic() - begun)
    if not resource.namespaced:
        return _hopeless(subject.kind, f"{resource.kind} is cluster-scoped", clock.monotonic() - begun)
    suffix = "".join(_LETTERS[int(rng.random() * len(_LETTERS))] for _ in range(5))
    try:
        async with asyncio.timeout(timing.total + _CLEAN_UP * 2):
            results = await _in_namespace(subject, client, resource, clock, timing, suffix, namespace, left_out)
    except TimeoutError as error:
        raise DeadlineError(f"the run was not over after {timing.total + _CLEAN_UP * 2:g} s") from error
    except ForbiddenError as error:
        raise ConfigError(f"a right is missing: {error}") from error
    return ConformanceReport(subject.kind, results, clock.monotonic() - begun)


async def _in_namespace(
    subject: Subject,
    client: Client,
    resource: Resource,
    clock: Clock,
    timing: Timing,
    suffix: str,
    given: str | None,
    skip: Collection[str],
) -> list[RuleResult]:
    namespace = given or f"conformance-{suffix}"
    if given is None:
        await client.create(_NAMESPACES, {"metadata": {"name": namespace}, "apiVersion": "v1", "kind": "Namespace"})
    made: list[tuple[Resource, Key]] = []
    rig = Rig(subject, client, resource, namespace, clock=clock, timing=timing, suffix=suffix)
    try:
        for body in subject.prerequisites:
            made.append(await _make(client, namespace, body))  # noqa: PERF401 - what was made before a failure counts
        await _try_samples(rig, client)
        rig.definition = await _definition(client, resource)
        return await _judge(rig, skip)
    finally:
        await _clean_up(rig, client, made, None if given else namespace)


async def _judge(rig: Rig, skip: Collection[str]) -> list[RuleResult]:
    """All phases, one after the other, with one recording over all."""
    outcomes: dict[str, RuleResult] = {}
    await rig.recorder.begin()
    recording = asyncio.Event()

    async def record() -> None:
        recording.set()
        await rig.recorder.run()

    deadline = asyncio.get_running_loop().time() + rig.timing.total
    try:
        async with asyncio.TaskGroup() as group:
            recorder = group.create_task(record())
            await recording.wait()
            for phase in CheckPhase:
                rules = [rule for rule in RULES if rule.phase is phase]
                async with asyncio.TaskGroup() as inner:
                    checks = [inner.create_task(_check(rule, rig, skip, deadline)) for rule in rules]
                outcomes.update({check.result().rule.id: check.result() for check in checks})
            recorder.cancel()
    except BaseExceptionGroup as errors:
        error = known_error(errors)
        if error is None:
            raise
        raise error from errors
    return [outcomes[rule.id] for rule in RULES]


async def _check(rule: ConformanceRule, rig: Rig, skip: Collection[str], deadline: float) -> RuleResult:
    if rule.id in skip:
        return RuleResult(rule, RuleOutcome.SKIPPED, LEFT_OUT)
    try:
        async with asyncio.timeout_at(deadline):
            remark = await rule.check(rig)
    except (ViolationError, UnjudgedError) as problem:
        return _result(rule, problem)
    except TimeoutError:
        return _result(rule, ViolationError(f"it was not done after {rig.timing.total:g} s"))
    except (NotFoundError, InvalidError, ConflictError) as error:
        # Objects come and go only by what the rules do, so the provider, or what guards its kind, interfered.
        return _result(rule, ViolationError(f"the API server refused a step: {error}"))
    return RuleResult(rule, RuleOutcome.PASSED, remark or "")


def _result(rule: ConformanceRule, problem: Exception) -> RuleResult:
    if isinstance(problem, UnjudgedError):
        return RuleResult(rule, RuleOutcome.SKIPPED, str(problem))
    return RuleResult(rule, RuleOutcome.FAILED if rule.required else RuleOutcome.WARNING, str(problem))


def _hopeless(kind: str, problem: str, seconds: float) -> ConformanceReport:
    """The report on a kind that no machine can refer to."""
    results = [_result(RULES[0], ViolationError(problem))]
    results += [_result(rule, UnjudgedError("no machine can refer to the kind")) for rule in RULES[1:]]
    return ConformanceReport(kind, results, seconds)


async def _find(subject: Subject, client: Client) -> Resource:
    prefer = (subject.version,) if subject.version else ()
    found = await Discovery(client).resource(GroupKind(subject.group, subject.kind), prefer=prefer)
    if subject.version and found.version != subject.version:
        raise ConfigError(f"{subject.kind}: version {subject.version} is not served, but {found.version} is")
    return found


async def _definition(client: Client, resource: Resource) -> dict[str, Any] | None:
    try:
        return (await client.get(_DEFINITIONS, Key("", resource.qualified))).decode()
    except (ForbiddenError, NotFoundError):
        return None


async def _try_samples(rig: Rig, client: Client) -> None:
    """Ask admission about each sample without storing it.

    :raises ConfigError: one that has to pass is refused.
    """
    subject = rig.subject
    samples: dict[str, Spec | None] = {"active": subject.active, "inactive": subject.inactive}
    for name, spec in samples.items():
        refusal = await _refusal(rig, client, f"conformance-{name}", spec) if spec is not None else ""
        if refusal:
            raise ConfigError(f"the {name} spec is refused: {refusal}")
    if subject.invalid is not None:
        rig.refusal = await _refusal(rig, client, "conformance-invalid", subject.invalid)


async def _refusal(rig: Rig, client: Client, name: str, spec: Spec) -> str:
    try:
        await client.create(rig.resource, rig.body(name, spec), dry_run=True)
    except (InvalidError, BadRequestError, ForbiddenError) as error:
        if isinstance(error, ForbiddenError) and "admission webhook" not in error.message:
            raise
        return error.message if len(error.message) <= _SAID else f"{error.message[:_SAID]}..."
    return ""


async def _make(client: Client, namespace: str, body: Mapping[str, Any]) -> tuple[Resource, Key]:
    """:raises ConfigError: it cannot be made."""
    what = f"{body.get('kind')} {(body.get('metadata') or {}).get('name')}"
    try:
        api_version, kind = str(body["apiVersion"]), str(body["kind"])
        metadata = {**body["metadata"], "namespace": namespace}
        version = api_version.rpartition("/")[2]
        resource = await Discovery(client).resource(GroupKind(group_of(api_version), kind), prefer=(version,))
        if not resource.namespaced:
            raise ConfigError(f"{what}: only namespaced objects can be made for the run")
        obj = await client.create(resource, {**body, "apiVersion": resource.api_version, "metadata": metadata})
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{what}: an object needs apiVersion, kind and metadata.name") from error
    except (KindNotServedError, AlreadyExistsError, InvalidError, BadRequestError) as error:
        raise ConfigError(f"{what}: {error}") from error
    return resource, obj.key


async def _clean_up(rig: Rig, client: Client, made: list[tuple[Resource, Key]], namespace: str | None) -> None:
    """Remove what was made; what cannot be removed is logged, for the outcome does not depend on it."""
    try:
        async with asyncio.timeout(_CLEAN_UP):
            for key in rig.recorder.records:
                await rig.release(key)
                await rig.delete(key)
            for resource, key in made:
                await _remove(client, resource, key)
            if namespace is not None:
                await _remove(client, _NAMESPACES, Key("", namespace))
    except (ApiError, FivespotError, TimeoutError) as error:
        _log.warning("not everything was removed", namespace=rig.namespace, error=str(error) or type(error).__name__)


async def _remove(client: Client, resource: Resource, key: Key) -> None:
    try:
        obj = await client.get(resource, key, metadata_only=True)
    except NotFoundError:
        return
    await client.delete(resource, key, uid=obj.head.uid)
