"""The contract suite, run on somebody else's learner, as docs/contributing/extending.md shows it."""

from learner_contract import ShortContract, clouds
from nearest_centroid import NearestCentroid


class TestNearestCentroid(ShortContract):
    learner = NearestCentroid((0.1, 0.5, 2.0))
    task = clouds(40, 3)
