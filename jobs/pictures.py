"""Draw the pictures of the README: the first screen of a run in a terminal, and that of its report.

The run is that of the front page, on a data set that ships with scikit-learn. Rich draws the terminal as SVG;
a headless Chromium, which has to be installed, draws the report as PNG.

    python jobs/pictures.py
    python jobs/pictures.py build/pictures
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
SHOWN = "ckcv run sklearn:breast_cancer --out runs/demo"
COLUMNS = 82
WINDOW = (1280, 800)  # pixels
COLOURS = 64  # enough for a page of text, at a third of the bytes
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # from another site


def run_shown_command(folder: Path) -> str:
    """Run the command shown, in a folder, and its report; return what the run printed."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    ckcv = [sys.executable, "-m", "ckcv_ray"]
    words = [*ckcv, *SHOWN.split()[1:]]
    done = subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    subprocess.run([*ckcv, "report", "runs/demo"], cwd=folder, env=environment, check=True)
    return done.stdout


def draw_terminal(printed: str) -> str:
    """Return an SVG of a terminal with the command and what it printed; it loads nothing from elsewhere."""
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {SHOWN}", style="bold"))
        console.print(Text(printed.rstrip("\n")))
        svg = console.export_svg(title="ckcv run", unique_id="terminal")
    return FONTS.sub("", svg)


def draw_page(page: Path, picture: Path, browser: str) -> None:
    """Draw the first screen of a page as PNG."""
    with tempfile.TemporaryDirectory() as profile:
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        window = f"--window-size={WINDOW[0]},{WINDOW[1]}"
        words = [browser, *options, window, f"--user-data-dir={profile}", f"--screenshot={picture}"]
        subprocess.run([*words, page.as_uri()], check=True, capture_output=True, timeout=120)
    with Image.open(picture) as drawn:
        drawn.convert("RGB").quantize(COLOURS).save(picture, optimize=True)


def main() -> None:
    """Draw both into a folder, by default the documentation's."""
    folder = Path(sys.argv[1] if sys.argv[1:] else ROOT / "docs" / "static").resolve()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no browser is found: install chromium")
    with tempfile.TemporaryDirectory() as scratch:
        (folder / "terminal.svg").write_text(draw_terminal(run_shown_command(Path(scratch))))
        draw_page(Path(scratch) / "runs" / "demo" / "report.html", folder / "report.png", browser)


if __name__ == "__main__":
    main()
