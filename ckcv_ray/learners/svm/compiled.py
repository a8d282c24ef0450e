"""The compiled functions with their argument types, in order; ``machine_code`` says why the order matters."""

from threading import get_ident

import numpy as np
from numba import boolean, float32, float64, int8, int32, int64, typeof, types

from ckcv_ray.learners.svm import decision, factor, kernels, loop, newton, path, votes
from ckcv_ray.learners.svm.problem import EQUAL, empty_fits
from ckcv_ray.learners.svm.signatures import Signatures

V, M, S, SM = float64[::1], float64[:, ::1], float32[::1], float32[:, ::1]
P = float64[:, :, ::1]
N, NM, B, BM, T = int64[::1], int64[:, ::1], int8[::1], int8[:, ::1], int32[:, :, ::1]


def signatures() -> Signatures:
    """List every function with the types of its arguments, callees first."""
    complement, fits = typeof(kernels.make_complement(np.zeros((1, 1)))), typeof(empty_fits(1, 1))
    space, weights = typeof(path.workspace(1, get_ident())), typeof(EQUAL)
    return [
        (kernels._fill_panel, (M, int64, M)),
        (kernels._mirror, (M, int64, int64, int64)),
        (kernels._sum_squares, (M, M, P, boolean, M)),
        (kernels.gather, (M, N, N, M)),
        (kernels.gather, (types.Array(M.dtype, M.ndim, M.layout, readonly=True), N, N, M)),  # Ray's store
        (kernels._fill, (M, float64, M, SM)),
        (factor._sound, (M, M, int64)),
        (factor.factorise, (M, M, int64)),
        (factor.solve, (M, V, V, int64)),
        (factor.remove, (M, V, int64, int64)),
        (loop._lowest_place, (S,)),
        (loop.iterate, (SM, S, S, V, V, V, float64, int64, int64)),
        (loop.iterate_exactly, (M, V, V, V, V, float64, int64)),
        (newton._compress, (V, V, V, V, V, N, N, int64)),
        (newton._downdate, (M, V, V, V, V, int64)),
        (newton._elect, (V, V, V, V, N, int64)),
        (newton._walk, (M, N, V, V, V, V, V, V, int64)),
        (newton._assemble, (M, N, N, M, int64)),
        (newton._free_variables, (V, V, V, N, int64)),
        (newton.newton, (M, V, V, V, V, M, M, N, N, M)),
        (path.describe_fit, (V, V, V, V, V, float64, weights, int64, fits)),
        (path._refresh, (M, V, V, V, N)),
        (path._fill_rows, (V, V, V, V, S, S)),
        (path._copy, (V, V, int64)),
        (path._violation, (V, V, V, V)),
        (path._newton_budget, (V, V, V, int64)),
        (path.optimise, (complement, V, V, V, V, float64, int64, int64, space)),
        (path.rescale, (V, V, V, V, V, float64, float64)),
        (path._whole, (float64,)),
        (path._begin, (M, V, V, V, float64, float64, space)),
        (path._solve_path, (complement, V, V, float64, int64, int64, weights, space, fits)),
        (decision._decide_sign, (float64,)),
        (decision._classify, (M, M, V, BM)),
        (decision._count_errors, (M, M, V, B, NM)),
        (kernels._fill_pair, (M, M, float64, M, M, SM, int64)),
        (votes._decide, (M, int64, int64, int64, int64, V, float64, V, NM)),
        (votes._add_votes, (M, int64, int64, int64, int64, M, V, int64, int64, V, NM, T, T)),
    ]
