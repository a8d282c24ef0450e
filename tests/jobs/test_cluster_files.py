"""The files that describe clusters and containers: valid by their published schemas, and secured."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from ckcv_ray import InputError, Study
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


def test_spot_workers_of_one_family_and_a_head_without_work() -> None:
    head, worker = (content(AWS)["available_node_types"][kind] for kind in ("head", "worker"))
    assert head["resources"] == {"CPU": 0}
    assert worker["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert "InstanceMarketOptions" not in head["node_config"]
    families = {kind["node_config"]["InstanceType"].split(".")[0] for kind in (head, worker)}
    assert families == {"c7i"}
    assert len({kind["node_config"]["ImageId"] for kind in (head, worker)}) == 1


def test_a_head_can_write_to_a_bucket() -> None:
    """Its client is installed, and it knows the region; machines of one's own take variables from a file."""
    assert re.search(r"(?m)^obstore==", (ROOT / "docker" / "requirements.lock").read_text())
    region = content(AWS)["provider"]["region"]
    assert any(f"AWS_REGION={region}'" in line for line in content(AWS)["head_setup_commands"])
    for file in (AWS, LOCAL):
        assert "AWS_SECRET_ACCESS_KEY=" not in file.read_text()
    assert not any("ckcv_store" in line for line in content(LOCAL)["setup_commands"]), "workers need no keys"


def test_the_variables_of_a_store_are_those_of_the_head(tmp_path: Path) -> None:
    """Its setup runs twice here, as after a second `ray up`."""
    (setup,) = content(LOCAL)["head_setup_commands"]
    home, bash = os.environ | {"HOME": str(tmp_path)}, ["bash", "-euc"]
    show = [*bash, '. ~/.bashrc; echo "$AWS_ENDPOINT_URL"']
    (tmp_path / ".bashrc").touch()
    for _ in range(2):
        subprocess.run([*bash, setup], env=home, check=True)
    assert len((tmp_path / ".bashrc").read_text().splitlines()) == 1
    subprocess.run([*bash, ". ~/.bashrc"], env=home, check=True)
    (tmp_path / ".ckcv_store").write_text("export AWS_ENDPOINT_URL=http://127.0.0.1:1\n")
    done = subprocess.run(show, env=home, check=True, capture_output=True, text=True)
    assert done.stdout == "http://127.0.0.1:1\n"


def test_everything_is_installed_by_its_hash_and_nothing_is_resolved() -> None:
    """With a resolver, a version that was published after the lock was made could end the installation."""
    for file in (AWS, LOCAL, DOCKERFILE, ROOT / "docker" / "install", ROOT / "jobs" / "environment"):
        for line in file.read_text().replace("\\\n", " ").splitlines():
            if re.search(r"pip.* install|\"\$\{pip\[@\]\}\"", line) and not line.lstrip().startswith(
                ("#", "pip=")
            ):
                assert "--no-deps" in line or line.rstrip().endswith(" check"), line
                assert "--require-hashes" in line or "-r " not in line, line


def test_an_installation_compiles_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a script within docker/install, which no other test runs and no type checker reads."""
    script = re.search(r"(?s)bin/python\" -c '\n(.*?)'\n", (ROOT / "docker" / "install").read_text())
    loaded: list[object] = []
    monkeypatch.setattr(type(Study().learner.trainer), "load", lambda self: loaded.append(self))
    exec(script[1] if script else "")
    assert len(loaded) == 1


def test_images_are_named_by_digest_with_instructions_to_renew_it() -> None:
    """The nightly image is built by its user, who fills in its digest and commit."""
    (base,) = [line for line in DOCKERFILE.read_text().splitlines() if line.startswith("FROM ")]
    assert re.fullmatch(r"FROM python:3\.12-slim@sha256:[0-9a-f]{64}", base)
    assert "docker pull python:3.12-slim" in DOCKERFILE.read_text()
    text = (ROOT / "docs" / "nightly" / "cronjob.yaml").read_text()
    (container,) = yaml.safe_load(text)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert re.fullmatch(r"ckcv-ray@sha256:(<put here .*>|[0-9a-f]{64})", container["image"])
    assert "docker inspect" in text


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
    with pytest.raises(InputError, match="is no name of a bucket"):  # until the user names one
        open_files(words[words.index("--out") + 1])
    cluster = job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    assert (account["kind"], head["serviceAccountName"]) == ("ServiceAccount", account["metadata"]["name"])
    for group in cluster["workerGroupSpecs"]:
        assert "serviceAccountName" not in group["template"]["spec"]
