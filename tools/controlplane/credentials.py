"""Throw-away certificates, tokens and kubeconfig files of one control plane."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
import yaml

# Not "admin" alone: the audit log tells by these names who did what.
ADMIN = "test-admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
CLUSTER_API = "cluster-api-core"
# What Cluster API is to a workload cluster, whose kubeconfig it is given.
WORKLOAD = "cluster-api-workload"
PROVIDERS = "simulated-providers"
# The first line of every kubeconfig written here.
MARK = "# A throw-away control plane of fivespot"
_MASTERS = "system:masters"
_USERS = {ADMIN: _MASTERS, CONTROLLER_MANAGER: _MASTERS, CLUSTER_API: "", WORKLOAD: _MASTERS, PROVIDERS: _MASTERS}


@dataclass
class Credentials:
    """Files under one folder: a CA, the serving certificate, the service-account key and the static tokens."""

    folder: Path
    tokens: dict[str, str] = field(default_factory=lambda: {name: secrets.token_hex(16) for name in _USERS})
    _ca: trustme.CA = field(default_factory=trustme.CA)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca_file = self.folder / "ca.crt"
        self.cert_file = self.folder / "tls.crt"
        self.key_file = self.folder / "tls.key"
        self.service_account_key = self.folder / "service-account.key"
        self.token_file = self.folder / "tokens.csv"
        self._ca.cert_pem.write_to_path(self.ca_file)
        serving = self._ca.issue_cert("127.0.0.1", "localhost")
        serving.private_key_pem.write_to_path(self.key_file)
        for blob in serving.cert_chain_pems:
            blob.write_to_path(self.cert_file, append=True)
        self._ca.issue_cert("service-account.invalid").private_key_pem.write_to_path(self.service_account_key)
        lines = [f'{token},{name},{name},"{_USERS[name]}"' for name, token in self.tokens.items()]
        self.token_file.write_text("\n".join(lines) + "\n")
        self.token_file.chmod(0o600)

    def user(self, name: str, group: str | None = None) -> dict[str, str]:
        """A client certificate, as the ``user`` of a kubeconfig (CN names the user, O the group)."""
        # With no identity at all the certificate would hold an empty critical extension, which Go refuses.
        issued = self._ca.issue_cert("person.invalid", common_name=name, organization_name=group)
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        return {
            "client-certificate-data": base64.b64encode(chain).decode(),
            "client-key-data": base64.b64encode(issued.private_key_pem.bytes()).decode(),
        }


def write_kubeconfig(
    path: Path, *, url: str, ca_file: Path, user: dict[str, str], namespace: str | None = None
) -> Path:
    """Writes a self-contained kubeconfig (the CA is embedded) that only its owner can read."""
    context: dict[str, Any] = {"cluster": "fivespot", "user": "fivespot"}
    if namespace:
        context["namespace"] = namespace
    authority = base64.b64encode(ca_file.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fivespot", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "fivespot", "user": user}],
        "contexts": [{"name": "fivespot", "context": context}],
        "current-context": "fivespot",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(f"{MARK}\n{yaml.safe_dump(content, sort_keys=False)}")
    return path
