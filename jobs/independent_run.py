"""A run folder, read a second time for ``jobs/check_certificate.py``: what it stores and what is redrawn.

Nothing here is shared with the package.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from jobs import independent_judged as judged


def find_rows(table: Any, where: str) -> Any:
    """Return which rows meet a condition, such as date>=2025-01-01."""
    name, sign, text = map(str.strip, re.split("(>=|>|=)", where, maxsplit=1))
    values = np.array(table[name].to_pylist(), object)
    read: Any = {str: str, datetime: datetime.fromisoformat}.get(type(values[0]), float)
    compare: Any = {"=": np.equal, ">=": np.greater_equal, ">": np.greater}[sign]
    return compare(values, read(text)).astype(bool)


class Run:
    """What a folder stores, what is drawn again from it, and the figures that were compared."""

    winner: dict[str, Any]  # among the candidates

    def __init__(self, folder: Path) -> None:
        self.figures, self.notes = list[tuple[str, Any, Any]](), dict[str, bool]()  # True: not known
        self.certificate = json.loads((folder / "certificate.json").read_text())
        study = json.loads((folder / "study.json").read_text())["study"]
        self.learner, self.resampling, self.seed = study["learner"], study["resampling"], study["seed"]
        self.criterion, self.certify = study["criterion"], study["certify"]
        self.delta, self.labels = self.criterion["delta"], self.certificate["labels"]
        assert self.labels, "it predicts numbers, whose claims are not recomputed here"
        self.where = self.certify.get("holdout_where")
        table = parquet.read_table(folder / "data.parquet")
        role = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        self.salt = bytes.fromhex(role["salt"])
        self.compare("salt", self.certificate["salt"], role["salt"])
        self.notes |= {
            "taken on trust: the salt, a digest of the whole table, which is not in the folder": False
        }
        self.columns, number = table.to_pydict(), {label: i for i, label in enumerate(self.labels)}
        roles = ("target", "group", "weight", "split_by")
        y, group, weight, _ = (self.columns.pop(role.get(name), None) for name in roles)
        self.all_y, self.grouped = np.array([number[label] for label in y]), group is not None
        self.weights = np.array(weight or [1.0] * len(y))
        self.all_units, self.drawn = np.array(group or range(len(y))), np.empty(0, int)
        units = int(self.all_units.max()) + 1
        if self.where:
            self.drawn = np.unique(self.all_units[find_rows(table, self.where)])
        elif self.certify["name"] == "holdout":
            self.drawn = self.draw(0, 0, 2).permutation(units)[: int(self.certify["holdout_share"] * units)]
        self.held = np.isin(self.all_units, self.drawn)
        self.order = np.searchsorted(np.sort(self.drawn), self.drawn)
        self.y, learned = self.all_y[~self.held], self.all_units[~self.held]
        self.units, self.n = np.unique(learned, return_inverse=True)[1], len(np.unique(learned))
        self.candidates = parquet.read_table(folder / "candidates.parquet").to_pylist()
        self.models = {f.stem: parquet.read_table(f).to_pylist() for f in folder.glob("ensemble/*.parquet")}
        self.judged = judged.read_judged(folder)
        self.log = dict[tuple[Any, ...], list[int]]()
        for row in (row for f in folder.glob("log/part-*") for row in parquet.read_table(f).to_pylist()):
            if row["status"] != "failed":
                at = tuple(row[name] for name in ("stage", "size", "split", "path", "step"))
                self.log[at] = [row[name] for name in row if name.startswith("total_")]

    def draw(self, *key: int) -> np.random.Generator:
        """Return the generator of a key."""
        entropy = np.frombuffer(self.salt + self.seed.to_bytes(16, "little"), "<u4").tolist()
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))

    def compare(self, name: str, stored: Any, computed: Any) -> None:
        """Note a figure."""
        self.figures.append((name, stored, computed))

    @contextmanager
    def note_unknown(self, what: str) -> Iterator[None]:
        """Note what cannot be recomputed, for whatever reason."""
        try:
            yield
        except Exception as error:  # any error: a stranger's folder may hold anything
            self.notes[f"not known: {what}: {type(error).__name__}: {error}"] = True

    def count_splits(self, k: int) -> tuple[int, bool]:
        """Return the number of splits of k folds, and whether their order is shuffled before it is used."""
        n, m, asked = self.n, self.n // k, self.resampling.get("n_splits", 0)
        possible = comb(n, m) * comb(n - m, m) if n < 2000 else asked + 1
        return (min(possible, asked), possible <= asked) if asked else (k, True)

    def find_rows(self, k: int, number: int, estimate: bool) -> Any:
        """Return which of the rows to learn from are in the select or the estimate set of a split."""
        m, shuffled = self.n // k, self.count_splits(k)[1]
        if shuffled and "n_splits" in self.resampling:
            raise NotImplementedError(f"the few possible splits of {k} folds are not drawn")
        order = (self.draw(k, 0, 4) if shuffled else self.draw(m, number)).permutation(self.n)
        first = (number + estimate) % k * m if shuffled else estimate * m
        return np.isin(self.units, order[first : first + m])

    def count_classes(self, k: int, number: int, estimate: bool) -> list[int]:
        """Return the rows of each class in the select or the estimate set of a split."""
        y = self.y[self.find_rows(k, number, estimate)]
        return list(np.bincount(y, minlength=len(self.labels)).tolist())

    def ask_machines(self, rule: str) -> Any:
        """Return the classes that machines of two classes give the held-out rows by a rule, or else None."""
        X, stem = np.array(list(self.columns.values())).T, "refit" if rule == "refit" else "models"
        machines = self.learner["name"] == "svm" and len(self.labels) == 2 and X.dtype == float
        if not machines or rule not in ("refit", "vote"):
            return None
        labels = judged.classify_rows(self.models[stem], X[~self.held], X[self.held])
        return np.argmax([np.sum(labels == c, axis=0) for c in (0, 1)], axis=0)  # ties: the first class

    def check_judged(self) -> None:
        """Compare judged rows with those held out, and with what machines say."""
        rows, y, units = np.flatnonzero(self.held), self.all_y[self.held], self.all_units[self.held]
        for name, stored in self.judged.items():
            order = np.argsort(self.drawn)[np.searchsorted(np.sort(self.drawn), units)]
            expected = {"row": rows, "unit": units, "order": order, "label": y}
            expected |= {"weight": self.weights[self.held]} if "weight" in stored else {}
            expected |= {"loss": stored["predicted"] != y, "predicted": self.ask_machines(name)}
            for column, values in expected.items():
                if values is not None:
                    self.compare(f"judged rows, {column} by {name}", stored[column].tolist(), values.tolist())
