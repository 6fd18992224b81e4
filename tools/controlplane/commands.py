"""The command lines of the three programs of a control plane."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .build import Binaries
from .credentials import Credentials


def etcd_command(binaries: Binaries, folder: Path, *, client_url: str, peer_port: int) -> list[str]:
    """etcd, without the waiting for the disk."""
    peer_url = f"http://127.0.0.1:{peer_port}"
    return [
        str(binaries.etcd),
        "--unsafe-no-fsync",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--log-level=warn",
    ]


def apiserver_command(
    binaries: Binaries,
    folder: Path,
    credentials: Credentials,
    *,
    etcd_url: str,
    port: int,
    audit_log: Path,
    audit_policy: Mapping[str, Any] | None,
) -> list[str]:
    """kube-apiserver; without a policy nothing is logged."""
    command = [
        str(binaries.kube_apiserver),
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        # The default reconciler refuses to advertise a loopback address.
        "--endpoint-reconciler-type=none",
        f"--cert-dir={folder / 'apiserver'}",
        f"--tls-cert-file={credentials.cert_file}",
        f"--tls-private-key-file={credentials.key_file}",
        f"--client-ca-file={credentials.ca_file}",
        f"--token-auth-file={credentials.token_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.service_account_key}",
        f"--service-account-signing-key-file={credentials.service_account_key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        # Nobody makes the ServiceAccount "default" here, without which the plugin refuses every Pod.
        "--disable-admission-plugins=ServiceAccount",
        # Tests of load measure the product, not the server's fairness.
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1000",
    ]
    if audit_policy is not None:
        policy = folder / "audit-policy.json"
        policy.write_text(json.dumps(audit_policy))
        command += [
            f"--audit-policy-file={policy}",
            f"--audit-log-path={audit_log}",
            # By default the file is rotated at 100 MB, and the events before it would be lost to the reader.
            "--audit-log-maxsize=8192",
        ]
    return command


def manager_command(
    binaries: Binaries, credentials: Credentials, *, kubeconfig: Path, port: int, controllers: Sequence[str]
) -> list[str]:
    """kube-controller-manager with some of its controllers."""
    return [
        str(binaries.kube_controller_manager),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={credentials.cert_file}",
        f"--tls-private-key-file={credentials.key_file}",
        "--leader-elect=false",
        f"--controllers={','.join(controllers)}",
        # Its default of 20 requests a second makes clean-up the slowest part of a test with many objects.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]
