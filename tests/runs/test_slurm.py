"""Scripts for Slurm: what they run, and that nothing in them is anybody else's shell."""

import subprocess

import pytest

from ckcv_ray.errors import InputError
from ckcv_ray.runs.slurm import Scripts, parse_slurm, write_scripts

STRANGE = "a b; touch $(echo x) 'q' \"d\" #100% `y` \\n"


def run_script(script, **variables):
    """The words that the command of a script is given."""
    done = subprocess.run(["bash", script], capture_output=True, text=True, env=variables, check=True)
    return done.stdout.splitlines()


def test_a_script_calls_the_command_with_the_words_as_they_are(tmp_path):
    out = tmp_path / STRANGE / "run"
    echo = ["/usr/bin/printf", "%s\\n", STRANGE]
    scripts = write_scripts(tmp_path / STRANGE, out, "0123456789ab", 5, echo, parse_slurm("--partition=long"))
    words = run_script(scripts.shards, SLURM_ARRAY_TASK_ID="3")
    assert words == [STRANGE, "shard", str(out), "--number", "3"]
    assert run_script(scripts.gather) == [STRANGE, "gather", str(out)]
    assert sorted(file.name for file in (tmp_path / STRANGE).iterdir()) == ["gather.sbatch", "shards.sbatch"]


def test_options_are_on_lines_of_their_own(tmp_path):
    slurm = parse_slurm("--partition=long --comment='a #b' -t 2:00:00")
    scripts = write_scripts(tmp_path / "100%", tmp_path / "run", "0123456789ab", 5, ["ckcv"], slurm)
    lines = scripts.shards.read_text().splitlines()
    options = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]
    assert {"--array=1-5", "--requeue", "--open-mode=append"} <= {*options}
    assert options[-1] == "--partition=long '--comment=a #b' -t 2:00:00"
    assert f"--output={tmp_path}/100%%/shard-%a.log" in options
    assert "--array" not in scripts.gather.read_text()


def test_the_line_that_submits_is_one_line_of_shell(tmp_path):
    scripts = Scripts(tmp_path / "a b" / "shards.sbatch", tmp_path / "a b" / "gather.sbatch")
    sbatch = 'sbatch() { printf "%s\\n" "$@" >&2; echo "17;cluster"; }\n'
    done = subprocess.run(
        ["bash", "-c", sbatch + scripts.describe_submission()], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines() == [
        "--parsable", str(scripts.shards), "--dependency=afterany:17", str(scripts.gather),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("--partition=long\n#SBATCH --uid=0", "line break"),
        ("--comment=a\x7f", "line break"),
        ("--comment=a\u2028b", "line break"),
        ("--comment='a", "close the quotation mark"),
        ("long", "expected options of sbatch"),
        ("--array=1-3", "--array is set by the scripts"),
        ("--time=1:00 -o log", "-o is set by the scripts"),
    ],
)
def test_options_that_are_none_are_refused(text, what):
    with pytest.raises(InputError, match=what):
        parse_slurm(text)


def test_no_options_are_none():
    assert parse_slurm("") == ()


@pytest.mark.parametrize("name", ["folder", "out"])
def test_a_path_with_a_line_break_is_refused(tmp_path, name):
    paths = {"folder": tmp_path / "scripts", "out": tmp_path / "run"} | {name: tmp_path / "a\nrm -r b"}
    with pytest.raises(InputError, match="line break"):
        write_scripts(**paths, run_id="0123456789ab", shards=2, command=["ckcv"])
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to"):
        write_scripts(tmp_path / "file" / "scripts", tmp_path / "run", "0123456789ab", 2, ["ckcv"])
