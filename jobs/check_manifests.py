#!/usr/bin/env python3
"""Check the manifests for Kubernetes against what KubeRay and Kubernetes publish.

    python jobs/check_manifests.py kuberay/helm-chart/kuberay-operator/crds

The argument is a folder with KubeRay's custom resource definitions, of the version that is to be used: its
kinds are checked against these, and fields that they do not have are refused, which a cluster would silently
drop. Kinds of Kubernetes itself are checked by the package kubernetes-validate where it is installed, and
named otherwise.
"""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = ("docs/guides/rayjob.yaml", "docs/nightly/cronjob.yaml")
KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
OWN_SCHEMAS = "kubernetes_validate"  # with schemas of every version of Kubernetes

Schemas = dict[tuple[str, str], dict[str, Any]]


def read_definitions(folder: Path) -> Schemas:
    """Return the schemas of a folder of custom resource definitions by their apiVersion and kind."""
    schemas = {}
    for file in sorted(folder.glob("*.yaml")):
        for definition in filter(None, yaml.safe_load_all(file.read_text())):
            spec = definition["spec"]
            for version in spec["versions"]:
                kind = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                schemas[kind] = refuse_unknown(version["schema"]["openAPIV3Schema"])
    if not schemas:
        raise SystemExit(f"{folder} has no custom resource definitions (*.yaml): expected those of KubeRay")
    return schemas


def refuse_unknown(schema: Any, is_top: bool = True) -> Any:
    """Return a schema that refuses fields it does not name, where it does not say that it keeps them."""
    if isinstance(schema, list):
        return [refuse_unknown(part, is_top=False) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        name: {key: refuse_unknown(part, is_top=False) for key, part in value.items()}
        if name == "properties"
        else refuse_unknown(value, is_top=False)
        for name, value in schema.items()
    }
    if "properties" in made and "additionalProperties" not in made and not made.get(KEEPS_UNKNOWN):
        made["additionalProperties"] = False
    if is_top:
        made["properties"]["metadata"] = {"type": "object"}  # Kubernetes' own
    return made


def find_errors(manifest: dict[str, Any], schemas: Schemas) -> Iterator[str]:
    """Yield what is wrong with a manifest of a kind that is defined, each with the place of it."""
    schema = schemas[manifest["apiVersion"], manifest["kind"]]
    for error in jsonschema.Draft7Validator(schema).iter_errors(manifest):
        yield f"{error.json_path}: {error.message}"


def find_own_errors(manifest: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a manifest of one of Kubernetes' own kinds."""
    import kubernetes_validate

    try:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    except kubernetes_validate.ValidationError as error:
        yield str(error).splitlines()[0]


def check(files: Sequence[Path], schemas: Schemas) -> int:
    """Check every document of the files, print a line for each, and return how many are wrong."""
    wrong = 0
    for file in files:
        for manifest in yaml.safe_load_all(file.read_text()):
            kind = manifest["apiVersion"], manifest["kind"]
            name = f"{file.name}: {kind[1]} {manifest['metadata']['name']} ({kind[0]})"
            if kind not in schemas and find_spec(OWN_SCHEMAS) is None:
                print(f"{name}: not checked, a kind of Kubernetes: pip install kubernetes-validate")
                continue
            errors = list(find_errors(manifest, schemas) if kind in schemas else find_own_errors(manifest))
            print(*(f"{name}: {error}" for error in errors or ["valid"]), sep="\n")
            wrong += bool(errors)
    return wrong


def main() -> int:
    """Run the command; return its exit code."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("definitions", type=Path, help="folder of KubeRay's custom resource definitions")
    parser.add_argument("manifests", type=Path, nargs="*", help="files to check; those of the documentation")
    given = parser.parse_args()
    files = given.manifests or [ROOT / name for name in MANIFESTS]
    return int(check(files, read_definitions(given.definitions)) > 0)


if __name__ == "__main__":
    sys.exit(main())
