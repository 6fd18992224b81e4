"""Optional dependencies of commands: names all that are missing, and the extras that bring them, in one message."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from fivespot.runtime import ConfigError

__all__ = ["require_modules"]

_EXTRAS: Final = {"cel_expr_python": "testing", "jsonpatch": "testing", "rich": "testing"}
"""Module -> the extra that installs it."""


def require_modules(*modules: str, alternative: str = "") -> None:
    """Check that modules can be imported.

    :param alternative: what else helps, for the message.
    :raises ConfigError: some are missing.
    """
    missing = [module for module in modules if not _is_installed(module)]
    if missing:
        names = ", ".join(module.replace("_", "-") for module in missing)
        extras = ",".join(sorted({_EXTRAS[module] for module in missing}))
        verb = "is" if len(missing) == 1 else "are"
        raise ConfigError(f"{names} {verb} not installed; pip install 'fivespot[{extras}]'{alternative}")


def _is_installed(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True
