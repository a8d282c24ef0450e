"""The estimator for users of scikit-learn: ``fit`` selects, refits and certifies, ``predict`` classifies."""

from collections.abc import Mapping
from functools import partial
from math import nan
from typing import Any, cast
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.draws import seed_members
from ckcv_ray.core.measures import Output, Outputs
from ckcv_ray.core.options import list_names
from ckcv_ray.errors import InputError, Values, as_array, check_choice, convert_errors, pluralize, quote
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.learners.sklearn.paths import EstimatorLearner
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.records.record import Outcome, Records
from ckcv_ray.runs.result import Certified, find_error_claim
from ckcv_ray.runs.run import Job, Work, check_job, compute, run_work, watch_run
from ckcv_ray.storage.files import locate
from ckcv_ray.study.parts import MIN_HELD_OUT, Holdout, Paper
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.read import check_same_order, read_rows
from ckcv_ray.tables.roles import APART
from ckcv_ray.tables.task import Task, make_rows

RULES = ("auto", "vote", "random", "refit")
CONDITION = (
    "The bounds are about this estimator on the columns that fit was given. What was done to them before, "
    "with the help of the learning rows, such as by earlier steps of a Pipeline, is not covered: put it into "
    "the learner, as learner=make_pipeline(...)."
)


def _gives(name: str, one: "CKCVClassifier") -> bool:
    """Return whether an estimator has a method; otherwise raise an error that says how to get the method."""
    if one._rule == "vote":
        return True
    if hasattr(one, "result_"):
        _, learner = one.result_.problem.find_learner(one.result_.setting)
    else:  # before ``fit``: all of them
        learner = Study.of(learner=one.learner).learner
    needed = Output.PROBABILITY if name == "predict_proba" else one._rank
    if one._rule == "refit" and needed in learner.outputs:
        return True
    raise AttributeError(
        f'learner {learner.name} has no {name}: choose one that has, such as learner="linear", or '
        'rule="vote" for the shares of votes'
    )


class CKCVClassifier(ClassifierMixin, BaseEstimator):
    """Model selection by complete k-fold cross validation with tuned k, and a certificate.

    Columns may hold numbers, text, booleans and dates, with gaps: they are encoded inside each split.

    Args:
        learner: what is fitted: a name such as "svm" or "svm,linear", an estimator, or a list of these.
        params: values to try by parameter, or a distribution such as "loguniform:1e-3:1e2"; None for the
            learner's own values.
        sample: number of settings to draw at random; None to try all.
        k: numbers of folds to try; None for the default.
        n_splits: splits for each k; None for the default.
        delta: probability that a bound may fail.
        certify: "holdout" (half of up to 400 rows or groups, or a third of more, are held out to judge what
            ``predict`` does), or "paper" (no rows are held out, and the bound for the vote is twice that for
            a member). With fewer than 20 rows or groups "holdout" holds out none: ``fit`` warns, and nothing
            is claimed.
        criterion: what is minimised: "error", "balanced", "mean_error", or "cost:LABEL=10,OTHER=1".
        backend: "serial" or "ray".
        random_state: seed of the splits, and of the draws of the rule "random", an integer; None for splits
            with seed 0 and new draws each time.
        rule: how ``predict`` classifies: "refit" (one model, fitted on all rows that were not held out),
            "vote" (the majority of F*), "random" (a member drawn for each row), or "auto": "refit" where
            rows are held out, else "vote". The draws of "random" continue from one call of ``predict`` to
            the next, so a second call for the same rows may give other labels, and rows given one by one
            get those of a single call; ``fit`` restarts them. A copy, pickled or deep, continues from where
            its original was: one that is loaded for each row draws the same member each time, unless
            ``random_state`` is None.

    Attributes:
        classes_: the labels.
        n_features_in_, feature_names_in_: the columns of ``fit``.
        best_params_, best_k_: the winner.
        cv_results_: the candidates, as in GridSearchCV: ``split{i}_test_score`` is the accuracy on a select
            set, nan where it was not computed because the candidate was already beaten, or left out of a
            search within a budget.
        error_bound_: upper bound on the error of what ``predict`` does, proven with probability 1 - delta; by
            default from the held-out rows, classified by the same rule; nan if there is none, 1 where "auto"
            holds out none.
        certificate_: all claims and their conditions, as JSON values.
        ensemble_: F*.
        result_: the ``Certified`` result.
    """

    def __init__(
        self,
        learner: object = "svm",
        params: Mapping[str, object] | None = None,
        sample: int | None = None,
        k: object = None,
        n_splits: int | None = None,
        delta: float = 0.05,
        certify: str = Holdout.name,
        criterion: str = "error",
        backend: str = "serial",
        random_state: int | None = None,
        rule: str = "auto",
    ) -> None:
        self.learner = learner
        self.params = params
        self.sample = sample
        self.k = k
        self.n_splits = n_splits
        self.delta = delta
        self.certify = certify
        self.criterion = criterion
        self.backend = backend
        self.random_state = random_state
        self.rule = rule

    def fit(
        self, X: object, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "CKCVClassifier":
        """Select, refit and certify; in a notebook, show a line of progress.

        Args:
            X: data frame (pandas, polars, Arrow) or array, (n, d).
            y: labels, (n,).
            groups: rows with equal values belong together, (n,).
            sample_weight: what each row weighs in fits, positive, (n,); selection and bounds are about
                unweighted rows, except the bound on the weighted error (``claim="weighted_error:4"``).

        Raises:
            InputError: the data or a parameter is invalid.
        """
        check_choice("rule", self.rule, RULES)
        check_same_order(X, "y", y)
        rows, labels = self._validate(X, y=y if y is None else as_array("y", read_rows(y)))
        labels = np.asarray(labels).ravel()
        with convert_errors(InputError, "y has to be labels of one type, without gaps"):
            check_classification_targets(labels)
        if len(np.unique(labels)) < 2:
            raise InputError(f"y has one class, {labels[0]!r}: a classifier needs at least 2 classes")
        types = DeclaredTypes(labels=APART)  # as in scikit-learn, Yes and yes are two classes
        named = y if hasattr(y, "name") else labels  # a column keeps its name
        task = Task.of(rows, named, groups, types, sample_weight=sample_weight, checked=False)
        task.units.check()
        fewest, found = 2 * MIN_HELD_OUT, pluralize(task.n_units, task.unit)
        few = self.certify == Holdout.name and task.n_units < fewest
        if self.rule == "refit" and (few or self.certify != Holdout.name):
            why = f"of {found} none are" if few else f"certify={self.certify!r} holds none out"
            raise InputError(f'rule="refit" requires that rows are held out: {why}')
        if few:
            says = f"nothing is claimed: {found} are too few to hold some out (half are, from {fewest} on)"
            warn(says, stacklevel=2)
        self._claims_nothing = few
        if isinstance(self.random_state, str):
            raise InputError(f"random_state={quote(self.random_state)} is not an integer")
        asked = {n: getattr(self, n) for n in ("learner", "sample", "k", "n_splits", "delta", "criterion")}
        asked |= {"certify": Paper.name if few else self.certify, "seed": self.random_state}
        if asked["certify"] == Holdout.name and self._rule != "random":  # which judges no held-out row
            asked["claim"] = (self._rule,)
        params, learners = dict(self.params or {}), Study.of(learner=self.learner).learner.by_label.values()
        known = {n for one in learners if isinstance(one, EstimatorLearner) for n in one.parameter_names()}
        svms = [isinstance(one, GaussianSVM) for one in learners]
        own = list_names(GaussianSVM) if all(svms) else ("C", "gamma") if any(svms) else ()
        options = {name: params[name] for name in own if name in params}  # options of their own
        left = {name: value for name, value in params.items() if name not in options or name in known}
        asked |= options | {"param": left or None}
        study = Study.of(**{name: value for name, value in asked.items() if value is not None})
        with watch_run(None) as listen:
            work = check_job(Job(study, task, listen=listen))._replace(keep=True)
            self.result_ = cast(Certified, compute(work, Execution(self.backend)))
        self._draws = None if self.random_state is None else seed_members(self.result_.study.seed)
        self.classes_ = np.empty(task.n_classes, labels.dtype)
        self.classes_[task.y] = labels
        return self

    @property
    def best_params_(self) -> dict[str, object]:
        """The winner's hyperparameters."""
        return dict(self._fitted.setting)

    @property
    def best_k_(self) -> int:
        """The winner's number of folds."""
        return self._fitted.k

    @property
    def ensemble_(self) -> Ensemble:
        """F*."""
        return self._fitted.ensemble

    @property
    def certificate_(self) -> dict[str, object]:
        """All claims, and the condition under which they apply to this estimator."""
        certificate = {**self._fitted.certificate.to_json(), "condition": CONDITION}
        return {**certificate, "claims": [], "proven": None} if self._claims_nothing else certificate

    @property
    def error_bound_(self) -> float:
        """Upper bound on the error of what ``predict`` does; nan if none is proven."""
        claim = find_error_claim(self._fitted.claims, Rule(self._rule))
        return 1.0 if self._claims_nothing else nan if claim is None else claim.risk

    @property
    def cv_results_(self) -> dict[str, object]:
        """The candidates, as in GridSearchCV."""
        result = self._fitted
        assert result.records is not None
        problem, sizes, n = result.problem, result.problem.sizes, result.problem.n_settings
        space = problem.learner.space
        scores = np.full((max(size.n_splits for size in sizes), len(sizes) * n), nan)
        on_all_rows = result.records["size"] < len(sizes)  # beyond are parts of them, from a budget
        selected = result.records[~result.records["estimate"] & on_all_rows]
        first = np.append(0, np.cumsum(space.lengths))
        position = selected["size"] * n + first[selected["path"]] + selected["step"]
        if problem.task.units.independent:
            rows = np.array([size.n_select for size in sizes])[selected["size"]]
        else:  # select sets of a fold size differ
            keys, record = np.unique(selected[["size", "split"]], return_inverse=True)
            rows = np.array([len(problem.split(*map(int, key)).select) for key in keys])[record]
        errors = selected["totals"][:, : problem.task.n_classes].sum(axis=1)
        scores[selected["split"], position] = 1.0 - errors / rows
        params = dict[str, object]()
        for name, values in space.settings().items():
            lacking = [value is None for value in values.tolist()] * len(sizes)  # its learner has none
            params[f"param_{name}"] = np.ma.MaskedArray(np.tile(values, len(sizes)), mask=lacking)
        listed = [{**setting, "k": size.k} for size in sizes for path in space.paths for setting in path]
        complete = np.sum(~np.isnan(scores), axis=0) == np.repeat([size.n_splits for size in sizes], n)
        mean, spread = np.full((2, len(sizes) * n), nan)
        mean[complete] = np.nanmean(scores[:, complete], axis=0)
        spread[complete] = np.nanstd(scores[:, complete], axis=0)
        rank = rankdata(np.where(complete, -mean, np.inf), method="min").astype(np.int32)
        return {
            "params": listed,
            **params,
            "param_k": np.ma.MaskedArray(np.repeat([size.k for size in sizes], n)),
            **{f"split{i}_test_score": row for i, row in enumerate(scores)},
            "mean_test_score": mean,
            "std_test_score": spread,
            "rank_test_score": rank,
        }

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the labels of X [rows, d], by the rule."""
        result = self._fitted
        rows = make_rows(self._validate(X, reset=False), result.task)
        if self._rule == "random":
            draws = self._draws or np.random.default_rng()
            return np.take(self.classes_, result.ensemble.random(rows, draws).label)
        return np.take(self.classes_, result.rule(self._rule).predict(result.models, rows).label)

    @available_if(partial(_gives, "predict_proba"))
    def predict_proba(self, X: object) -> Values:
        """Return the probability of each class for X [rows, d] by the refitted model, (rows, classes).

        With ``rule="vote"`` it is the share of the members of F* that vote for the class. Neither is
        calibrated, and nothing is proven of either.

        Raises:
            AttributeError: the learner has no probabilities, and the rule is not "vote".
        """
        return self._score(Output.PROBABILITY, X)

    @available_if(partial(_gives, "decision_function"))
    def decision_function(self, X: object) -> Values:
        """Return the refitted model's own score for X [rows, d], (rows,); for more classes (rows, classes).

        With ``rule="vote"`` it is the difference of the two shares of votes, or each class's share; ties go
        to the first class.

        Raises:
            AttributeError: the learner lacks a score for each of several classes, and the rule is not "vote".
        """
        return self._score(self._rank, X)

    def save(self, folder: str) -> None:
        """Write the run to a folder, which ``ckcv`` can report, verify and predict with.

        Nothing is selected again; the models of F* are fitted once more.

        Raises:
            StoreError: the folder holds something else.
        """
        result = self._fitted
        known = (Outcome(cast(Records, result.records), (), ()),)
        run_work(Work(result.problem, locate("folder", folder), known=known), Execution(self.backend))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.non_deterministic = self._rule == "random"
        return tags

    @property
    def _fitted(self) -> Certified:
        check_is_fitted(self)
        return self.result_

    @property
    def _rule(self) -> str:
        """The rule, with "auto" resolved."""
        if self.rule != "auto":
            return self.rule
        holds_out = self.certify == Holdout.name and not getattr(self, "_claims_nothing", False)
        return "refit" if holds_out else "vote"

    @property
    def _rank(self) -> Output:
        """The score by which a decision is made; before ``fit``, that for two classes."""
        return Output.RANK if len(getattr(self, "classes_", ())) <= 2 else Output.RANKS

    def _score(self, needed: Output, X: object) -> Values:
        """Return the refitted model's output for X, or what the votes of F* for each class give instead."""
        result = self._fitted
        rows = make_rows(self._validate(X, reset=False), result.task)
        if self._rule == "vote":
            labels, _ = result.ensemble.predict(rows)
            numbers = range(len(self.classes_))
            shares = np.column_stack([np.mean(labels == number, axis=0) for number in numbers])
            return np.asarray(shares @ (-1.0, 1.0)) if needed == Output.RANK else shares
        assert result.models.refit is not None
        found: Outputs = result.models.refit.members[0].model.predict_outputs(rows, frozenset({needed}))
        values = found.probability if needed == Output.PROBABILITY else found.rank
        assert values is not None
        return values

    def _validate(self, X: object, **options: Any) -> Any:
        """Check as scikit-learn does; for a data frame only names, since its columns are of many kinds."""
        X = read_rows(X)
        framed = hasattr(X, "__arrow_c_stream__")
        checks = {} if framed else {"ensure_all_finite": "allow-nan", "dtype": None}
        return validate_data(self, X, skip_check_array=framed, **checks, **options)
