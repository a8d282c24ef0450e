"""Studies (Study), studies applied to a task (Problem), and how to run them (Execution)."""

from ckcv_ray.study.certification import OUTER_K, Certification, Holdout, Nested, Occam, inner_rows, member_of
from ckcv_ray.study.problem import Candidate, Problem, listed
from ckcv_ray.study.study import MOST_SEED, SLOTS, Execution, Study, read_toml, run_id

__all__ = [
    "MOST_SEED",
    "OUTER_K",
    "SLOTS",
    "Candidate",
    "Certification",
    "Execution",
    "Holdout",
    "Nested",
    "Occam",
    "Problem",
    "Study",
    "inner_rows",
    "listed",
    "member_of",
    "read_toml",
    "run_id",
]
