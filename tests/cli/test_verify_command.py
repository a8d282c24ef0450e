"""The command verify: what it finds, and how much of it it computes again."""

import json
from pathlib import Path

import pytest
from command import Command

from ckcv_ray import load_run


def test_verify_agrees_then_sees_any_changed_byte(ckcv: Command, finished: Path) -> None:
    code, shown, _ = ckcv("verify", finished, "--json")
    assert code == 0
    found = json.loads(shown)
    assert (found["run_id"], found["ok"], found["differences"]) == (load_run(finished).run_id, True, [])
    assert any("--refit" in sentence for sentence in found["trusted"])
    for file in [file for file in finished.rglob("*") if file.is_file()]:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        original = file.read_bytes()
        file.write_bytes(content)
        code, shown, _ = ckcv("verify", finished)
        assert code == 1, file
        assert shown.strip()
        file.write_bytes(original)
    assert ckcv("verify", finished)[0] == 0


@pytest.mark.parametrize("words", [("--refit",), ("--refit", "1"), ("--json", "--refit", "--workers", "1")])
def test_verify_computes_again_on_request(ckcv: Command, finished: Path, words: tuple[str, ...]) -> None:
    code, shown, _ = ckcv("verify", finished, *words, "--backend", "serial")
    assert (code, "fitted again" in shown) == (0, True)
    assert "the other" not in shown
    assert "--refit" not in shown


def test_verify_computes_a_share_again(ckcv: Command, finished: Path) -> None:
    code, shown, _ = ckcv("verify", finished, "--refit", "0.1", "--backend", "serial")
    assert (code, "taken on trust: the other" in shown) == (0, True)
    code, _, told = ckcv("verify", finished, "--refit", "7")
    assert (code, "refit=7 is outside 0..1" in told) == (2, True)
