"""``ckcv run`` as a script, for ``ray submit`` and ``ray job submit``, with the same options and one more.

    ray job submit --working-dir . -- python jobs/run_study.py twonorm:400:0 --out /data/runs/t --times 5

A job runs in an unpacked copy of the working directory: pass ``--out`` as an absolute path on the driver's
node. With ``--times N`` the run is restarted, up to N times, if it was killed or could not finish.
"""

import ctypes
import os
import signal
import sys
from argparse import ArgumentParser
from pathlib import Path
from subprocess import Popen
from types import FrameType

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from ckcv_ray.cli.main import main
from ckcv_ray.cli.output import list_stop_signals
from ckcv_ray.engine.worker import PR_SET_PDEATHSIG

COULD_NOT_FINISH = 1  # the only exit code after which another try may succeed


def start(arguments: list[str]) -> Popen[bytes]:
    """Start ``ckcv ARGUMENTS`` as a process that, on Linux, does not outlive this one."""

    def end_with_parent() -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    path = os.pathsep.join(path or os.getcwd() for path in sys.path)
    command, environment = [sys.executable, "-m", "ckcv_ray", *arguments], {**os.environ, "PYTHONPATH": path}
    return Popen(command, env=environment, preexec_fn=end_with_parent)


def repeat(arguments: list[str], times: int) -> int:
    """Run ``ckcv ARGUMENTS``, up to ``times`` again if it was killed or failed; return its exit code.

    A signal that asks this process to stop is passed on, and ends it. If this process is killed, so is the
    run: whatever started it has to start it again.
    """
    signals, child = list[int](), None

    def forward(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        if child is not None:
            child.send_signal(number)

    for number in list_stop_signals():
        signal.signal(number, forward)
    for left in range(times, -1, -1):
        child = start(arguments)
        if signals:  # it came before there was a child to pass it on to
            child.send_signal(signals[-1])
        code = child.wait()
        if signals or not left or (code >= 0 and code != COULD_NOT_FINISH):
            break
        again = f"starting it again, {times - left + 1} of at most {times}"
        print(f"the run ended with exit code {code}: {again}", file=sys.stderr, flush=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--times", type=int, default=0)
    options, rest = parser.parse_known_args()
    if options.times > 0:
        sys.exit(repeat(["run", *rest, "--yes"], options.times))  # nobody is there to answer a question
    sys.argv[1:] = ["run", *rest]
    main()
