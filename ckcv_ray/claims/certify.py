"""Certify a winner: what is proven after selection, from its own counts or by held-out rows, in words.

``paper``, from the counts behind l_ee: each candidate t = (path, step, k) gets the share pi(t) = 1 /
(learners) * 1 / (settings of its learner) * w(k) / (sum of w over the study's fold sizes) of delta, where
w(k) = 1 / ((k - 2)(k - 1)) and each fold size is represented by its smallest k. The shares depend only on the
study and the number of rows and sum to at most 1 over all candidates, so the averaging-safe bound at level
delta * pi(t) holds for whichever candidate was selected, and however its splits depend on each other.

``holdout``: nothing has used the held-out rows; each quantity proves its own claims. delta is shared equally
(``Study.delta_of_claim``). For subgroups named beforehand, the error and the recalls are claimed: their
delta is divided equally among the columns, then among the claimed subgroups of a column, then among the error
and the recalls of a subgroup. Which subgroups are claimed depends on how many rows belong to each, never on
labels; the rule decides by its own cut-off, since one that was chosen on the same rows depends on their
labels.

This module also says, before a run, what its claims take, and, without data, how many judged rows prove a
condition. If rows repeat because they have the same origin, the ``Copies`` are not new: every claim holds
again with that many fewer independent units in each set. Proofs: docs/theory/bounds.md, "Claims" and
"Repeated rows".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import fsum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckcv_ray.claims.better import Better, add_gate
from ckcv_ray.claims.certificate import HELD_OUT, LEARNING, PROVISIONAL, Baseline, Certificate, describe_least
from ckcv_ray.claims.error import Clipped, Error, describe_weights
from ckcv_ray.claims.quantity import (
    DECIMAL_TOLERANCE,
    MIN_OF_SUBGROUP,
    Claim,
    HeldOutPredictions,
    Need,
    Quantity,
    bound_count,
    read_quantity,
)
from ckcv_ray.claims.recalls import Recall
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.betting import average_safe
from ckcv_ray.core.bounds.binomial import MAX_CHECKED, clopper_pearson, count_without, find_rows_for_good
from ckcv_ray.core.quantities import SHARE_OF_ROWS, find_quantity, parse_subgroup
from ckcv_ray.errors import (
    ONE,
    ROUNDING,
    InputError,
    Mask,
    Values,
    agree,
    ceil_percent,
    cut,
    format_level,
    pluralize,
    quote,
)
from ckcv_ray.learners.ensemble import Models, Prediction, check_predicted, count_classes, find_only_class
from ckcv_ray.records.candidates import summarize_search
from ckcv_ray.study.parts import MAX_HALVED_ROWS, Holdout, Paper, parse_condition
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.questions import find_giveaways, find_repeats
from ckcv_ray.tables.task import TestRows, divide_rows

ASSUMPTIONS: tuple[str, ...] = (
    "The rows are independent examples from one source, and new patterns come from that same source.",
    "The splits are plain random splits, neither stratified nor grouped.",
    "What is drawn follows from the seed and from which rows the table has. It is as good as chance if the "
    "rows come in random order, if the seed was drawn at random, or if nobody arranged the table or chose "
    "the seed with the draw in view.",
    "The study was run once: it was not repeated with other seeds, grids or data until it looked good.",
)
NOT_COVERED: tuple[str, ...] = (
    "repeated measurements of the same subject, or rows otherwise related to each other",
    "scaling or feature selection performed on the full table before the run",
    "a source that changes after the data were collected",
)
ASSUMPTIONS_OF_GROUPS = (
    "The groups are independent examples from one source, and new groups come from that same source; rows of "
    "one group may be related in any way.",
    "All rows that are related belong to one group.",
    "The splits are plain random splits of whole groups, not stratified.",
    *ASSUMPTIONS[-2:],
)
ASSUMPTIONS_OF_CONDITION = (
    "The rows or groups held out are independent of each other and of those learned from, and what is proven "
    "is of new ones like them, of the same source, period and way of collection.",
    "The condition that holds them out was named before anything of them was seen.",
    *ASSUMPTIONS[-2:],
)
LOOKED_AT = "rows that others have looked at, as the test rows of a public data set were"
RELATED_GROUPS = (
    "groups that are related to each other, such as patients of one hospital if new ones come from others"
)

RANDOM = Rule("random")
MAX_SHOWN = 200  # characters of a value in a message
POWERS = (0.5, 0.8, 0.9)  # probabilities of a proof for which the number of rows needed is shown
ASSUMED_RISKS = (0.8, 0.6, 0.5, 0.4, 0.2, 0.1, 0.0)  # as shares of what a condition allows
MOST_SHOWN = (1_000_000, 20_000)  # rows of each kind, with one kind and with two


def certify(predictions: HeldOutPredictions, table: pa.Table, files: Mapping[str, str]) -> Certificate:
    """Return a winner's certificate, from its models and their counts, and the held-out rows.

    Args:
        predictions: what was solved, and the models of the run.
        table: the candidates.
        files: the SHA-256 of the files of results, by name.

    Raises:
        RunError: a member of F* predicts a class that does not exist.
    """
    problem, models, task = predictions.problem, predictions.models, predictions.problem.task
    made = _outline(problem, table, models)
    confusion, k = np.zeros((task.n_classes, task.n_classes), np.int64), made["k"]
    for member in models.best.members if task.n_classes > 2 else ():
        scored = problem.find_estimate_rows(member.k, member.split)
        predicted = member.model.predict(task.X[scored]).label
        check_predicted(member, predicted)
        decided = predicted >= 0
        np.add.at(confusion, (task.y[scored][decided], predicted[decided]), 1)
    claims, repeats = prove(predictions, k), find_repeats(problem.all_rows, problem.held)
    again = prove(predictions.without(repeats.copies), k) if repeats.copies else claims
    bounds = [proven[0].bound for proven in (claims, again) if proven[0].bound is not None]
    certificate = Certificate(
        **made,
        digests={"data": problem.data_digest, **files},
        repeats=repeats.rows,
        giveaways=find_giveaways(task) or None,
        confusion=tuple(map(tuple, confusion.tolist())) if task.n_classes > 2 else None,
        claims=tuple(claims),
        bound_without_copies=max(bounds) if len(bounds) == 2 else None,
        subgroups=tuple(claim_subgroups(predictions)) or None,
        statements=(),
    )
    first, independent = claims[0], task.units.independent
    said = [problem.criterion.state_l_ee(certificate.l_ee, certificate.n_splits, independent)]
    said += [claim.statement for claim in claims]
    if first.classifier == RANDOM.name and not first.quantity.of_numbers:
        doubled = ceil_percent(2 * first.risk) if first.risk < 0.5 else "100 %, which says nothing"
        follows = "By majority vote instead of a random member, what is proven is twice this bound"
        said.append(f"{follows}: {doubled}.")
    if (search := certificate.search) is not None:
        all_of, left, least = search["candidates"], search["not_excluded"], search["least"]
        left_open = f"excluded each of the {all_of:,} candidates that could have been better."
        if least is not None:
            left_open = (
                f"another candidate may be better: {left:,} of {all_of:,} candidates were not excluded, of "
                f"which the best could still have an L_MS of {describe_least(least, problem.clip)}. What is "
                "proven holds for this one, since it allows for any selection."
            )
        said.append(f"The search was within an effort of {search['effort']:,} evaluations, and {left_open}")
    said += filter(None, [describe_weights(problem), PROVISIONAL if certificate.provisional else ""])
    return replace(certificate, statements=(*said, *certificate.list_cautions()))


def _outline(problem: Problem, table: pa.Table, models: Models) -> dict[str, Any]:
    """Return the fields of a certificate that need no predictions, no pass over all columns and no digest."""
    task, rows, criterion = problem.task, problem.all_rows, problem.criterion
    refit = None if models.refit is None else find_only_class(models.refit.members[0])
    members, (row,) = models.best.members, table.filter(pc.equal(table["state"], "winner")).to_pylist()
    size, counted = problem.find_size(row["k_first"]), [member.loss for member in members]
    losses, in_ones = [loss / ONE for loss in counted], ONE if problem.has_losses else 1
    groups = None
    if rows.units.name is not None:
        held = rows.n_units - task.n_units
        groups = {"column": rows.units.name, "count": rows.n_units, "held": held, "losses": losses}
    by_class = list[dict[str, Any]]()
    for number in range(task.n_classes):
        wrong = [member.errors[number] for member in members]
        sizes = [member.n_estimate[number] for member in members]
        bounds = clopper_pearson(wrong, sizes, problem.study.delta)
        bound = fsum(bounds) / len(members) if groups is None else None
        by_class.append({"errors": sum(wrong), "rows": sum(sizes), "bound": bound})
    where, assumptions, not_covered = problem.certification.where, ASSUMPTIONS, NOT_COVERED
    if not task.units.independent:
        how = task.target.word("often a row is wrong", "far off a row is")
        large = f"how {how} among all rows, where large groups count more: each group counts once"
        assumptions, not_covered = ASSUMPTIONS_OF_GROUPS, (RELATED_GROUPS, large, *NOT_COVERED[1:])
    if where is not None:
        assumptions = ASSUMPTIONS_OF_CONDITION
        not_covered += (LOOKED_AT,) * (where.sign == "=")
    return {
        "run_id": problem.run_id,
        "certification": problem.study.certify,
        "seed": problem.draws.seed,
        "salt": problem.draws.salt,
        "provisional": "failed" in pc.unique(table["state"]).to_pylist(),
        "setting": dict(problem.learner.space.setting(row["path"], row["step"])),
        "k": row["k_first"],
        "n_splits": len(members),
        "n_select": size.n_select,
        "n_train": size.n_train,
        "criterion": criterion.name,
        "bound": criterion.bound,
        "delta": problem.study.delta,
        "l_ms": row["l_ms"],
        "l_ee": row["l_ee"],
        "search": summarize_search(table, problem),
        "n_rows": rows.n,
        "n_held": rows.n - task.n,
        "labels": task.classes,
        "class_rows": count_classes(rows.y, task.n_classes),
        "baselines": compute_baselines(problem),
        "groups": groups,
        "numbers": None if problem.clip is None else {"clip": problem.clip, "losses": losses},
        "errors": tuple(sum(member.errors) for member in members),
        "error": fsum(loss / in_ones for loss in counted) / (len(members) * size.n_select),
        "by_class": tuple(by_class),
        "constants": {"members": [*map(find_only_class, members)], "refit": refit},
        "assumptions": assumptions,
        "not_covered": not_covered,
    }


def check_certificate(certificate: Certificate, problem: Problem, table: pa.Table, models: Models) -> None:
    """Raise ValueError unless a certificate in a file belongs to this run, as far as no model has to predict.

    Args:
        certificate: the certificate as read.
        problem, table, models: the other files: what was solved, the candidates, and the models.
    """
    stored = certificate.to_json()
    made = replace(certificate, **_outline(problem, table, models)).to_json()
    for name in dict.fromkeys((*made, *stored)):
        if not agree(stored.get(name), made.get(name), ROUNDING):
            was, follows = (cut(repr(of.get(name)), MAX_SHOWN) for of in (stored, made))
            raise ValueError(f"{name} is {was}, but {follows} follows from the other files")
    totals, confusion = certificate.class_totals, certificate.confusion or ()
    if [*map(len, confusion)] != [len(totals)] * (len(totals) if len(totals) > 2 else 0):
        raise ValueError(f"confusion: expected a row and a column for each of {len(totals)} classes")
    if any(sum(line) > rows for line, rows in zip(confusion, totals, strict=False)):
        raise ValueError("confusion: it has more rows than there are")
    claims, held, of_study = certificate.claims, HeldOutPredictions(problem, models), problem.study.certify
    named = list_claimed(problem).items()
    rules = {(str(quantity), held.find_rule(name).name, of_study) for name, quantity in named}
    about = {(str(claim.quantity), claim.classifier, claim.certification) for claim in claims}
    if about != rules:
        others = sorted(about ^ rules)
        raise ValueError(f"claims: the study has {len(rules)}; these are of one side alone: {others}")
    for number, claim in enumerate(claims):
        claim.check(f"claims.{number}", problem.task.classes)
    for number, claim in enumerate(certificate.subgroups or ()):
        claim.check(f"subgroups.{number}", problem.task.classes, of_subgroup=True)
        if (claim.rows or 0) > certificate.n_held:
            raise ValueError(f"subgroups.{number}.rows: {claim.rows} are more than were held out")


def compute_baselines(problem: Problem) -> tuple[Baseline, ...]:
    """Return the baseline on the learning rows and, if rows were held out, that on the held-out rows."""
    task, clip, held, made = problem.task, problem.clip, problem.take_held_rows(), list[Baseline]()
    if clip is None:
        of_learning = task.units.weigh_rows(task.row_units)
        commonest = int(np.argmax(np.bincount(task.y, of_learning, minlength=task.n_classes)))
    parts = [(LEARNING, task.y, task.row_units)]
    if held is not None:
        parts.append((HELD_OUT, held.y, held.row_units))
    for on, y, row_units in parts:
        if clip is None:
            wrong, weights = y != commonest, task.units.weigh_rows(row_units)
            error = float(np.mean(wrong)) if weights is None else fsum(weights[wrong]) / fsum(weights)
            made.append(Baseline(on, commonest, int(np.sum(wrong)), len(y), error))
        else:
            (value,) = HeldOutPredictions(problem, Models()).constants
            losses = problem.measure(row_units).measure_losses(y, np.full(len(y), value))
            error = int(losses.sum()) / (ONE * len(losses))
            made.append(Baseline(on, 0, int(np.sum(y != value)), len(y), error, value, clip))
    return tuple(made)


def prove(held: HeldOutPredictions, k: int) -> list[Claim]:
    """Return the proven claims: of held-out rows, or of a random member of F*, from its estimate sets.

    Args:
        held: the problem that was solved, and the models of the run.
        k: the winner's number of folds.
    """
    problem, members = held.problem, held.models.best.members
    if isinstance(problem.certification, Holdout):
        named = list_claimed(problem).items()
        claims = [claim for name, of in named for claim in of.claim(held, held.find_rule(name))]
        return [add_gate(held, claim) if claim.quantity.guarded else claim for claim in claims]
    learner, _ = problem.find_learner(problem.learner.codec.setting(members[0].model))
    size, units, losses = problem.find_size(k), problem.task.units, [member.loss for member in members]
    m, unit = count_without(held.copies, size.n_select), ONE if problem.has_losses else 1
    bound, name = 1.0, "no bound"  # if no independent unit is left, or there are too many
    if 1 <= m <= MAX_CHECKED:
        level = float(problem.study.delta * weight(problem, k, learner))
        bound = average_safe(np.minimum(losses, m * unit) / unit, m, level)
        counts = units.word("Clopper-Pearson", "Clopper-Pearson interpolated between counts")
        name = f"averaging-safe {problem.task.target.word(counts, 'bound on losses')}"
    method = f"A over {problem.settings_per_learner[learner]} x k candidates"
    if len(problem.learners) > 1:
        method += f" of {list(problem.learners)[learner]}, one of {len(problem.learners)} learners"
    m_is = f"m = {size.n_select}{units.word('', ' groups')}"
    method += f", {name}, {pluralize(len(losses), 'split')}, {m_is}"
    claim = Claim(make_error(problem), RANDOM.name, bound, problem.study.delta, "", certification=Paper.name)
    if claim.quantity.is_mean:
        claim = replace(claim, measured=sum(losses) / (ONE * size.n_select * len(losses)))
    else:
        errors, rows = sum(sum(m.errors) for m in members), sum(sum(m.n_estimate) for m in members)
        claim = replace(claim, errors=errors, rows=rows)
        method += f", {errors} of {rows} scored rows wrong"
    says = claim.quantity.word(claim.quantity.states, claim, problem.task, who=RANDOM.classifier())
    given, over, limits = held.state_premise(of_counts=False)
    given += f" and plain random splits{units.word('', ' of whole groups')}"
    return [claim.state(says, method, (given, over, limits))]


def list_claimed(problem: Problem) -> dict[str, Quantity]:
    """Return what is claimed, by name: the errors of rules, and quantities."""
    certification, of_rule = problem.certification, make_error(problem)
    names = certification.claim if isinstance(certification, Holdout) else (RANDOM.name,)
    found = {name: certification.quantities.get(name, of_rule) for name in names}
    return cast(dict[str, Quantity], found)


def make_error(problem: Problem) -> Quantity:
    """Return the error that is claimed of a rule: for predicted numbers, their mean error."""
    return Error() if problem.clip is None else Clipped(problem.clip)


def list_needs(problem: Problem) -> list[Need]:
    """Return what each claim by held-out rows needs, and what there will be.

    It is read before the run, so it depends on the learning rows and on how many rows each class has, and not
    on which rows are drawn.
    """
    if not isinstance(problem.certification, Holdout) or problem.held is None:
        return []
    table, task, delta = problem.all_rows, problem.task, problem.study.delta_of_claim
    held, gate = HeldOutPredictions(problem, Models()), Better("a constant")
    measure, needs = problem.measure(task.row_units), list[Need]()
    constants = [np.full(task.n, each) for each in held.constants] if problem.has_losses else []
    losses = [measure.measure_losses(task.y, constant) / ONE for constant in constants]

    def prove(units: int) -> float:
        return max(held.bound_losses((1 - np.resize(of, units)) / 2, delta) for of in losses)

    for quantity in dict.fromkeys(list_claimed(problem).values()):
        needs += quantity.foresee(problem)
        if quantity.is_error and problem.has_losses:  # is the rule better than every constant?
            needs.append(gate.need(problem, prove, most=MAX_CHECKED))
        elif quantity.is_error:
            share = (table.n - max(count_classes(table.y, table.n_classes))) / table.n
            needs.append(gate.need(problem, of=" outside the commonest class", share=share))
    return needs


def expect_claims(problem: Problem, wrong: Sequence[float]) -> list[Claim]:
    """Return the claims about errors and recalls that a run proves if this share of held-out rows is wrong.

    A unit that is not just right or wrong is taken to be as far off as possible, or right: this proves least.

    Args:
        problem: what is to be solved.
        wrong: the share of each class that is wrong; for numbers, only their mean loss.
    """
    task, n = problem.task, problem.all_rows.n_units - problem.task.n_units
    y = np.sort(task.y if task.classes else np.zeros(task.n))[np.arange(n) * task.n // n]
    label = y.copy()
    for number, share in enumerate(wrong):
        of_class = np.flatnonzero(y == number)
        other = (number + 1) % len(wrong) if problem.clip is None else problem.clip
        label[of_class[: round(share * len(of_class))]] = other
    held, unknown = HeldOutPredictions(problem, Models()), np.full(n, np.nan)
    held.make_once("rows", lambda: TestRows(np.empty((n, 0)), y))
    found = list[Claim]()
    for name, quantity in list_claimed(problem).items():
        rule = held.find_rule(name)
        held.make_once(rule, lambda: Prediction(label, np.full(n, -1), unknown, unknown))
        if quantity.is_error or (isinstance(quantity, Recall) and problem.required is None):
            found += quantity.claim(held, rule)
    return [add_gate(held, c) if c.quantity.is_error and not problem.has_losses else c for c in found]


def claim_subgroups(held: HeldOutPredictions) -> Iterator[Claim]:
    """Yield what is claimed of each subgroup of the study; without bounds if it has too few rows."""
    problem, certification = held.problem, held.problem.certification
    if not certification.subgroups:
        return
    y, classes = held.rows.y, problem.task.classes
    rule = held.find_rule(certification.rule_of_quantities)
    of_all, losses = make_error(problem), held.measure_loss(held.predict(rule).label)
    for subgroups in map(parse_subgroup, certification.subgroups):
        parts = divide_rows(subgroups, problem.task, held.rows.X)
        claimed = sum(int(part.rows.sum()) >= MIN_OF_SUBGROUP for part in parts)
        delta = held.delta / len(certification.subgroups) / max(1, claimed) / (1 + len(classes))
        for part in parts:
            of_classes = [(Recall(), label, y == number) for number, label in enumerate(classes)]
            for quantity, label, rows in [(of_all, None, np.ones(len(y), bool)), *of_classes]:
                drawn = losses[held.order][(part.rows & rows)[held.order]]
                n, wrong, measured = len(drawn), int(np.sum(drawn)), None
                bound: float | None = bound_count(wrong, n, delta, one_law=held.drawn)
                if quantity.is_mean:
                    bound, measured = held.bound_losses(drawn, delta), float(np.sum(drawn)) / max(1, n)
                    wrong = 0
                bound = bound if int(part.rows.sum()) >= MIN_OF_SUBGROUP else None
                claim = Claim(quantity, rule.name, bound, delta, "", label=label, errors=wrong, rows=n)
                yield replace(claim, measured=measured, subgroup=part.name)


def weight(problem: Problem, k: int, learner: int = 0) -> Fraction:
    """Return pi(t), the share of delta of a candidate; k is the smallest number of folds of its fold size.

    The shares are equal for each learner, ``learner`` being the position of the candidate's, and then for
    each of its settings. They sum to at most 1 over all candidates: in the sum over fold sizes each term is
    rounded up to a multiple of 2**-128, since the exact sum of many fractions is slow.
    """
    unity = 1 << 128
    total = sum(-(-unity // ((size.k - 2) * (size.k - 1))) for size in problem.sizes)
    settings = len(problem.learners) * int(problem.settings_per_learner[learner])
    return Fraction(unity, total * settings * (k - 2) * (k - 1))


def show_rows(asked: str, true: str | None, delta: float) -> tuple[dict[str, Any], str]:
    """Return how many judged rows it takes until a condition is proven, for good: as JSON, and in words.

    Args:
        asked: the condition, such as "sensitivity>=0.9"; "within:0.9" leaves the distance open.
        true: true values to assume, such as "0.95,0.97", or "0.9:0.99" for two recalls; None for usual ones.
        delta: probability with which the claim may fail.

    Raises:
        InputError: this is not a condition, or what it takes depends on more than true values; or one of
            these is not a true value, or is no better than the condition.
    """
    if "," in asked:
        raise InputError(f"show={quote(asked)}: ask for one condition, at its share of delta={delta:g}")
    bare = None if set(asked) & set("<>=") else find_quantity(asked)
    is_open = bare is not None and bare.of_numbers and asked.count(":") == bare.form().count(":")
    condition = parse_condition("show", f"{asked}<=1" if is_open else asked)  # any distance: 1 is as good
    if not condition.kind.counted:
        raise InputError(
            f"show={quote(asked)}: how many rows it takes depends on how losses or confidence vary, and "
            "not on a true value alone: see what a run of a few hundred rows proves, or ask for "
            f"{'within:0.9' if condition.kind.of_numbers else 'error<=0.05'}"
        )
    quantity = read_quantity(condition.name)
    bound, width, parts = quantity.scale(condition.value), quantity.width_of, quantity.made_of or ("",)
    most, allowed = MOST_SHOWN[len(parts) - 1], (bound if width is None else 1 - width) + DECIMAL_TOLERANCE

    def holds(*wrong: Values) -> Mask:
        if len(wrong) == 1:
            return wrong[0] <= allowed
        follows = 1 - quantity.compute(*(1 - each for each in wrong))
        return (follows <= allowed) & (np.maximum(*wrong) < 1)

    def turn(values: Iterable[float]) -> tuple[float, ...]:  # true values to risks, and back
        return tuple(each if quantity.at_most and width is None else round(1 - each, 15) for each in values)

    grid, table = np.geomspace(1e-9, 1, 10_001), list[dict[str, Any]]()
    if not len(risks := grid[holds(*[grid] * len(parts))]):
        lack = "no number of rows proves so much, even without an error"
        raise InputError(f"show={asked}: {lack}: ask for less")
    assumed = [turn([float(f"{share * risks[-1]:.2g}")] * len(parts)) for share in ASSUMED_RISKS]
    if true is not None:
        assumed = [()]  # which is refused, as what is not a number is
        with suppress(ValueError):
            assumed = [tuple(map(float, part.split(":"))) for part in true.split(",")]
        if not all(len(of) == len(parts) and all(0 <= value <= 1 for value in of) for of in assumed):
            example = "0.9:0.99 (sensitivity:specificity)" if len(parts) > 1 else "0.95,0.97"
            raise InputError(f"true={quote(true)}: expected true values from 0 to 1, such as {example}")
    for values in assumed:
        if not holds(*np.multiply(turn(values), 1 + 1e-9)):
            named = ":".join(map(str, values))
            raise InputError(f"true={named} is no better than {asked}, so a proof is never likely")
        n, rows = most, list[int | None]()
        for power in reversed(POWERS):  # rows that prove it with one power also do with a smaller one
            n = find_rows_for_good(turn(values), holds, delta, power, n) - 1
            rows.insert(0, n + 1 if n < most else None)
        table.append({"true": values, "rows": rows})
    shown = {"show": asked, "delta": delta, "powers": POWERS, "most": most, "table": table}
    return shown, _describe_rows(quantity, None if is_open else bound, shown)


def _describe_rows(quantity: Quantity, bound: float | None, shown: dict[str, Any]) -> str:
    """Return the table of ``show_rows``, and what it assumes; without a bound, the distance is left open."""
    of = quantity.title if quantity.width_of is None else "share within it"
    powers = (f"power {SHARE_OF_ROWS.format(power)}" for power in POWERS)
    cells = [[f"true {' and '.join(quantity.made_of) or of}", *powers]]
    for row in shown["table"]:
        counts = (f"> {shown['most']:,}" if n is None else f"{n:,}" for n in row["rows"])
        cells.append([" and ".join(map(SHARE_OF_ROWS.format, row["true"])), *counts])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    limit = "a distance that truly holds for more of them" if bound is None else quantity.format(bound)
    lines = [
        f"How many {quantity.counted} prove, at {format_level(shown['delta'])} confidence, that the "
        f"{quantity.title} is {quantity.side} {limit}:",
        *("   ".join(map(str.rjust, row, widths)) for row in cells),
        f"Any number from there to {shown['most']:,} has at least that power (probability of the proof). "
        "Fewer may, but not reliably: power falls from row to row until one more row may be wrong.",
        "Assumed: the true value, which nobody knows beforehand; this claim alone (each of c claims gets "
        f"--delta {shown['delta']:g}/c); new rows, independent and of one source; a model, and any cut-off, "
        "fixed without them.",
        f"ckcv judge judges all its rows, ckcv run half of up to {MAX_HALVED_ROWS} rows, else a third.",
        "An error is quoted only if the model is also proven better than constants." * quantity.guarded,
        quantity.doubt(Claim(quantity, "", bound, shown["delta"], "")),
    ]
    return "\n".join(filter(None, lines))
