"""Where things stand that need each other."""

import random
import time

from genba.judgement.views.graph_layout import layers, places


def test_what_is_needed_stands_on_the_left() -> None:
    needs = {2: [1], 3: [1], 4: [2, 3], 5: [4, 1]}
    assert layers((1, 2, 3, 4, 5), needs) == {1: 0, 2: 1, 3: 1, 4: 2, 5: 3}


def test_a_circle_begins_with_its_first_and_ends_where_it_would_come_back() -> None:
    assert layers(("plan", "work", "check"), {"work": ["plan", "check"], "check": ["work"]}) == {
        "plan": 0,
        "work": 1,
        "check": 2,
    }
    assert layers((1, 2), {1: [2, 1], 2: [1]}) == {1: 0, 2: 1}


def test_no_two_agents_share_a_place() -> None:
    chance = random.Random(1)
    names = tuple(range(300))
    needs = {name: chance.sample(names, 2) for name in names[:200]}
    stands = places(names, needs)
    assert len(set(stands.values())) == len(names)
    assert places(names, needs) == stands


def test_what_nothing_relates_to_stands_below_the_others() -> None:
    stands = places((1, 2, 3, 4), {2: [1]})
    assert stands[1] == (0, 0)
    assert stands[2] == (1, 0)
    assert {stands[3][1], stands[4][1]} == {1}


def test_a_column_that_is_too_tall_goes_on_beside_itself() -> None:
    needs = {100: list(range(40))}
    stands = places((*range(40), 100), needs, tall=16)
    assert max(y for _, y in stands.values()) == 15
    assert stands[100][0] == 3


def test_names_that_are_not_there_are_nobodys_need() -> None:
    assert places((1,), {1: [9]}) == {1: (0, 0)}


def test_a_chain_of_many_thousands_takes_no_longer_than_it_has_to() -> None:
    began = time.process_time()
    names = tuple(range(20_000))
    found = layers(names, {name: [name - 1] for name in names[1:]})
    assert found[19_999] == 19_999
    assert time.process_time() - began < 5
