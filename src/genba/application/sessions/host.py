"""The name of this machine, as sessions and executors record it."""

import os

HOST_VARIABLE = "GENBA_HOST"


def host_name() -> str:
    return os.environ.get(HOST_VARIABLE) or os.uname().nodename
