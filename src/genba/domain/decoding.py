"""Reading what was written as JSON into the shapes of the house, from any thread.

Law: how a shape is read is found out by one thread at a time, and here alone. msgspec finds it out when a shape is read
for the first time, and a second thread that reads the same shape meanwhile ends the whole process.
"""

import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_finding_out = threading.RLock()
_known: dict[Any, msgspec.json.Decoder[Any]] = {}


@overload
def reader(shape: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def reader(shape: Any) -> msgspec.json.Decoder[Any]: ...
def reader(shape: Any) -> msgspec.json.Decoder[Any]:
    """Who reads JSON as this shape."""
    known = _known.get(shape)
    if known is None:
        with _finding_out:
            known = _known.setdefault(shape, msgspec.json.Decoder(shape))
    return known


@overload
def fitted(value: Any, shape: type[T], *, strict: bool = ...) -> T: ...
@overload
def fitted(value: Any, shape: Any, *, strict: bool = ...) -> Any: ...
def fitted(value: Any, shape: Any, *, strict: bool = True) -> Any:
    """A value of plain parts as this shape; `strict` takes no text for a number."""
    reader(shape)
    return msgspec.convert(value, shape, strict=strict)


@overload
def leniently_read(text: bytes | str, shape: type[T]) -> T: ...
@overload
def leniently_read(text: bytes | str, shape: Any) -> Any: ...
def leniently_read(text: bytes | str, shape: Any) -> Any:
    """JSON as this shape, where a text may stand for a number."""
    reader(shape)
    return msgspec.json.decode(text, type=shape, strict=False)
