"""Which run a folder belongs to: ``study.json``, with what is run, the digest of the data and the run_id.

What is run is a study (``ckcv run``) or a procedure of cross validation (``ckcv evaluate``).
"""

import sys
from importlib.util import find_spec
from typing import Any, NamedTuple

from ckcv_ray.errors import LackingError, StoreError
from ckcv_ray.learners import LEARNERS
from ckcv_ray.learners.sklearn import UntrustedError, packages
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.study import Problem, Study, run_id
from ckcv_ray.study.assessment import Assessment
from ckcv_ray.study.procedure import Procedure
from ckcv_ray.validation import quoted
from ckcv_ray.version import VERSION

STUDY = "study.json"
KINDS: dict[str, type[Study] | type[Procedure]] = {one.kind: one for one in (Study, Procedure)}


class Identity(NamedTuple):
    """The run that a folder belongs to."""

    study: Study | Procedure
    data_digest: str
    run_id: str


def write_identity(files: Files, problem: Problem | Assessment) -> None:
    """Write the identity of a run."""
    content = {
        "schema": formats.SCHEMA_VERSION,
        "package": VERSION,
        "run_id": problem.run_id,
        problem.study.kind: problem.study.to_json(),
        "data": problem.all_rows.digest,
    }
    formats.write_json(files, STUDY, content)


def read_identity(files: Files) -> Identity:
    """Read the identity of a run.

    Raises:
        LackingError: it has a learner that is not known here, or may not be imported.
        StoreError: it is damaged, or written by another version.
    """
    content = formats.read_json(files, STUDY)
    with formats.undamaged(files, STUDY):
        if content["schema"] != formats.SCHEMA_VERSION:
            raise StoreError(_of_another_version(f"{files.path(STUDY)}", content["schema"]))
        kind = KINDS[Procedure.kind if Procedure.kind in content else Study.kind]
        described = content[kind.kind]
        if unknown := [name for name in _learners_in(described) if name not in LEARNERS]:
            raise LackingError(
                f"{str(files)!r}: the learner {quoted(unknown[0])} is not known here: import the module that "
                "registers it"
            )
        if missing := [name for name in _packages_in(described) if not _is_installed(name)]:
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
    return identity


def _of_another_version(file: str, schema: object) -> str:
    return (
        f"{file}: schema {schema!r}; this version reads {formats.SCHEMA_VERSION}. The run was made by "
        "another version of this package: read it with that version, or run the study again in another folder"
    )


def _learners_in(study: Any) -> list[str]:
    """Return the names of the learners in the JSON of a study, as far as there are any."""
    return [name for one in _described_learners(study) if isinstance(name := one.get("name"), str)]


def _packages_in(study: Any) -> list[str]:
    """Return the packages that the estimators in the JSON of a study are of."""
    return [name for one in _described_learners(study) for name in packages(one.get("estimator"))]


def _described_learners(study: Any) -> list[dict[str, Any]]:
    learner = study.get("learner") if isinstance(study, dict) else None
    others = learner.get("learners") if isinstance(learner, dict) else None
    listed = [learner, *(others if isinstance(others, list) else [])]
    return [one for one in listed if isinstance(one, dict)]


def _is_installed(package: str) -> bool:
    """Return whether a package of this name can be found; nothing of it is run."""
    return not package.isidentifier() or package in sys.modules or find_spec(package) is not None
