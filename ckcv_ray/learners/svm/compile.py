"""Scalar operations written so that LLVM turns the loops around them into vector code.

numba's ``min`` and ``max`` honour NaN and the sign of zero, and its integers widen to 64 bits; either keeps a
reduction scalar. These do not: floats carry the flags nnan and nsz, and integers stay at 32 bits.

``fill_tile`` is written in vectors itself, since no loop makes LLVM keep a tile of sums in registers.

Machine code for the functions that numba compiles: one file for all of it, the same in every process.

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
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from ckcv_ray.errors import RunError
from ckcv_ray.learners.svm.problem import DOUBLES

FAST = {"contract", "reassoc", "arcp", "nsz"}
REDUCTION_FLAGS = ("nnan", "nsz")
INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
SHIFT = 1.5 * 2.0**52
TILE_ROWS = 4


@intrinsic
def lesser(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the lesser of two floats that are not NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(
            builder.fcmp_ordered("<", *args, flags=REDUCTION_FLAGS), *args, flags=REDUCTION_FLAGS
        )

    return a(a, a), generate


@intrinsic
def greater(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the greater of two floats that are not NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(
            builder.fcmp_ordered(">", *args, flags=REDUCTION_FLAGS), *args, flags=REDUCTION_FLAGS
        )

    return a(a, a), generate


@intrinsic
def fuse(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, a, a), generate


@intrinsic
def largest_gain(typingctx: Any, best: Any, difference: Any, m: Any, index: Any, mask: Any) -> Any:
    """Return max(best, key), where key holds about log2(difference^2 / m) above the index, in one int32.

    The bits of a positive float, read as an integer, are its logarithm with the mantissa as the
    fraction; so a subtraction replaces the division, to within 9 percent of the gain.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        best, difference, m, index, mask = args
        gain = builder.bitcast(builder.fmul(difference, difference), INT32)
        key = _pack(builder, builder.sub(gain, builder.bitcast(m, INT32)), index, mask)
        return builder.select(builder.icmp_signed(">", key, best), key, best)

    return types.int32(types.int32, types.float32, types.float32, types.int64, types.int32), generate


@intrinsic
def lowest(typingctx: Any, best: Any, height: Any, index: Any, mask: Any) -> Any:
    """Return min(best, key), where key holds the upper bits of height above the index.

    If height is negative, by rounding, so is the key.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        best, height, index, mask = args
        key = _pack(builder, builder.bitcast(height, INT32), index, mask)
        return builder.select(builder.icmp_signed("<", key, best), key, best)

    return types.int32(types.int32, types.float32, types.int64, types.int32), generate


def _pack(builder: Any, value: Any, index: Any, mask: Any) -> Any:
    return builder.or_(builder.and_(value, mask), builder.trunc(index, INT32))


@intrinsic
def power_of_two(typingctx: Any, t: Any) -> Any:
    """Return 2^(t - SHIFT) for an integer t - SHIFT from -1022 to 1023, where SHIFT = 1.5 * 2^52.

    At that size a float's low bits are its integer part; shifted up to the exponent, they are the power.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.shl(builder.bitcast(args[0], INT64), ir.Constant(INT64, 52))
        return builder.bitcast(builder.add(bits, ir.Constant(INT64, 1023 << 52)), ir.DoubleType())

    return types.float64(types.float64), generate


@intrinsic
def wide(typingctx: Any) -> Any:
    """Let LLVM use vectors of 512 bits in the calling function, where the CPU has them."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite's ``add`` accepts only attributes without a value
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def fill_tile(typingctx: Any, A: Any, panel: Any, D: Any, i: Any, j: Any) -> Any:
    """Fill ``TILE_ROWS`` rows from i on of ``DOUBLES`` columns from j on of D with squared distances.

    Row i of D is for row i of A [rows, d], and column j + q for column q of ``panel`` [d, DOUBLES]; the
    arrays are C-contiguous. Beyond the last row, that row is filled again. Each sum is over the features in
    order, rounded after every operation, whatever the vectors of the processor.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        *arrays, i, j = args
        A, panel, D = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args, arrays, strict=False)
        )
        vector = ir.VectorType(ir.DoubleType(), DOUBLES)
        undefined, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(INT32, DOUBLES), None)
        n, d = cgutils.unpack_tuple(builder, A.shape)
        last, width = builder.sub(n, INT64(1)), cgutils.unpack_tuple(builder, D.shape)[1]
        rows = [builder.add(i, INT64(r)) for r in range(TILE_ROWS)]
        rows = [builder.select(builder.icmp_signed("<", row, last), row, last) for row in rows]
        inputs = [builder.gep(A.data, [builder.mul(row, d)]) for row in rows]
        sums = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * DOUBLES)) for _ in rows]
        with cgutils.for_range(builder, d) as loop:
            at = builder.gep(panel.data, [builder.mul(loop.index, INT64(DOUBLES))])
            features = builder.load(builder.bitcast(at, vector.as_pointer()), align=8)
            for row, total in zip(inputs, sums, strict=True):
                value = builder.insert_element(
                    undefined, builder.load(builder.gep(row, [loop.index])), INT32(0)
                )
                difference = builder.fsub(builder.shuffle_vector(value, undefined, first), features)
                square = builder.fmul(difference, difference)
                builder.store(builder.fadd(builder.load(total), square), total)
        for row, total in zip(rows, sums, strict=True):
            at = builder.gep(D.data, [builder.add(builder.mul(row, width), j)])
            builder.store(builder.load(total), builder.bitcast(at, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(A, panel, D, i, j), generate


Signatures = list[tuple[Any, tuple[Any, ...]]]  # functions, each with the types of its arguments


def list_signatures() -> Signatures:
    """Return every compiled function with the types of its arguments, callees first."""
    from ckcv_ray.learners.svm.trainer import signatures  # which imports what is compiled, and this module

    return signatures()


SOLVER_FOLDER = Path(__file__).resolve().parent
PACKAGE = SOLVER_FOLDER.parents[1]
COMPILER_PACKAGES = ("llvmlite", "numba", "numpy")
WITHOUT_EFFECT = ("CACHE", "NUM_THREADS", "PROFIL", "COLOR_SCHEME")  # parts of the names of numba's settings
KEPT_FILES = 4  # files of other states to keep in a folder: other environments may use them
DIGEST_BYTES = 32
LOCK_SECONDS = 300.0  # far longer than compiling takes: a lock held longer is that of a stopped process
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
        signature, _ = normalize_signature(sig)
        if signature in self.reduced:
            return CompileResult._rebuild(target_context, *self.reduced[signature])
        if not Code.compiling:
            raise TypeError(
                f"no code for types {signature}: call load() first; svm/trainer.py lists the types"
            )
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
        for (function, signature), reduced in zip(list_signatures(), pickle.loads(code), strict=True):
            function._cache.reduced[signature] = reduced
            function.compile(signature)


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
    for function, signature in listed:
        function.compile(signature)
    return seal(dumps([function.overloads[signature]._reduce() for function, signature in listed]))


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
            with suppress(OSError):  # the oldest files of other states go
                stale = [old for old in folder.glob("solver-*.bin") if old.name != name]
                for old in sorted(stale, key=lambda old: old.stat().st_mtime)[: -KEPT_FILES or None]:
                    old.unlink()
            return
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
    warnings.warn(
        f"the compiled solver cannot be cached ({'; '.join(reasons)}), so every process compiles it again: "
        "set NUMBA_CACHE_DIR to a writable folder",
        RuntimeWarning,
        stacklevel=2,
    )
