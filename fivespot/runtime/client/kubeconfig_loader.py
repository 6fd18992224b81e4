"""kubernetes_asyncio's kubeconfig loader, imported without that library's generated client.

``import kubernetes_asyncio`` executes more than a thousand modules of API models, 34 MB of a manager's memory. The
loader needs none of them, so its modules are executed on their own, under their own names but outside of
``sys.modules``; a program that imports the library itself is not affected.
"""

from __future__ import annotations

import builtins
import importlib.util
import logging
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kubernetes_asyncio.config import ConfigException, kube_config
    from kubernetes_asyncio.config.dateutil import parse_rfc3339
    from kubernetes_asyncio.config.exec_provider import ExecProvider
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader

__all__ = ["ConfigException", "ExecProvider", "KubeConfigLoader", "kube_config", "parse_rfc3339"]

_LIBRARY: Final = "kubernetes_asyncio"

# The library logs the errors that it raises; without a handler they would also be printed to stderr.
logging.getLogger(_LIBRARY).addHandler(logging.NullHandler())


class _Isolated:
    """Imports modules of the library from their files, with stand-ins for its client and its OIDC renewal.

    The loader names both in functions that are not used here; the second one would import aiohttp, 10 MB more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        client, openid = ModuleType(f"{_LIBRARY}.client"), ModuleType(f"{_LIBRARY}.config.openid")
        vars(client).update(ApiClient=None, Configuration=None)
        vars(openid).update(OpenIDRequestor=None)
        self._modules = {module.__name__: module for module in (client, openid)}

    def load(self, name: str) -> ModuleType:
        known = self._modules.get(name)
        if known is not None:
            return known
        path = self._folder.joinpath(*name.split(".")[1:]).with_suffix(".py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = self._modules[name] = importlib.util.module_from_spec(spec)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        spec.loader.exec_module(module)
        return module

    def _import(
        self,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if name.startswith(f"{_LIBRARY}.") and fromlist:
            return self.load(name)
        return __import__(name, globals_, locals_, fromlist or (), level)


def _isolate() -> _Isolated | None:
    """None where the library is not installed as files, as in a zip archive."""
    spec = importlib.util.find_spec(_LIBRARY)
    folder = Path(next(iter(spec.submodule_search_locations or ()), "")) if spec is not None else Path()
    return _Isolated(folder) if (folder / "config" / "kube_config.py").is_file() else None


if not TYPE_CHECKING:
    _isolated = None if _LIBRARY in sys.modules else _isolate()
    _load = import_module if _isolated is None else _isolated.load
    kube_config = _load(f"{_LIBRARY}.config.kube_config")
    KubeConfigLoader = kube_config.KubeConfigLoader
    ConfigException = _load(f"{_LIBRARY}.config.config_exception").ConfigException
    ExecProvider = _load(f"{_LIBRARY}.config.exec_provider").ExecProvider
    parse_rfc3339 = _load(f"{_LIBRARY}.config.dateutil").parse_rfc3339
