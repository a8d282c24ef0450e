"""Machine code for the functions that numba compiles: one file for all of it, the same in every process.

The code of a function also contains copies of the functions it calls, and LLVM's loader keeps the first copy
it gets. Copies compiled next to different neighbours may round differently. So the functions are compiled
together, in a separate process, and every process (including the one that started it) loads the complete
result in the same order, callees first (``compile_listed``). No function is ever compiled separately.

The file's name is a digest of all that may change the code: the sources, Python, numba, llvmlite, numpy, the
processor, and numba's settings. Two states never share a file. The file starts with the digest of its
content; a truncated or damaged file is replaced. It is kept in ``NUMBA_CACHE_DIR`` if that is set, else in
the user's cache folder, else in the package; if none of them is writable, every process compiles for itself.

First come scalar operations written so that LLVM turns the loops around them into vector code. numba's
``min`` and ``max`` honour NaN and the sign of zero, and its integers widen to 64 bits; either keeps a
reduction scalar. These do not: floats carry the flags nnan and nsz, and integers stay at 32 bits.
"""

import hashlib
import inspect
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import mkstemp
from threading import Lock
from typing import Any

import numba
import platformdirs
from filelock import FileLock
from numba import types
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

from ckcv_ray.errors import RunError

FAST = {"contract", "reassoc", "arcp", "nsz"}
Signatures = list[tuple[Any, tuple[Any, ...]]]  # functions, each with the types of its arguments
SOLVER_FOLDER = Path(__file__).resolve().parent
PACKAGE = SOLVER_FOLDER.parents[1]
COMPILER_PACKAGES = ("llvmlite", "numba", "numpy")
WITHOUT_EFFECT = ("CACHE", "NUM_THREADS", "PROFIL", "COLOR_SCHEME")  # parts of names of numba's settings
KEPT_FILES = 4  # files of other states to keep in a folder: other environments may use them
DIGEST_BYTES = 32
LOCK_SECONDS = 300.0  # far longer than compiling takes: a lock held longer belongs to a stopped process
OTHERS_WRITE = 0o022
BUILD = """
import os, sys
if sys.argv[1] not in sys.path:
    sys.path.insert(0, sys.argv[1])
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # numba's settings can make it print
from ckcv_ray.learners.svm.compile import compile_all
out.write(compile_all())
"""

_loading = Lock()


def emit(signature: object, generate: Callable[..., object]) -> Any:
    """Return a function of these types (None: all that of its first argument) as the code that LLVM gets.

    ``generate`` takes the builder and the arguments; without a value it returns nothing.
    """

    def define(typingctx: Any, *kinds: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = generate(builder, *args)
            return context.get_dummy_value() if value is None else value

        return (kinds[0](*kinds) if signature is None else signature), write

    define.__signature__ = inspect.signature(generate)  # type: ignore[attr-defined]  # where numba looks
    return intrinsic(define)


def _choose(test: str) -> Any:
    flags = {"flags": ("nnan", "nsz")}
    return emit(
        None, lambda write, a, b: write.select(write.fcmp_ordered(test, a, b, **flags), a, b, **flags)
    )


lesser, greater = _choose("<"), _choose(">")  # of two floats that are not NaN
# lets LLVM use vectors of 512 bits in the calling function, where the CPU has them; llvmlite's own ``add``
# accepts only attributes without a value
wide = emit(types.void(), lambda builder: set.add(builder.function.attributes, '"prefer-vector-width"="512"'))


def list_signatures() -> Signatures:
    """Return every compiled function with the types of its arguments, callees first."""
    from ckcv_ray.learners.svm.trainer import signatures  # it imports what is compiled, and this module

    return signatures()


class Code(NullCache):
    """The cache of one function's code, which numba consults before compiling.

    Attributes:
        reduced: code by argument types, in numba's serialised form, to be loaded.
        compiling: whether missing code may be compiled; only in ``compile_all``.
    """

    compiling = False

    def __init__(self) -> None:
        self.reduced: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def load_overload(self, sig: object, target_context: object) -> object:
        """Load the code for these types into this process.

        Raises:
            TypeError: there is none, and compiling is not allowed.
        """
        signature, _ = normalize_signature(sig)
        if signature in self.reduced:
            return CompileResult._rebuild(target_context, *self.reduced[signature])
        if not Code.compiling:
            raise TypeError(f"no code for types {signature}: call load_code() first; trainer.py lists them")
        return None


def compile_listed(**options: object) -> Callable[[Callable[..., Any]], Any]:
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
        for (function, signature), reduced in zip(list_signatures(), pickle.loads(code), strict=True):
            function._cache.reduced[signature] = reduced
            function.compile(signature)


@cache
def entry(function: Any) -> Callable[..., None]:
    """Return the machine code of a function listed with one set of types, loaded.

    It takes only arguments of those types, which it hardly checks, and need not look them up; with many
    arrays as arguments, looking up takes longer than a small fit.
    """
    load_code()
    (code,) = function.overloads.values()
    entry_point: Callable[..., None] = code.entry_point
    return entry_point


def compile_all() -> bytes:
    """Compile every function in this process, which must not have loaded any; return a file's content."""
    listed, Code.compiling = list_signatures(), True
    for function, signature in listed:
        function.compile(signature)
    return seal(dumps([function.overloads[signature]._reduce() for function, signature in listed]))


def file_name() -> str:
    """Return the file's name, a digest of all that may change the code."""
    digest = hashlib.sha256()
    for file in sorted(SOLVER_FOLDER.glob("*.py")):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    digest.update(state().encode())
    return f"solver-{digest.hexdigest()[:32]}.bin"


def state() -> str:
    """Return the SHA-256 of all but the sources: Python, packages, processor, and settings of numba."""
    settings = {
        name: value
        for name, value in sorted(vars(config).items())
        if name.isupper() and isinstance(value, bool | int | float | str | None)
        if not any(part in name for part in WITHOUT_EFFECT)
    }
    versions = [(name, version(name)) for name in COMPILER_PACKAGES]
    processor = cpu_target.target_context.codegen().magic_tuple()
    return hashlib.sha256(repr((sys.version, versions, settings, processor)).encode()).hexdigest()


def seal(content: bytes) -> bytes:
    """Prefix the content with its digest."""
    return hashlib.sha256(content).digest() + content


def open_sealed(file: bytes) -> bytes | None:
    """Return the content of a file, or None if it does not match its digest."""
    content = file[DIGEST_BYTES:]
    return content if content and seal(content) == file else None


def _code() -> bytes:
    """Return the code of this state from its file, or compile it and keep the file."""
    name, folders, reasons = file_name(), _folders(), list[str]()
    if (content := _find(folders, name)) is not None:
        return content
    for folder in folders:  # the first that is writable
        try:
            folder.mkdir(0o755, parents=True, exist_ok=True)
            with FileLock(folder / "solver.lock", timeout=LOCK_SECONDS):
                if (found := _find(folders, name)) is not None:  # another process was faster
                    return found
                content = content or _build()
                descriptor, temporary = mkstemp(dir=folder, prefix=f".{name}-")
                try:
                    with os.fdopen(descriptor, "wb") as target:
                        target.write(seal(content))
                    os.chmod(temporary, 0o644)  # writable only by its owner
                    os.replace(temporary, folder / name)
                finally:
                    Path(temporary).unlink(missing_ok=True)
                with suppress(OSError):  # remove the oldest files of other states
                    stale = [old for old in folder.glob("solver-*.bin") if old.name != name]
                    for old in sorted(stale, key=lambda old: old.stat().st_mtime)[: -KEPT_FILES or None]:
                        old.unlink()
                return content
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
    warnings.warn(
        f"the compiled solver cannot be cached ({'; '.join(reasons)}), so every process compiles it again: "
        "set NUMBA_CACHE_DIR to a writable folder",
        RuntimeWarning,
        stacklevel=2,
    )
    return content or _build()


def _folders() -> list[Path]:
    """Return the folders that may contain files, the preferred one first."""
    user = Path(platformdirs.user_cache_dir("ckcv_ray"))
    cached = [user] if user.is_absolute() else []  # not for a user without a home folder
    return [Path(config.CACHE_DIR)] if config.CACHE_DIR else [*cached, PACKAGE / "__pycache__"]


def _find(folders: list[Path], name: str) -> bytes | None:
    """Return the content of the first intact file that only this user and root can have written."""
    owners = {0, os.geteuid()} if hasattr(os, "geteuid") else None
    for folder in folders:
        with suppress(OSError), (folder / name).open("rb") as file:
            status = os.fstat(file.fileno())
            ours = (owners is None or status.st_uid in owners) and not status.st_mode & OTHERS_WRITE
            if ours and (content := open_sealed(file.read())) is not None:
                return content
    return None


def _build() -> bytes:
    """Compile in a separate process, whose state does not depend on what this one did before."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONOPTIMIZE": ""}
    command = [sys.executable, "-P", "-c", BUILD, str(PACKAGE.parent)]
    done = subprocess.run(command, env=environment, capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise RunError(f"the solver could not be compiled: {said[-1]}")
    if (content := open_sealed(done.stdout)) is None:
        raise RunError("the solver could not be compiled: its code arrived incomplete or damaged")
    return content
