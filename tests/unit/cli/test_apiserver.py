"""``fivespot apiserver``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import yaml
from click.testing import CliRunner

from fivespot.cli.main import cli


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "fivespot.cli", "apiserver", "--crds", "--kubeconfig", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().strip() == f"export KUBECONFIG={config}"
        assert config.stat().st_mode & 0o077 == 0
        url = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        assert url.startswith("http://127.0.0.1:")
        with urlopen(f"{url}/apis/5spot.finos.org/v1beta1/scheduledmachines", timeout=10) as answer:
            assert json.load(answer)["items"] == []
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert running.returncode == 0, errors
    assert not config.exists()
    assert "Traceback" not in errors


def test_a_simulated_cluster_api_comes_with_a_cluster_that_is_ready(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    command = [
        sys.executable,
        "-m",
        "fivespot.cli",
        "apiserver",
        "--crds",
        "--cluster-api",
        "--kubeconfig",
        str(config),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().strip() == f"export KUBECONFIG={config}"
        url = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        conditions: dict[str, str] = {}
        for _ in range(200):
            with urlopen(f"{url}/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/prod", timeout=10) as answer:
                status = json.load(answer).get("status") or {}
            conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
            if conditions.get("ControlPlaneInitialized") == conditions.get("RemoteConnectionProbe") == "True":
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=30)
    assert conditions.get("RemoteConnectionProbe") == "True", conditions
    assert running.returncode == 0, errors
    assert "Traceback" not in errors


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text("mine")
    result = CliRunner().invoke(cli, ["apiserver", "--kubeconfig", str(config)])
    assert result.exit_code != 0
    assert "not overwritten" in str(result.exception)
    assert config.read_text() == "mine"
