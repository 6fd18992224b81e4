"""Renewal of credentials."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fivespot.runtime.client.auth import CHECK_SECONDS, FORCED_SECONDS, Access, Credentials, digest_files
from fivespot.runtime.clock import InlineOffload, ThreadOffload
from fivespot.runtime.errors import ConfigError
from support.faulty_servers import ManualClock


class SlowOffload:
    """Runs the work at once but comes back only when it is let."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        await self.gate.wait()
        return result


@dataclass
class Source:
    """Something that credentials are loaded from."""

    token: str = "one"
    expires: datetime | None = None
    files: tuple[Path, ...] = ()
    broken: bool = False
    loads: int = 0

    def __call__(self, now: datetime, interrupt: threading.Event) -> Access:
        self.loads += 1
        if self.broken:
            raise ConfigError("file: broken")
        return Access(
            "http://x",
            authorization=self.token,
            expires=self.expires,
            files=self.files,
            files_digest=digest_files(self.files),
        )


def make(source: Source) -> tuple[Credentials, ManualClock]:
    clock = ManualClock()
    return Credentials(source, clock=clock, offload=InlineOffload()), clock


async def test_nothing_is_loaded_twice_while_nothing_changes(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    source = Source(files=(token,))
    credentials, clock = make(source)
    for _ in range(20):
        await credentials.current()
        clock.advance(CHECK_SECONDS)
    assert source.loads == 1


async def test_a_changed_file_is_seen_within_a_minute(tmp_path: Path) -> None:
    """kopf#926, kubernetes_asyncio#205, client-go#1381: a token that was read once fails after an hour."""
    token = tmp_path / "token"
    token.write_text("one")
    source = Source(files=(token,))
    credentials, clock = make(source)
    await credentials.current()
    token.write_text("two")
    source.token = "two"
    clock.advance(CHECK_SECONDS - 1)
    assert (await credentials.current()).authorization == "one"
    clock.advance(1)
    assert (await credentials.current()).authorization == "two"


async def test_what_expires_is_renewed_before_it_does() -> None:
    source = Source()
    credentials, clock = make(source)
    source.expires = clock.now() + timedelta(minutes=30)
    await credentials.current()
    source.token, source.expires = "two", clock.now() + timedelta(hours=2)
    clock.advance(28 * 60)
    assert (await credentials.current()).authorization == "one"
    clock.advance(60)
    assert (await credentials.current()).authorization == "two"
    assert source.loads == 2


async def test_something_short_lived_is_not_renewed_with_every_request() -> None:
    source = Source()
    credentials, clock = make(source)
    source.expires = clock.now() + timedelta(seconds=100)
    for _ in range(89):
        await credentials.current()
        clock.advance(1)
    assert source.loads == 1
    clock.advance(1)
    await credentials.current()
    assert source.loads == 2


async def test_something_that_comes_expired_is_asked_for_every_few_seconds_only() -> None:
    source = Source()
    credentials, clock = make(source)
    source.expires = clock.now() - timedelta(seconds=1)
    for _ in range(int(3 * FORCED_SECONDS)):
        await credentials.current()
        clock.advance(1)
    assert source.loads == 3


async def test_the_first_failure_is_raised_and_later_ones_keep_the_old() -> None:
    source = Source(broken=True)
    credentials, clock = make(source)
    with pytest.raises(ConfigError, match="file: broken"):
        await credentials.current()
    source.broken = False
    access = await credentials.current()
    source.broken = True
    clock.advance(FORCED_SECONDS)
    with capture_logs() as logs:
        assert not await credentials.refused(access)
    assert [entry["error"] for entry in logs] == ["file: broken"]
    assert await credentials.current() is access


async def test_refusals_share_one_load_and_force_the_next_one_only_after_a_while() -> None:
    source = Source()
    credentials, clock = make(source)
    old = await credentials.current()
    source.token = "two"
    assert await asyncio.gather(*(credentials.refused(old) for _ in range(100))) == [True] * 100
    assert source.loads == 2
    new = await credentials.current()
    source.token = "three"
    assert not await credentials.refused(new)
    clock.advance(FORCED_SECONDS)
    assert await credentials.refused(new)
    assert source.loads == 3


async def test_a_tls_context_is_kept_until_its_files_change() -> None:
    """A new context would open a new connection for every request that follows."""
    contexts: list[Any] = [object(), object(), object()]

    def load(now: datetime, interrupt: threading.Event) -> Access:
        return Access("https://x", tls=contexts.pop(), tls_identity=b"1" if len(contexts) else b"2")

    clock = ManualClock()
    credentials = Credentials(load, clock=clock, offload=InlineOffload())
    first = await credentials.current()
    assert not await credentials.refused(first)
    second = await credentials.current()
    assert second.tls is first.tls
    clock.advance(FORCED_SECONDS)
    assert await credentials.refused(second)
    assert (await credentials.current()).tls is not first.tls


async def test_a_check_under_way_holds_nobody_up(tmp_path: Path) -> None:
    source = Source(files=(tmp_path / "token",))
    clock, offload = ManualClock(), SlowOffload()
    credentials = Credentials(source, clock=clock, offload=offload)
    await credentials.current()
    clock.advance(CHECK_SECONDS)
    offload.gate.clear()
    async with asyncio.TaskGroup() as group:
        checking = group.create_task(credentials.current())
        await asyncio.sleep(0)
        assert (await credentials.current()).authorization == "one"
        assert not checking.done()
        offload.gate.set()


async def test_a_caller_that_is_cancelled_leaves_the_others_alone() -> None:
    source, offload = Source(), SlowOffload()
    credentials = Credentials(source, clock=ManualClock(), offload=offload)
    offload.gate.clear()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(credentials.current())
        second = group.create_task(credentials.current())
        await asyncio.sleep(0)
        first.cancel()
        offload.gate.set()
    assert second.result().authorization == "one"


async def test_loading_does_not_hold_up_the_loop() -> None:
    """kube-rs#1950: a slow exec plugin must not block everything else."""
    entered, leave = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def load(now: datetime, interrupt: threading.Event) -> Access:
        loop.call_soon_threadsafe(entered.set)
        asyncio.run_coroutine_threadsafe(leave.wait(), loop).result(5)
        return Access("http://x", authorization="late")

    credentials = Credentials(load, clock=ManualClock(), offload=ThreadOffload())
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(credentials.current())
        # The loop gets here only because it is free while the load is under way.
        await entered.wait()
        leave.set()
    assert waiting.result().authorization == "late"


def test_secrets_are_not_in_the_text_of_an_access() -> None:
    access = Access("https://x", authorization="Bearer hunter2", proxy="http://u:hunter2@p")
    assert "hunter2" not in repr(access)


def test_a_digest_tells_contents_and_absence_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    digests = {digest_files([one, two])}
    one.write_text("ab")
    digests.add(digest_files([one, two]))
    two.write_text("c")
    digests.add(digest_files([one, two]))
    one.write_text("a")
    two.write_text("bc")
    digests.add(digest_files([one, two]))
    assert len(digests) == 4


async def test_a_request_that_is_cancelled_does_not_end_the_load_that_it_began() -> None:
    """Or a plugin that is slower than the limit of an election's requests would never finish."""
    source, offload = Source(), SlowOffload()
    credentials = Credentials(source, clock=ManualClock(), offload=offload)
    offload.gate.clear()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await credentials.current()
    offload.gate.set()
    assert (await credentials.current()).authorization == "one"
    assert source.loads == 1


async def test_closing_interrupts_a_load_and_whoever_waits_for_it() -> None:
    interrupts: list[threading.Event] = []

    def load(now: datetime, interrupt: threading.Event) -> Access:
        interrupts.append(interrupt)
        assert interrupt.wait(10)
        raise ConfigError("interrupted")

    credentials = Credentials(load, clock=ManualClock(), offload=ThreadOffload())
    waiting = asyncio.create_task(credentials.current())
    while not interrupts:
        await asyncio.sleep(0.01)
    await credentials.close()
    with pytest.raises(ConfigError, match="the connection is closed"):
        await waiting
    assert interrupts[0].is_set()
    with pytest.raises(ConfigError, match="the connection is closed"):
        await credentials.current()
