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
from ckcv_ray.study.execution import Execution
from ckcv_ray.study.parts import SLOTS, named_parts
from ckcv_ray.study.problem import Candidate, Costs, Problem, listed
from ckcv_ray.study.search import All, Inner, Race
from ckcv_ray.study.study import (
    CERTIFIED,
    MOST_SEED,
    SCORED,
    Study,
    check_kind,
    list_options,
    read_toml,
    run_id,
)

__all__ = [
    "AUC",
    "BY_CLASS",
    "CERTIFIED",
    "MOST_SEED",
    "QUANTITIES",
    "SCORED",
    "SLOTS",
    "All",
    "Candidate",
    "Certification",
    "Costs",
    "Execution",
    "Holdout",
    "Inner",
    "Nested",
    "Occam",
    "Problem",
    "Race",
    "Study",
    "check_kind",
    "count_shares",
    "judge_of",
    "list_options",
    "listed",
    "member_of",
    "named_parts",
    "read_toml",
    "run_id",
]
