"""The registry of what ``machine_code`` compiles and loads; separate, so that it does not import numba."""

from collections.abc import Callable
from typing import Any

Signatures = list[tuple[Any, tuple[Any, ...]]]  # functions, each with the types of its arguments

_listings: list[Callable[[], Signatures]] = []


def register_signatures(listing: Callable[[], Signatures]) -> None:
    """Register the functions that ``listing`` returns for compiling and loading, callees first."""
    _listings.append(listing)


def list_signatures() -> Signatures:
    """Return every registered function with the types of its arguments, callees first."""
    return [pair for listing in _listings for pair in listing()]
