"""A provider as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .controller import build_controller
from .definition import Provider

if TYPE_CHECKING:
    from fivespot.runtime import LogFormat, ManagerSettings

__all__ = ["run"]


def run(
    *providers: Provider[Any],
    name: str,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespaces: Sequence[str] | None = None,
    settings: ManagerSettings | None = None,
    log_format: LogFormat = "json",
    verbosity: int = 0,
) -> None:
    """The main function of a program that runs providers until SIGTERM or SIGINT.

    :param name: what the program is called: user agent, field manager and ``reportingController`` of events.
    :param settings: endpoints and leader election. By default there are none, and two replicas would both write
        (the same verdict, at about the same time).

    The other parameters, and what is raised, are those of :func:`fivespot.runtime.run`.
    """
    # Importing a provider to look at its decision must not load an HTTP server.
    from fivespot.runtime import Manager, run  # noqa: PLC0415

    def setup(manager: Manager) -> None:
        for provider in providers:
            manager.add(partial(build_controller, provider))

    run(
        setup,
        name=name,
        kubeconfig=kubeconfig,
        context=context,
        namespaces=namespaces,
        settings=settings,
        log_format=log_format,
        verbosity=verbosity,
    )
