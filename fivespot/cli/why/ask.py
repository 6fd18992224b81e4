"""From the name of a machine to its explanation: connects, reads, judges and explains."""

from __future__ import annotations

import asyncio
from typing import Final

from fivespot import __version__
from fivespot.cli.why.explain import Explanation, explain
from fivespot.cli.why.judge import judge
from fivespot.runtime import ConfigError, Key, SystemClock, TransportError, connect
from fivespot.runtime.clock import ThreadOffload, system_random

__all__ = ["ask"]

_LIMIT: Final = 30.0
"""Seconds for all requests together: a person waits."""


async def ask(
    machine: str, kubeconfig: str | None = None, context: str | None = None, capi_version: str | None = None
) -> Explanation:
    """The explanation of one ScheduledMachine.

    :param machine: ``NAMESPACE/NAME``, or ``NAME`` in the namespace of the context.
    :param capi_version: the version of Machines that the controller is configured to use, if any.
    :raises ConfigError: it cannot be asked for; in one line, why.
    :raises ApiError: the server fails.
    """
    namespace, _, name = machine.rpartition("/")
    if not name or "/" in namespace:
        raise ConfigError(f"{machine!r} is no NAMESPACE/NAME of a ScheduledMachine")
    clock = SystemClock()
    connection = await connect(
        kubeconfig=kubeconfig,
        context=context,
        user_agent=f"fivespot/{__version__} (why)",
        clock=clock,
        rng=system_random(),
        offload=ThreadOffload(),
    )
    async with connection:
        await connection.check()
        try:
            async with asyncio.timeout(_LIMIT):
                key = Key(namespace or connection.namespace, name)
                return explain(await judge(connection.client, clock, key, capi_version=capi_version))
        except TimeoutError as error:
            raise ConfigError(f"{connection.source}: {connection.server} did not answer within {_LIMIT:g} s") from error
        except TransportError as error:
            raise ConfigError(f"{connection.source}: {error}") from error
