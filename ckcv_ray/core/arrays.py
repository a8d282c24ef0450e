"""Kinds of arrays, by what they hold; shapes stand where they are used: X [rows, columns]."""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Index = NDArray[np.intp]  # row numbers, or other positions
Mask = NDArray[np.bool_]
Classes = NDArray[np.int32]  # class numbers; -1 for an undecided model
