"""The Gaussian support vector machine (SVM) with offset: solvers by name, and what they return.

``problem`` states what is minimised and measures any solution. ``path`` is the solver of this package: it
alternates pair steps (``loop``) and Newton steps (``newton``, on the factors of ``factor``).
``decomposition`` does the same if the kernel does not fit into memory. The rest of the package knows a solver
only as an entry of ``solvers``, under the name that a study's JSON has.

``learner``, ``problem`` and ``scaling`` do not import numba; what computes does, and
``learner`` imports it when something is fitted, predicted, stored or checked.
"""

from ckcv_ray.learners.svm.signatures import Signatures, register_signatures


def _list_compiled() -> Signatures:
    """List the compiled functions, whatever module of this package was imported first."""
    from ckcv_ray.learners.svm.compiled import signatures

    return signatures()


register_signatures(_list_compiled)
