"""A share of the fuzzing, always the same: an answer or an error of the house, whatever comes in."""

import pytest

from tests.fuzz.budget import play_share
from tests.fuzz.commands import COMMAND_TARGETS
from tests.fuzz.git_targets import GIT_TARGETS
from tests.fuzz.run_targets import RUN_TARGETS
from tests.fuzz.targets import TARGETS, Target

ALL = (*TARGETS, *RUN_TARGETS, *GIT_TARGETS, *COMMAND_TARGETS)


@pytest.mark.parametrize("target", ALL, ids=[target.name for target in ALL])
def test_whatever_comes_in_is_answered_or_refused(target: Target) -> None:
    play_share(target)
