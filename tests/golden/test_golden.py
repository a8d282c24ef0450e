"""The golden values: see ``golden``."""

import golden
import pytest


@pytest.mark.parametrize("name", golden.STUDIES)
def test_nothing_has_changed(name: str) -> None:
    kept = golden.recorded()["studies"]
    assert golden.differences(name, kept[name], golden.observe(name), golden.is_exact()) == []


def test_any_change_is_seen() -> None:
    kept = golden.recorded()["studies"]["plain"]
    for key, value in kept.items():
        other = kept | {key: [value]}
        assert golden.differences("plain", kept, other, exact=True)
        assert bool(golden.differences("plain", kept, other, exact=False)) == (key != golden.EXACT)


def test_the_studies_are_what_they_are_called() -> None:
    kept = golden.recorded()["studies"]
    assert kept["a failed split"]["provisional"]
    assert [claim[1] for claim in kept["holdout with three claims"]["claims"]] == [
        "keyed",
        "vote",
        "member:2",
        "random",
        "random",
    ]
    assert len(kept["nested"][golden.EXACT]) == 2
