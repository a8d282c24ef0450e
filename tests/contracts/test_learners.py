"""The contract suite, run on the learner of the package and on one that is not part of it."""

from decision_stump import DecisionStump
from learner_contract import LearnerContract, ShortContract, clouds
from nearest_centroid import NearestCentroid

from ckcv_ray import GaussianSVM
from ckcv_ray.extend import Choice, NystroemSVM


class TestGaussianSVM(LearnerContract):
    learner = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0))
    task = clouds(30, 2)


class TestGaussianSVMOfBalancedClasses(ShortContract):
    learner = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), class_weight="balanced")
    task = clouds(30, 2)


class TestGaussianSVMOfWeightedClasses(ShortContract):
    learner = GaussianSVM(C=(0.1, 1.0), gamma=(0.1, 1.0), class_weight={1: 7, 0: 0.5})
    task = clouds(30, 2)


class TestDecisionStump(LearnerContract):
    learner = DecisionStump()
    task = clouds(30, 3)


class TestChoiceOfTwoClasses(ShortContract):
    learner = Choice((GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0)), NearestCentroid((0.5, 2.0))))
    task = clouds(30, 2)


class TestChoiceOfThreeClasses(ShortContract):
    learner = Choice((NearestCentroid((0.5,)), NearestCentroid((0.1, 2.0))), ("large", "small"))
    task = clouds(30, 3)


class TestChoiceOfAnSVMOfThreeClasses(ShortContract):
    learner = Choice((NearestCentroid((0.5,)), GaussianSVM(C=(0.1, 10.0), gamma=(0.1, 1.0))))
    task = clouds(30, 3)


class TestNearestCentroidOfThreeClasses(ShortContract):
    learner = NearestCentroid((0.1, 0.5, 2.0))
    task = clouds(30, 3)


class TestNearestCentroidOfTwoClasses(ShortContract):
    learner = NearestCentroid((0.5,))
    task = clouds(30, 2, d=1)


class TestGaussianSVMOfThreeClasses(ShortContract):
    learner = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0))
    task = clouds(30, 3)


class TestNystroemSVM(LearnerContract):
    learner = NystroemSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), landmarks=6)
    task = clouds(30, 2)


class TestNystroemSVMOfThreeClasses(ShortContract):
    learner = NystroemSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), landmarks=6)
    task = clouds(30, 3)


class TestNystroemSVMWithoutScaling(ShortContract):
    learner = NystroemSVM(C=(0.1, 1.0), gamma=(0.1, 1.0), landmarks=6, scale="none", class_weight={1: 7})
    task = clouds(30, 3)
