"""The certificate of a result: its claims, the counts and bounds behind them, and their conditions."""

from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any, ClassVar, NamedTuple

from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.claims.baseline import (
    HELD_OUT,
    LEARNING,
    Baseline,
    Scored,
    baseline_of,
    baselines,
    bound_statement,
    chance_statements,
    constants_scored,
    constants_statements,
    nested_statements,
)
from ckcv_ray.claims.confusion import (
    Matrix,
    Mistake,
    check_confusion,
    confusion,
    mistakes,
    of_two_classes,
)
from ckcv_ray.claims.proofs import Copies, losses_of, prove
from ckcv_ray.claims.wording import (
    ASSUMPTIONS,
    ASSUMPTIONS_OF_GROUPS,
    ERROR,
    L_EE_IS,
    NOT_COVERED,
    NOT_COVERED_OF_GROUPS,
    PROVISIONAL,
    RANDOM,
    Claim,
    Refused,
    figure,
    known_statement,
    refused_statement,
    repeated_statement,
    repeats_statement,
    share_statement,
    statements,
)
from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.core.losses import ONE
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.ensemble import Ensemble, Models, class_sizes
from ckcv_ray.study import BY_CLASS, QUANTITIES, Candidate, Holdout, Nested, Problem
from ckcv_ray.tables.repeats import Repeats, count_new, count_repeated, find_repeats, known_rows
from ckcv_ray.tables.target import LEAST_OF_CLASS, Label
from ckcv_ray.validation import STRICT, read_as


class Side(TypedDict):
    """Wrong rows and all rows of one class, summed over all estimate sets, and the mean bound.

    With groups the bound is null: rows of one group are related, so Clopper-Pearson does not hold.
    """

    errors: int
    rows: int
    bound: float | None


class GroupsOf(TypedDict):
    """The groups of rows that belong together.

    Attributes:
        column: the column that names them.
        count: groups in the full table.
        held: groups held out, 0 if none.
        losses: sum over the groups of each split's estimate set of the share of wrong rows, each share
            rounded up to a multiple of 2**-32.
    """

    column: str
    count: int
    held: int
    losses: tuple[float, ...]


@dataclass(frozen=True)
class Certificate:
    """The claims of a result; identical in every value wherever and however the run was made.

    Attributes:
        run_id: identifies the study and the data.
        certification: name of the study's certification.
        provisional: whether evaluations failed, so that a better candidate might have been missed. Every
            claim still holds: each allows for any selection among the candidates.
        n_rows, repeats: rows of the full table, and how many of them equal another in every column that does
            not number the rows (with groups: one of another group).
        bound_without_copies: what the bound of ``proven`` is if rows that equal another have the same origin,
            and one of each is counted; the bound itself if there are none.
        setting, k: the winner.
        n_splits, n_select, n_train: splits of the winner, rows of a select or estimate set, rows of TR; with
            groups, the number of groups in these sets.
        n_held: rows held out, 0 if none.
        criterion: what was minimised: "error", "balanced", "cost" or "mean_error"; every claim is about the
            error.
        bound, delta: the bound that l_ee is computed with ("loss" with groups, "none" for a mean
            error), and the delta of the study.
        l_ms, l_ee: the criterion on the select and estimate sets; for "error" the paper's means.
        errors: wrong rows in each split's estimate set.
        error: mean error rate of the members on their estimate sets: estimated, not proven; with groups, of
            the groups' error rates.
        constants: for each split the number of the class that its member predicts for every learning row;
            None if it predicts more than one.
        refit_constant: the same of the model refit; None also if there is no such model.
        scored_constants: the same of the rows that each model was scored on, where it is wrong about some.
        class_rows: rows of each class in the full table.
        baselines: error of always predicting the most common class, on the learning rows and, if rows were
            held out, on these; the smaller is what a bound from held-out rows has to be below to say
            anything.
        by_class: for each class its wrong rows and all its rows, summed over all estimate sets, and the
            mean over the splits of its Clopper-Pearson bounds (null with groups).
        proven: the claim to quote.
        claims: every proven claim, each valid by itself with its own delta; the first is ``proven``.
        labels: the original label of each class.
        statements, assumptions, not_covered: the claims in words, and their conditions.
        digests: SHA-256 of the data and of the files with candidates and models.
        groups: the groups of the task; absent in the file of a task without groups.
        confusion: with three or more classes, the rows of all estimate sets by their class (one list each)
            and the class that their split's member predicts; those it is undecided on are in no column.
            Absent in the file of a task with two classes, for which ``by_class`` says the same.
        refused: the first outer split that is refused; absent in the file if none is.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "forbid"}

    run_id: str
    certification: str
    provisional: bool
    criterion: str
    setting: dict[str, Any]
    k: int
    n_splits: int
    n_select: int
    n_train: int
    n_held: int
    n_rows: int
    repeats: int
    bound_without_copies: float
    bound: str
    delta: float
    l_ms: float
    l_ee: float
    errors: tuple[int, ...]
    error: float
    constants: tuple[int | None, ...]
    refit_constant: int | None
    scored_constants: Scored
    class_rows: tuple[int, ...]
    baselines: tuple[Baseline, ...]
    by_class: tuple[Side, ...]
    proven: Claim
    claims: tuple[Claim, ...]
    labels: tuple[Label, ...]
    statements: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]
    digests: dict[str, str]
    groups: GroupsOf | None = None
    confusion: Matrix | None = None
    refused: Refused | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        values = asdict(self)
        for name in ("groups", "confusion", "refused"):
            if values[name] is None:
                del values[name]
        return values

    @property
    def confusion_matrix(self) -> Matrix:
        """Rows of all estimate sets by class and predicted class; of two classes, the undecided are wrong."""
        return self.confusion or of_two_classes(*self._errors_and_rows())

    @property
    def undecided(self) -> int:
        """Rows of all estimate sets that their split's member is undecided on; 0 with two classes."""
        rows = self._errors_and_rows()[1]
        return sum(rows) - sum(map(sum, self.confusion_matrix))

    def mistakes(self) -> list[Mistake]:
        """Return which classes are predicted as which others, the largest share of a class first."""
        return mistakes(self.confusion_matrix, self._errors_and_rows()[1])

    def _errors_and_rows(self) -> tuple[list[int], list[int]]:
        """Return the wrong rows and all rows of each class, over all estimate sets."""
        return [side["errors"] for side in self.by_class], [side["rows"] for side in self.by_class]

    @property
    def constant(self) -> bool:
        """Whether each member of F* predicts a single class for every learning row."""
        return None not in self.constants

    def baseline_of(self, claim: Claim) -> Baseline:
        """Return the baseline that a claim is compared with."""
        return baseline_of(claim, self.baselines)

    def constants_statements(self) -> list[str]:
        """Return sentences if members of F* are constants, and one if the model refit is."""
        return constants_statements(self.constants, self.refit_constant, self.labels, self.scored_constants)

    def nested_statements(self) -> list[str]:
        """Return a list of one sentence if members of the nested ensemble are constants, else none."""
        return nested_statements(self.scored_constants, self.labels)

    def cautions(self) -> list[str]:
        """Return a sentence for each reason not to rely on what is proven, or not to use F*."""
        return [
            *bound_statement(self.proven, self.baseline_of(self.proven), self.labels),
            *chance_statements(self.claims),
            *self.constants_statements(),
            *self.nested_statements(),
            *refused_statement(self.refused),
            *self._share_statement(),
            *self.repeats_statements(),
        ]

    def _share_statement(self) -> list[str]:
        """Return a sentence if more than two thirds of the rows, or of the groups, are held out."""
        if self.groups is not None:
            return share_statement(self.groups["held"], self.groups["count"], "group")
        return share_statement(self.n_held, self.n_rows, "row")

    def repeats_statements(self) -> list[str]:
        """Return a sentence if rows equal another row: how much of what is proven is left."""
        grouped, without = self.groups is not None, self.bound_without_copies
        return repeats_statement(self.repeats, self.n_rows, grouped, self.proven, without)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Certificate":
        """Create a certificate from the values that ``to_json`` returned.

        Raises:
            ValueError: a field is missing, unknown, of another type, outside its range, or holds control
                characters.
        """
        read = read_as(cls, values)
        _check_printable(read)
        if read.criterion not in L_EE_IS:
            raise ValueError(f"criterion {read.criterion!r} is not known")
        if read.bound not in L_EE_IS[read.criterion]:
            raise ValueError(f"bound {read.bound!r} is not known")
        sides = read.by_class
        bounds = [read.l_ms, read.l_ee, read.delta, *(part["bound"] for part in (*sides, *read.claims))]
        bounds += [read.error, read.bound_without_copies, *(baseline["error"] for baseline in read.baselines)]
        if not all(0 <= bound <= 1 for bound in bounds if bound is not None):
            raise ValueError("a bound is outside 0..1")
        if any((side["bound"] is None) != (read.groups is not None) for side in sides):
            raise ValueError("by_class: there are bounds with groups, or none without")
        counts: list[tuple[float, int]] = [
            (part["errors"], part["rows"]) for part in (*sides, *read.baselines)
        ]
        if read.groups is None:
            counts += [(errors, read.n_select) for errors in read.errors]
        else:
            counts += [(errors, read.n_rows) for errors in read.errors]
            counts += [(loss, read.n_select) for loss in read.groups["losses"]]
            counts += [(read.groups["held"], read.groups["count"])]
            if len(read.groups["losses"]) != read.n_splits:
                raise ValueError(f"groups.losses: expected {read.n_splits}, one for each split")
        if not all(0 <= errors <= rows for errors, rows in counts):
            raise ValueError("there are more errors than rows, or a negative number of them")
        if len(read.by_class) != len(read.labels):
            raise ValueError(f"by_class: expected {len(read.labels)}, one for each class")
        if len(read.errors) != read.n_splits:
            raise ValueError(f"errors: expected {read.n_splits}, one for each split")
        _check_classes(read)
        _check_refused(read)
        if not read.n_held and any(claim["certification"] == Holdout.name for claim in read.claims):
            raise ValueError("claims: one is from held-out rows, but no row was held out")
        if not 0 <= read.repeats <= read.n_rows:
            raise ValueError(f"repeats: {read.repeats} of {read.n_rows} rows")
        if read.claims and read.bound_without_copies < read.claims[0]["bound"]:
            raise ValueError("bound_without_copies is below the first claim's bound")
        about = [(claim["classifier"], claim["quantity"], claim["splits"]) for claim in read.claims]
        if (RANDOM.name, ERROR, ()) not in about:
            raise ValueError("claims: none is for the error of a random member of F*")
        for claim in read.claims:
            _check_quantity(claim, read.labels)
            wrong, rows = claim["errors"], claim["rows"]
            if (wrong is None) != (rows is None) or not 0 <= (wrong or 0) <= (rows or 0):
                raise ValueError(f"claims: {wrong} errors in {rows} rows")
        if read.proven != next(iter(read.claims), None):
            raise ValueError("proven is not the first claim")
        return read


def certify(
    problem: Problem,
    winner: Candidate,
    l_ms: float,
    models: Models,
    provisional: bool,
    digests: dict[str, str],
) -> Certificate:
    """Return a winner's certificate, from its models and their counts, and the held-out rows."""
    members, size = models.best.members, problem.size_of(winner.k)
    totals = [member.totals for member in members]
    criterion, units = problem.criterion, problem.units(Stage.ESTIMATE, problem.sizes.index(size))
    l_ee = criterion.reported(totals, units, problem.study.seed)
    claims = prove(problem, winner.k, models)
    repeats = find_repeats(problem.all_rows)
    without = _prove_without_copies(problem, winner.k, models, claims, repeats)
    rows, groups = problem.all_rows.n, _groups(problem, models.best)
    errors = tuple(sum(member.errors) for member in members)
    losses = errors if groups is None else groups["losses"]
    refit_constant = None if models.refit is None else models.refit.constants(problem.task.X)[0]
    delta = problem.study.delta
    certificate = Certificate(
        run_id=problem.run_id,
        certification=problem.study.certification.name,
        provisional=provisional,
        criterion=criterion.name,
        setting=dict(winner.setting),
        k=winner.k,
        n_splits=len(members),
        n_select=size.n_select,
        n_train=size.n_train,
        n_held=rows - problem.task.n,
        n_rows=rows,
        repeats=repeats.rows,
        bound_without_copies=without.first,
        bound=criterion.bound,
        delta=delta,
        l_ms=l_ms,
        l_ee=l_ee,
        errors=errors,
        error=fsum(losses) / (len(members) * size.n_select),
        constants=models.best.constants(problem.task.X),
        refit_constant=refit_constant,
        scored_constants=constants_scored(problem, models, winner.k),
        class_rows=class_sizes(problem.all_rows.y, problem.task.n_classes),
        baselines=baselines(problem),
        by_class=tuple(_one_class(models.best, c, delta, groups) for c in range(problem.task.n_classes)),
        proven=claims[0],
        claims=tuple(claims),
        labels=problem.task.classes,
        statements=(),
        assumptions=ASSUMPTIONS if groups is None else ASSUMPTIONS_OF_GROUPS,
        not_covered=NOT_COVERED if groups is None else NOT_COVERED_OF_GROUPS,
        digests=digests,
        groups=groups,
        confusion=confusion(problem, models.best, winner.k) if problem.task.n_classes > 2 else None,
        refused=find_refused(problem),
    )
    said = (
        *statements(figure(criterion, l_ee, len(members)), claims),
        *([PROVISIONAL] if provisional else []),
        *certificate.cautions(),
        *_known(problem, claims, without),
    )
    return replace(certificate, statements=said)


class Uncopied(NamedTuple):
    """Bounds if rows that are equal have the same origin, and one of each is counted: never below their own.

    Attributes:
        first: of the first claim.
        full: of the claim for the model fitted on all rows; 1 if there is none.
    """

    first: float
    full: float


def _prove_without_copies(
    problem: Problem, k: int, models: Models, claims: list[Claim], repeats: Repeats
) -> Uncopied:
    task, unlabelled = problem.all_rows, problem.all_rows.unlabelled
    known = 0 if unlabelled is None else len(unlabelled) - count_new(unlabelled, task)
    copies = Copies(repeats.copies, known)
    again = prove(problem, k, models, copies) if any(copies) else claims
    full = [claim["bound"] for claim in (*claims, *again) if claim["classifier"] == "full"]
    return Uncopied(max(claims[0]["bound"], again[0]["bound"]), max(full, default=1.0))


def _known(problem: Problem, claims: list[Claim], without: Uncopied) -> list[str]:
    unlabelled, task = problem.all_rows.unlabelled, problem.all_rows
    if unlabelled is None:
        return []
    rows, full = len(unlabelled), next(claim for claim in claims if claim["classifier"] == "full")
    return [
        *known_statement(known_rows(unlabelled, task), rows, full, without.full),
        *repeated_statement(count_repeated(unlabelled, task), rows, full, without.full),
    ]


def find_refused(problem: Problem) -> Refused | None:
    """Return the first outer split that is refused, with the label of the class that it lacks."""
    found, splits = problem.refused, problem.study.outer_splits
    if found is None or splits is None:
        return None
    return Refused(
        split=found.split, splits=splits, label=problem.task.classes[found.number], rows=found.rows
    )


def _groups(problem: Problem, ensemble: Ensemble) -> GroupsOf | None:
    """Return the groups of a problem, with the losses of F* in units of groups."""
    task = problem.all_rows
    if task.group is None:
        return None
    held = task.n_units - problem.task.n_units
    losses = tuple(loss / ONE for loss in losses_of(ensemble))
    return GroupsOf(column=task.group, count=task.n_units, held=held, losses=losses)


def _one_class(ensemble: Ensemble, number: int, delta: float, groups: GroupsOf | None) -> Side:
    errors = [member.errors[number] for member in ensemble.members]
    sizes = [member.n_estimate[number] for member in ensemble.members]
    if groups is not None:
        return Side(errors=sum(errors), rows=sum(sizes), bound=None)
    bounds = [float(bound) for bound in clopper_pearson(errors, sizes, delta)]
    return Side(errors=sum(errors), rows=sum(sizes), bound=fsum(bounds) / len(bounds))


def _check_quantity(claim: Claim, labels: tuple[Label, ...]) -> None:
    """Raise ValueError if a claim is about no known quantity, or about a class that does not exist."""
    name, label = claim["quantity"], claim["label"]
    if name not in (ERROR, *QUANTITIES):
        raise ValueError(f"claims: the quantity {name!r} is not known")
    if (name in BY_CLASS) != (label is not None) or (label is not None and label not in labels):
        raise ValueError(f"claims: the {name} of {label!r} is none of the {len(labels)} classes")


def _check_classes(certificate: Certificate) -> None:
    """Raise ValueError if what is said of classes does not match their number, or the number of rows."""
    c, known = certificate, range(len(certificate.labels))
    if len(c.class_rows) != len(known) or min(c.class_rows, default=0) < 0 or sum(c.class_rows) != c.n_rows:
        raise ValueError(f"class_rows: expected {len(known)}, one for each class, with the sum {c.n_rows}")
    if (c.confusion is None) != (len(known) == 2):
        raise ValueError("confusion: it is given with three or more classes, and only then")
    if c.confusion is not None:
        check_confusion(c.confusion, c._errors_and_rows()[1])
    scored = c.scored_constants
    if {len(c.constants), len(scored["members"])} != {c.n_splits}:
        raise ValueError(f"constants: expected {c.n_splits}, one for each split")
    expected = (LEARNING, HELD_OUT) if c.n_held else (LEARNING,)
    if tuple(baseline["on"] for baseline in c.baselines) != expected:
        raise ValueError(f"baselines: expected one on the {' and one on the '.join(expected)}")
    if sum(baseline["rows"] for baseline in c.baselines) != c.n_rows:
        raise ValueError(f"baselines: expected {c.n_rows} rows in all")
    named = [
        *c.constants,
        c.refit_constant,
        *scored["members"],
        *scored["nested"],
        scored["refit"],
        *(baseline["predicted"] for baseline in c.baselines),
    ]
    if not all(number is None or number in known for number in named):
        raise ValueError(f"constants or baselines: a class number is outside 0..{len(known) - 1}")


def _check_refused(certificate: Certificate) -> None:
    """Raise ValueError if what is said of a refused outer split cannot be, or does not go with the claims."""
    if (refused := certificate.refused) is None:
        return
    known = refused["label"] in certificate.labels and 0 <= refused["rows"] < LEAST_OF_CLASS
    if not known or not 0 < refused["split"] < refused["splits"]:
        raise ValueError(f"refused: {refused} is no outer split of this run")
    nested = [claim for claim in certificate.claims if claim["certification"] == Nested.name]
    if not nested or any(split >= refused["split"] for claim in nested for split in claim["splits"]):
        raise ValueError("refused: a claim is about a split that is not before the one refused, or none is")


USERS = ("label", "labels", "column")  # names and values that the user chose


def _check_printable(certificate: Certificate) -> None:
    """Raise ValueError if a text could control a terminal; labels and the groups' column are the user's."""
    values: list[Any] = [certificate.to_json()]
    while values:
        match values.pop():
            case str() as text if not text.isprintable():
                raise ValueError(f"it holds control characters: {text!r}")
            case dict() as inner:
                values.extend(value for name, value in inner.items() if name not in USERS)
            case list() | tuple() as inner:
                values.extend(inner)
