"""How something grows, as one number: the exponent of the power law that fits best."""

import math
import statistics
from collections.abc import Mapping


def slope(found: Mapping[int, float]) -> float:
    """0: it does not grow; 1: twice the size is twice the cost; 2: twice the size is four times the cost."""
    if len(found) < 2:
        raise ValueError("one size tells nothing of how something grows")
    sizes = [math.log(size) for size in found]
    return statistics.linear_regression(sizes, [math.log(value) for value in found.values()]).slope


def each_more(found: Mapping[int, float]) -> float:
    """What one more of them costs, by the straight line that fits best."""
    if len(found) < 2:
        raise ValueError("one size tells nothing of what one more costs")
    return statistics.linear_regression(list(found), list(found.values())).slope
