"""The run folders of the acceptance cases as a fixture: each is made once a session."""

import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

sys.path.append(str(Path(__file__).with_name("acceptance")))

import acceptance


class Finished(Protocol):
    """Gives the folder of a case: ``finished("groups")``, or ``finished("criteria", "b")``.

    With ``to`` it is a copy in that folder, which a test may harm; the tables lie beside the original.
    """

    def __call__(self, case: str, name: str = "r", *, to: Path | None = None) -> Path: ...


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The folders of the acceptance cases, by the name of the case."""

    @cache
    def make(case: str) -> Path:
        folder = tmp_path_factory.mktemp("finished")
        acceptance.make_folders(case, folder)
        return folder

    def find(case: str, name: str = "r", *, to: Path | None = None) -> Path:
        folder = make(case) / name
        return folder if to is None else Path(shutil.copytree(folder, to / name))

    return find
