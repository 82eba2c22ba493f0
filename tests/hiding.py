"""A process that shows neither its words nor its environment, as one does that is just becoming another program.

python -m tests.hiding [SECONDS WORD…]: hides for good, or becomes another program after so many seconds.
"""

import ctypes
import os
import sys
import time
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def hide() -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[48])  # from where its words begin to where its environment ends
    begin, end = begin // _PAGE * _PAGE, -(-end // _PAGE) * _PAGE
    unmap = ctypes.CDLL(None).munmap
    unmap.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    assert unmap(begin, end - begin) == 0


if __name__ == "__main__":
    words, environment = list(sys.argv[1:]), dict(os.environ)
    hide()
    os.write(1, b"hidden\n")
    if not words:
        time.sleep(600)
    time.sleep(float(words[0]))
    os.execve(words[1], words[1:], environment)
