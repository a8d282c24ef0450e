"""Forms of guidelines: every item is filled from the run or left to a person; none claims conformity."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs, snapshot, unwrap
from finished import KINDS, SERIAL, TABLE, Finished, half
from pages import FORBIDDEN, HOSTILE, Page

from ckcv_ray import InputError, StoreError, Study, load_run
from ckcv_ray.apps import forms
from ckcv_ray.cli.report import fill_form
from ckcv_ray.reports.facts import Section, facts
from ckcv_ray.reports.render import MARKUP
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.tables.task import Task

TREES = Study.paper(learner="tree,constant", k=(3,), n_splits=2)
KINDS["by subgroup"] = half(learner="tree", subgroups=f"{TABLE.features[0]}:2"), TABLE
TOLD = "held better", "held", "weights of rows", "by subgroup"  # with the others, these tell every fact


@pytest.fixture(scope="module")
def folder(finished: Finished) -> Path:
    return finished("paper")


@pytest.fixture(scope="module")
def told(folder: Path) -> list[Section]:
    return facts(load_run(folder), manifest={"manifest.json": "0" * 64})


def fill(told: list[Section], name: str = "tripod-ai", **answers: str) -> tuple[forms.FilledForm, str, str]:
    """A form filled by what is told and answered, as Markdown and as a page."""
    form = forms.read_form(name)
    filled = [forms.fill_items(form, "a run", told, answers, suffix) for suffix in forms.SUFFIXES]
    return filled[0], *(each.content.decode() for each in filled)


def tell(told: list[Section], *names: str) -> list[str]:
    """What a run says of these facts, in a form that asks for nothing else."""
    form = forms.Form("", "", "", (forms.Item("1", "", "", names),))
    (section,) = forms.fill_items(form, "a run", told, {}, ".md").sections
    return [fact.text for fact in section.facts if fact.name]


def test_every_name_of_a_form_is_that_of_a_fact(finished: Finished, told: list[Section]) -> None:
    every = [told, *(facts(load_run(finished(kind))) for kind in TOLD)]
    items = (item for guideline in forms.GUIDELINES for item in forms.read_form(guideline).item)
    for name in {name for item in items for name in item.facts} - {"test error"}:
        said = [text for sections in every for text in tell(sections, name)]
        assert said, name
        assert all(text.endswith(".") for text in said)


@pytest.mark.parametrize("name", ["tripod-ai", "model-card", "stard-ai", "annex-iv"])
def test_subgroups_are_in_the_forms_that_ask_for_them(name: str, finished: Finished) -> None:
    result = load_run(finished("by subgroup"))
    _, markdown, _ = fill(facts(result), name)
    for claim in result.certificate.subgroups:
        if claim.bound is not None:
            assert f"proven {claim.says}" in markdown
    assert "holds for all of them together, with probability 95 %" in markdown


@pytest.mark.parametrize("name", forms.GUIDELINES)
def test_every_form_has_every_item_and_claims_no_conformity(name: str, told: list[Section]) -> None:
    form, (filled, markdown, content) = forms.read_form(name), fill(told, name)
    page = Page(content)
    assert "not a statement of conformity" in forms.NO_CONFORMITY
    assert f"\n\n{forms.NO_CONFORMITY}\n\n" in markdown
    before = [fact for fact in told[0].facts if fact.name in ("verdict", "CAUTION", "QUESTION") and fact.text]
    assert before
    assert all(fact.text in page.text for fact in before)
    assert forms.NO_CONFORMITY in page.parts
    assert not FORBIDDEN & set(page.tags)
    assert len({section.name for section in filled.sections}) == len(form.item)
    for item, section in zip(form.item, filled.sections, strict=True):
        assert section.title == f"{item.section}, {item.number}: {item.text}"
        assert "\n\n## " + MARKUP.sub(r"\\\1", section.title) + "\n\n* " in markdown
        assert section.title in page.parts
        assert section.name.startswith("open-") == bool(item.ask)
        said = [("from the run", text) for text in tell(told, *item.facts)]
        said += [("for a person to fill", item.ask)] if item.ask else []
        assert [(fact.name, fact.text) for fact in section.facts] == said
    assert filled.open_numbers == [item.number for item in form.item if item.ask]
    assert f"{len(form.item)} items: {len(form.item) - len(filled.open_numbers)} filled" in filled.counts


def test_answers_are_shown_and_close_items(told: list[Section]) -> None:
    answers = {"1": "A *title*.\n\nIts\nsecond paragraph.", "3a": "<b>\x1b[2J"}
    filled, markdown, page = fill(told, **answers)
    assert not {"1", "3a"} & set(filled.open_numbers)
    numbered = zip(forms.read_form("tripod-ai").item, filled.sections, strict=True)
    by = {item.number: [*dict.fromkeys(fact.name for fact in told.facts)] for item, told in numbered}
    assert by["1"] == ["from the run", "by a person"]
    assert by["2"] == ["from the run", "for a person to fill"]
    assert [by[number] for number in ("3a", "12a")] == [["by a person"], ["from the run"]]
    assert "* **by a person:** A \\*title\\*.\n* **by a person:** Its second paragraph." in markdown
    assert "<bdi>A *title*.</bdi>" in page
    assert 'section[id^="open-"] { border-left' in page
    assert page.count('<section id="open-') == len(filled.open_numbers)
    assert "&lt;b&gt;\\x1b[2J" in page
    assert "\\<b\\>\\\\x1b\\[2J" in markdown
    untold, said, _ = fill([])
    assert ", 0 of them filled in part by the run" in untold.counts
    assert "\n\n* the run says nothing about this\n" in said


def test_names_in_the_data_are_no_markup() -> None:
    labels, column = np.where(blobs(60).y, HOSTILE[0], "well"), {HOSTILE[1]: blobs(60).X[:, 0]}
    result = run_job(Job(TREES, Task.of(pa.table(column), labels)), SERIAL)
    _, markdown, page = fill(facts(result), "model-card")
    assert not FORBIDDEN & set(Page(page).tags)
    assert "<script" not in page
    assert not re.search(r"(?<!\\)<", markdown)


def test_a_form_is_written_and_written_again_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    before = snapshot(folder)
    for suffix in forms.SUFFIXES:
        out = tmp_path / f"form{suffix}"
        fill_form(folder, "model-card", out)
        content = out.read_bytes()
        fill_form(folder, "model-card", str(out))
        assert out.read_bytes() == content
        out.write_bytes(content.replace(b"Model", b"Madel") if suffix == ".md" else content[:-1])
        with pytest.raises(InputError, match=r"exists, and is not a form as ckcv wrote it"):
            fill_form(folder, "model-card", out)
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tripod-ai", "form.pdf"), "out='form.pdf': the name has to end in .md or"),
        (("tripod-ai", "{folder}/form.md"), "is in the run folder"),
        (("tripod-ai", "a.md", "two.toml"), "for each item: 1: Input should be a valid string"),
        (("tripod-ai", "a.md", "five.toml"), "has no item '5aa'; did you mean 5a"),
    ],
)
def test_what_cannot_be_written_or_read_is_refused(
    words: tuple[str, ...], message: str, folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"two": "1 = 2", "five": "5aa = 'x'"}.items():
        Path(f"{name}.toml").write_text(text)
    before = snapshot(folder, tmp_path)
    with pytest.raises(InputError, match=re.escape(message)):
        fill_form(folder, *(word.format(folder=folder) for word in words))
    assert snapshot(folder, tmp_path) == before


def test_only_a_finished_run_with_claims_has_a_form(finished: Finished, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the scores of a procedure, from ckcv evaluate"):
        fill_form(finished("folds"), "tripod-ai", tmp_path / "form.md")
    with pytest.raises(StoreError, match="holds no run"):
        fill_form(tmp_path / "new", "tripod-ai", tmp_path / "form.md")


def test_strict_fails_until_a_person_has_answered(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ckcv: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    ask = ("report", folder, "--for", "model-card")
    code, _, messages = ckcv(*ask, "--out", "card.md", "--template", "answers.toml", "--strict")
    assert code == 1
    assert "template: answers.toml" in messages
    assert "form: card.md: 16 items: 3 filled" in messages
    assert "items that a person has to fill: 4.1 a, 4.1 c" in messages
    answers = Path("answers.toml")
    answers.write_text(answers.read_text().replace('= ""', '= "Answered."'))
    code, _, messages = ckcv(*ask, "--out", "card.md", "--answers", "answers.toml", "--strict")
    assert code == 0
    assert "16 items: 16 filled" in messages
    assert "* **by a person:** Answered." in Path("card.md").read_text()
    assert "is in the run folder" in unwrap(ckcv(*ask, "--template", folder / "a.toml")[2])
    code, _, messages = ckcv(*ask, "--template", "answers.toml")
    assert code == 2
    assert "exists: name another file, or remove it" in unwrap(messages)
    assert not Path("report.html").exists()
