"""What readers rely on in certificate and metadata is checked, though the manifest agrees."""

import os
from pathlib import Path

import pytest
from forgery import ACCOUNT, CERTIFICATE, DAMAGE, check_refused, put

from ckcv_ray.errors import InputError
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import report_intact, write_report

CLAIM = {
    "quantity": "error",
    "label": None,
    "certification": "paper",
    "classifier": "random",
    "bound": 0.5,
    "errors": 1,
    "rows": 9,
    "delta": 0.05,
    "statement": "so",
}
SIDE = {"errors": 1, "rows": 9, "bound": 0.5}
SEALED = {
    "C is text": (CERTIFICATE, put(setting__C="a"), "setting is {'C': 'a'"),
    "C is infinite": (CERTIFICATE, put(setting__C=1e999), "setting is {'C': inf"),
    "C is another": (CERTIFICATE, put(setting__C=7.0), "setting is {'C': 7.0"),
    "C is missing": (CERTIFICATE, put(setting={}), "setting is {}"),
    "depth is one more": (CERTIFICATE, put(setting__depth=3), "setting is {"),
    "a setting is a list": (CERTIFICATE, put(setting=[]), "setting: "),
    "another run's": (CERTIFICATE, put(run_id="f" * 12), "run_id is 'ffffffffffff'"),
    "k is a share": (CERTIFICATE, put(k=3.5), "k: Input should be a valid integer"),
    "the bound is unknown": (
        CERTIFICATE,
        put(bound="luck"),
        "bound is 'luck', and from the other files",
    ),
    "a claim is empty": (CERTIFICATE, put(claims=[{}]), "claims.0.quantity: Field required"),
    "a claim of luck": (
        CERTIFICATE,
        put(claims=[CLAIM | {"quantity": "luck"}, CLAIM]),
        "'luck' is not known",
    ),
    "a recall of no class": (
        CERTIFICATE,
        put(claims=[CLAIM | {"quantity": "recall", "label": "green"}, CLAIM]),
        "claims: the study has 1; these are of one side alone",
    ),
    "an error of one class": (
        CERTIFICATE,
        put(claims=[CLAIM | {"label": 1}, CLAIM]),
        "claims.0.label: 1 cannot be of the error",
    ),
    "a bound beyond 1": (CERTIFICATE, put(l_ee=1.5), "l_ee: Input should be less than or equal to 1"),
    **{f"a delta of {x:g}": (CERTIFICATE, put(delta=x), "delta: ") for x in (0.0, 1.0, -0.05, 1e300)},
    "a sure claim": (CERTIFICATE, put(claims=[CLAIM | {"delta": 1.0}, CLAIM]), "claims.0.delta: "),
    "an unknown field": (CERTIFICATE, put(note="good"), "note: Unexpected keyword argument"),
    "a side without rows": (CERTIFICATE, put(by_class=[{}, {}]), "by_class.0.errors: Field required"),
    "a class too few": (CERTIFICATE, put(by_class=[SIDE]), "by_class is "),
    "more errors than rows": (CERTIFICATE, put(errors=[99, 0, 0]), "errors is [99, 0, 0]"),
    "an error for no split": (CERTIFICATE, put(errors=[0]), "errors is [0]"),
    "other sizes": (CERTIFICATE, put(n_select=20), "n_select is 20"),
    "seconds are nothing": (ACCOUNT, put(seconds=None), "seconds: Input should be a valid number"),
    "a test of nothing": (ACCOUNT, put(test={}), "test.error: Field required"),
    "environment of nothing": (ACCOUNT, put(environment=True), "environment: Input should be"),
    "no learner in it": (ACCOUNT, lambda c: c["environment"].pop("learner") and c, "environment.learner"),
    "no evaluations planned": (ACCOUNT, put(evaluations__planned=0), "exceed planned"),
    "evaluations beyond the plan": (ACCOUNT, put(evaluations__computed=10**9), "exceed planned"),
    "evaluations below 0": (ACCOUNT, put(evaluations__failed=-1), "exceed planned, or are below 0"),
    "a failure without an end": (ACCOUNT, put(failures=[[0, 3]]), "failures.0.2: Field required"),
    "a failure of a number": (ACCOUNT, put(failures=[[0.1, 3, 0, "fire"]]), "failures.0.0: Input should be"),
}


@pytest.mark.parametrize("name", SEALED)
def test_what_readers_rely_on_is_checked_though_the_manifest_agrees(run: Path, name: str) -> None:
    check_refused(run, *SEALED[name])


def test_verify_sees_a_changed_report(run: Path) -> None:
    write_report(RunFolder(run).files, "<p>12 %</p>\n")
    assert verify(run).differences == []
    page = (run / "report.html").read_bytes()
    for at in range(len(page)):
        changed = DAMAGE["flipped"](page, at)
        assert changed is not None
        (run / "report.html").write_bytes(changed)
        assert not report_intact(RunFolder(run).files)
    assert verify(run).differences == [
        "report.html is not as ckcv report wrote it: its last line does not give its SHA-256"
    ]


def test_a_report_takes_no_other_place_in_the_folder(run: Path, tmp_path: Path) -> None:
    folder = RunFolder(run)
    for name in ("data.parquet", "page.html", "log/page.html"):
        with pytest.raises(InputError, match=r"is in the run folder, where it can only be report\.html"):
            write_report(folder.files, "<p>", run / name)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it is not a file"):
        write_report(folder.files, "<p>", tmp_path / "pipe")
    assert write_report(folder.files, "<p>", tmp_path / "page.html") == str(tmp_path / "page.html")
    (run / "report.html").symlink_to("report.html")
    with pytest.raises(InputError, match="symbolic links"):
        write_report(folder.files, "<p>")
    (run / "report.html").unlink()
    write_report(folder.files, "<p>")
    assert report_intact(folder.files)
    assert verify(run).differences == []
