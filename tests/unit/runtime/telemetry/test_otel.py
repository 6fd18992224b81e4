"""OpenTelemetry: what spans are called and say, what requests carry, and that nothing is loaded unasked."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from fivespot.runtime.client import Client, Request, Response, WatchEnded
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import ConnectError, NotServedError
from fivespot.runtime.manager import open_manager
from fivespot.runtime.objects import Key, Resource
from fivespot.runtime.reconcile import DONE, Controller, Result
from fivespot.runtime.telemetry import NULL_TRACER, tracer_from, tracing
from fivespot.runtime.telemetry.otel import OpenTelemetryTracer, read_path

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
KEY = Key("prod", "web")
PATH = "/apis/example.com/v1/namespaces/prod/widgets/web"
TEMPLATE = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
OBJECT = Response(200, {}, b'{"metadata":{"name":"web","uid":"u","resourceVersion":"1"}}')
GONE = Response(404, {}, b'{"kind":"Status","message":"not here","reason":"NotFound","code":404}')


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: secret}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
"""


class Wire:
    """Gives the answers in order and keeps what was asked."""

    def __init__(self, *answers: Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, request: Request) -> Any:
        return Refusal(await self.request(request))

    async def close(self) -> None:
        """Nothing to close."""


class Refusal:
    """A stream that is no watch."""

    def __init__(self, answer: Response) -> None:
        self.status, self.headers, self._body = answer.status, answer.headers, answer.body

    async def read_rest(self, limit: int) -> bytes:
        return self._body

    async def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exported: InMemorySpanExporter) -> OpenTelemetryTracer:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exported))
    return OpenTelemetryTracer(provider)


def clock() -> LoopClock:
    return LoopClock(datetime(2026, 3, 1, tzinfo=UTC))


def client_of(wire: Wire, tracer: OpenTelemetryTracer) -> Client:
    server = "https://somebody:word@here.example:6443/base/"
    return Client(wire, clock=clock(), rng=random.Random(1), tracer=tracer, server=server)


def controller_of(reconcile: Any, tracer: OpenTelemetryTracer) -> Controller:
    class Reconciler:
        async def reconcile(self, key: Key) -> Result:
            await reconcile(key)
            return DONE

    return Controller("widgets", Reconciler(), clock=clock(), rng=random.Random(1), tracer=tracer)


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.looptime
async def test_a_run_is_the_parent_of_its_requests_which_carry_the_trace(
    exported: InMemorySpanExporter, tracer: OpenTelemetryTracer
) -> None:
    wire = Wire(ConnectError("nobody is there"), OBJECT)
    client = client_of(wire, tracer)
    await controller_of(lambda key: client.get(WIDGETS, key), tracer)._run(KEY)
    failed, answered, run = exported.get_finished_spans()
    assert (run.name, run.kind, run.parent) == ("reconcile widgets", SpanKind.INTERNAL, None)
    run_id = said(run)["fivespot.reconcile_id"]
    assert run_id
    assert said(run) == {
        "fivespot.controller": "widgets",
        "fivespot.reconcile_id": run_id,
        "k8s.namespace.name": "prod",
        "k8s.object.name": "web",
    }
    request = {
        "http.request.method": "GET",
        "url.template": TEMPLATE,
        "url.full": f"https://here.example:6443/base{PATH}",
        "server.address": "here.example",
        "server.port": 6443,
        "fivespot.verb": "get",
        "k8s.namespace.name": "prod",
        "k8s.object.name": "web",
    }
    assert said(failed) == {**request, "error.type": "ConnectError"}
    assert said(answered) == {**request, "http.request.resend_count": 1, "http.response.status_code": 200}
    assert [(span.name, span.kind) for span in (failed, answered)] == [(f"GET {TEMPLATE}", SpanKind.CLIENT)] * 2
    assert [span.status.status_code for span in (failed, answered, run)] == [
        StatusCode.ERROR,
        StatusCode.UNSET,
        StatusCode.UNSET,
    ]
    for span, asked in zip((failed, answered), wire.asked, strict=True):
        assert span.parent is not None
        assert span.parent.span_id == run.context.span_id
        version, trace_id, span_id, flags = asked.headers["traceparent"].split("-")
        assert (version, int(trace_id, 16), int(span_id, 16)) == ("00", span.context.trace_id, span.context.span_id)
        assert int(flags, 16) & trace.TraceFlags.SAMPLED
        assert "baggage" not in asked.headers


async def test_neither_query_nor_body_nor_header_is_shown_and_names_are_those_of_kinds(
    exported: InMemorySpanExporter, tracer: OpenTelemetryTracer
) -> None:
    client = client_of(Wire(OBJECT, OBJECT), tracer)
    for name in ("one", "two"):
        await client.raw(
            "POST", f"/apis/example.com/v1/widgets/{name}?a=word", body=b"word", headers={"Authorization": "word"}
        )
    spans = exported.get_finished_spans()
    assert {span.name for span in spans} == {"POST /apis/example.com/v1/widgets/{name}"}
    assert "word" not in "".join(span.to_json() for span in spans)


@pytest.mark.looptime
async def test_what_the_server_refuses_is_told_by_its_status_also_for_a_watch(
    exported: InMemorySpanExporter, tracer: OpenTelemetryTracer
) -> None:
    client = client_of(Wire(GONE, GONE), tracer)
    with pytest.raises(NotServedError):
        await client.get(WIDGETS, KEY)
    with pytest.raises(WatchEnded):
        await client.watch(WIDGETS, "prod", version="1", server_timeout=60)
    for span, verb in zip(exported.get_finished_spans(), ("get", "watch"), strict=True):
        assert span.status.status_code is StatusCode.ERROR
        assert (
            said(span).items() >= {"http.response.status_code": 404, "error.type": "404", "fivespot.verb": verb}.items()
        )
        assert not span.events


@pytest.mark.looptime
async def test_only_what_nobody_expected_comes_with_its_place(
    exported: InMemorySpanExporter, tracer: OpenTelemetryTracer
) -> None:
    async def fails(key: Key) -> None:
        raise ZeroDivisionError("by zero")

    async def is_refused(key: Key) -> None:
        raise ConnectError("nobody is there " * 100)

    async def is_cut_off(key: Key) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(1)

    for work in (fails, is_refused, is_cut_off):
        await controller_of(work, tracer)._run(KEY)
    first, second, third = exported.get_finished_spans()
    assert [said(span)["error.type"] for span in (first, second, third)] == [
        "ZeroDivisionError",
        "ConnectError",
        "TimeoutError",
    ]
    assert [len(span.events) for span in (first, second, third)] == [1, 0, 0]
    assert len(second.status.description or "") == 300


async def test_spans_of_ones_own_pass_through(exported: InMemorySpanExporter, tracer: OpenTelemetryTracer) -> None:
    with tracer.span("resize", size=3) as span:
        span.set("done", "yes")
    (found,) = exported.get_finished_spans()
    assert (found.name, said(found)) == ("resize", {"size": 3, "done": "yes"})


async def test_what_is_not_sampled_says_so_to_the_server() -> None:
    wire = Wire(OBJECT)
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    await client_of(wire, OpenTelemetryTracer(provider)).get(WIDGETS, KEY)
    flags = wire.asked[0].headers["traceparent"].rpartition("-")[2]
    assert not int(flags, 16) & trace.TraceFlags.SAMPLED


async def test_without_a_provider_nothing_is_carried() -> None:
    wire = Wire(OBJECT)
    await client_of(wire, OpenTelemetryTracer(trace.NoOpTracerProvider())).get(WIDGETS, KEY)
    assert "traceparent" not in wire.asked[0].headers


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/v1/namespaces", ("/api/v1/namespaces", "", "")),
        ("/api/v1/namespaces/x", ("/api/v1/namespaces/{name}", "", "x")),
        ("/api/v1/namespaces/x/finalize", ("/api/v1/namespaces/{name}/finalize", "", "x")),
        ("/api/v1/namespaces/x/pods", ("/api/v1/namespaces/{namespace}/pods", "x", "")),
        ("/apis/a.b/v1/c/d/status", ("/apis/a.b/v1/c/{name}/status", "", "d")),
        ("/api/v1/nodes/n/proxy/a/b", ("/api/v1/nodes/{name}/proxy/{path}", "", "n")),
        ("/apis/a.b/v1", ("/apis/a.b/v1", "", "")),
        ("/version", ("/version", "", "")),
        ("/openapi/v3/apis/a.b/v1", ("/openapi/v3/apis/{path}", "", "")),
        ("/", ("/", "", "")),
    ],
)
def test_a_path_is_told_by_its_form(path: str, found: tuple[str, str, str]) -> None:
    assert read_path(path) == found


# The switch


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[MutableMapping[str, Any]]:
    capture = structlog.testing.LogCapture()
    logger = structlog.wrap_logger(structlog.PrintLogger(), processors=[capture], cache_logger_on_first_use=False)
    monkeypatch.setattr(tracing, "_log", logger)
    return capture.entries


ASKING = [
    {"OTEL_TRACES_EXPORTER": "otlp"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"},
    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4317"},
    {"OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider"},
]
NOT_ASKING = [
    {},
    {"OTEL_SERVICE_NAME": "fivespot"},
    {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"},
    {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "True"},
]


@pytest.mark.parametrize("environ", ASKING)
def test_the_usual_variables_turn_traces_on(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: TracerProvider(shutdown_on_exit=False))
    assert isinstance(tracer_from(environ), OpenTelemetryTracer)


async def test_a_manager_traces_as_the_environment_asks_unless_it_is_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: TracerProvider(shutdown_on_exit=False))
    for name in (name for environ in ASKING for name in environ):
        monkeypatch.delenv(name, raising=False)
    async with open_manager("mine", kubeconfig=str(file)) as manager:
        assert manager.context.tracer is NULL_TRACER
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    async with open_manager("mine", kubeconfig=str(file)) as manager:
        assert isinstance(manager.context.tracer, OpenTelemetryTracer)
    async with open_manager("mine", kubeconfig=str(file), tracer=NULL_TRACER) as manager:
        assert manager.context.tracer is NULL_TRACER


@pytest.mark.parametrize("environ", ASKING)
def test_where_nobody_exports_a_line_says_so_and_nothing_is_traced(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, logged: list[MutableMapping[str, Any]]
) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    assert tracer_from(environ) is NULL_TRACER
    (line,) = logged
    assert (line["log_level"], line["asked_by"]) == ("warning", next(iter(environ)))
    assert "opentelemetry-instrument" in line["event"]


def test_without_the_library_a_line_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, logged: list[MutableMapping[str, Any]]
) -> None:
    monkeypatch.delitem(sys.modules, "fivespot.runtime.telemetry.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert tracer_from(ASKING[0]) is NULL_TRACER
    assert [(line["event"], line["extra"]) for line in logged] == [
        ("no traces: opentelemetry-api is not installed", "fivespot[otel]")
    ]


def test_unasked_nothing_of_opentelemetry_is_loaded() -> None:
    code = f"""
import sys
import fivespot.cli.process, fivespot.providers.sdk
from fivespot.runtime.manager import open_manager
from fivespot.runtime.telemetry import NULL_TRACER, tracer_from
for environ in {NOT_ASKING!r}:
    assert tracer_from(environ) is NULL_TRACER
print([name for name in sys.modules if name.partition(".")[0] == "opentelemetry"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
