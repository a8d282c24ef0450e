"""The files that describe clusters and containers: valid by their published schemas, and secured."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from ckcv_ray import InputError
from ckcv_ray.storage.files import open_files

ROOT = Path(__file__).resolve().parents[2]
AWS, LOCAL = ROOT / "cluster.yaml", ROOT / "docker" / "cluster-local.yaml"
COMPOSE, DOCKERFILE = ROOT / "docker" / "compose.yaml", ROOT / "docker" / "Dockerfile"
BOTH = pytest.mark.parametrize("file", [AWS, LOCAL], ids=["aws", "local"])


def content(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text())


@BOTH
def test_ray_accepts_it(file: Path) -> None:
    """As `ray up` does: filled with Ray's defaults for the provider, then checked by Ray's schema."""
    validate_config(prepare_config(content(file)))


@BOTH
def test_dashboard_and_jobs_are_accessible_only_on_the_head(file: Path) -> None:
    """Ray's defaults for AWS differ: they would apply where this file sets nothing."""
    (head,) = [line for line in prepare_config(content(file))["head_start_ray_commands"] if "--head" in line]
    assert "--dashboard-host=127.0.0.1" in head
    assert "0.0.0.0" not in json.dumps(prepare_config(content(file)))


@BOTH
def test_every_node_requires_the_token(file: Path) -> None:
    config = content(file)
    assert config["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    setup = config["setup_commands"]
    assert setup[0] == "chmod 600 ~/.ray/auth_token"
    assert any("RAY_AUTH_MODE=token" in line and "~/.bashrc" in line for line in setup)


@BOTH
def test_what_is_sent_exists_and_suffices_to_install(file: Path, tmp_path: Path) -> None:
    """A node is sent everything that docker/install needs, and nothing else."""
    sent = {Path(at).relative_to("~"): ROOT / what for at, what in content(file)["file_mounts"].items()}
    sent.pop(Path(".ray/auth_token"))
    assert all(what.exists() for what in sent.values())
    names = {at.relative_to("ckcv_ray").name for at in sent}
    assert names == {"ckcv_ray", "docker", "pyproject.toml", "README.md", "LICENSE"}


def test_everything_is_installed_by_its_hash_and_nothing_is_resolved() -> None:
    """With a resolver, a version that was published after the lock was made could end the installation."""
    for file in (AWS, LOCAL, DOCKERFILE, ROOT / "docker" / "install", ROOT / "jobs" / "environment"):
        for line in file.read_text().replace("\\\n", " ").splitlines():
            if re.search(r"pip.* install|\"\$\{pip\[@\]\}\"", line) and not line.lstrip().startswith(
                ("#", "pip=")
            ):
                assert "--no-deps" in line or line.rstrip().endswith(" check"), line
                assert "--require-hashes" in line or "-r " not in line, line


def test_compose_follows_its_published_schema() -> None:
    check = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*check, COMPOSE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_containers_publish_no_port_and_share_a_token() -> None:
    compose = content(COMPOSE)
    head, worker = compose["services"]["head"], compose["services"]["worker"]
    for service in (head, worker):
        assert "ports" not in service
        assert service["secrets"] == ["ray_token"]
    assert "--num-cpus=0" in head["command"]
    assert "--dashboard-host=127.0.0.1" in head["command"]
    assert "runs:/runs" in head["volumes"]
    assert all(re.fullmatch(r"[A-Z_]+", variable) for variable in head["environment"]), (
        "no value is in a file"
    )
    assert "environment" not in worker
    assert worker["deploy"]["replicas"] >= 1
    assert worker["depends_on"]["head"]["condition"] == "service_healthy"


def test_the_image_requires_the_token_is_not_root_and_reports_its_health() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users == ["ckcv"]
    assert any("RAY_AUTH_MODE=token" in line for line in lines)
    assert any(line.startswith("HEALTHCHECK") for line in lines)
    copied = [word for line in lines if line.startswith("COPY") for word in line.split()[2:-1]]
    assert all((ROOT / name).exists() for name in copied)


def test_the_run_of_the_rayjob_is_in_a_bucket_that_only_its_head_may_use() -> None:
    account, job = yaml.safe_load_all((ROOT / "docs" / "guides" / "rayjob.yaml").read_text())
    words = shlex.split(job["spec"]["entrypoint"])
    with pytest.raises(InputError, match="a bucket of 3 to 63"):  # until the user names one
        open_files(words[words.index("--out") + 1])
    cluster = job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    assert (account["kind"], head["serviceAccountName"]) == ("ServiceAccount", account["metadata"]["name"])
    for group in cluster["workerGroupSpecs"]:
        assert "serviceAccountName" not in group["template"]["spec"]
