"""Studies (Study), studies applied to a task (Problem), and how to run them (Execution)."""

from ckcv_ray.study.certification import (
    AUC,
    BY_CLASS,
    QUANTITIES,
    Certification,
    Holdout,
    Nested,
    Occam,
    count_shares,
    judge_of,
    member_of,
)
from ckcv_ray.study.parts import SLOTS, named_parts
from ckcv_ray.study.problem import Candidate, Problem, listed
from ckcv_ray.study.study import MOST_SEED, Execution, Study, read_toml, run_id

__all__ = [
    "AUC",
    "BY_CLASS",
    "MOST_SEED",
    "QUANTITIES",
    "SLOTS",
    "Candidate",
    "Certification",
    "Execution",
    "Holdout",
    "Nested",
    "Occam",
    "Problem",
    "Study",
    "count_shares",
    "judge_of",
    "listed",
    "member_of",
    "named_parts",
    "read_toml",
    "run_id",
]
