"""What goes wrong on purpose: answers with errors, cut connections, silence. Each fault strikes as often as it says."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
    "If you reach out to GitHub Support for help, please include the request ID."
)
_NAME = re.compile(r"\b(?:query|mutation)\s+(\w+)")


@dataclass(slots=True, eq=False)
class Fault:
    """One thing that goes wrong, at requests whose method and path (a pattern with `*`) or GraphQL operation fit."""

    method: str = "*"
    path: str = "*"
    operation: str = ""
    """A GraphQL operation by its name, or by a field that it asks for."""
    times: int = 1
    skip: int = 0
    """How many requests that fit go well before."""
    status: int = 0
    """Answer with this status; 0: as it would have been."""
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    body: bytes | None = None
    """Answer with exactly this, good JSON or not."""
    spoil: Callable[[bytes], bytes] | None = None
    """Makes another body of the one that would have been answered."""
    effect: bool = False
    """Whether the request takes effect all the same: the answer is lost, not the change."""
    cut: bool = False
    """Close the connection without an answer."""
    cut_inside: bool = False
    """Close it in the middle of the answer."""
    hang: bool = False
    """Say nothing until the other side hangs up, or until `release` is called."""
    slow: float = 0.0
    """Seconds before the answer."""
    then: Callable[[], None] | None = None
    """What happens on the server when it strikes."""
    struck: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self.released.set()

    def fits(self, method: str, path: str, operation: str, document: str) -> bool:
        if self.operation:
            return self.operation == operation or bool(re.search(rf"\b{re.escape(self.operation)}\b", document))
        return self.method in ("*", method) and fnmatchcase(path, self.path)


class Faults:
    """The faults that are still to strike, in the order in which they were added."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._waiting.append(fault)
        return fault

    def fail(
        self,
        method: str = "*",
        path: str = "*",
        *,
        status: int = 502,
        operation: str = "",
        times: int = 1,
        skip: int = 0,
        effect: bool = False,
        headers: dict[str, str] | None = None,
        message: str = "",
    ) -> Fault:
        """Answer with an error; with `effect` after the change is done."""
        return self.add(
            Fault(
                method=method,
                path=path,
                operation=operation,
                times=times,
                skip=skip,
                status=status,
                effect=effect,
                headers=headers or {},
                message=message,
            )
        )

    def cut(
        self, method: str = "*", path: str = "*", *, operation: str = "", effect: bool = False, times: int = 1
    ) -> Fault:
        """Close the connection without an answer, before the effect or after it."""
        return self.add(Fault(method=method, path=path, operation=operation, cut=True, effect=effect, times=times))

    def hang(
        self, method: str = "*", path: str = "*", *, operation: str = "", effect: bool = False, times: int = 1
    ) -> Fault:
        return self.add(Fault(method=method, path=path, operation=operation, hang=True, effect=effect, times=times))

    def garble(self, method: str = "*", path: str = "*", *, operation: str = "", effect: bool = True) -> Fault:
        """Answer with 200 and half of a JSON text."""
        fault = Fault(method=method, path=path, operation=operation, status=200, body=b'{"half": [', effect=effect)
        return self.add(fault)

    def limit(
        self,
        method: str = "*",
        path: str = "*",
        *,
        retry_after: int | None = 60,
        status: int = 403,
        operation: str = "",
        times: int = 1,
        skip: int = 0,
    ) -> Fault:
        """The secondary limit: 403 or 429, with `retry-after` or without."""
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        return self.fail(
            method,
            path,
            status=status,
            operation=operation,
            headers=headers,
            message=SECONDARY,
            times=times,
            skip=skip,
        )

    def take(self, method: str, path: str, document: str = "", operation: str = "") -> Fault | None:
        """The first fault that fits this request, counted down."""
        with self._lock:
            for fault in self._waiting:
                if not fault.fits(method, path, operation, document):
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                fault.struck += 1
                if fault.times <= 0:
                    self._waiting.remove(fault)
                return fault
        return None

    def clear(self) -> None:
        with self._lock:
            for fault in self._waiting:
                fault.release()
            self._waiting.clear()

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """Those that have not struck as often as they should."""
        with self._lock:
            return tuple(self._waiting)


def operation_name(document: str) -> str:
    found = _NAME.search(document)
    return found.group(1) if found else ""
