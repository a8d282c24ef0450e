"""Which run a folder belongs to: ``study.json``, with the study, the digest of the data and the run_id.

A study has a certification (``ckcv run``), or is a procedure of cross validation (``ckcv evaluate``).
"""

import json
import sys
from importlib.util import find_spec
from typing import Any, NamedTuple

from ckcv_ray.core.quantities import find_quantity
from ckcv_ray.errors import LackingError, StoreError
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.sklearn.spec import UntrustedError, is_trusted, list_packages
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.study.parts import CLAIMS
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import AnyStudy, Procedure, Study, run_id
from ckcv_ray.validation import quote
from ckcv_ray.version import VERSION

STUDY = "study.json"


class Identity(NamedTuple):
    """The run that a folder belongs to."""

    study: AnyStudy
    data_digest: str
    run_id: str


def make_identity(problem: Problem) -> bytes:
    """Return the file of the identity of a run."""
    identity = Identity(problem.asked, problem.data_digest, problem.run_id)
    return formats.to_json(_describe(identity, VERSION))


def read_identity(files: Files) -> Identity:
    """Read the identity of a run.

    Raises:
        LackingError: it has a learner or a claim that is not known here, or an estimator that may not be
            imported.
        StoreError: it is damaged, or written by another version.
    """
    content = formats.read_json(files, STUDY)
    with formats.guard_reading(files, STUDY):
        if type(content["schema"]) is not int or content["schema"] != formats.SCHEMA_VERSION:
            raise StoreError(
                f"{files.path(STUDY)}: schema {content['schema']!r}, and this version reads "
                f"{formats.SCHEMA_VERSION}: read it with ckcv_ray {quote(content.get('package'))}, by which "
                "it was made, or run the study again in another folder"
            )
        kind: type[AnyStudy] = Procedure if Procedure.kind in content else Study
        described = content[kind.kind]
        if unknown := [name for name in _learners_in(described) if name not in LEARNERS]:
            raise LackingError(
                f"{str(files)!r}: the learner {quote(unknown[0])} is not known here: import the module that "
                "registers it"
            )
        if unknown := [name for name in _claims_in(described) if not (name in CLAIMS or find_quantity(name))]:
            raise LackingError(
                f"{str(files)!r}: the claim {quote(unknown[0])} is not known here: install the package that "
                "has it"
            )
        # Packages that are not trusted are not even looked for, and nothing of a package is run.
        trusted = (name for name in filter(is_trusted, _packages_in(described)) if name.isidentifier())
        if missing := [name for name in trusted if name not in sys.modules and find_spec(name) is None]:
            raise LackingError(
                f"{str(files)!r}: its estimator is of {missing[0]}, which is not installed here"
            )
        try:
            study = kind.from_json(described)
        except UntrustedError as error:
            raise LackingError(f"{str(files)!r}: {error}") from None
        identity = Identity(study, content["data"], content["run_id"])
        if (expected := run_id(identity.study, identity.data_digest)) != identity.run_id:
            raise ValueError(f"it names run {identity.run_id} but describes run {expected}")
        written = _describe(identity, content["package"])
        if formats.to_json(written) != files.read(STUDY, formats.MAX_JSON_BYTES):
            raise ValueError(f"it is not as a run writes it{_first_difference(content, written)}")
    return identity


def _describe(identity: Identity, package: str) -> dict[str, Any]:
    """Return the content of the file of an identity, written by a version of this package."""
    return {
        "schema": formats.SCHEMA_VERSION,
        "package": package,
        "run_id": identity.run_id,
        identity.study.kind: identity.study.to_json(),
        "data": identity.data_digest,
    }


def _first_difference(content: Any, written: Any, name: str = "") -> str:
    """Return where two JSON values differ first, such as ": resampling.n_splits is 8.0, not 8"."""
    pairs: list[tuple[str, Any, Any]] = []
    if isinstance(content, dict) and isinstance(written, dict):
        if strange := [key for key in content if key not in written]:
            return f": {name}{strange[0]} is not known"
        pairs = [(f"{name}{key}", content.get(key), value) for key, value in written.items()]
    elif isinstance(content, list) and isinstance(written, list) and len(content) == len(written):
        pairs = [(f"{name}{i}", *both) for i, both in enumerate(zip(content, written, strict=True))]
    elif json.dumps(content) != json.dumps(written):
        return f": {name.rstrip('.')} is {quote(content)}, not {quote(written)}"
    return next(filter(None, (_first_difference(a, b, f"{key}.") for key, a, b in pairs)), "")


def _learners_in(study: Any) -> list[str]:
    return [name for learner in _describe_learners(study) if isinstance(name := learner.get("name"), str)]


def _claims_in(study: Any) -> list[str]:
    certify = study.get("certify") if isinstance(study, dict) else None
    claims = certify.get("claim") if isinstance(certify, dict) else None
    return [name for name in claims if isinstance(name, str)] if isinstance(claims, list) else []


def _packages_in(study: Any) -> list[str]:
    named = [learner.get("estimator") for learner in _describe_learners(study)]
    named += [getattr(LEARNERS.get(name), "spec", None) for name in _learners_in(study)]
    return [package for estimator in named for package in list_packages(estimator)]


def _describe_learners(study: Any) -> list[dict[str, Any]]:
    learner = study.get("learner") if isinstance(study, dict) else None
    compared = learner.get("learners") if isinstance(learner, dict) else None
    listed = [learner, *(compared if isinstance(compared, list) else [])]
    return [learner_json for learner_json in listed if isinstance(learner_json, dict)]
