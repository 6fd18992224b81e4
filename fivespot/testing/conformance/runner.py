"""Runs the rules against a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import structlog

from fivespot.runtime import (
    CRDS,
    AlreadyExistsError,
    ApiError,
    Client,
    Clock,
    ConfigError,
    ConflictError,
    Discovery,
    FivespotError,
    ForbiddenError,
    GroupKind,
    InvalidError,
    Key,
    NotFoundError,
    Random,
    Resource,
)
from fivespot.runtime.errors import BadRequestError, DeadlineError, KindNotServedError
from fivespot.runtime.objects import group_of, rfc3339

from .harness import Harness, InconclusiveError, ViolationError, single_error
from .report import NOT_SELECTED, ConformanceReport, RuleOutcome, RuleResult
from .rules import RULES, CheckPhase, ConformanceRule
from .subject import Spec, Subject, Timing

__all__ = ["Progress", "check_provider"]

Progress: TypeAlias = Callable[[RuleResult, int, int], None]
"""``progress(result, done, total)`` is called after each rule."""

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_LETTERS = "bcdfghjklmnpqrstvwxz"
_CLEAN_UP = 30.0
_SHOWN = 200
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
    progress: Progress | None = None,
) -> ConformanceReport:
    """Check a provider through the API server alone.

    Its CustomResourceDefinition must be installed and its controller running. About 30 objects are created and removed.

    :param client: its user may create, patch and delete objects of the kind and patch their status, and create and
        delete namespaces unless one is given.
    :param namespace: an existing namespace to work in; None creates one and removes it.
    :param skip: ids of rules to leave out.
    :param only: ids of the rules to check; none means all. Rules about histories judge the objects of the others
        among them.
    :param progress: called with each result.
    :raises ConfigError: the run is impossible: a sample is refused, a permission is missing, an id is unknown.
    :raises TransportError: the API server cannot be reached.
    :raises RecordingLostError: the watch lost events.
    """
    known = {rule.id for rule in RULES}
    unknown = {*skip, *only} - known
    if unknown:
        raise ConfigError(f"there is no rule {', '.join(sorted(unknown))}")
    excluded = {*skip, *(known - set(only) if only else ())}
    begun = clock.monotonic()
    try:
        resource = await _find(subject, client)
    except KindNotServedError as error:
        return _not_referable(subject.kind, str(error), clock.monotonic() - begun)
    if not resource.namespaced:
        return _not_referable(subject.kind, f"{resource.kind} is cluster-scoped", clock.monotonic() - begun)
    suffix = "".join(_LETTERS[int(rng.random() * len(_LETTERS))] for _ in range(5))
    try:
        async with asyncio.timeout(timing.total + _CLEAN_UP * 2):
            results, note = await _in_namespace(
                subject, client, resource, clock, timing, suffix, namespace, excluded, progress
            )
    except TimeoutError as error:
        raise DeadlineError(f"the run did not end within {timing.total + _CLEAN_UP * 2:g} s") from error
    except ForbiddenError as error:
        raise ConfigError(f"a permission is missing: {error}") from error
    return ConformanceReport(subject.kind, results, clock.monotonic() - begun, note)


async def _in_namespace(
    subject: Subject,
    client: Client,
    resource: Resource,
    clock: Clock,
    timing: Timing,
    suffix: str,
    given: str | None,
    skip: Collection[str],
    progress: Progress | None,
) -> tuple[list[RuleResult], str]:
    namespace = given or f"conformance-{suffix}"
    if given is None:
        await client.create(_NAMESPACES, {"metadata": {"name": namespace}, "apiVersion": "v1", "kind": "Namespace"})
    made: list[tuple[Resource, Key]] = []
    harness = Harness(subject, client, resource, namespace, clock=clock, timing=timing, suffix=suffix)
    try:
        for body in subject.prerequisites:
            made.append(await _make(client, namespace, body))  # noqa: PERF401 - objects created before a failure are removed
        await _try_samples(harness, client)
        harness.definition = await _definition(client, resource)
        return await _run_phases(harness, skip, progress)
    finally:
        await _clean_up(harness, client, made, None if given else namespace)


async def _run_phases(
    harness: Harness, skip: Collection[str], progress: Progress | None
) -> tuple[list[RuleResult], str]:
    """Run all phases in order, with one recording of all of them; returns the results and a note on them."""
    outcomes: dict[str, RuleResult] = {}
    note = ""

    def finished(result: RuleResult) -> None:
        outcomes[result.rule.id] = result
        if progress is not None and result.seen != NOT_SELECTED:
            progress(result, len(outcomes), len(RULES))

    async def judge(rule: ConformanceRule) -> None:
        finished(await _check(rule, harness, skip, deadline))

    await harness.recorder.begin()
    recording = asyncio.Event()

    async def record() -> None:
        recording.set()
        await harness.recorder.run()

    deadline = asyncio.get_running_loop().time() + harness.timing.total
    try:
        async with asyncio.TaskGroup() as group:
            recorder = group.create_task(record())
            await recording.wait()
            for phase in CheckPhase:
                if phase is CheckPhase.LIVE and not await _answers(harness, "present"):
                    note = f"{_silent(harness)}; no other rule can be judged"
                    for result in _unanswered(harness, outcomes):
                        finished(result)
                    break
                if phase is CheckPhase.HISTORY and any(
                    result.outcome is RuleOutcome.FAILED for result in outcomes.values()
                ):
                    note = await _stopped(harness)
                async with asyncio.TaskGroup() as inner:
                    for rule in RULES:
                        if rule.phase is phase:
                            inner.create_task(judge(rule))
            recorder.cancel()
    except BaseExceptionGroup as errors:
        error = single_error(errors)
        if error is None:
            raise
        raise error from errors
    return [outcomes[rule.id] for rule in RULES], note


async def _answers(harness: Harness, name: str) -> bool:
    """Create an object, and return whether anything writes its status in time."""
    key = await harness.create(name, active=True)
    return await harness.until(key, lambda seen: bool(seen.status)) is not None


def _silent(harness: Harness) -> str:
    return (
        f"nothing wrote the status of a new object within {harness.timing.settle:g} s: is the controller of "
        f"{harness.resource.kind} running, and may it patch the status?"
    )


def _unanswered(harness: Harness, known: Collection[str]) -> list[RuleResult]:
    """Return the results of the rules that are left when nothing writes a status."""
    left = [rule for rule in RULES if rule.id not in known]
    return [
        _result(rule, ViolationError(_silent(harness)) if rule.id == "verdict" else InconclusiveError("no status"))
        for rule in left
    ]


async def _stopped(harness: Harness) -> str:
    """Return the note that the provider no longer works, with the time of its last write; "" if it does."""
    if await _answers(harness, "still-present"):
        return ""
    writes = [write.after for record in harness.recorder.records.values() for write in record.reports()]
    last = max((seen.wall for seen in writes), default=None)
    return (
        f"the provider has stopped: {_silent(harness)} Its last write was seen at "
        f"{rfc3339(last) if last is not None else 'no time'}, and failures after that follow from it"
    )


async def _check(rule: ConformanceRule, harness: Harness, skip: Collection[str], deadline: float) -> RuleResult:
    if rule.id in skip:
        return RuleResult(rule, RuleOutcome.SKIPPED, NOT_SELECTED)
    try:
        async with asyncio.timeout_at(deadline):
            remark = await rule.check(harness)
    except (ViolationError, InconclusiveError) as problem:
        return _result(rule, problem)
    except TimeoutError:
        return _result(rule, ViolationError(f"it was not finished within {harness.timing.total:g} s"))
    except (NotFoundError, InvalidError, ConflictError) as error:
        # Only the checks create and delete objects, so the provider or an admission controller interfered.
        return _result(rule, ViolationError(f"the API server refused a request: {error}"))
    return RuleResult(rule, RuleOutcome.PASSED, remark or "")


def _result(rule: ConformanceRule, problem: Exception) -> RuleResult:
    if isinstance(problem, InconclusiveError):
        return RuleResult(rule, RuleOutcome.SKIPPED, str(problem))
    return RuleResult(rule, RuleOutcome.FAILED if rule.required else RuleOutcome.WARNING, str(problem))


def _not_referable(kind: str, problem: str, seconds: float) -> ConformanceReport:
    """Build the report on a kind that no machine can reference."""
    results = [_result(RULES[0], ViolationError(problem))]
    results += [_result(rule, InconclusiveError("no machine can reference the kind")) for rule in RULES[1:]]
    return ConformanceReport(kind, results, seconds)


async def _find(subject: Subject, client: Client) -> Resource:
    prefer = (subject.version,) if subject.version else ()
    found = await Discovery(client).resource(GroupKind(subject.group, subject.kind), prefer=prefer)
    if subject.version and found.version != subject.version:
        raise ConfigError(f"{subject.kind}: version {subject.version} is not served, but {found.version} is")
    return found


async def _definition(client: Client, resource: Resource) -> dict[str, Any] | None:
    try:
        return (await client.get(CRDS, Key("", resource.qualified))).decode()
    except (ForbiddenError, NotFoundError):
        return None


async def _try_samples(harness: Harness, client: Client) -> None:
    """Create each sample with a dry run.

    :raises ConfigError: admission refuses the active or the inactive one.
    """
    subject = harness.subject
    samples: dict[str, Spec | None] = {"active": subject.active, "inactive": subject.inactive}
    for name, spec in samples.items():
        refusal = await _refusal(harness, client, f"conformance-{name}", spec) if spec is not None else ""
        if refusal:
            raise ConfigError(f"the {name} spec is refused: {refusal}")
    if subject.invalid is not None:
        harness.refusal = await _refusal(harness, client, "conformance-invalid", subject.invalid)


async def _refusal(harness: Harness, client: Client, name: str, spec: Spec) -> str:
    try:
        await client.create(harness.resource, harness.body(name, spec), dry_run=True)
    except (InvalidError, BadRequestError, ForbiddenError) as error:
        if isinstance(error, ForbiddenError) and "admission webhook" not in error.message:
            raise
        return error.message if len(error.message) <= _SHOWN else f"{error.message[:_SHOWN]}..."
    return ""


async def _make(client: Client, namespace: str, body: Mapping[str, Any]) -> tuple[Resource, Key]:
    """Create a prerequisite.

    :raises ConfigError: it cannot be created.
    """
    what = f"{body.get('kind')} {(body.get('metadata') or {}).get('name')}"
    try:
        api_version, kind = str(body["apiVersion"]), str(body["kind"])
        metadata = {**body["metadata"], "namespace": namespace}
        version = api_version.rpartition("/")[2]
        resource = await Discovery(client).resource(GroupKind(group_of(api_version), kind), prefer=(version,))
        if not resource.namespaced:
            raise ConfigError(f"{what}: only namespaced objects can be created for a run")
        obj = await client.create(resource, {**body, "apiVersion": resource.api_version, "metadata": metadata})
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{what}: apiVersion, kind and metadata.name are required") from error
    except (KindNotServedError, AlreadyExistsError, InvalidError, BadRequestError) as error:
        raise ConfigError(f"{what}: {error}") from error
    return resource, obj.key


async def _clean_up(harness: Harness, client: Client, made: list[tuple[Resource, Key]], namespace: str | None) -> None:
    """Remove all objects of the run; a failure is only logged, because the result does not depend on it."""
    try:
        async with asyncio.timeout(_CLEAN_UP):
            for key in harness.recorder.records:
                await harness.remove_finalizer(key)
                await harness.delete(key)
            for resource, key in made:
                await _remove(client, resource, key)
            if namespace is not None:
                await _remove(client, _NAMESPACES, Key("", namespace))
    except (ApiError, FivespotError, TimeoutError) as error:
        _log.warning(
            "some objects of the run were not removed",
            namespace=harness.namespace,
            error=str(error) or type(error).__name__,
        )


async def _remove(client: Client, resource: Resource, key: Key) -> None:
    try:
        obj = await client.get(resource, key, metadata_only=True)
    except NotFoundError:
        return
    await client.delete(resource, key, uid=obj.head.uid)
