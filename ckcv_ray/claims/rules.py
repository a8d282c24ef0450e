"""How an ensemble classifies rows, and how claims name it: the rule applied is the rule that is claimed.

A draw by a hash of the row with a fixed key always gives equal rows the same member. That is one classifier,
x -> f_h(x)(x), whose risk is not the members' mean risk; held-out rows classified by the same rule bound it.
The mean risk is that of a member drawn independently for each pattern (the vote errs at most twice as often).
"""

from dataclasses import dataclass

from ckcv_ray.data.schema import Rows
from ckcv_ray.learners.ensemble import Ensemble, Prediction
from ckcv_ray.study import member_of

ENSEMBLE, NESTED = "F*", "the nested ensemble (not F*)"


@dataclass(frozen=True)
class Rule:
    """A way to classify rows.

    Attributes:
        name: "keyed" (a member chosen by a hash of the row), "random" (a member drawn independently for each
            row), "vote" (the majority) or "member:7" (the member of split 7).
        seed: key of the hash, or seed of the draws; the other rules ignore it.
        splits: for "random", the splits whose members are drawn from; empty for all of them.
    """

    name: str
    seed: int = 0
    splits: tuple[int, ...] = ()

    def predict(self, ensemble: Ensemble, X: Rows) -> Prediction:
        """Classify every row of X [rows, d]."""
        match self.name:
            case "keyed":
                return ensemble.keyed(X, self.seed)
            case "random":
                return ensemble.random(X, self.seed, self.splits)
            case "vote":
                return ensemble.vote(X)
        return ensemble.by_member(X, member_of(self.name))

    def classifier(self, of: str = ENSEMBLE) -> str:
        """Return a phrase that names what classifies a pattern."""
        match self.name:
            case "keyed":
                return f"the member of {of} that ckcv predict draws for it (by a hash of its values)"
            case "random":
                return self._drawn(of)
            case "vote":
                return f"the majority vote of {of}"
        return f"the member of {of} fitted on split {member_of(self.name)}"

    def _drawn(self, of: str) -> str:
        """Return a phrase that names a member drawn from ``splits``."""
        if len(self.splits) == 1:
            return f"the member of {of} fitted on split {self.splits[0]}"
        which = f"a member of {of}"
        if self.splits and self.splits == tuple(range(len(self.splits))):
            which = f"one of the first {len(self.splits)} members of {of}"
        elif self.splits:
            which = f"one of the members of {of} fitted on splits {', '.join(map(str, self.splits))},"
        return f"{which} drawn independently for each pattern"
