"""The Gaussian support vector machine (SVM) with offset.

``problem`` states what is minimised and measures any solution. ``path`` is the solver: it alternates pair
steps and Newton steps (``newton``). ``blocks`` does the same if the kernel does not fit into memory.

``learner`` and ``problem`` do not import numba; the modules that compute do, and ``learner`` imports them
when something is fitted, predicted, stored or checked.
"""
