"""A folder on the PATH that the user may not enter, such as one of root's after `su`, is passed over."""

import os
from pathlib import Path

from genba.connections.goals.installed_copies import untested_package
from genba.connections.sandbox.system_folders import toolchain_folders


def test_a_folder_on_the_path_that_may_not_be_entered_is_passed_over(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "tools" / "bin").mkdir(parents=True)
    closed.chmod(0o000)
    child = os.fork()
    if child == 0:  # root may enter everything
        try:
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            path = f"{closed}/tools/bin:/usr/bin"
            found = toolchain_folders({"HOME": "/nonexistent", "PATH": path})
            untested_package(path, tmp_path, tmp_path)
            os._exit(any(place.startswith(str(closed)) for place in found))
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    closed.chmod(0o700)
    assert os.waitstatus_to_exitcode(status) == 0
