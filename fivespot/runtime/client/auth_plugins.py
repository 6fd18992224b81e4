"""Runs a credential plugin, as a kubeconfig's ``exec`` section says (client.authentication.k8s.io)."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
import structlog
import yaml
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.dateutil import parse_rfc3339
from kubernetes_asyncio.config.exec_provider import ExecProvider
from kubernetes_asyncio.config.kube_config import KubeConfigLoader

__all__ = ["VerifyingLoader", "run_plugin"]


def run_plugin(section: Any, seconds: float) -> dict[str, Any]:
    """What the plugin says: ``status`` of its ExecCredential. Blocking.

    The library's own way of running it leaves a plugin that hangs behind for good, and hangs itself where one writes
    much to its standard error; what the section means is still its business.

    :param seconds: after which the plugin is killed.
    :raises TimeoutError: it took longer.
    :raises ConfigException: the section, the plugin's exit code or its answer is not as it should be.
    :raises OSError: it cannot be run.
    """
    provider = ExecProvider(section)
    request = {
        "apiVersion": provider.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": sys.stdout.isatty()},
    }
    environment = {**provider.env, "KUBERNETES_EXEC_INFO": json.dumps(request)}
    try:
        done = subprocess.run(provider.args, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"the plugin did not answer in {seconds:g} s") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        raise ConfigException(f"exec: process returned {done.returncode}" + (f". {reason}" if reason else ""))
    return _status(done.stdout, str(provider.api_version))


def _status(answer: bytes, version: str) -> dict[str, Any]:
    try:
        found = json.loads(answer)
    except ValueError as error:
        raise ConfigException("exec: the plugin's answer is not JSON") from error
    if not isinstance(found, dict) or not isinstance(found.get("status"), dict):
        raise ConfigException("exec: the plugin's answer has no status")
    if found.get("apiVersion") != version:
        raise ConfigException(f"exec: the plugin answers in {found.get('apiVersion')}, and {version} was asked for")
    status: dict[str, Any] = found["status"]
    return status


_LIMITS: Final = aiohttp.ClientTimeout(total=30.0, connect=10.0, sock_connect=10.0, sock_read=15.0)

_logger = structlog.get_logger(__name__)


class VerifyingLoader(KubeConfigLoader):
    """The library's loader for one context.

    Its own refresh of an OIDC token turns certificate checks off unless the kubeconfig brings a CA, cannot use that CA
    when it does, and has no limits; that part is replaced. So is the running of plugins (see :func:`run_plugin`).

    :param folder: where inline certificates and keys are written; belongs to the caller.
    :param plugin_seconds: how long an exec plugin may take.
    :param user_file: where renewed OIDC tokens are written back to, since a refresh token is often good only once.
    """

    cert_file: str | None
    key_file: str | None

    def __init__(
        self,
        content: dict[str, Any],
        folder: str,
        user_name: str,
        user_file: Path | None,
        plugin_seconds: float,
    ) -> None:
        super().__init__(config_dict=content, config_base_path="", temp_file_path=folder)
        self._folder = folder
        self._plugin_seconds = plugin_seconds
        self._user_name = user_name
        self._user_file = user_file

    async def load_from_exec_plugin(self) -> bool:
        # Blocking: this loop is the loader's own, in a thread, and has nothing else to do.
        assert self._user is not None
        status = run_plugin(self._user["exec"], self._plugin_seconds)
        token, certificate, key = (status.get(f) for f in ("token", "clientCertificateData", "clientKeyData"))
        if not token and not (certificate and key):
            raise ConfigException("exec: the plugin gives neither a token nor a certificate with its key")
        if token:
            self.token = f"Bearer {token}"
        if certificate and key:
            self.cert_file = self._written("plugin.crt", certificate)
            self.key_file = self._written("plugin.key", key)
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
        """When the exec plugin said that its token ends."""
        expiry: datetime | None = getattr(self, "exec_plugin_expiry", None)
        return expiry

    async def _refresh_oidc(self, provider: Any) -> None:
        settings: dict[str, Any] = provider["config"].value
        for name in ("idp-issuer-url", "client-id", "refresh-token"):
            if not settings.get(name):
                raise ConfigException(f"oidc: the id-token has expired, and without {name} it cannot be renewed")
        answer = await _renew(settings)
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


async def _renew(settings: dict[str, Any]) -> dict[str, Any]:
    """A new id-token for a refresh token (OpenID Connect Core 1.0, 12.1)."""
    issuer = str(settings["idp-issuer-url"]).rstrip("/")
    form = {"grant_type": "refresh_token", "refresh_token": str(settings["refresh-token"])}
    client = f"{settings['client-id']}:{settings.get('client-secret') or ''}".encode()
    headers = {"Authorization": f"Basic {base64.b64encode(client).decode()}"}
    connector = aiohttp.TCPConnector(ssl=_context(settings))
    async with aiohttp.ClientSession(connector=connector, timeout=_LIMITS, trust_env=True) as session:
        try:
            async with session.get(f"{issuer}/.well-known/openid-configuration", raise_for_status=True) as response:
                endpoint = (await response.json())["token_endpoint"]
            async with session.post(endpoint, data=form, headers=headers, raise_for_status=True) as response:
                answer: dict[str, Any] = await response.json()
        except aiohttp.ClientResponseError as error:
            raise ConfigException(f"oidc: {issuer} refused to renew the id-token: {error.status}") from error
    if "id_token" not in answer:
        raise ConfigException(f"oidc: {issuer} answered without an id_token")
    return answer


def _context(settings: dict[str, Any]) -> ssl.SSLContext:
    inline, file = settings.get("idp-certificate-authority-data"), settings.get("idp-certificate-authority")
    if inline:
        return ssl.create_default_context(cadata=base64.b64decode(str(inline)).decode())
    return ssl.create_default_context(cafile=str(file) if file else None)
