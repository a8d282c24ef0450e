"""Recompute every bound of a run folder independently of the package, which is never imported.

    python jobs/check_certificate.py runs/patients

Every computation is numpy's, here and in ``independent_*``; pyarrow only reads, since log, models and rows
are in Parquet files alone. Recomputed are the criterion of every candidate, L_MS and L_EE, the bounds by
class, and of every claim counts, delta and bound; splits and held-out rows are drawn again, also of the runs
inside a nested one. Printed are a table, what was taken as stored, and what is not known here. Exit codes:
0 all figures agree to 1e-9 of themselves; 1 one differs; 2 one cannot be recomputed here.
"""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import ceil, comb, expm1, fsum, log1p, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from jobs import independent_bounds as bounds
from jobs import independent_claims as claims

ONE = 1 << 32  # a group's loss of 1
OF_CLASS = claims.OF_CLASS
OUTER_K: dict[str, Any] = {"third": 3, "half": 2, "three_fifths": Fraction(5, 3)}  # rows / estimated ones
FIGURES = {"lower_bound": "select", "l_ms": "select", "l_ee": "estimate"}  # of a candidate, and their sets
Claim = dict[str, Any]


class Run:
    """What a folder stores, what is drawn again from it, and the figures that were compared."""

    def __init__(self, folder: Path) -> None:
        self.figures, self.notes = list[tuple[str, Any, Any]](), dict[str, bool]()  # True: not known
        self.certificate = json.loads((folder / "certificate.json").read_text())
        study = json.loads((folder / "study.json").read_text())["study"]
        self.learner, self.resampling, self.seed = study["learner"], study["resampling"], study["seed"]
        self.criterion, self.certify = study["criterion"], study["certify"]
        self.delta, self.labels = self.criterion["delta"], self.certificate["labels"]
        assert self.labels, "it predicts numbers, whose claims are not recomputed here"
        table = parquet.read_table(folder / "data.parquet")
        role = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        self.columns, number = table.to_pydict(), {label: i for i, label in enumerate(self.labels)}
        y, group, _ = (self.columns.pop(role.get(name), None) for name in ("target", "group", "weight"))
        self.all_y, self.grouped = np.array([number[label] for label in y]), group is not None
        self.all_units, self.held = np.array(group or range(len(y))), np.zeros(len(y), bool)
        if self.certify["name"] == "holdout":
            units = int(self.all_units.max()) + 1
            self.drawn = self.draw(0, 0, 2).permutation(units)[: int(self.certify["holdout_share"] * units)]
            self.held = np.isin(self.all_units, self.drawn)
        self.y, learned = self.all_y[~self.held], self.all_units[~self.held]
        self.units, self.n = np.unique(learned, return_inverse=True)[1], len(np.unique(learned))
        self.candidates = parquet.read_table(folder / "candidates.parquet").to_pylist()
        self.models = {f.stem: parquet.read_table(f).to_pylist() for f in folder.glob("ensemble/*.parquet")}
        self.log = dict[tuple[Any, ...], list[int]]()
        for row in (row for f in folder.glob("log/part-*") for row in parquet.read_table(f).to_pylist()):
            if row["status"] != "failed":
                at = tuple(row[name] for name in ("stage", "size", "split", "path", "step"))
                self.log[at] = [row[name] for name in row if name.startswith("total_")]

    def draw(self, *key: int) -> np.random.Generator:
        """Return the generator of a key."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def compare(self, name: str, stored: Any, computed: Any) -> None:
        """Note a figure."""
        self.figures.append((name, stored, computed))

    @contextmanager
    def note_unknown(self, what: str) -> Iterator[None]:
        """Note what cannot be recomputed, for whatever reason."""
        try:
            yield
        except Exception as error:  # of any kind: a stranger's folder may hold anything
            self.notes[f"not known: {what}: {type(error).__name__}: {error}"] = True

    def count_splits(self, k: Any) -> tuple[int, bool]:
        """Return the number of splits of k folds, and whether their order is shuffled before it is used."""
        n, m, asked = self.n, self.n // k, self.resampling.get("n_splits", 0)
        possible = comb(n, m) * comb(n - m, min(m, n - m)) if n < 2000 else asked + 1
        return (min(possible, asked), possible <= asked) if asked else (k, True)

    def count_classes(self, k: Any, number: int, estimate: bool) -> list[int]:
        """Return the rows of each class in the select or the estimate set of a split."""
        m, shuffled = self.n // k, self.count_splits(k)[1]
        if shuffled and "n_splits" in self.resampling:
            raise NotImplementedError(f"the few possible splits of {k} folds are not drawn")
        order = (self.draw(k, 0, 4) if shuffled else self.draw(m, number)).permutation(self.n)
        first = (number + estimate) % k * m if shuffled else min(estimate * m, self.n - m)
        y = self.y[np.isin(self.units, order[first : first + m])]
        return list(np.bincount(y, minlength=len(self.labels)).tolist())

    def compute_value(self, totals: list[list[int]], k: int, of_ee: bool) -> float:
        """Return the criterion over splits of k folds from their totals, on select sets or as L_EE."""
        m, name, d, losses = self.n // k, self.criterion["name"], self.delta, list[Any](map(sum, totals))
        bound = self.criterion.get("bound", "") * (of_ee and not self.grouped)
        if self.grouped:
            losses = [split[-1] / ONE for split in totals]
        if name == "cost":
            costs = dict(re.findall("([^=,]+)=([^,]+)", self.criterion["costs"]))
            each = [Fraction(float(costs[str(label)])) for label in self.labels]
            weights = [ceil(ONE * cost / max(each)) for cost in each]
            losses = [np.dot(split, weights) / ONE for split in totals]
        if name not in ("error", "balanced", "cost", "mean_error"):
            raise NotImplementedError(f"the criterion {name}")
        if name == "mean_error":
            values = [loss / m for loss in losses]
        elif name == "balanced":
            sizes = [self.count_classes(k, i, of_ee) for i in range(len(totals))]
            pairs = (zip(*both, strict=True) for both in zip(totals, sizes, strict=True))
            values = [float(np.mean([bounds.tabulate(n, d)[x] for x, n in split])) for split in pairs]
        elif (name == "cost" and of_ee) or bound in ("safe", "catoni"):
            values = [bounds.bound_mean(losses, m, d, name == "cost", bound == "catoni")]
        elif name == "cost" or self.grouped:
            values = [bounds.bound_mean([loss], m, d, True) for loss in losses]
        elif bound == "stevens" or m > bounds.MOST:
            v = [self.draw(m, i, 1).uniform() if bound == "stevens" else 1.0 for i in range(len(losses))]
            values = bounds.bound_count(losses, m, d, v).tolist()
        else:
            values = bounds.tabulate(m, d)[losses].tolist()
        return fsum(values) / len(values)

    def check_candidates(self) -> None:
        """Compare the criterion of every candidate, and the counts of the winner, with the log."""
        first, pairs = dict[int, int](), {name: list[tuple[float, float]]() for name in FIGURES}
        for k in self.resampling["k"] or range(3, self.n + 1):
            first.setdefault(self.n // k if "n_splits" in self.resampling else k, k)
        ks, zeros = list(first.values()), [0] * len(next(iter(self.log.values())))
        self.compare("numbers of folds", list(dict.fromkeys(row["k_first"] for row in self.candidates)), ks)
        for row in self.candidates:
            k, splits = row["k_first"], self.count_splits(row["k_first"])[0]
            for name in (name for name in FIGURES if row[name] is not None):
                count = row["splits"] if name == "lower_bound" else splits
                at = [(FIGURES[name], ks.index(k), i, row["path"], row["step"]) for i in range(count)]
                totals = [self.log[place] for place in at] + [zeros] * (splits - count)
                pairs[name].append((row[name], self.compute_value(totals, k, name == "l_ee")))
            if row["state"] == "winner":
                self.winner, logged = row, [split[: len(self.labels)] for split in totals]
        for name in FIGURES:
            self.compare(f"{name} of candidates", *map(list, zip(*pairs[name], strict=True)))
        least = min(row["lower_bound"] for row in self.candidates if row["state"] not in ("open", "failed"))
        models, stored = self.models["models"], self.certificate
        self.compare("L_MS, L_EE", [stored["l_ms"], stored["l_ee"]], [least, self.winner["l_ee"]])
        drawn = [self.count_classes(self.winner["k_first"], i, True) for i in range(len(models))]
        counts = [[model[name] for model in models] for name in ("errors", "n_estimate")]
        self.compare("wrong rows, and rows, by split and class", counts, [logged, drawn])
        for number, of_class in enumerate(stored["by_class"]):
            x, m = ([model[name][number] for model in models] for name in ("errors", "n_estimate"))
            bound = None if self.grouped else fsum(bounds.bound_count(x, m, self.delta)) / len(x)
            self.compare(f"class {number}", list(of_class.values()), [sum(x), sum(m), bound])

    def bound_claim(self, claim: Claim, copies: int) -> list[Any]:
        """Return a claim's bound, wrong rows, rows and delta; ``copies`` of the units are not counted."""
        kind, quantity = claim["certification"], claim["quantity"]
        jointly, delta = claims.share_claims(self.certify, len(self.labels), self.delta)
        if quantity.split(":")[0] in claims.PREDICTIVE:
            pair = claims.find_recalls(self.certificate["claims"], claim)
            value = claims.predict(quantity, *(1 - self.bound_claim(recall, copies)[0] for recall in pair))
            return [1 - value, None, None, delta]
        if quantity in claims.ANSWERED:
            self.notes["taken as stored: the held-out rows answered, and the wrong ones"] = False
            of = float(self.certify["answer"].partition("<=")[2]), int(np.sum(self.held))
            return claims.bound_answered(claim, *of, delta / 2, copies)
        number = self.labels.index(claim["label"]) if quantity in OF_CLASS else None
        if "claims_version" not in self.certificate and (self.grouped or kind != "holdout"):
            raise NotImplementedError("bounds of an earlier version of the package")
        if kind == "holdout":
            delta = delta if number is None else -expm1(log1p(-delta) / jointly)
            return [*self.bound_held_out(claim, number, delta, copies), delta]
        if kind not in ("occam", "nested") or not (number is not None or quantity == "error"):
            raise NotImplementedError(f"{quantity} by {kind}")
        models, order = self.models["nested" if kind == "nested" else "models"], range(self.n)
        if kind == "nested":
            level, k = delta, OUTER_K[self.certify["outer_share"]]
            drawn = [self.count_classes(k, i, True) for i in range(len(models))]
            self.compare("rows by outer split and class", [model["n_estimate"] for model in models], drawn)
        else:
            delta, level, k = self.delta, self.delta * self.share_delta(), self.winner["k_first"]
            if self.count_splits(k)[1]:
                order = self.draw(0, 0, 5).permutation(len(models)).tolist()
        m, chosen = self.n // k, claim["splits"] or range(len(models))
        u = self.draw(0, 0, 10).uniform() if self.certify.get("first_uniform") else 1
        if set(chosen) != set(order[: len(chosen)]):
            return ["not about the first splits", None, None, None]
        own = slice(None) if number is None else slice(number, number + 1)
        counts = [(sum(models[i]["errors"][own]), sum(models[i]["n_estimate"][own])) for i in chosen]
        if number is None:
            losses = [models[i]["loss"] / ONE if self.grouped else sum(models[i]["errors"]) for i in chosen]
            losses, m = [min(loss, m - copies) for loss in losses], m - copies
            bound = bounds.bound_mean(losses, m, level, self.grouped, u=u)
        else:
            delta, typical = delta / jointly, round(float(np.sum(self.y == number)) * m / len(self.y))
            left = [(x, max(0, rows - copies)) for x, rows in counts]
            tables = [(*bounds.tabulate_claim(rows, delta, typical), min(x, rows)) for x, rows in left]
            bound = bounds.average([A[x] for A, _, x in tables], u, tables[0][1])
        return [bound, *map(sum, zip(*counts, strict=True)), delta]

    def share_delta(self) -> float:
        """Return the winner's share of delta by occam, from the candidates, whose number the study has."""
        ks = {row["k_first"] for row in self.candidates}
        learners = [row.get("learner") for row in self.candidates if row["k_first"] == self.winner["k_first"]]
        described = self.learner.get("learners", [self.learner])
        grids = [x.get("param") or {n: x.get(n, ()) for n in ("C", "gamma")} for x in described]
        if all(map(len, (values for grid in grids for values in grid.values()))):
            settings = sum(prod(map(len, grid.values())) for grid in grids)
            self.compare("candidates", len(self.candidates), len(ks) * settings)
        else:
            self.notes["taken as stored: the number of settings, which the study does not list"] = False
        settings = learners.count(self.winner.get("learner")) * len(described)
        return bounds.share_delta(ks, self.winner["k_first"], settings)

    def bound_held_out(self, claim: Claim, number: int | None, delta: float, copies: int) -> list[Any]:
        """Return the bound, the wrong rows and the rows of a claim from held-out rows."""
        y, rule, quantity = self.all_y[self.held], claim["classifier"], claim["quantity"]
        if rule == "full":
            self.notes["taken as stored: the four counts in the sentence about the model on all rows"] = False
            return [claims.bound_full(claim["statement"], delta), None, None]
        rows = np.ones(len(y), bool) if number is None else y == number
        m = int(np.bincount(y).min()) if quantity == "auc" else int(np.sum(rows))
        label = None if quantity == "auc" or "cut_off" in claim else self.judge(rule)
        if label is None and self.grouped:
            raise NotImplementedError(f"the loss of held-out groups by {rule}, which is not stored")
        if label is None:
            self.notes[f"taken as stored: the wrong held-out rows or pairs, {quantity} of {rule}"] = False
        wrong, left = claim["errors"] if label is None else int(np.sum((label != y) & rows)), m - copies
        if self.grouped:
            units = np.unique(self.all_units[self.held], return_inverse=True)[1]
            of_group = (np.bincount(units, w).astype(int).tolist() for w in (label != y, rows))
            losses = np.array([-(-x * ONE // n) / ONE for x, n in zip(*of_group, strict=True)])
            return [bounds.bound_held(losses[np.argsort(np.argsort(self.drawn))], delta, copies), wrong, m]
        v, order = 1.0, np.searchsorted(np.sort(self.drawn), self.drawn)
        required = quantity in self.certify.get("require", "")  # the cut-off was chosen for it
        if self.certify.get("holdout_bound") == "stevens" and not copies and not required:
            if label is None:
                raise NotImplementedError(f"which rows or pairs are wrong, {quantity} of {rule}")
            v = bounds.rank((label != y)[order][rows[order]])
        return [float(bounds.bound_count(min(wrong, max(0, left)), max(0, left), delta, v)), wrong, m]

    def judge(self, rule: str) -> NDArray[Any] | None:
        """Return the classes (-1: undecided) that machines of two classes give held-out rows, else None."""
        X, stem = np.array(list(self.columns.values())).T, "refit" if rule == "refit" else "models"
        if self.learner["name"] != "svm" or len(self.labels) != 2 or X.dtype != float or rule == "keyed":
            return None
        labels = claims.classify_rows(self.models[stem], X[~self.held], X[self.held])
        votes = [np.sum(labels == c, axis=0) for c in (0, 1)]
        return np.asarray(np.argmax(votes, 0) if rule == "vote" else labels[int(rule.partition(":")[2] or 0)])

    def check_claims(self) -> None:
        """Compare every claim, and the bound of the first if rows that are equal have one origin."""
        for claim in (stored := self.certificate)["claims"]:
            words = [claim[name] for name in ("certification", "classifier", "quantity", "label", "splits")]
            name = " ".join(str(word) for word in words if word not in (None, []))
            with self.note_unknown(name):
                values = (claim[part] for part in ("bound", "errors", "rows", "delta"))
                self.compare(name, list(values), self.bound_claim(claim, 0))
        if parts := stored.get("subgroups"):
            self.notes["taken as stored: the counts of subgroups"] = False
            delta = claims.share_claims(self.certify, len(self.labels), self.delta)[1]
            made = claims.bound_subgroups(parts, self.certify["subgroups"], delta)
            self.compare("subgroups", [part["bound"] for part in parts], made)
        with self.note_unknown("bound without copies"):
            repeats, copies = bounds.count_copies(self.columns, self.all_y, self.all_units, stored["repeats"])
            bound = max(self.bound_claim(stored["claims"][0], left)[0] for left in (0, copies))
            self.compare("rows that repeat", stored["repeats"], repeats)
            self.compare("bound without copies", stored["bound_without_copies"], bound)


def check(folder: Path) -> int:
    """Print the table of a folder, what was taken as stored and what is not known; return the exit code."""
    try:
        run = Run(folder)
    except Exception as error:
        print(f"not known: {folder.name} is no finished run of ckcv run: {type(error).__name__}: {error}")
        return 2
    with run.note_unknown("candidates"):
        run.check_candidates()
    run.check_claims()
    print(f"run {run.certificate['run_id']}{'stored':>78}{'recomputed':>45}")
    for name, *pair in run.figures:
        print("{:40.40} {!s:>44.44} {!s:>44.44}".format(name, *pair), "DIFFERS" * (not claims.agree(*pair)))
    print(*run.notes, sep="\n")
    return 2 * any(run.notes.values()) if all(claims.agree(*pair) for _, *pair in run.figures) else 1


def main(folder: str) -> int:
    """Check a run folder and those inside it; return 1 if a figure differs, else 2 if one is not known."""
    return max(map(check, [Path(folder), *Path(folder).glob("nested/outer-*")]), key=[0, 2, 1].index)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
