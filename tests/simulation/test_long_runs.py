"""Months of schedules in seconds: the whole system, with every phase of a Machine, in virtual time.

Small enough for every run of the tests; ``./dev bench simulation`` measures a month of a hundred machines and a day of
a thousand.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.system import EmbeddedSystem
from fivespot.testing.virtual_time import run_virtual

from .fleet import DAY, Trace, add_machine, add_schedule, counts, phases

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
_A_FEW = 3
_MANY = 120


async def weekdays(system: EmbeddedSystem, machines: int, days: int) -> list[tuple[str, int]]:
    """Machines on working hours in Berlin, over days; how many there are at noon and at midnight of each."""
    await system.add_cluster("default")
    await add_schedule(
        system, "hours", timezone="Europe/Berlin", windows=[{"days": ["mon-fri"], "start": "08:00", "end": "18:00"}]
    )
    seen = []
    async with system.manager():
        for number in range(machines):
            await add_machine(system, f"web-{number}", "hours", gracefulShutdownTimeout="2m")
        for day in range(days):
            date = MONDAY + timedelta(days=day)
            for hour in (12, 23):
                await system.sleep_until(day * DAY + hour * 3600)
                seen.append((f"{date:%a} {hour}", await counts(system)))
        assert set(await phases(system)) == {"Inactive"}
    return seen


def test_a_month_of_working_days() -> None:
    async def month() -> list[tuple[str, int]]:
        async with EmbeddedCluster(start=MONDAY, stride=3600) as cluster, EmbeddedSystem(cluster) as system:
            return await weekdays(system, machines=_A_FEW, days=31)

    seen = run_virtual(month())
    # The clocks in Berlin change on the 29th of March, a Sunday; noon is within hours before and after.
    for when, count in seen:
        day, hour = when.split()
        assert count == (_A_FEW if hour == "12" and day not in {"Sat", "Sun"} else 0), when


def test_a_day_of_many_machines() -> None:
    async def day() -> list[tuple[str, int]]:
        async with EmbeddedCluster(start=MONDAY, stride=3600) as cluster, EmbeddedSystem(cluster) as system:
            return await weekdays(system, machines=_MANY, days=1)

    assert run_virtual(day()) == [("Mon 12", _MANY), ("Mon 23", 0)]


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    async def trace(seed: int) -> str:
        async with EmbeddedCluster(start=MONDAY, seed=seed, stride=3600) as cluster, EmbeddedSystem(cluster) as system:
            await weekdays(system, machines=5, days=2)
            return await Trace(system).digest()

    first, again, other = (run_virtual(trace(seed)) for seed in (7, 7, 8))
    assert first == again
    assert first != other
