"""Simulated nights for tests."""

import json
from typing import Any

from jobs.nightly.figures import Figure, Role

MACHINE = {"processor": "A", "cores": 2, "python": "3.11.7", "packages": {"numpy": "2.4"}, "blas": ["b 1"]}
SPEED = ("studies", "twonorm:60:0", "speed")
SPEED_LABEL = "studies, twonorm:60:0, speed"
EXACT = {"winner": [1.0, 0.01, 3], "L_MS": 0.15835779655291074, "evaluations planned": 72}


def figures(speed: float = 100.0, seconds: float = 1.0, **exact: Any) -> list[Figure]:
    """Return the figures of a night."""
    values = EXACT | exact
    return [
        Figure(*SPEED, Role.RATIO, speed, json.dumps(speed)),
        Figure("solver", "twonorm:60:0", "speed", Role.RATIO, 80.0, "80.0"),
        Figure("studies", "twonorm:60:0", "seconds", Role.SHOWN, seconds, json.dumps(seconds)),
        *(Figure("studies", "twonorm:60:0", n, Role.EXACT, None, json.dumps(v)) for n, v in values.items()),
    ]
