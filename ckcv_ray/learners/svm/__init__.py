"""The Gaussian support vector machine (SVM) with offset: solvers by name, and what they return.

``problem`` states what is minimised and measures any solution. ``path`` is the solver of this package: it
alternates pair steps and Newton steps (``newton``). ``decomposition`` does the same if the kernel does not
fit into memory. The rest of the package knows a solver only as an entry of ``SOLVERS`` in ``blocks``, under
the name that a study's JSON has.

``learner`` and ``problem`` do not import numba; what computes does, and ``learner`` imports it when something
is fitted, predicted, stored or checked.
"""
