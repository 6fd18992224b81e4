"""Runs a credential plugin, as a kubeconfig's ``exec`` section says (client.authentication.k8s.io)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.exec_provider import ExecProvider

__all__ = ["run_plugin"]


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
