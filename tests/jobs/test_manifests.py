"""The check of manifests, with a small definition: what a cluster would drop or refuse is found."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import check_manifests
from jobs.check_manifests import check, find_errors, main, read_definitions

DEFINITION = """
spec:
  group: ray.io
  names: {kind: RayJob}
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            spec:
              type: object
              required: [entrypoint]
              properties:
                entrypoint: {type: string}
                properties: {type: integer}
                labels: {type: object, additionalProperties: {type: string}}
                free:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
                  properties: {a: {type: integer}}
                many: {type: array, items: {type: object, properties: {name: {type: string}}}}
"""
GOOD: dict[str, Any] = {
    "entrypoint": "ckcv run",
    "labels": {"x": "y"},
    "free": {"b": 1},
    "many": [{"name": "n"}],
}


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    folder = tmp_path / "crds"
    folder.mkdir()
    (folder / "rayjobs.yaml").write_text(DEFINITION)
    return folder


def make_job(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "one"}, "spec": spec}


def test_a_manifest_that_follows_its_definition_is_valid(definitions: Path) -> None:
    assert list(find_errors(make_job(GOOD), read_definitions(definitions))) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"entrypoint": 3}, "$.spec.entrypoint"),
        ({"entryPoint": "x"}, "$.spec"),
        ({"properties": "x"}, "$.spec.properties"),
        ({"labels": {"x": 1}}, "$.spec.labels.x"),
        ({"many": [{"nam": "n"}]}, "$.spec.many[0]"),
    ],
    ids=str,
)
def test_what_is_wrong_is_found_at_its_place(change: dict[str, Any], place: str, definitions: Path) -> None:
    (error,) = find_errors(make_job(GOOD | change), read_definitions(definitions))
    assert error.startswith(f"{place}: ")


def test_the_command_says_which_manifest_is_wrong(
    definitions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, spec in (("good", GOOD), ("bad", {})):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(make_job(spec)))
        monkeypatch.setattr("sys.argv", ["check", str(definitions), str(tmp_path / f"{name}.yaml")])
        assert main() == (name == "bad")
    good, bad = capsys.readouterr().out.splitlines()
    assert good == "good.yaml: RayJob one (ray.io/v1): valid"
    assert "bad.yaml: RayJob one (ray.io/v1): $.spec: 'entrypoint' is a required property" in bad


def test_a_kind_of_kubernetes_is_named_where_its_schemas_are_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_manifests, "OWN_SCHEMAS", "not_installed")
    file = tmp_path / "claim.yaml"
    file.write_text(yaml.safe_dump(make_job({}) | {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}))
    assert check([file], {}) == 0
    assert "not checked" in capsys.readouterr().out


def test_a_folder_without_definitions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no custom resource definitions"):
        read_definitions(tmp_path)
