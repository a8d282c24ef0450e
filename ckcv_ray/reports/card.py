"""A result as a card of a notebook: what may be quoted, and the bound drawn next to what was measured."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ckcv_ray.claims.percent import at_most, nearest
from ckcv_ray.reports.answer import make_answer
from ckcv_ray.reports.values import ResultValues

ROOM = 1.15  # of the scale, times the largest share


def make_card(result: ResultValues) -> str:
    """Return the card of a study with a certification, as an element of an HTML page."""
    answer = make_answer(result)
    most = max([*answer.shares.values(), 1e-9]) * ROOM
    bars = [
        (name, at_most(share) if name == "proven" else nearest(share), round(100 * share / most, 2))
        for name, share in answer.shares.items()
    ]
    return _load_template().render(answer=answer, bars=bars, run_id=result.run_id)


@cache
def _load_template() -> Template:
    loader = PackageLoader("ckcv_ray.reports")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("card.html")
