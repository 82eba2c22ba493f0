"""A soak as short as it can be: a few minutes of a fleet by its own clock. `make soak` has the whole day."""

from pathlib import Path

import pytest

from bench.soak import Soak, laws
from bench.soak_day import HOUR, Kind, is_idle, plan
from tests.faketime import NOT_RUN, library


def test_a_whole_day_has_every_kind_of_deed_and_nights_without_any() -> None:
    effects = plan(24)

    assert {deed.kind for deed in effects} == set(Kind)
    idle = [hour for hour in range(24) if is_idle(hour, 24)]
    assert idle == [*range(8, 16), 22, 23]
    assert not [deed for deed in effects if deed.at // HOUR in idle]
    asked = {deed.number for deed in effects if deed.kind is Kind.ASKING}
    assert asked == {deed.number for deed in effects if deed.kind is Kind.ANSWER}


@pytest.mark.skipif(library() is None, reason=NOT_RUN)
def test_a_few_minutes_of_a_fleet_leave_nothing_behind_and_nothing_goes_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = Soak("sqlite", hours=0.3, speed=300, folder=tmp_path).live()

    assert day.wrong == []
    assert day.tasks == 2
    assert {row.what.partition(":")[0] for row in laws(day)} == {"SQLite"}
    assert "SQLite     hour  1" in capsys.readouterr().out
