"""The functional core: arrays in, arrays out; no files, no Ray, no knowledge of a Study.

Symbols, as in Anguita, Ghelardoni, Ghio, Oneto, Ridella, "The 'K' in K-fold Cross Validation"
(ESANN 2012); shapes in brackets.

=============  ==================================================================================
X [n, d]       inputs of the learning set D_n, float64
y [n]          class numbers, 0 .. n_classes - 1
k              number of folds, 3 .. n; the select and estimate sets have m = floor(n / k) rows each
TR, MS, EE     ``train``, ``select``, ``estimate``: n - 2m, m and m rows, drawn for each split
U(x; m)        upper confidence bound on an error rate after x errors on m rows
L_MS, L_EE     means over the splits of U on the select and on the estimate sets
=============  ==================================================================================

Modules: ``draws`` (random numbers), ``resampling`` (splits), ``measures`` and ``criteria`` (what is counted
and what is minimised), ``bounds`` (U and bounds that may be averaged), ``intervals`` (for a mean score),
``quantities`` (what can be claimed), ``selection`` (Algorithm 1's sums, lower bounds and winner),
``schedule`` (which evaluations to compute next), ``options`` and ``process``.
"""
