"""Machine code for the functions that numba compiles: one file for all of it, the same in every process.

The code of a function also contains copies of the functions it calls, and LLVM's loader keeps the first copy
it gets. Copies compiled next to different neighbours may round differently. So the functions are compiled
together, in a separate process, and every process (including the one that started it) loads the complete
result in the same order, callees first (``compile_listed``). No function is ever compiled separately.

The file's name is a digest of all that may change the code: the sources, Python, numba, llvmlite, numpy, the
processor, and numba's settings. Two states never share a file. The file starts with the digest of its
content; a truncated or damaged file is replaced. It is kept in ``NUMBA_CACHE_DIR`` if that is set, else in
the user's cache folder, else in the package; if none of them is writable, every process compiles for itself.
"""

import hashlib
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import mkstemp
from threading import Lock
from typing import Any

import numba
import numpy as np
import platformdirs
from filelock import FileLock
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numpy.typing import NDArray

from ckcv_ray.errors import RunError
from ckcv_ray.learners.svm.signatures import list_signatures

SOLVER_FOLDER = Path(__file__).resolve().parent
PACKAGE = SOLVER_FOLDER.parents[1]
COMPILER_PACKAGES = ("llvmlite", "numba", "numpy")
WITHOUT_EFFECT = ("CACHE", "NUM_THREADS", "PROFIL", "COLOR_SCHEME")  # parts of the names of numba's settings
KEPT = 4  # files of other states to keep in a folder: other environments may use them
DIGEST_BYTES = 32
LOCK_SECONDS = 300.0  # far longer than compiling takes: a lock held longer is that of a stopped process
OTHERS_WRITE = 0o022
BUILD = """
import os, sys
if sys.argv[1] not in sys.path:
    sys.path.insert(0, sys.argv[1])
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # numba's settings can make it print
from ckcv_ray.learners.svm.machine_code import compile_all
out.write(compile_all())
"""

_loading = Lock()


class Code(NullCache):
    """The cache of one function's code, which numba consults before compiling.

    Attributes:
        reduced: code by argument types, in numba's serialised form, to be loaded.
        compiling: whether missing code may be compiled; only in ``compile_all``.
    """

    compiling = False

    def __init__(self) -> None:
        self.reduced: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for these types into this process.

        Raises:
            TypeError: there is none, and compiling is not allowed.
        """
        types, _ = normalize_signature(sig)
        if types in self.reduced:
            return CompileResult._rebuild(target_context, *self.reduced[types])
        if not Code.compiling:
            raise TypeError(f"no code for types {types}: call load() first; svm/compiled.py lists the types")
        return None


def compile_listed(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function with ``numba.njit``, to be compiled only for the listed types."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(error_model="numpy", **options)(function)
        dispatcher._cache = Code()
        return dispatcher

    return decorate


@cache
def load_code() -> None:
    """Load every function into this process; the first time on a machine, compile them all (about 12 s).

    Raises:
        RunError: they cannot be compiled here.
    """
    if config.DISABLE_JIT:
        raise RunError("NUMBA_DISABLE_JIT is set, but the solver runs only when compiled: unset it")
    with _loading:
        code = _code()
        cpu_target.target_context.refresh()
        for (function, types), reduced in zip(list_signatures(), pickle.loads(code), strict=True):
            function._cache.reduced[types] = reduced
            function.compile(types)


@cache
def entry(function: Any) -> Callable[..., None]:
    """Return the machine code of a function listed with one set of types, loaded.

    It takes only arguments of those types, which it hardly checks, and need not look them up; for arguments
    with many arrays, that takes longer than a small fit.
    """
    load_code()
    (code,) = function.overloads.values()
    entry_point: Callable[..., None] = code.entry_point
    return entry_point


def writable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, or a copy if it is read-only or not C-contiguous: those are different types."""
    return array if array.flags.carray else np.require(array, requirements=("C", "W"))


def compile_all() -> bytes:
    """Compile every function in this process, which must not have loaded any; return a file's content."""
    listed, Code.compiling = list_signatures(), True
    for function, types in listed:
        function.compile(types)
    return seal(dumps([function.overloads[types]._reduce() for function, types in listed]))


def file_name() -> str:
    """Return the file's name, a digest of all that may change the code."""
    digest = hashlib.sha256()
    for file in sorted(SOLVER_FOLDER.glob("*.py")):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    digest.update(_state().encode())
    return f"solver-{digest.hexdigest()[:32]}.bin"


@cache
def state() -> str:
    """Return the SHA-256 of all but the sources: Python, packages, processor, and settings of numba."""
    return _state()


def _state() -> str:
    settings = {
        name: value
        for name, value in sorted(vars(config).items())
        if name.isupper() and isinstance(value, bool | int | float | str | None)
        if not any(part in name for part in WITHOUT_EFFECT)
    }
    processor = cpu_target.target_context.codegen().magic_tuple()
    return hashlib.sha256(repr((sys.version, _versions(), settings, processor)).encode()).hexdigest()


@cache
def _versions() -> list[tuple[str, str]]:
    """Read the versions of the packages that make the code; once, since it takes a millisecond."""
    return [(name, version(name)) for name in COMPILER_PACKAGES]


def seal(content: bytes) -> bytes:
    """Prefix the content with its digest."""
    return hashlib.sha256(content).digest() + content


def open_sealed(file: bytes) -> bytes | None:
    """Return the content of a file, or None if it does not match its digest."""
    content = file[DIGEST_BYTES:]
    return content if content and seal(content) == file else None


def _code() -> bytes:
    """Return the code of this state from its file, or compile it and keep the file."""
    name, folders = file_name(), list(_folders())
    if (content := _find(folders, name)) is not None:
        return content
    with ExitStack() as stack:
        for folder in folders:
            with suppress(OSError):  # a folder that is not writable
                folder.mkdir(0o755, parents=True, exist_ok=True)
                stack.enter_context(FileLock(folder / "solver.lock", timeout=LOCK_SECONDS))
                break
        if (content := _find(folders, name)) is not None:  # another process was faster
            return content
        file = _build()
        if (content := open_sealed(file)) is None:
            raise RunError("the solver could not be compiled: its code arrived incomplete or damaged")
        _keep(file, folders, name)
    return content


def _folders() -> Iterator[Path]:
    """Yield the folders that may contain files, the preferred one first."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
        return
    user = Path(platformdirs.user_cache_dir("ckcv_ray"))
    if user.is_absolute():  # it is not for a user without a home folder
        yield user
    yield PACKAGE / "__pycache__"


def _find(folders: list[Path], name: str) -> bytes | None:
    for folder in folders:
        with suppress(OSError), (folder / name).open("rb") as file:
            if _is_trusted(os.fstat(file.fileno())) and (content := open_sealed(file.read())) is not None:
                return content
    return None


def _is_trusted(file: os.stat_result) -> bool:
    """Return whether only this user and root can have written a file: its content is executed."""
    owners = {0, os.geteuid()} if hasattr(os, "geteuid") else {file.st_uid}
    return file.st_uid in owners and not file.st_mode & OTHERS_WRITE


def _build() -> bytes:
    """Compile in a separate process, whose state does not depend on what this one did before."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONOPTIMIZE": ""}
    command = [sys.executable, "-P", "-c", BUILD, str(PACKAGE.parent)]
    done = subprocess.run(command, env=environment, capture_output=True)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [
            f"exit code {done.returncode}"
        ]
        raise RunError(f"the solver could not be compiled: {reason[0]}")
    return done.stdout


def _keep(file: bytes, folders: list[Path], name: str) -> None:
    """Write the file to the first writable folder, with permission to write for its owner only."""
    reasons = []
    for folder in folders:
        try:
            descriptor, temporary = mkstemp(dir=folder, prefix=f".{name}-")
            try:
                with os.fdopen(descriptor, "wb") as target:
                    target.write(file)
                os.chmod(temporary, 0o644)
                os.replace(temporary, folder / name)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            _clear(folder, name)
            return
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
    warnings.warn(
        f"the compiled solver cannot be cached ({'; '.join(reasons)}), so every process compiles it again: "
        "set NUMBA_CACHE_DIR to a writable folder",
        RuntimeWarning,
        stacklevel=2,
    )


def _clear(folder: Path, name: str) -> None:
    """Remove the oldest files of other states."""
    with suppress(OSError):
        stale = [file for file in folder.glob("solver-*.bin") if file.name != name]
        for file in sorted(stale, key=lambda file: file.stat().st_mtime)[: -KEPT or None]:
            file.unlink()
