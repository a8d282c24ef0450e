"""The second computation of certificates: it agrees with every golden study, and a forged figure is seen."""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_studies import STUDIES, make
from pyarrow import parquet

from ckcv_ray.core.bounds import binomial, losses, unequal_sizes
from jobs import check_certificate, independent_bounds

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "jobs" / "check_certificate.py", ROOT / "jobs" / "independent_bounds.py"
Change = Callable[[Any], Any]
