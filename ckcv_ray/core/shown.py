"""What is made of results and plans far above them, and imported when it is asked for."""

from importlib import import_module
from typing import Any

SHOWN = {
    "calibration": "runs.judged.calibrate",
    "card": "reports.render.make_card",
    "plan": "reports.render.make_plan_card",
    "plot": "reports.figures.Plots",
    "scores": "reports.figures.plot_scores",
    "summary": "reports.render.summarize",
}


def present(what: str, *shown: Any) -> Any:
    """Return what one of the functions of ``SHOWN`` makes."""
    module, _, function = SHOWN[what].rpartition(".")
    return getattr(import_module(f"ckcv_ray.{module}"), function)(*shown)
