"""One line a record, and never a credential."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.clock import SystemClock
from fivespot.runtime.objects import Key
from fivespot.runtime.reconcile import Controller, Result
from fivespot.runtime.telemetry.logs import (
    LogFormat,
    LogLimiter,
    configure_logging,
    hide_credentials,
    render_json,
    render_text,
)

AT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    logging.captureWarnings(False)


def start(format: LogFormat = "json", verbosity: int = 0) -> io.BytesIO:
    stream = io.BytesIO()
    configure_logging(format, verbosity, stream=stream, now=lambda: AT)
    return stream


def records(stream: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_json_object_with_the_fields_in_order() -> None:
    stream = start()
    structlog.contextvars.bind_contextvars(reconcile_id="r1")
    structlog.get_logger("fivespot.test").info("machine up", object="prod/web", seconds=0.5)
    assert stream.getvalue() == (
        b'{"time":"2026-03-01T12:00:00.250000Z","level":"info","logger":"fivespot.test","msg":"machine up",'
        b'"object":"prod/web","seconds":0.5,"reconcile_id":"r1"}\n'
    )


def test_text_is_for_people_and_still_one_line_a_record() -> None:
    stream = start("text")
    structlog.get_logger("fivespot.test").warning("not\nready", why="a b", n=3, none=None)
    assert stream.getvalue() == (
        b'2026-03-01T12:00:00.250000Z WARNING "not\\nready" logger=fivespot.test why="a b" n=3 none=None\n'
    )


@pytest.mark.parametrize(("verbosity", "shown"), [(0, 0), (1, 1), (2, 1)])
def test_debug_is_shown_when_asked_for(verbosity: int, shown: int) -> None:
    stream = start(verbosity=verbosity)
    structlog.get_logger().debug("detail")
    assert len(records(stream)) == shown


def test_an_exception_is_a_field_of_its_record() -> None:
    stream = start()
    try:
        raise ValueError("broken\nbadly")
    except ValueError as error:
        structlog.get_logger().exception("failed")
        structlog.get_logger().error("failed", exc_info=error)
    first, second = records(stream)
    assert "ValueError: broken\nbadly" in first["exception"]
    assert first["exception"] == second["exception"]


def test_records_of_libraries_come_the_same_way_and_only_from_warning_up() -> None:
    stream = start(verbosity=1)
    logging.getLogger("aiohttp.server").warning("odd request from %s", "10.0.0.1")
    logging.getLogger("kubernetes_asyncio.rest").debug("response body: secret")
    logging.getLogger("odd").log(35, "custom level")
    logging.getLogger("odd").warning("%d arguments missing")
    shown = records(stream)
    assert [(entry["logger"], entry["level"], entry["msg"]) for entry in shown] == [
        ("aiohttp.server", "warning", "odd request from 10.0.0.1"),
        ("odd", "warning", "custom level"),
        ("odd", "warning", "%d arguments missing"),
    ]


def test_configuring_twice_does_not_double_the_lines() -> None:
    start()
    stream = start()
    logging.getLogger("aiohttp").warning("once")
    assert len(records(stream)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "s3cr3t-value"},
        {"Authorization": "s3cr3t-value"},
        {"headers": {"authorization": "s3cr3t-value"}},
        {"user": [{"client-key-data": "x", "client_key": "s3cr3t-value"}]},
        {"error": "request with Bearer s3cr3t-value failed"},
        {"error": "header 'basic s3cr3t-value'"},
        {"bootstrapSpec": {"users": ["s3cr3t-value"]}},
        {"spec": {"x": "s3cr3t-value"}},
        {"db_password": "s3cr3t-value"},
    ],
)
@pytest.mark.parametrize("format", get_args(LogFormat))
def test_credentials_and_bodies_of_objects_are_hidden(fields: dict[str, Any], format: LogFormat) -> None:
    stream = start(format)
    structlog.get_logger().info("request", **fields)
    assert b"s3cr3t" not in stream.getvalue()
    assert b"(hidden)" in stream.getvalue()


class _Odd:
    def __str__(self) -> str:
        return "odd \ud800 thing"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(_Odd),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(message=st.text(st.characters(codec=None)), fields=st.dictionaries(st.text(), anything, max_size=4))
def test_no_value_breaks_the_line_or_raises(message: str, fields: dict[str, Any]) -> None:
    event = {"event": message, "level": "info", "time": "t", **{f"f_{name}": value for name, value in fields.items()}}
    line = render_json(None, "info", hide_credentials(None, "info", dict(event)))
    assert b"\n" not in line
    assert isinstance(json.loads(line), dict)
    text = render_text(None, "info", hide_credentials(None, "info", dict(event)))
    assert len(text.decode().splitlines()) == 1


def test_the_limiter_lets_one_record_an_interval_through_and_tells_how_many_it_held_back() -> None:
    limiter = LogLimiter(10, size=2)
    assert limiter.allow("a", 0) == 0
    assert limiter.allow("a", 5) is None
    assert limiter.allow("a", 9.9) is None
    assert limiter.allow("a", 10) == 2
    assert limiter.allow("b", 10) == 0
    assert limiter.allow("c", 10) == 0
    assert limiter.allow("a", 11) == 0, "only the last two keys are remembered"


class Broken(io.BytesIO):
    """A stream whose reader is gone, or whose disk is full, or that is closed."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, data: Any) -> int:
        raise self._error


@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(28, "No space left on device"), ValueError("closed file")]
)
def test_a_line_that_cannot_be_written_raises_nothing(error: Exception) -> None:
    configure_logging("json", stream=Broken(error), now=lambda: AT)
    structlog.get_logger("x").error("nobody reads this")
    logging.getLogger("y").warning("nor this")


def test_a_traceback_of_the_runtime_shows_no_local_variables_where_nothing_is_configured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """structlog's default renderer prints them where rich is installed, and a request's headers are among them."""
    structlog.reset_defaults()
    # A logger that was used keeps the configuration that it had then.
    monkeypatch.setattr("fivespot.runtime.reconcile.controller._log", structlog.get_logger("fivespot.test"))

    async def main() -> None:
        controller = Controller("c", Leaky(), clock=SystemClock(), rng=random.Random(1))
        controller.enqueue(Key("ns", "a"))
        task = asyncio.create_task(controller.run())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(main())
    text = "".join(capsys.readouterr())
    assert "RuntimeError: bug" in text
    assert "reconcile failed" in text
    assert "secret" not in text


class Leaky:
    async def reconcile(self, key: Key) -> Result:
        headers = {"Authorization": "Bearer " + "TERCES"[::-1].lower()}
        raise RuntimeError("bug" if headers else "")
