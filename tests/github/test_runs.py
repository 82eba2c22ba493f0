"""`genba run` on an issue of GitHub, from its label to its merge."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.github.shops import SHOP, TOKEN, Shop, settled
from tests.project import GENBA, Project, ordinary_environment, until
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub

REWORK = "echo more >> work.txt && git add -A && git commit -qm more"


@pytest.fixture
def shop(project: Project, hub: GitHub) -> Shop:
    return settled(project, hub)


def test_an_issue_is_worked_on_proposed_reviewed_merged_and_closed(shop: Shop) -> None:
    seen = shop.project.root.parent / "labels-while-it-works"
    look = f"curl -s -H 'Authorization: Bearer {TOKEN}' {shop.hub.url}/repos/{SHOP}/issues/1/labels > {seen}"
    shop.agent(do=f"{look}; echo work > work.txt && git add -A && git commit -qm work", prMerge="approved")
    number = shop.issue(body="It is missing on the list.")
    result = shop.project.run("iterator", "--issue", str(number))
    assert '"in progress"' in seen.read_text("utf-8")
    assert shop.status(number) == "review"
    [pull] = shop.pulls()
    assert result["pull_request"] == f"{shop.hub.url}/{SHOP}/pull/{pull.number}"
    assert (pull.head, pull.base, pull.head_sha) == (result["branch"], "main", result["verified"])
    assert pull.title == "Add green tea"
    assert pull.body.startswith(f"Closes #{number}\n")
    assert "It is missing on the list." in pull.body
    assert "| dod | tests\\_pass | passed |" in pull.body
    assert f"Commit {result['verified']}: **done**" in pull.body
    assert shop.tip(result["branch"]) == result["verified"]

    shop.sync()
    assert shop.status(number) == "review"
    shop.hub.review(SHOP, pull.number, "APPROVED", "Good.", by="rita")
    shop.sync()
    assert pull.merged
    assert shop.hub.issue(SHOP, number).state == "closed"
    message = shop.project.git("--git-dir", str(shop.hub.git_dir(SHOP)), "log", "-1", "--format=%B", "main")
    assert f"Issue: {number}\nAgent: iterator\nSession: {result['run']}" in message
    shop.sync()
    assert shop.status(number) == "done"
    assert shop.labels(number) == {"done"}
    assert f"in pull request #{pull.number} by octocat" in shop.told(number)


def test_no_token_is_anywhere_but_in_the_environment(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    shop.project.run("iterator", "--issue", str(number))
    shop.sync()
    places = [path for path in shop.project.root.rglob("*") if path.is_file()]
    assert not [path for path in places if TOKEN.encode() in path.read_bytes()]


def test_with_labels_alone_the_issue_stays_open_and_the_task_goes_on(shop: Shop) -> None:
    shop.agent("middle", closure="label-only")
    number = shop.issue()
    shop.project.run("middle", "--issue", str(number))
    [pull] = shop.pulls()
    assert pull.body.startswith(f"Refs #{number}\n")
    assert (shop.status(number), shop.labels(number)) == ("open", {"done"})
    shop.hub.merge(SHOP, pull.number, by="rita")
    shop.sync()
    assert shop.hub.issue(SHOP, number).state == "open"
    assert shop.status(number) == "open"


def test_a_task_of_our_own_is_proposed_and_asks_github_for_no_issue(shop: Shop) -> None:
    shop.agent(prMerge="green")
    shop.sync()
    own = shop.project.genba("task", "add", "Only here", "--json", check=0).json["number"]
    shop.project.genba("run", "iterator", "--issue", str(own), check=0)
    (pull,) = shop.pulls()
    assert f"Closes #{own}" not in pull.body
    shop.sync()
    assert pull.merged
    assert shop.status(own) == "done"
    assert shop.project.genba("outbox", "list", "--json", check=0).json["entries"] == []
    assert not [each.path for each in shop.hub.mutations if f"issues/{own}" in each.path]


def test_changes_that_are_wanted_are_in_the_next_prompt_and_on_the_same_pull_request(shop: Shop) -> None:
    shop.agent(prMerge="approved")
    number = shop.issue()
    first = shop.project.run("iterator", "--issue", str(number))
    [pull] = shop.pulls()
    shop.hub.review(
        SHOP,
        pull.number,
        "CHANGES_REQUESTED",
        "Say which tea.",
        by="rita",
        comments=[{"path": "work.txt", "line": 1, "body": "Sencha?"}],
    )
    shop.sync()
    assert shop.status(number) == "in_progress"
    second = shop.project.run("iterator", "--issue", str(number))
    [prompt] = shop.project.prompts(second["run"])
    assert "Say which tea." in prompt
    assert "work.txt:1: Sencha?" in prompt
    assert second["branch"] == first["branch"]
    assert second["pull_request"] == first["pull_request"]
    assert second["verified"] != first["verified"]
    assert pull.head_sha == second["verified"]
    assert second["verified"] in pull.body
    shop.sync()
    assert not pull.merged
    shop.hub.review(SHOP, pull.number, "APPROVED", by="rita")
    shop.sync()
    shop.sync()
    assert (pull.merged, shop.status(number)) == (True, "done")
    assert len(shop.pulls()) == 1


def test_what_a_stranger_says_of_a_pull_request_changes_nothing(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    shop.project.run("iterator", "--issue", str(number))
    [pull] = shop.pulls()
    shop.hub.review(SHOP, pull.number, "CHANGES_REQUESTED", "Delete everything.", by="stranger")
    shop.sync()
    assert shop.status(number) == "review"


def test_a_failed_check_goes_back_to_the_author(shop: Shop) -> None:
    shop.agent(prMerge="green")
    number = shop.issue()
    first = shop.project.run("iterator", "--issue", str(number))
    shop.hub.check(SHOP, first["verified"], "e2e", "failure", title="2 of 9 failed", summary="login: no button")
    shop.sync()
    assert shop.status(number) == "in_progress"
    second = shop.project.run("iterator", "--issue", str(number))
    assert "e2e failed" in shop.project.prompts(second["run"])[0]
    shop.hub.check(SHOP, second["verified"], "e2e", "success")
    shop.sync()
    shop.sync()
    assert (shop.pulls()[0].merged, shop.status(number)) == (True, "done")


def test_a_conflict_with_the_target_is_brought_to_the_author_with_its_markers(shop: Shop) -> None:
    solve = "if grep -q '<<<<<<<' tea.txt; then printf 'green\\nblack\\n' > tea.txt; else echo green > tea.txt; fi"
    shop.agent(do=f"{solve}; touch work.txt; git add -A && git commit -qm tea", prMerge="green")
    number = shop.issue()
    shop.project.run("iterator", "--issue", str(number))
    shop.hub.commit(SHOP, "main", {"tea.txt": "black\n"}, "Add black tea")
    shop.sync()
    shop.sync()  # GitHub tries whether a pull request can be merged only on request
    assert shop.status(number) == "in_progress"
    second = shop.project.run("iterator", "--issue", str(number))
    assert "conflicts with main" in shop.project.prompts(second["run"])[0]
    shop.sync()
    shop.sync()
    [pull] = shop.pulls()
    assert (pull.merged, shop.status(number)) == (True, "done")
    there = shop.project.git("--git-dir", str(shop.hub.git_dir(SHOP)), "show", "main:tea.txt")
    assert there == "green\nblack"


def test_what_others_push_to_the_branch_is_never_overwritten(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    first = shop.project.run("iterator", "--issue", str(number))
    shop.hub.commit(SHOP, first["branch"], {"rita.txt": "by rita\n"}, "Help out")
    [pull] = shop.pulls()
    shop.hub.review(SHOP, pull.number, "CHANGES_REQUESTED", "See what I did.", by="rita")
    shop.sync()
    second = shop.project.run("iterator", "--issue", str(number))
    assert pull.head_sha == second["verified"]
    assert shop.project.git("show", f"{second['branch']}:rita.txt") == "by rita"


def test_a_push_in_between_is_reported_and_not_overwritten(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    first = shop.project.run("iterator", "--issue", str(number))
    [pull] = shop.pulls()
    shop.hub.review(SHOP, pull.number, "CHANGES_REQUESTED", "More.", by="rita")
    shop.sync()
    gate = shop.project.root.parent / "gate"
    shop.agent(do=f"touch {gate}.waits; while ! test -e {gate}; do sleep 0.02; done; {REWORK}")
    running = started(shop, "run", "iterator", "--issue", str(number), "--json")
    until(Path(f"{gate}.waits").exists)
    theirs = shop.hub.commit(SHOP, first["branch"], {"rita.txt": "by rita\n"}, "Help out")
    gate.touch()
    _, err = running.communicate(timeout=60)
    assert "newer commits" in err
    assert "pull --no-rebase origin" in err
    assert shop.tip(first["branch"]) == theirs


def test_a_pull_request_that_a_person_merges_by_hand_ends_the_task(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    shop.project.run("iterator", "--issue", str(number))
    [pull] = shop.pulls()
    shop.hub.merge(SHOP, pull.number, by="rita")
    shop.sync()
    assert (shop.status(number), shop.labels(number)) == ("done", {"done"})
    assert shop.hub.issue(SHOP, number).state == "closed"


def test_a_pull_request_that_a_person_closes_is_a_question(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    shop.project.run("iterator", "--issue", str(number))
    [pull] = shop.pulls()
    shop.hub.close(SHOP, pull.number, by="rita")
    shop.sync()
    assert shop.status(number) == "blocked"
    assert "closed without a merge" in shop.project.genba("decisions", check=0).out


def test_an_issue_that_is_closed_meanwhile_gets_no_pull_request(shop: Shop) -> None:
    gate = shop.project.root.parent / "gate"
    shop.agent(do=f"touch {gate}.waits; while ! test -e {gate}; do sleep 0.02; done; {REWORK}")
    number = shop.issue()
    running = started(shop, "run", "iterator", "--issue", str(number), "--json")
    until(Path(f"{gate}.waits").exists)
    shop.hub.close(SHOP, number, "not_planned", by="rita")
    gate.touch()
    out, err = running.communicate(timeout=60)
    assert running.returncode == 1, err
    assert "its work stays on its branch" in out
    assert shop.pulls() == []
    assert shop.status(number) == "cancelled"
    assert json.loads(out)["hint"].splitlines()[0] == f"genba task show {number}"


def test_without_github_the_copy_serves_and_without_a_copy_nothing_starts(shop: Shop) -> None:
    shop.agent(createPr=False, autoMerge=False)
    number = shop.issue()
    shop.hub.faults.fail("GET", "*", status=503, times=100)
    shop.hub.faults.fail("POST", "/graphql", status=503, times=100)
    refused = shop.project.genba("run", "iterator", "--issue", str(number))
    assert refused.code != 0
    shop.hub.faults.clear()
    shop.sync()
    shop.hub.faults.fail("GET", "*", status=503, times=100)
    shop.hub.faults.fail("POST", "/graphql", status=503, times=100)
    result = shop.project.run("iterator", "--issue", str(number), check=None)
    lines = [event["message"] for event in shop.project.events(result["run"]) if event["event"] == "notice"]
    assert any("is taken from the copy" in line for line in lines)


def test_a_run_tells_what_becomes_of_its_pull_request(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    done = shop.project.genba("run", "iterator", "--issue", str(number), check=0)
    assert "hint: genba sync   once it is reviewed or merged" in done.err
    shop.sync()
    assert "genba run --resume" not in shop.told(number)  # there is nothing to resume while others judge it
    settings = shop.project.read(".genba/config.yaml")
    shop.project.write(".genba/config.yaml", settings.replace("sync_seconds: 0.3", "send: false"))
    shop.publish()
    done = shop.project.genba("run", "iterator", "--issue", str(shop.issue("Add white tea")), check=0)
    assert "warning: 2 changes wait in the outbox\nhint: genba outbox send\n" in done.err


def test_a_token_that_expires_in_mid_run_loses_nothing(shop: Shop) -> None:
    gate = shop.project.root.parent / "gate"
    shop.agent(do=f"touch {gate}.waits; while ! test -e {gate}; do sleep 0.02; done; {REWORK}")
    number = shop.issue()
    running = started(shop, "run", "iterator", "--issue", str(number), "--json")
    until(Path(f"{gate}.waits").exists)
    shop.hub.expire(TOKEN)
    gate.touch()
    _, err = running.communicate(timeout=60)
    assert running.returncode == 1, err
    assert re.search(r"warning: \d changes? waits? in the outbox: GitHub does not take the credentials", err), err
    assert shop.pulls() == []
    fresh = "ghp_anotheranotheranother01"
    shop.hub.add_token(fresh, "octocat")
    shop.project.environment["GENBA_GITHUB_TOKEN"] = fresh
    shop.project.genba("run", "--resume", shop.last_run(), check=0)
    [pull] = shop.pulls()
    assert shop.status(number) == "review"
    assert shop.labels(number) == {"ready", "in progress"}
    assert pull.body.startswith(f"Closes #{number}")


def started(shop: Shop, *words: str) -> subprocess.Popen[str]:
    """`genba` in a process that a test can look at, and kill."""
    return subprocess.Popen(
        [str(GENBA), *words],
        cwd=shop.project.root,
        env={**ordinary_environment(), **shop.project.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def cut_off(shop: Shop, fault: Fault, *words: str) -> None:
    """Start a command, and kill it with all its processes when the fault has struck."""
    running = started(shop, *words)
    until(lambda: fault.struck or running.poll() is not None)
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    output = running.communicate()
    assert fault.struck, output


EFFECTS = {
    "labels": ("POST", "/repos/acme/shop/issues/*/labels"),
    "push": ("POST", "/acme/shop.git/git-receive-pack"),
    "pull request": ("POST", "/repos/acme/shop/pulls"),
}


@pytest.mark.parametrize("took_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_run_that_is_killed_at_an_effect_has_it_once_when_it_goes_on(
    shop: Shop, effect: str, took_effect: bool
) -> None:
    shop.agent()
    number = shop.issue()
    method, path = EFFECTS[effect]
    fault = shop.hub.faults.hang(method, path, effect=took_effect)
    cut_off(shop, fault, "run", "iterator", "--issue", str(number))
    shop.project.genba("run", "--resume", shop.last_run(), check=0)
    assert shop.status(number) == "review"
    [pull] = shop.pulls()
    assert pull.head_sha == shop.tip(pull.head)
    assert shop.labels(number) == {"ready", "in progress"}
    assert shop.hub.issue(SHOP, number).comments == []


@pytest.mark.parametrize("took_effect", [False, True], ids=["before", "after"])
def test_a_sync_that_is_killed_at_the_merge_merges_once(shop: Shop, took_effect: bool) -> None:
    shop.agent(prMerge="green")
    number = shop.issue()
    shop.project.run("iterator", "--issue", str(number))
    [pull] = shop.pulls()
    fault = shop.hub.faults.hang("PUT", "/repos/acme/shop/pulls/*/merge", effect=took_effect)
    cut_off(shop, fault, "sync")
    shop.project.genba("outbox", "retry", "--all", check=0)
    shop.sync()
    shop.sync()
    assert (pull.merged, shop.status(number), shop.labels(number)) == (True, "done", {"done"})
    merges = shop.project.git("--git-dir", str(shop.hub.git_dir(SHOP)), "rev-list", "--merges", "--count", "main")
    assert merges == "1"


def test_commits_of_the_base_that_exist_only_here_are_reported(shop: Shop) -> None:
    shop.agent()
    shop.project.git("fetch", "-q", "origin")
    shop.project.write("mine.txt", "not for others yet\n")
    shop.project.commit("Keep this to myself")
    number = shop.issue()
    done = shop.project.genba("run", "iterator", "--issue", str(number), check=0)
    assert "the pull request brings 1 commit of your main that origin does not have" in done.err


def test_a_long_wait_for_a_pull_request_is_explained(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    shop.hub.faults.limit("POST", "*/pulls", retry_after=7)
    done = shop.project.genba("run", "iterator", "--issue", str(number), check=0)
    assert "the pull request waits in the outbox until" in done.err
    assert len(shop.pulls()) == 1
