"""Credential plugins of a kubeconfig: ``exec`` (client.authentication.k8s.io) and the OIDC auth provider.

All of it blocks and runs in a thread. Setting the interrupt kills a running plugin and cancels a running renewal, so
that nobody has to wait for either.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Coroutine, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import structlog
import yaml

from fivespot.runtime.errors import ConfigError

from .kubeconfig_loader import ConfigException, ExecProvider, KubeConfigLoader, kube_config, parse_rfc3339

__all__ = ["ContextLoader", "exec_cluster", "run_plugin"]

T = TypeVar("T")

_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_INTERACTIVE_MODES: Final = ("Never", "IfAvailable", "Always")
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_POLL_SECONDS: Final = 0.1
"""Interval between checks of the interrupt."""

_logger = structlog.get_logger(__name__)


# -- exec ------------------------------------------------------------------------------------------------------------


def exec_cluster(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The ``spec.cluster`` that a plugin with ``provideClusterInfo`` gets.

    :param cluster: the kubeconfig's cluster section, with absolute paths.
    :raises OSError: the certificate authority's file cannot be read.
    """
    fields = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    info: dict[str, Any] = {name: cluster[name] for name in fields if cluster.get(name)}
    authority = cluster.get("certificate-authority-data")
    if not authority and cluster.get("certificate-authority"):
        authority = base64.b64encode(Path(cluster["certificate-authority"]).read_bytes()).decode()
    if authority:
        info["certificate-authority-data"] = authority
    extensions = {entry.get("name"): entry.get("extension") for entry in cluster.get("extensions") or ()}
    info["config"] = extensions.get(_EXEC_EXTENSION)
    return info


def run_plugin(
    section: Mapping[str, Any], cluster: Mapping[str, Any], seconds: float, interrupt: threading.Event
) -> dict[str, Any]:
    """Run an exec plugin and return the ``status`` of its ExecCredential. Blocking.

    :param section: the kubeconfig's ``exec`` section.
    :param cluster: the kubeconfig's cluster section, for ``provideClusterInfo``.
    :param seconds: time limit, after which the plugin is killed.
    :raises TimeoutError: the time limit was exceeded.
    :raises ConfigError: the section, the plugin's exit code or its output is not valid, or it was interrupted.
    :raises OSError: the plugin cannot be executed.
    """
    interactive = _is_interactive(section)
    spec: dict[str, Any] = {"interactive": interactive}
    if section.get("provideClusterInfo"):
        spec["cluster"] = exec_cluster(cluster)
    provider = ExecProvider(kube_config.ConfigNode("exec", dict(section)))
    version = str(provider.api_version)
    request = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    process = subprocess.Popen(
        provider.args,
        env={**provider.env, "KUBERNETES_EXEC_INFO": json.dumps(request)},
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = _communicate(process, seconds, interrupt)
    if process.returncode:
        reason = errors.decode(errors="replace").strip()
        raise ConfigError(f"exec: process returned {process.returncode}" + (f". {reason}" if reason else ""))
    return _credential(output, version)


def _is_interactive(section: Mapping[str, Any]) -> bool:
    for name in ("command", "apiVersion"):
        if not section.get(name):
            raise ConfigError(f"exec: {name} must be specified")
    if section["apiVersion"] not in _EXEC_VERSIONS:
        raise ConfigError(f"exec: apiVersion must be one of {', '.join(_EXEC_VERSIONS)}")
    mode = section.get("interactiveMode") or ("IfAvailable" if section["apiVersion"] != _EXEC_VERSIONS[0] else "")
    if mode not in _INTERACTIVE_MODES:
        raise ConfigError(f"exec: interactiveMode must be one of {', '.join(_INTERACTIVE_MODES)}")
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise ConfigError("exec: the plugin needs a terminal, and standard input is none")
    return terminal and mode != "Never"


def _communicate(process: subprocess.Popen[bytes], seconds: float, interrupt: threading.Event) -> tuple[bytes, bytes]:
    poll = min(_POLL_SECONDS, seconds)
    try:
        for _ in range(max(1, round(seconds / poll))):
            try:
                return process.communicate(timeout=poll)
            except subprocess.TimeoutExpired:
                if interrupt.is_set():
                    raise ConfigError("exec: interrupted") from None
        raise TimeoutError(f"the plugin did not answer in {seconds:g} s")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        # A child of the plugin may keep the other ends open for ever.
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _credential(output: bytes, version: str) -> dict[str, Any]:
    try:
        credential = json.loads(output)
    except ValueError as error:
        raise ConfigError("exec: the plugin's output is not JSON") from error
    if not isinstance(credential, dict) or not isinstance(credential.get("status"), dict):
        raise ConfigError("exec: the plugin's output has no status")
    if credential.get("apiVersion") != version:
        raise ConfigError(f"exec: the plugin returned {credential.get('apiVersion')} instead of {version}")
    status: dict[str, Any] = credential["status"]
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    if bool(certificate) != bool(key):
        raise ConfigError("exec: the plugin returned a certificate or a key, but not both")
    if not status.get("token") and not certificate:
        raise ConfigError("exec: the plugin returned neither a token nor a certificate with its key")
    return status


# -- the loader ------------------------------------------------------------------------------------------------------


class ContextLoader(KubeConfigLoader):
    """kubernetes_asyncio's loader for one context, with its plugins replaced.

    The library has no time limits, leaves a hung plugin running, and renews an OIDC token without checking certificates
    unless the kubeconfig brings a CA, which it then cannot use.

    :param folder: for inline certificates and keys; owned by the caller.
    :param plugin_seconds: time limit of an exec plugin.
    :param user_file: file to which renewed OIDC tokens are written, since a refresh token is often valid only once.
    """

    cert_file: str | None
    key_file: str | None

    def __init__(
        self,
        content: dict[str, Any],
        folder: str,
        *,
        user_name: str,
        user_file: Path | None,
        plugin_seconds: float,
        interrupt: threading.Event,
    ) -> None:
        super().__init__(config_dict=content, config_base_path="", temp_file_path=folder)
        self._folder = folder
        self._plugin_seconds = plugin_seconds
        self._interrupt = interrupt
        self._user_name = user_name
        self._user_file = user_file

    async def load_from_exec_plugin(self) -> bool:
        # Blocks an event loop that has nothing else to do: the loader runs in a thread of its own.
        section, cluster = self._user["exec"].value, self._cluster.value  # type: ignore[index, attr-defined]
        status = run_plugin(section, cluster, self._plugin_seconds, self._interrupt)
        if status.get("token"):
            self.token = f"Bearer {status['token']}"
        if status.get("clientCertificateData"):
            self.cert_file = self._written("plugin.crt", status["clientCertificateData"])
            self.key_file = self._written("plugin.key", status["clientKeyData"])
        if status.get("expirationTimestamp"):
            self.exec_plugin_expiry = parse_rfc3339(status["expirationTimestamp"])
        return True

    def _written(self, name: str, content: str) -> str:
        path = Path(self._folder) / name
        path.touch(mode=0o600)
        path.write_text(content, encoding="utf-8")
        return str(path)

    @property
    def plugin_expiry(self) -> datetime | None:
        """Expiration of the exec plugin's credential, if it gave one."""
        expiry: datetime | None = getattr(self, "exec_plugin_expiry", None)
        return expiry

    async def _refresh_oidc(self, provider: Any) -> None:
        settings: dict[str, Any] = provider["config"].value
        for name in ("idp-issuer-url", "client-id", "refresh-token"):
            if not settings.get(name):
                raise ConfigException(f"oidc: the id-token has expired, and without {name} it cannot be renewed")
        answer = await _until_interrupted(_renew(settings), self._interrupt)
        settings["id-token"] = answer["id_token"]
        settings["refresh-token"] = answer.get("refresh_token") or settings["refresh-token"]
        self._write_back(settings)

    def _write_back(self, settings: dict[str, Any]) -> None:
        if self._user_file is None:
            return
        try:
            content = yaml.safe_load(self._user_file.read_text(encoding="utf-8"))
            for entry in content["users"]:
                if entry["name"] == self._user_name:
                    entry["user"]["auth-provider"]["config"] |= {
                        name: settings[name] for name in ("id-token", "refresh-token")
                    }
            written = self._user_file.with_name(self._user_file.name + ".fivespot")
            written.touch(mode=0o600)
            written.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
            written.replace(self._user_file.resolve())
        except OSError as error:
            _logger.warning(
                "renewed OIDC tokens cannot be written back", file=str(self._user_file), error=error.strerror
            )


# -- OIDC ------------------------------------------------------------------------------------------------------------


async def _until_interrupted(work: Coroutine[Any, Any, T], interrupt: threading.Event) -> T:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_outcome(work))
        while not (await asyncio.wait({task}, timeout=_POLL_SECONDS))[0]:
            if interrupt.is_set():
                task.cancel()
                break
    if task.cancelled():
        raise ConfigError("oidc: interrupted")
    result, error = task.result()
    if error is not None:
        raise error
    return cast("T", result)


async def _outcome(work: Coroutine[Any, Any, T]) -> tuple[T | None, Exception | None]:
    # A task group would wrap the error in a group.
    try:
        return await work, None
    except Exception as error:
        return None, error


async def _renew(settings: dict[str, Any]) -> dict[str, Any]:
    """Exchange the refresh token for a new id-token (OpenID Connect Core 1.0, 12.1).

    Redirects are not followed: they would send the refresh token elsewhere.
    """
    import aiohttp  # noqa: PLC0415 - only needed here

    issuer = str(settings["idp-issuer-url"]).rstrip("/")
    form = {"grant_type": "refresh_token", "refresh_token": str(settings["refresh-token"])}
    client = f"{settings['client-id']}:{settings.get('client-secret') or ''}".encode()
    headers = {"Authorization": f"Basic {base64.b64encode(client).decode()}"}
    limits = aiohttp.ClientTimeout(total=30.0, connect=10.0, sock_connect=10.0, sock_read=15.0)
    connector = aiohttp.TCPConnector(ssl=_context(settings))
    async with aiohttp.ClientSession(connector=connector, timeout=limits, trust_env=True) as session:

        async def answer(request: Any) -> dict[str, Any]:
            async with request as response:
                if response.status != 200:
                    raise ConfigException(f"oidc: {issuer} refused to renew the id-token: {response.status}")
                found = await response.json(content_type=None)
            if not isinstance(found, dict):
                raise ConfigException(f"oidc: {issuer} did not answer with a JSON object")
            return found

        try:
            found = await answer(session.get(f"{issuer}/.well-known/openid-configuration", allow_redirects=False))
            endpoint = str(found.get("token_endpoint") or "")
            if urlsplit(endpoint).scheme != "https" and urlsplit(issuer).scheme == "https":
                raise ConfigException(f"oidc: the token_endpoint of {issuer} is not an https:// URL")
            renewed = await answer(session.post(endpoint, data=form, headers=headers, allow_redirects=False))
        except aiohttp.ClientError as error:
            raise ConfigException(f"oidc: cannot reach {issuer}: {error}") from error
    if "id_token" not in renewed:
        raise ConfigException(f"oidc: {issuer} answered without an id_token")
    return renewed


def _context(settings: dict[str, Any]) -> ssl.SSLContext:
    inline, file = settings.get("idp-certificate-authority-data"), settings.get("idp-certificate-authority")
    if inline:
        return ssl.create_default_context(cadata=base64.b64decode(str(inline)).decode())
    return ssl.create_default_context(cafile=str(file) if file else None)
