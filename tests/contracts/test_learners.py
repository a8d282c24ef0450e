"""The contract suite, run on the learner of the package and on one that is not part of it."""

from learner_contract import LearnerContract, clouds
from nearest_centroid import NearestCentroid

from ckcv_ray import GaussianSVM


class TestGaussianSVM(LearnerContract):
    learner = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0))
    task = clouds(30, 2)


class TestGaussianSVMOfSharedDistances(LearnerContract):
    learner = GaussianSVM(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), scale="none", solver="libsvm")
    task = clouds(30, 2)


class TestNearestCentroidOfThreeClasses(LearnerContract):
    learner = NearestCentroid((0.1, 0.5, 2.0))
    task = clouds(30, 3)


class TestNearestCentroidOfTwoClasses(LearnerContract):
    learner = NearestCentroid((0.5,))
    task = clouds(30, 2, d=1)
