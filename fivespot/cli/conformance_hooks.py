"""Commands of the user's that a conformance run calls: to restart a provider, to flip what it looks at."""

from __future__ import annotations

import asyncio
import os

from fivespot.runtime.errors import ConfigError

__all__ = ["Command"]

_LIMIT = 120.0
_SHOWN = 300


class Command:
    """A shell command with a limit; its output is shown when it fails.

    :param option: the flag that it comes from, for messages.
    """

    def __init__(self, option: str, text: str) -> None:
        self._option = option
        self._text = text

    async def restart(self) -> None:
        """:raises ConfigError: it failed."""
        await self._run({})

    async def flip(self, namespace: str, name: str, active: bool) -> None:
        """With ``SCHEDULE_NAMESPACE``, ``SCHEDULE_NAME`` and ``SCHEDULE_ACTIVE`` (true or false) in its environment.

        :raises ConfigError: it failed.
        """
        await self._run(
            {"SCHEDULE_NAMESPACE": namespace, "SCHEDULE_NAME": name, "SCHEDULE_ACTIVE": str(active).lower()}
        )

    async def _run(self, variables: dict[str, str]) -> None:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            self._text,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **variables},
        )
        try:
            async with asyncio.timeout(_LIMIT):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise ConfigError(f"{self._option}: it did not end within {_LIMIT:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            said = " ".join(output.decode(errors="replace").split())[-_SHOWN:]
            raise ConfigError(f"{self._option}: it ended with {process.returncode}: {said}")
