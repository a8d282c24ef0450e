"""The job that draws the pictures of the README, without a run and without a browser."""

import re
import sys
from html import unescape
from pathlib import Path

import pytest

from jobs import pictures


def test_a_terminal_shows_the_command_and_what_it_printed_and_loads_nothing() -> None:
    printed = "May be quoted: at most 3.33 %\n  <b> & 'benign'\n"
    svg = pictures.draw_terminal(printed)
    drawn = unescape(re.sub(r"<[^>]*>", "", svg)).replace("\N{NO-BREAK SPACE}", " ")
    for line in (f"$ {pictures.SHOWN}", *printed.splitlines()):
        assert line in drawn
    assert not re.search(r"@font-face|url\(.?http|href=", svg)
    assert svg == pictures.draw_terminal(printed)


def test_without_a_browser_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["pictures.py", "--folder", str(tmp_path / "pictures")])
    assert pictures.main() == 2
    assert "no browser is found: install one of chromium" in capsys.readouterr().err
    assert not (tmp_path / "pictures").exists()


def test_the_command_that_is_drawn_is_that_of_the_front_page() -> None:
    page = (pictures.ROOT / "docs" / "index.md").read_text()
    assert f"$ {pictures.SHOWN}\n" in page
