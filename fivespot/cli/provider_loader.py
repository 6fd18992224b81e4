"""Load the providers that ``--provider`` names."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from fivespot.runtime import ConfigError

if TYPE_CHECKING:
    from fivespot.providers.sdk import Provider

    Providers: TypeAlias = tuple[Provider[Any], ...]

__all__ = ["load_providers", "refuse_duplicates"]

_FORM = "write it as package.module:Object, or package.module:One,Another"


def load_providers(texts: Sequence[str]) -> Providers:
    """Import the named providers, from the working directory too; returns them in order.

    :raises ConfigError: a name is malformed, a module cannot be imported, or an object is not a provider.
    """
    if not texts:
        return ()
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        # Python puts the folder of the script on the path, not the working directory.
        sys.path.insert(0, here)
    # The same object named twice is not a conflict.
    found = {id(provider): provider for text in texts for provider in _load(text)}
    refuse_duplicates(found.values())
    return tuple(found.values())


def refuse_duplicates(providers: Iterable[Provider[Any]]) -> None:
    """Check that all providers differ in kind, plural and metrics.

    :raises ConfigError: two of them have the same.
    """
    seen: dict[tuple[str, str], Provider[Any]] = {}
    for provider in providers:
        for what, name in (("kind", provider.name), ("plural", provider.plural), ("metrics", provider.metrics)):
            other = seen.setdefault((what, name), provider)
            if other is provider:
                continue
            if what == "kind":
                raise ConfigError(f"--provider: two providers serve kind {provider.kind}; name each once")
            raise ConfigError(
                f"--provider: {other.kind} and {provider.kind} both have {what} {name!r}; they must differ"
            )


def _load(text: str) -> list[Provider[Any]]:
    module_name, colon, names = text.strip().partition(":")
    parts = [name.strip() for name in names.split(",") if name.strip()]
    if not colon or not parts or not all(step.isidentifier() for step in [*module_name.split("."), *parts]):
        raise ConfigError(f"--provider {text!r}: {_FORM}")
    module = _module(text, module_name)
    return [provider for name in parts for provider in _providers(text, module, name)]


def _module(text: str, name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            remedy = "install the package, or start in its folder"
            raise ConfigError(f"--provider {text}: there is no module {error.name}; {remedy}") from error
        raise ConfigError(f"--provider {text}: importing {name} failed: {error}") from error
    except Exception as error:
        # Importing runs the module's code, which may raise anything.
        raise ConfigError(f"--provider {text}: importing {name} failed: {type(error).__name__}: {error}") from error


def _providers(text: str, module: ModuleType, name: str) -> list[Provider[Any]]:
    from fivespot.providers.sdk import Provider  # noqa: PLC0415 - the help must not import it

    there = {key for key, value in vars(module).items() if isinstance(value, Provider)}
    if not hasattr(module, name):
        near = difflib.get_close_matches(name, there, n=1) or sorted(there)[:1]
        hint = f"; did you mean {near[0]}?" if near else ", nor any provider"
        raise ConfigError(f"--provider {text}: {module.__name__} has no {name}{hint}")
    value = getattr(module, name)
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    for one in found:
        if not isinstance(one, Provider):
            hint = f"; did you mean {min(there)}?" if there else ""
            raise ConfigError(
                f"--provider {text}: {name} is {_describe(one)}, not a fivespot.providers.sdk.Provider{hint}"
            )
    if not found:
        raise ConfigError(f"--provider {text}: {name} is empty")
    return found


def _describe(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
