"""The process in which ``fuzz`` reads its inputs, with limited memory and time; it may crash."""

import faulthandler
import multiprocessing
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ckcv_ray.tables import limits
from jobs.faults.fuzz_readers import CALLS, PACKAGE, Calls, Fault

POLL_SECONDS = 0.02
GUARD = 3
OWN_SHARE = 0.05  # of the memory that is free, for reading a table: as if there were little


def serve(pipe: Any, log_file: Path, most_mib: int) -> None:
    """Read the inputs that the parent sends, and send back the outcomes, until the pipe is closed."""
    with log_file.open("w") as log, open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(log.fileno(), 2)
        faulthandler.enable(log)
        faulthandler.register(signal.SIGUSR1, log)
        resource.setrlimit(resource.RLIMIT_DATA, (GUARD * most_mib << 20,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limits.OWN_SHARE = OWN_SHARE
        with suppress(EOFError):
            while True:
                reader, folder = pipe.recv()
                before, calls = set(folder.rglob("*")), Calls()
                CALLS[reader](calls, folder)
                if left := sorted(str(file.relative_to(folder)) for file in set(folder.rglob("*")) - before):
                    calls.faults.append(Fault("left behind", left[0], "\n".join(left)))
                pipe.send((calls.refused, calls.faults))
    os._exit(0)


class Child:
    """A process that reads inputs, and is replaced after it has ended or its memory has grown."""

    def __init__(self, scratch: Path, most_mib: int, deadline: float) -> None:
        self.log, self.most_mib, self.deadline = scratch / "log", most_mib, deadline
        self.start()

    def start(self) -> None:
        """Fork; everything the child needs is already imported."""
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.log, self.most_mib), daemon=True)
        self.process.start()
        other.close()

    def stop(self) -> None:
        """Kill the process, whatever its state."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def read(self, reader: str, folder: Path) -> tuple[int, list[Fault], float]:
        """Read an input; return the number of refused calls, the faults, and peak memory in MiB."""
        status = Path(f"/proc/{self.process.pid}")
        with suppress(OSError):
            (status / "clear_refs").write_text("5")  # resets the peak
        end, refused, faults = time.monotonic() + self.deadline, 0, list[Fault]()
        self.pipe.send((reader, folder))
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
            faults.append(Fault("memory", "", f"a brief peak of {peak:.0f} MiB"))
        if peak > self.most_mib / 2:
            self.stop()
            self.start()
        return refused, faults, peak

    def peak(self) -> float:
        """Return the peak resident size for this input, in MiB; unlike ru_maxrss, without the parent's."""
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
        return 0.0

    def interrupted(self, kind: str) -> Fault:
        """Return where the child is, or was, as a fault; replace the child."""
        with suppress(OSError):
            os.kill(self.process.pid or 0, signal.SIGUSR1)
            self.process.join(0.5)
        log = self.log.read_text(errors="replace")
        frames = [line.strip() for line in log.splitlines() if line.startswith("  File ")]
        ours = [frame for frame in frames if PACKAGE in frame]
        shown = (frame.rpartition("/")[2].replace('"', "") for frame in (*frames[:1], *ours[:1]))
        self.stop()
        self.start()
        return Fault(kind, " < ".join(dict.fromkeys(shown)), log)
