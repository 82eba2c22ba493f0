"""Genba's own virtual environment is not what a project is tested with, wherever it stands on the PATH."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from genba.connections.processes.environment import passed_on, without_own_tools
from tests.bubblewrap import needs_bubblewrap
from tests.project import Project, ordinary_environment
from tests.python_tools import linked_genba, path_with_python

OWN = Path(sys.prefix)
WHERE = "python3 -c 'import sys; print(sys.prefix)'"


def test_the_folder_of_its_programs_is_taken_off_the_path_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(OWN / "bin")
    entries = [
        "/usr/local/bin",
        str(OWN / "bin"),
        f"{OWN}/bin/",
        f"{OWN}/../{OWN.name}/bin",
        f"{tmp_path}/link",
        "/bin",
    ]
    seen = passed_on({"PATH": os.pathsep.join(entries)}, tmp_path)

    assert seen["PATH"] == f"/usr/local/bin{os.pathsep}/bin"


def test_variables_that_lead_there_are_dropped_and_others_stay(tmp_path: Path) -> None:
    own = {"VIRTUAL_ENV": str(OWN), "PYTHONHOME": str(OWN), "PYTHONPATH": f"{OWN}/lib{os.pathsep}/usr/lib/more"}
    seen = without_own_tools({**own, "PATH": "/bin"}, tmp_path)
    assert seen == {"PATH": "/bin", "PYTHONPATH": "/usr/lib/more"}

    other = {"VIRTUAL_ENV": "/home/me/.venv", "PATH": "/home/me/.venv/bin:/bin", "PYTHONPATH": "/x"}
    assert without_own_tools(other, tmp_path) == other


def test_the_environment_of_the_project_itself_stays() -> None:
    environment = {"PATH": f"{OWN}/bin:/bin", "VIRTUAL_ENV": str(OWN)}
    assert without_own_tools(environment, OWN.parent) == environment


def installed_at(folder: Path) -> Path:
    """Genba in a virtual environment of its own there: a few links to the one that runs the tests."""
    venv.EnvBuilder(symlinks=True).create(folder)
    packages = next(folder.glob("lib/python*/site-packages"))
    ours = next(OWN.glob("lib/python*/site-packages"))
    (packages / "genba.pth").write_text(f"{ours}\n{Path(__file__).parents[2] / 'src'}\n")
    genba = folder / "bin" / "genba"
    genba.write_text(f"#!{folder}/bin/python\nfrom genba.entrypoints.cli.main import main\nmain()\n")
    genba.chmod(0o755)
    return genba


def prefix_of_goals(genba: Path, project: Project) -> str:
    """The environment that goals of the project run in, with that of Genba first on the PATH."""
    goal = {"custom_script": f"{WHERE} >&2; false"}
    project.write(".genba/config.yaml", json.dumps({"dod": [goal]}))
    environment = {**ordinary_environment(), **project.environment}
    environment["PATH"] = f"{genba.parent}{os.pathsep}{os.environ['PATH']}"
    words = [str(genba), "verify", "main", "--json"]
    done = subprocess.run(
        words, cwd=project.root, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    result = json.loads(done.stdout)["verification"]["results"][0]["result"]
    return str(result["output"]).strip().splitlines()[-1]


def test_an_environment_in_the_folder_of_the_project_is_the_projects_own(project: Project) -> None:
    genba = installed_at(project.root / ".venv")
    assert prefix_of_goals(genba, project) == str(project.root / ".venv")


def test_an_environment_with_the_project_installed_is_the_projects_own(project: Project, tmp_path: Path) -> None:
    genba = installed_at(tmp_path / "somewhere")
    assert prefix_of_goals(genba, project) != str(tmp_path / "somewhere")

    result = next((tmp_path / "somewhere").glob("lib/python*/site-packages")) / "shop-1.dist-info"
    result.mkdir()
    (result / "direct_url.json").write_text(json.dumps({"url": project.root.as_uri(), "dir_info": {"editable": True}}))
    assert prefix_of_goals(genba, project) == str(tmp_path / "somewhere")


def test_a_clone_of_genba_within_the_project_is_not_the_project(project: Project) -> None:
    genba = installed_at(project.root / "tools" / "genba" / ".venv")
    (project.root / "tools" / "genba" / ".git").mkdir()
    assert prefix_of_goals(genba, project) != str(project.root / "tools" / "genba" / ".venv")


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_goals_setup_and_agents_do_not_run_genbas_own_python(project: Project, sandbox: str) -> None:
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    look = f"{WHERE} && python3 -c 'import sys; sys.exit(sys.prefix == \"{OWN}\")'"
    settings = {"verification": {"setup": look}, "dod": [{"tests_pass": look}, {"custom_script": look}]}
    project.write(".genba/config.yaml", json.dumps(settings))
    turn = {"do": [{"run": f"{look} && echo {'$'}VIRTUAL_ENV > work.txt && git add -A && git commit -qm work"}]}
    project.agent(script={"turns": [turn]})
    path = f"{OWN}/bin:{os.environ['PATH']}"
    project.environment |= {"PATH": path, "VIRTUAL_ENV": str(OWN), "GENBA_SANDBOX": sandbox}

    project.genba("verify", "main", check=0)
    project.run("worker")

    assert project.read("work.txt").strip() == ""


def broken_branch(project: Project) -> None:
    """A project whose only test is written for pytest, and a branch that breaks it."""
    project.write("shop.py", "PRICE = 3\n")
    project.write("tests/test_price.py", "from shop import PRICE\n\n\ndef test_price():\n    assert PRICE == 3\n")
    project.write("pyproject.toml", "[project]\nname = 'shop'\nversion = '1'\n")
    project.commit("A shop")


@pytest.mark.parametrize("tools", ["none", "python"])
def test_a_broken_branch_is_not_done_with_genbas_own_folder_first_on_the_path(project: Project, tools: str) -> None:
    """The review: init chose unittest for a project of pytest, ran no test, and a broken branch was done."""
    broken_branch(project)
    path = path_with_python() if tools == "python" else "/usr/bin:/bin"
    project.environment["PATH"] = f"{OWN}/bin{os.pathsep}{path}"
    done = project.genba("init", "--adapter", "scripted", check=0)
    assert "unittest" not in project.read(".genba/config.yaml")
    assert ("1 test passed" if tools == "python" else "NOTHING CAN BE DONE YET") in done.err
    project.commit("Say what done means")
    project.git("checkout", "-q", "-b", "broken")
    (project.root / "shop.py").write_text("")
    project.commit("Break it")
    project.git("checkout", "-q", "main")

    verdict = project.genba("verify", "broken", "--json", check=1).json["verification"]
    result = next(each for each in verdict["results"] if each["goal"]["goal"]["type"] == "tests_pass")
    assert result["result"]["status"] == ("failed" if tools == "python" else "error")


def test_genba_works_through_a_link_and_brings_no_tools_with_it(project: Project) -> None:
    link = linked_genba() / "genba"
    assert link.is_symlink()
    assert prefix_of_goals(link, project) != str(OWN)
