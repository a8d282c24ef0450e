r"""The functional core: arrays in, arrays out; no files, no Ray, no knowledge of a Study.

Symbols, as in Anguita, Ghelardoni, Ghio, Oneto, Ridella, "The 'K' in K-fold Cross Validation"
(ESANN 2012); shapes in brackets.

=============  ==================================================================================
X [n, d]       inputs of the learning set D_n, float64
y [n]          labels, -1 or +1
k              number of folds, 3 .. n; the select and estimate sets have m = floor(n / k) rows
TR, MS, EE     ``train``, ``select``, ``estimate``: n - 2m, m and m rows, drawn anew for each split
C, gamma       cost of the support vector machine; K(x, z) = exp(-gamma \|x - z\|^2)
b [n_train]    signed dual variables, b = y * alpha
U(x; m)        upper confidence bound on an error rate after x errors on m rows
L_MS, L_EE     means over the splits of U on the select and on the estimate sets
=============  ==================================================================================

Modules: ``splits`` (the resampling), ``bounds`` (U), ``kernels`` and ``scaling`` (what a machine sees),
``svm`` (the machine), ``selection`` (Algorithm 1's sums, lower bounds and winner) and ``schedule``
(which cells to compute next).
"""
