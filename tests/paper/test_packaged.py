"""The package with the paper's data as it is built, and that the product does without it."""

import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import ckcv_ray

ROOT = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
OFFLINE = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]


def test_the_wheel_holds_the_package_and_its_entry_point(tmp_path: Path) -> None:
    command = [*PIP, "wheel", *OFFLINE, "--wheel-dir", tmp_path, ROOT / "jobs" / "paper"]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = tmp_path.iterdir()
    with ZipFile(built) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (points,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
        assert wheel.read(points).split() == [b"[ckcv_ray.sources]", b"ida", b"=", b"ckcv_paper.archive:read"]
    modules = ("__init__", "__main__", "archive", "download")
    assert names == {*(f"ckcv_paper/{module}.py" for module in modules), "ckcv_paper/py.typed"}


def test_the_product_knows_nothing_of_it_and_of_what_it_needs() -> None:
    barred = re.compile(r"(?m)^\s*(from|import) (ckcv_paper|jobs|pooch|scipy\.io)\b")
    files = [*Path(ckcv_ray.__file__).parent.rglob("*.py")]
    assert len(files) > 100
    assert [file for file in files if barred.search(file.read_text())] == []
