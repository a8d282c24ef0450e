"""The learners of this folder reach the workers, and the processes that tests start, by PYTHONPATH."""

import os
from pathlib import Path

import pytest

pytest.register_assert_rewrite("learner_contract")
HERE = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (HERE, os.environ.get("PYTHONPATH"))))
