"""What a step came to survives being written down."""

import errno

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from genba.coordination.engine import checkpoints
from genba.domain import errors
from genba.domain.errors import (
    ConfigurationError,
    DiskFullError,
    GenbaError,
    GitError,
    RecoverableError,
    UnexpectedError,
)
from genba.domain.fleet.records import SegmentEnd, WaitsFor
from genba.domain.problems import Problem

CLASSES = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, GenbaError)]


class Odd(GitError):
    """A class that the tree of errors does not have."""

    def __init__(self) -> None:
        super().__init__("odd", hint="even")


def raised(text: str) -> GenbaError:
    with pytest.raises(GenbaError) as caught:
        checkpoints.read(text, int)
    return caught.value


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_of_the_house_is_raised_again_as_it_was(kind: type[GenbaError]) -> None:
    error: GenbaError
    if issubclass(kind, ConfigurationError):
        error = kind((Problem("a.json", "x.y", "is wrong", "write it"), Problem("b", "", "too")), hint="look")
    elif issubclass(kind, RecoverableError):
        error = kind("later", retry_after=2.5, hint="wait")
    else:
        error = kind("no", unchanged="nothing was changed.", hint="genba doctor")
    again = raised(checkpoints.write_error(error))

    assert type(again) is kind
    assert vars(again) == vars(error)
    assert (str(again), again.exit_code) == (str(error), error.exit_code)


def test_an_error_of_another_room_is_raised_as_the_nearest_that_everybody_knows() -> None:
    again = raised(checkpoints.write_error(Odd()))

    assert type(again) is GitError
    assert (again.message, again.hint) == ("odd", "even")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LookupError("no\n such"), "LookupError: no such"),
        (OSError(), "OSError"),
        (ValueError("\udc80\0"), "ValueError: ?�"),
    ],
)
def test_an_unexpected_error_is_reported_in_one_line(error: Exception, message: str) -> None:
    again = raised(checkpoints.write_error(error))

    assert type(again) is UnexpectedError
    assert again.message == message


def test_a_full_disk_is_recognised_from_every_source() -> None:
    again = raised(checkpoints.write_error(OSError(errno.ENOSPC, "No space left on device")))

    assert type(again) is DiskFullError
    assert again.message == "the disk is full: [Errno 28] No space left on device"


def test_an_error_that_this_genba_does_not_know_stops_the_run() -> None:
    kept = checkpoints.StoredError("FromTheFuture", "it is different now")

    assert type(checkpoints.raised(kept)) is errors.UnrecoverableError


@pytest.mark.parametrize("value", [object(), "\udc80", {"x": {1, object()}}])
def test_a_value_that_cannot_be_written_is_a_fault_of_its_step(value: object) -> None:
    assert "cannot be written down" in raised(checkpoints.write_value(value)).message


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists, max_leaves=9))
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    try:
        text = checkpoints.write_value(value)
        text.encode()
    except UnicodeEncodeError:
        return

    if "cannot be written down" not in text:
        assert checkpoints.read(text, object) == value


def test_a_struct_is_read_as_it_was_written() -> None:
    end = SegmentEnd(run="r", part=2, waits_for=WaitsFor.MERGE, verified="abc", cost_usd=0.25)

    assert checkpoints.read(checkpoints.write_value(end), SegmentEnd) == end


def test_the_engine_writes_inputs_results_and_errors_as_json() -> None:
    serializer = checkpoints.JsonSerializer()
    kept = [{"args": ["{}"], "kwargs": {}}, "text", None]

    assert [serializer.deserialize(serializer.serialize(one)) for one in kept] == kept
    again = serializer.deserialize(serializer.serialize(GitError("no", hint="yes")))
    assert type(again) is GitError
    assert msgspec.json.decode(serializer.serialize(KeyError("x")))["error"]["kind"] == "UnexpectedError"


def test_a_write_that_failed_is_never_written_down_as_what_came_of_a_step() -> None:
    failed = OperationalError("INSERT", {}, Exception("database or disk is full"))

    with pytest.raises(OperationalError):
        checkpoints.JsonSerializer().serialize(failed)
