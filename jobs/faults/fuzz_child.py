"""The process in which ``fuzz`` has inputs read: its memory and its time are limited, and it may crash."""

import faulthandler
import json
import multiprocessing
import os
import resource
import signal
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from pyarrow import parquet

from ckcv_ray.data.task import learning_task
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Study, run_id
from jobs.faults.fuzz_readers import CALLS, PACKAGE, Calls, Fault

POLL_SECONDS = 0.02
GUARD = 3


def seal(folder: Path) -> None:
    """Make digests and run_id agree with the files again, as far as these can be read."""
    for run in (*folder.glob("nested/*"), folder):
        with suppress(Exception):
            content = json.loads((run / "study.json").read_bytes())
            columns = parquet.read_table(run / "data.parquet")
            target = columns.schema.metadata[b"target"].decode()
            content["data"] = learning_task(columns, target).digest
            content["run_id"] = run_id(Study.from_json(content["study"]), content["data"])
            (run / "study.json").write_text(json.dumps(content))
        for file in run.rglob("*.parquet"):
            with suppress(Exception):
                table = parquet.read_table(file)
                metadata = {**table.schema.metadata, b"run_id": content["run_id"].encode()}
                table = table.replace_schema_metadata(metadata)
                parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
        names = RunFolder(run).names()
        digests = {name: sha256((run / name).read_bytes()).hexdigest() for name in names}
        (run / "manifest.json").write_text(json.dumps(digests, indent=2) + "\n")


def serve(pipe: Any, told: Path, most_mib: int) -> None:
    """The child: read what the parent says, tell what came of it, until the pipe is closed."""
    with told.open("w") as log, open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(log.fileno(), 2)
        faulthandler.enable(log)
        faulthandler.register(signal.SIGUSR1, log)
        resource.setrlimit(resource.RLIMIT_DATA, (GUARD * most_mib << 20,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(EOFError):
            while True:
                reader, folder, sealed = pipe.recv()
                if sealed:
                    seal(folder)
                before, calls = set(folder.rglob("*")), Calls()
                CALLS[reader](calls, folder)
                if left := sorted(str(file.relative_to(folder)) for file in set(folder.rglob("*")) - before):
                    calls.faults.append(Fault("left behind", left[0], "\n".join(left)))
                pipe.send((calls.refused, calls.faults))
    os._exit(0)


class Child:
    """A process that reads inputs, and is made anew once it is gone or has grown."""

    def __init__(self, scratch: Path, most_mib: int, deadline: float) -> None:
        self.told, self.most_mib, self.deadline = scratch / "told", most_mib, deadline
        self.start()

    def start(self) -> None:
        """Fork: all that it needs is imported by then."""
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.told, self.most_mib), daemon=True)
        self.process.start()
        other.close()

    def stop(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def read(self, reader: str, folder: Path, sealed: bool) -> tuple[int, list[Fault], float]:
        """How many calls were refused, what was wrong, and the peak in MiB."""
        status = Path(f"/proc/{self.process.pid}")
        with suppress(OSError):
            (status / "clear_refs").write_text("5")  # the peak begins anew
        end, refused, faults = time.monotonic() + self.deadline, 0, list[Fault]()
        self.pipe.send((reader, folder, sealed))
        while not self.pipe.poll(POLL_SECONDS):
            if (over := self.peak() > self.most_mib) or time.monotonic() > end:
                peak = self.peak()
                return 0, [self.interrupted("memory" if over else "hang")], peak
        peak = self.peak()
        try:
            refused, faults = self.pipe.recv()
        except EOFError:
            self.process.join()
            return 0, [self.interrupted(f"crash {-(self.process.exitcode or 0)}")], peak
        if peak > self.most_mib:
            faults.append(Fault("memory", "", f"a peak of {peak:.0f} MiB, for a moment"))
        if peak > self.most_mib / 2:
            self.stop()
            self.start()
        return refused, faults, peak

    def peak(self) -> float:
        """Largest resident size since the input came, in MiB: ru_maxrss without what a fork passes on."""
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
        return 0.0

    def interrupted(self, kind: str) -> Fault:
        """Where it is, or was; and a new child in its place."""
        with suppress(OSError):
            os.kill(self.process.pid or 0, signal.SIGUSR1)
            self.process.join(0.5)
        told = self.told.read_text(errors="replace")
        frames = [line.strip() for line in told.splitlines() if line.startswith("  File ")]
        ours = [frame for frame in frames if PACKAGE in frame]
        shown = (frame.rpartition("/")[2].replace('"', "") for frame in (*frames[:1], *ours[:1]))
        self.stop()
        self.start()
        return Fault(kind, " < ".join(dict.fromkeys(shown)), told)
