"""Recompute every bound of a run folder independently of the package, which is never imported.

    python jobs/check_certificate.py runs/patients

Every computation is numpy's, here and in ``independent_*``; pyarrow reads the Parquet files. Recomputed are
the criterion of every candidate, L_MS and L_EE, the bounds by class, and the counts, delta, bound and gate of
every claim; splits and held-out rows are drawn again. It prints a table, what was taken as stored, and what
is not known. Exit codes: 0 all agree to 1e-9; 1 one differs; 2 not known.
"""

import re
import sys
from fractions import Fraction
from math import ceil, fsum, prod
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from jobs import independent_betting as betting
from jobs import independent_bounds as bounds
from jobs import independent_claims as claims
from jobs import independent_judged as judged
from jobs.independent_run import Run

ONE = 1 << 32  # a group's loss of 1
OF_CLASS = claims.OF_CLASS
FIGURES = {"lower_bound": "select", "l_ms": "select", "l_ee": "estimate"}  # of a candidate, and their sets
Claim = dict[str, Any]


class Check(Run):
    """The figures of a run, recomputed."""

    def compute_value(self, totals: list[list[int]], k: int, of_ee: bool) -> float:
        """Return the criterion over splits of k folds from their totals, on select sets or as L_EE."""
        m, name, d, losses = self.n // k, self.criterion["name"], self.delta, list[Any](map(sum, totals))
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
        elif name == "cost" or self.grouped:
            values = [bounds.value_loss(loss, m, d) for loss in losses]
        elif m > bounds.MOST:
            values = bounds.bound_count(losses, m, d).tolist()
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
        if self.where and (self.grouped or quantity.startswith("weighted_error:")):
            raise NotImplementedError("losses of rows held out by a column")
        jointly, delta = claims.share_claims(self.certify, len(self.labels), self.delta)
        required = claims.name_required(self.certify)
        if required and quantity in (required, *OF_CLASS):
            self.notes["taken as stored: the held-out rows counted at the last test that passed"] = False
            y = self.all_y[self.held]
            return claims.bound_tested(claim, self.certificate, self.certify, y, delta / 2, copies)
        if quantity.split(":")[0] in claims.PREDICTIVE:
            pair = claims.find_recalls(self.certificate["claims"], claim)
            missed = [self.bound_claim(recall, copies)[0] for recall in pair]
            nothing = any(bound in (None, 1.0) for bound in missed)
            bound = None if nothing else 1 - claims.predict(quantity, *(1 - bound for bound in missed))
            return [bound, None, None, delta / 2 if required else delta]
        if quantity in claims.ANSWERED:
            found = self.judge(claim["classifier"])
            if found is None or len(self.labels) > 2:
                self.notes["taken as stored: the held-out rows answered, and the wrong ones"] = False
            seen = judged.count_answered(claim, found, self.all_y[self.held])
            of = float(self.certify["answer"].partition("<=")[2]), int(np.sum(self.held))
            return claims.bound_answered(claim, *seen, *of, delta / 2, copies)
        if quantity.startswith("weighted_error:"):
            measured, *found = judged.bound_weighted(claim, self.judged, delta, copies)
            self.compare("measured by weight", claim["measured"], measured)
            return [*found, delta]
        if quantity.startswith("better:"):
            return [*self.compare_learners(claim, delta, copies), delta]
        number = self.labels.index(claim["label"]) if quantity in OF_CLASS else None
        if kind == "holdout" and quantity in ("error", "auc", "precision", *OF_CLASS):
            delta = delta if number is None else delta / jointly
            return [*self.bound_held_out(claim, number, delta, copies), delta]
        if kind != "paper" or quantity != "error":
            raise NotImplementedError(f"{quantity} by {kind}")
        models, m = self.models["models"], self.n // self.winner["k_first"] - copies
        losses = [model["loss"] / ONE if self.grouped else sum(model["errors"]) for model in models]
        level = self.delta * self.share_delta()
        bound = bounds.bound_safe([min(loss, m) for loss in losses], m, level, self.grouped)
        wrong, rows = (sum(sum(model[name]) for model in models) for name in ("errors", "n_estimate"))
        return [bound, wrong, rows, self.delta]

    def share_delta(self) -> float:
        """Return the winner's share of delta, from the number of candidates that the study has."""
        ks = {row["k_first"] for row in self.candidates}
        learners = [row.get("learner") for row in self.candidates if row["k_first"] == self.winner["k_first"]]
        described = self.learner.get("learners", [self.learner])
        grids = [x.get("param") or {n: x.get(n, ()) for n in ("C", "gamma")} for x in described]
        if all(map(len, (values for grid in grids for values in grid.values()))) and self.are_listed(grids):
            settings = sum(prod(map(len, grid.values())) for grid in grids)
            self.compare("candidates", len(self.candidates), len(ks) * settings)
        else:
            self.notes["taken as stored: the number of settings, which the study does not list"] = False
        settings = learners.count(self.winner.get("learner")) * len(described)
        return bounds.share_delta(ks, self.winner["k_first"], settings)

    def are_listed(self, grids: list[dict[str, Any]]) -> bool:
        """Return whether some grid of the study has every parameter of each candidate: others are usual."""
        besides = list(self.winner)[list(self.winner).index("k_first") :]
        own = [
            {name for name, value in row.items() if value is not None} - {"path", "step", "learner", *besides}
            for row in self.candidates
        ]
        return all(any(names <= set(grid) for grid in grids) for names in own)

    def bound_held_out(self, claim: Claim, number: int | None, delta: float, copies: int) -> list[Any]:
        """Return the bound, the wrong rows and the rows of a claim from held-out rows."""
        y, rule, quantity = self.all_y[self.held], claim["classifier"], claim["quantity"]
        of_scores = quantity == "auc" or "cut_off" in claim
        found: Any = self.judged.get(rule) if of_scores else self.judge(rule)
        if found is None and self.grouped:
            raise NotImplementedError(f"the loss of held-out groups by {rule}, which is not stored")
        if found is None:
            self.notes[f"taken as stored: the wrong held-out rows or pairs, {quantity} of {rule}"] = False
        if self.grouped:
            loss = found["predicted"] != y
            losses = np.ceil(judged.average_groups(loss, self.all_units[self.held]) * ONE) / ONE
            bound = betting.bound_held(losses[self.order], delta, copies)
            return [bound, int(np.sum(loss)), len(y)]
        sizes = np.bincount(y, minlength=len(self.labels))
        positive = self.labels.index(self.certify.get("positive") or self.labels[1])
        of: Any = (y == number) | (number is None)
        if quantity == "precision":
            of = judged.decide(found, claim.get("cut_off"), positive) == positive
        m = int(min(sizes) if quantity == "auc" else np.sum(of))
        left, v = m - copies, 1.0
        name, _, value = self.certify.get("require", "").partition(">=")
        required, least = quantity == name, float(value or 0)  # whether the cut-off was chosen for it
        of_required = int(sizes[positive if name == "sensitivity" else 1 - positive])
        if value and number is not None and bounds.bound_count(0, of_required, delta) > 1 - least:
            return [None, 0, m]  # no cut-off qualifies
        wrong = np.arange(m) < (claim["errors"] or 0)
        if required:
            wrong = np.arange(m) < np.sum(bounds.bound_count(np.arange(m + 1), m, delta) <= 1 - least) - 1
        elif found is not None:
            wrong = judged.find_wrong(found, claim, y, of, self.order, positive, self.draw(0, 0, 6, 0))
        x = int(np.sum(wrong))
        if self.certify.get("holdout_bound") == "stevens" and not (copies or required):
            if found is None:
                raise NotImplementedError(f"which rows or pairs are wrong, {quantity} of {rule}")
            v = bounds.rank(wrong)
        bound = float(bounds.bound_count(min(x, max(0, left)), max(0, left), delta, v))
        if self.where and x == left - 1:  # of unlike rows
            bound = max(bound, 1 - delta / left)
        return [bound if m else None, x, m]

    def compare_learners(self, claim: Claim, delta: float, copies: int) -> list[Any]:
        """Return the bound, the rows lost and the rows decided of a comparison with another learner."""
        winner, other = (self.judged.get(claim[name]) for name in ("classifier", "quantity"))
        if winner is None or other is None:  # there is nothing to compare with
            return [None, 0, 0]
        units = self.all_units[self.held]
        return judged.compare_learners(winner, other, self.all_y[self.held], units, self.order, delta, copies)

    def pass_gate(self, claim: Claim) -> list[Any]:
        """Return the class that is hardest to beat by always predicting it, and how far it is beaten."""
        if (found := self.judge(claim["classifier"])) is None:
            self.notes[f"taken as stored: the gate of {claim['classifier']}"] = False
            return list(claim["gate"].values())
        return judged.compare_constants(claim, found, self.all_y, self.all_units, self.held, self.order)

    def judge(self, rule: str) -> Any:
        """Return the held-out rows as a rule judges them: as stored, else by machines; None if by neither."""
        if rule in self.judged:
            return self.judged[rule]
        label = self.ask_machines(rule)
        return None if label is None else {"predicted": label}

    def check_claims(self) -> None:
        """Compare every claim, and the bound of the first if equal rows have one origin."""
        for claim in (stored := self.certificate)["claims"]:
            words = [claim[name] for name in ("certification", "classifier", "quantity", "label")]
            name = " ".join(str(word) for word in words if word is not None)
            with self.note_unknown(name):
                values = (claim[part] for part in ("bound", "errors", "rows", "delta"))
                self.compare(name, list(values), self.bound_claim(claim, 0))
                if claims.is_guarded(claim):
                    self.compare(f"gate of {name}", self.pass_gate(claim), list(claim["gate"].values()))
        if parts := stored.get("subgroups"):
            self.notes["taken as stored: the counts of subgroups"] = False
            delta = claims.share_claims(self.certify, len(self.labels), self.delta)[1]
            made = claims.bound_subgroups(parts, self.certify["subgroups"], delta)
            self.compare("subgroups", [part["bound"] for part in parts], made)
        with self.note_unknown("bound without copies"):
            judged = set(self.all_units[self.held if np.any(self.held) else ...].tolist())
            table = self.columns, self.all_y, self.all_units
            repeats, copies = bounds.count_copies(*table, stored["repeats"], judged)
            found = [self.bound_claim(stored["claims"][0], left)[0] for left in (0, copies)]
            self.compare("rows that repeat", stored["repeats"], repeats)
            bound = None if None in found else max(found)
            self.compare("bound without copies", stored["bound_without_copies"], bound)


def main(address: str) -> int:
    """Print the table of a folder, what was taken as stored and what is not known; return the exit code."""
    folder = Path(address)
    try:
        run = Check(folder)
    except Exception as error:
        print(f"not known: {folder.name} is no finished run of ckcv run: {type(error).__name__}: {error}")
        return 2
    for what, compare in (("candidates", run.check_candidates), ("judged rows", run.check_judged)):
        with run.note_unknown(what):
            compare()
    run.check_claims()
    print(f"run {run.certificate['run_id']}{'stored':>78}{'recomputed':>45}")
    for name, *pair in run.figures:
        print("{:40.40} {!s:>44.44} {!s:>44.44}".format(name, *pair), "DIFFERS" * (not claims.agree(*pair)))
    print(*run.notes, sep="\n")
    return 2 * any(run.notes.values()) if all(claims.agree(*pair) for _, *pair in run.figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
