"""Code pages: text that is not UTF-8 is read as western European and said to be, or its encoding is asked."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray import Execution, Job, Study, read_task
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.tables.named import read
from ckcv_ray.tables.read import OTHERS, Reading, find_words, is_plausible

FOREIGN = {  # two labels, which are text of western Europe in no way
    "cp1251": ("Москва", "Казань"),
    "cp866": ("мужской", "женский"),
    "koi8_r": ("Москва", "Казань"),
    "cp1250": ("Wałęsa", "Łódź"),
    "cp1253": ("Αθήνα", "Πάτρα"),
    "cp1256": ("ذكر", "أنثى"),
    "shift_jis": ("男性", "女性"),
    "gb18030": ("北京", "上海"),
    "big5": ("男性", "女性"),
    "euc_kr": ("남", "여"),
    "mac_roman": ("Müller", "Größe"),
    "cp850": ("Müller", "Größe"),
}
WESTERN = [
    ("für", "wider"),
    ("não", "sim"),
    ("été", "hiver"),
    ("GRÖSSE", "STRAßE"),
    ("créée", "où"),
    ("Þórður", "Björk"),
    ("¿Qué?", "¡Olé!"),
    ("W/m²K", "µg"),
    ("“so”", "it’s"),
    ("pre–post", "5 °C"),
    ("col·lecció", "1ª"),
    ("Žižek", "œuvre"),
    ("Ø", "å"),
    ("£5", "€5"),
    ("Foo®", "½"),
]


def write(folder: Path, labels: tuple[str, str], encoding: str, name: str = "table.csv") -> Path:
    rows = (f"{i % 5}.5,{i},{labels[i % 2]}\n" for i in range(24))
    (folder / name).write_bytes(f"x,z,y\n{''.join(rows)}".encode(encoding))
    return folder / name


@pytest.mark.parametrize("encoding", FOREIGN)
def test_other_code_pages_are_asked_about_and_said(encoding: str, tmp_path: Path) -> None:
    labels = FOREIGN[encoding]
    path = write(tmp_path, labels, encoding)
    with pytest.raises(InputError, match=r"is not UTF-8, and what line 2 has is not certain: say") as refused:
        read(path)
    offered = dict(re.findall(r"--encoding (\w+) for '([^']*)'", str(refused.value)))
    assert offered[encoding] == labels[0]
    assert len(offered) > 2
    assert read(path, Reading(encoding=encoding)).learn["y"].unique().to_pylist() == [*labels]


@pytest.mark.parametrize("labels", WESTERN)
def test_text_of_western_europe_is_read_and_said_to_be(labels: tuple[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    path = write(tmp_path, labels, "cp1252")
    assert read(path, say=said.append).learn["y"].unique().to_pylist() == [*labels]
    (remark,) = said
    assert re.fullmatch(
        rf"'{path}' is not UTF-8: read as cp1252, as in .*; say --encoding if that is wrong", remark
    )
    assert any(word.strip("'\"") in " ".join(labels) for word in re.findall(r"as in (.*);", remark))


def test_short_labels_that_are_no_words_are_asked_about(tmp_path: Path) -> None:
    for labels, encoding in ((("м", "ж"), "cp1251"), (("да", "нет"), "cp1251"), (("男", "女"), "gb18030")):
        with pytest.raises(InputError, match=f"--encoding {encoding} for '{labels[0]}'"):
            read(write(tmp_path, labels, encoding))


def test_few_odd_words_among_many_are_western_still(tmp_path: Path) -> None:
    words = [f"{'abcdefghij'[i % 10]}ü{'klmn'[i // 10]}" for i in range(40)]
    (tmp_path / "table.csv").write_bytes("\n".join(["y", *words, "MÃ¼ller"]).encode("cp1252"))
    said: list[str] = []
    assert read(tmp_path / "table.csv", say=said.append).learn.num_rows == 41
    assert "as in 'MÃ¼ller'" in said[0]  # what is odd is shown


def test_utf8_with_lines_of_another_encoding_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("x\nMüller\nGröße\n".encode() + "Zürich\n".encode("cp1252"))
    with pytest.raises(InputError, match=r"is UTF-8, but not in line 4, which has the byte 0xfc"):
        read(tmp_path / "table.csv")


def test_nothing_is_said_where_the_file_or_the_user_says_it(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path = write(tmp_path, ("Müller", "Größe"), encoding)
        for reading in (Reading(), Reading(encoding=encoding)):
            assert read(path, reading).learn["y"].unique().to_pylist() == ["Müller", "Größe"]
    for encoding in ("utf-8-sig", "utf-16"):  # these say themselves what they are
        path = write(tmp_path, ("Müller", "Größe"), encoding)
        assert read(path, Reading(encoding="cp1251")).learn.column_names == ["x", "z", "y"]
    for encoding in ("cp1252", "utf-16-le", "utf-16-be", "cp500", "utf-32-le"):
        path = write(tmp_path, ("Müller", "Größe"), encoding)
        assert read(path, Reading(encoding=encoding)).learn["y"].unique().to_pylist() == ["Müller", "Größe"]


@pytest.mark.parametrize("encoding", ["no-such", "rot13", "base64", "undefined", "", 1251])
def test_an_unknown_encoding_is_refused(encoding: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"encoding=.*: expected one of text .* such as cp1252, cp1251"):
        read(write(tmp_path, ("a", "b"), "utf-8"), Reading(encoding=encoding))


def test_bytes_that_are_not_of_the_encoding_are_refused_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path, ("a", "Müller"), "cp1252")
    with pytest.raises(InputError, match="is not in utf-8, as line 3 shows: say another --encoding"):
        read(path, Reading(encoding="utf-8"))
    path.write_bytes(path.read_bytes().strip() + "\n男".encode("shift_jis")[:-1])
    with pytest.raises(InputError, match="is not in shift_jis, as line 3 shows"):
        read(path, Reading(encoding="shift_jis"))
    path.write_bytes("x,y\n1,男".encode("shift_jis")[:-1])
    with pytest.raises(InputError, match="is not in shift_jis, as line 2 shows"):
        read(path, Reading(encoding="shift_jis"))


def test_an_encoding_is_for_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"encoding is for \.csv .* leave it out"):
        read(tmp_path / "table.parquet", Reading(encoding="cp1251"))
    assert Reading(encoding="cp1251").adapt("a.xlsx") == Reading()
    assert Reading(encoding="cp1251").adapt("a.txt.gz") == Reading(encoding="cp1251")


def test_a_task_in_python_warns(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="is not UTF-8: read as cp1252, as in 'für'"):
        task, _ = read_task(write(tmp_path, ("für", "wider"), "cp1252"))
    assert task.classes == ("für", "wider")


def test_the_encoding_is_kept_with_the_salt(tmp_path: Path) -> None:
    path = write(tmp_path, ("да", "нет"), "cp1251")
    task, _ = read_task(path, reading=Reading(encoding="cp1251"))
    assert task.salt == read_task(write(tmp_path, ("да", "нет"), "utf-8", "same.csv"))[0].salt
    run_job(Job(Study.of(learner="tree", k=(3,), n_splits=3), task, tmp_path / "run"), Execution("serial"))
    found = verify(tmp_path / "run", table=path)
    assert (found.ok, f"the salt, from '{path}'" in found.recomputed) == (True, True)


@given(st.text(st.characters(codec="cp1252"), min_size=1), st.sampled_from(OTHERS))
def test_words_are_found_where_they_are(text: str, encoding: str) -> None:
    """Each place has a letter that is not ASCII, in the word; what is no ASCII is in a word."""
    words = find_words(text)
    assert bool(words) == (not text.isascii())
    for word, place in words.items():
        assert not text[place].isascii()
        assert word in text
        assert is_plausible(word) in (True, False)
