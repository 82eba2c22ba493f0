"""How something grows, as one number."""

import pytest

from bench.slopes import each_more, slope

SIZES = (10, 100, 1_000, 10_000)


@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2])
def test_the_exponent_of_a_power_law_is_found(exponent: float) -> None:
    assert slope({size: 3e-4 * size**exponent for size in SIZES}) == pytest.approx(exponent)


def test_what_one_more_costs_leaves_out_what_all_cost_together() -> None:
    assert each_more({8: 100 + 8 * 6.5, 64: 100 + 64 * 6.5}) == pytest.approx(6.5)


@pytest.mark.parametrize("measure", [slope, each_more])
def test_one_size_tells_nothing(measure: object) -> None:
    with pytest.raises(ValueError, match="one size tells nothing"):
        measure({10: 1.0})  # type: ignore[operator]
