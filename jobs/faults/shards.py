"""Shards that are killed: a run in shards must have the bytes of a single run, whatever ends them.

The study is divided among many shards. A third of them, chosen at random, is killed by SIGKILL twice, each
time at a random moment of its work, and started again; the rest runs through. Then the run is gathered, and
candidates, models and certificate are compared with those of a single run.

    python jobs/faults/shards.py --shards 50 --seed 1
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import subprocess
import tempfile
import time
from collections import deque
from contextlib import suppress
from typing import Annotated

import numpy as np
import typer

from jobs.faults.chaos import ROOT, STUDY, differing_files

KILLS = 2  # of each shard that is chosen
LOOK_SECONDS = 0.02


def call(*words: object, **options: object) -> subprocess.Popen[bytes]:
    """Start a command of ckcv."""
    command = [sys.executable, "-m", "ckcv_ray", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, **options)  # type: ignore[call-overload,no-any-return]


def finish(*words: object) -> None:
    """Run a command of ckcv, which has to succeed."""
    if code := call(*words, stdout=subprocess.DEVNULL).wait():
        raise RuntimeError(f"ckcv {' '.join(map(str, words))} ended with exit code {code}")


class Shard:
    """A process that computes a shard, and the moment at which it is killed, if it is.

    Args:
        out: run folder.
        number: of the shard.
        kill_after: seconds after the first sign of work; None to let it end.
    """

    def __init__(self, out: Path, number: int, kill_after: float | None) -> None:
        self.number, self.kill_after = number, kill_after
        self.lock = out / "log" / f"shard-{number:05d}" / ".lock"
        self.process = call("shard", out, "--number", number)
        self.began: float | None = None
        self.killed = False

    def look(self) -> bool:
        """Return whether it has ended, and kill it when its moment has come."""
        now = time.monotonic()
        if self.began is None and self.lock.exists():
            self.began = now
        if self.kill_after is not None and self.began is not None and now - self.began > self.kill_after:
            self.process.kill()
            self.killed, self.kill_after = True, None
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(LOOK_SECONDS)
        return self.process.returncode is not None


def compute(out: Path, shards: int, workers: int, rng: np.random.Generator, seconds: float) -> int:
    """Compute all shards, of which a third is killed twice; return the number of kills while they worked."""
    unlucky = set((1 + rng.permutation(shards)[: shards // 3]).tolist())
    waiting = deque((number, KILLS * (number in unlucky)) for number in range(1, shards + 1))
    running: list[tuple[Shard, int]] = []
    kills = 0
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, left = waiting.popleft()
                after = float(rng.uniform(0.0, seconds)) if left else None
                running.append((Shard(out, number, after), left))
            for shard, left in [pair for pair in running if pair[0].look()]:
                running.remove((shard, left))
                if shard.process.returncode < 0:
                    kills += 1
                    waiting.append((shard.number, left - 1))
                elif shard.process.returncode:
                    raise RuntimeError(f"shard {shard.number}: exit code {shard.process.returncode}")
    finally:
        for shard, _ in running:
            shard.process.kill()
            shard.process.wait()
    return kills


def main(
    shards: Annotated[int, typer.Option(min=1, help="Shards of the study.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of moments and targets.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Shards that are computed at once.")] = 2,
    splits: Annotated[int, typer.Option(min=1, help="Splits of the study.")] = 40,
    seconds: Annotated[float, typer.Option(help="Seconds within which a shard is killed.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print how many shards were killed, and what differs; exit with 1 if anything does."""
    study = [*STUDY, "--n-splits", str(splits)]
    rng = np.random.default_rng(seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ckcv-shards-") as folder:
        out, single = Path(folder) / "run", Path(folder) / "single"
        finish("run", *study, "--backend", "serial", "--out", single)
        finish("submit", *study, "--shards", shards, "--out", out)
        kills = compute(out, shards, workers, rng, seconds)
        finish("gather", out)
        differing = differing_files(out, single)
        left = [str(file) for name in (".*.tmp", ".lock") for file in out.rglob(name)]
    found = {"shards": shards, "kills": kills, "differing": differing, "temporary": left}
    text = f"{shards} shards, {kills} kills: {', '.join(differing + left) or 'the bytes of a single run'}"
    print(json.dumps(found | {"seconds": time.monotonic() - began}) if as_json else text)
    raise typer.Exit(bool(differing or left))


if __name__ == "__main__":
    typer.run(main)
