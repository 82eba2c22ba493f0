"""Wrongs, made on purpose: what each does to a field that is right, and the laws that it breaks."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from tests.chaos.checker import Law
from tests.chaos.checker.forging import TARGET, Forged
from tests.chaos.plan import Plan

CONFLICTING = 1
HONEST, SLOW, CRASHING, DOOMED, LYING, SORRY, ASKING = 3, 4, 5, 6, 7, 8, 9
"""The numbers of the tasks of the field, by kind. Task 4 waits for task 3."""


class Forgery(msgspec.Struct, frozen=True):
    name: str
    make: Callable[[Forged], None]
    laws: frozenset[Law]


FORGERIES: list[Forgery] = []


def breaks(*laws: Law) -> Callable[[Callable[[Forged], None]], Callable[[Forged], None]]:
    """It breaks these laws and no other one."""

    def kept(make: Callable[[Forged], None]) -> Callable[[Forged], None]:
        FORGERIES.append(Forgery(make.__name__.replace("_", " "), make, frozenset(laws)))
        return make

    return kept


# What came onto the target


@breaks(Law.MERGED_ONCE, Law.NO_FALSE_DONE)
def a_merge_is_taken_away(field: Forged) -> None:
    field.git("update-ref", "refs/genba/rescue/forged", field.tip())
    field.bring_forward(f"{field.tip()}^1")


@breaks(Law.MERGED_ONCE, Law.NO_FALSE_DONE)
def a_merge_is_reverted(field: Forged) -> None:
    field.commit("Take it away", task_3=None)


@breaks(Law.MERGED_ONCE)
def a_merge_is_reverted_and_made_again(field: Forged) -> None:
    field.commit("Take it away", task_3=None)
    field.commit("Bring it back", task_3="3\n")


@breaks(Law.MERGED_ONCE)
def a_merge_is_made_twice(field: Forged) -> None:
    landing = field.landing_of(HONEST)
    message = field.git("log", "-1", "--format=%B", landing)
    words = ("commit-tree", f"{field.tip()}^{{tree}}", "-p", field.tip(), "-p", f"{landing}^2")
    field.bring_forward(field.git(*words, result=message))


@breaks(Law.MERGED_ONCE)
def a_commit_says_that_it_lands_an_unknown_task(field: Forged) -> None:
    field.commit("Merge something\n\nIssue: 77")


@breaks(Law.MERGED_ONCE)
def the_queue_says_that_another_commit_landed(field: Forged) -> None:
    mine, other = field.landing_of(HONEST), field.landing_of(SORRY)
    field.sql("UPDATE merge_entries SET landed = ? WHERE landed = ?", other, mine)
    field.sql("UPDATE events SET data = replace(data, ?, ?) WHERE kind = 'merge_settled'", mine, other)


@breaks(Law.MERGED_ONCE, Law.QUEUE)
def the_queue_merged_the_same_twice(field: Forged) -> None:
    field.sql(
        'INSERT INTO merge_entries (project_id, task_id, run, branch, "commit", target, status, round, turns, landed,'
        ' paths, detail, tried_on, enqueued_at, finished_at) SELECT project_id, task_id, run, branch, "commit", target,'
        " status, round + 1, turns, landed, paths, detail, tried_on, enqueued_at, finished_at FROM merge_entries"
        " WHERE task_id = ?",
        HONEST,
    )


@breaks(Law.MERGED_ONCE, Law.RIGHT_END)
def work_that_waits_for_a_person_is_on_the_target(field: Forged) -> None:
    field.commit("Merge it\n\nIssue: 7", task_7="7\n")


@breaks(Law.MERGED_ONCE, Law.RIGHT_END)
def half_of_a_work_that_waits_for_a_person_was_on_the_target_for_a_moment(field: Forged) -> None:
    field.commit("Bring half of it", half_6="half\n")
    field.commit("Take it away", half_6=None)


@breaks(Law.MERGED_ONCE)
def something_comes_onto_the_target_that_lands_no_task(field: Forged) -> None:
    field.commit("Something else")


@breaks(Law.MERGED_ONCE, Law.RIGHT_END)
def work_that_waits_for_a_person_was_on_the_target_for_a_moment(field: Forged) -> None:
    field.commit("Bring it", task_7="7\n")
    field.commit("Take it away", task_7=None)


@breaks(Law.GREEN, Law.MERGED_ONCE)
def the_target_had_markers_in_it_for_a_moment(field: Forged) -> None:
    field.commit("Break it", shared_1_2="by-1\nby-2\n<<<<<<< mine\n")
    field.commit("Move it", shared_1_2="by-1\nby-2\n")


@breaks(Law.GREEN, Law.MERGED_ONCE)
def the_target_had_a_wrong_number_in_it_for_a_moment(field: Forged) -> None:
    field.commit("Break it", task_3="4\n")
    field.commit("Move it", task_3="3\n")


@breaks(Law.GREEN, Law.MERGED_ONCE)
def the_work_of_one_overwrote_that_of_another(field: Forged) -> None:
    field.commit("Forget the first", shared_1_2="by-2\n")


@breaks(Law.GREEN)
def a_merge_changes_the_check_of_the_project(field: Forged) -> None:
    old = field.tip()
    field.write("check.sh", "exit 0\n")
    field.git("commit", "-q", "-a", "--amend", "--no-edit")
    field.rename(old, field.tip())
    field.git("update-ref", "refs/genba/rescue/forged", old)
    field.log_as_if_it_had_never_been_elsewhere()


@breaks(Law.GREEN, Law.MERGED_ONCE)
def two_that_are_green_alone_were_on_the_target_together_for_a_moment(field: Forged) -> None:
    field.commit("Break it", clash_1_2_1="alone\n", clash_1_2_2="alone\n")
    field.commit("Move it", clash_1_2_1="alone\n", clash_1_2_2="settled\n")


@breaks(Law.MERGED_ONCE)
def the_target_was_something_else_for_a_moment(field: Forged) -> None:
    old = field.tip()
    other = field.commit("Red", task_3="4\n")
    field.bring_forward(old)
    field.git("update-ref", "refs/genba/rescue/forged", other)


@breaks(Law.MERGED_ONCE)
def the_old_target_is_unknown(field: Forged) -> None:
    (field.folder / "logs" / TARGET).unlink()


# What is kept


@breaks(Law.NOTHING_LOST)
def the_branch_of_a_task_that_waits_is_gone(field: Forged) -> None:
    field.git("update-ref", "-d", "refs/heads/genba/6-task-6")


@breaks(Law.NOTHING_LOST)
def an_agent_made_a_commit_that_is_lost(field: Forged) -> None:
    with (field.home / "commits.txt").open("a", encoding="utf-8") as file:
        file.write(f"{'ab' * 20}\n")


@breaks(Law.NOTHING_LOST)
def no_agent_has_listed_its_commits(field: Forged) -> None:
    (field.home / "commits.txt").unlink()


@breaks(Law.NOTHING_LOST)
def an_agent_made_a_commit_that_no_ref_leads_to(field: Forged) -> None:
    orphan = field.git("commit-tree", f"{TARGET}^{{tree}}", "-p", TARGET, result="an orphan")
    with (field.home / "commits.txt").open("a", encoding="utf-8") as file:
        file.write(f"{orphan}\n")


@breaks(Law.NOTHING_LOST)
def a_row_names_a_commit_that_no_ref_leads_to(field: Forged) -> None:
    orphan = field.git("commit-tree", f"{TARGET}^{{tree}}", "-p", TARGET, result="an orphan")
    field.sql("UPDATE verifications SET base = ? WHERE id = 1", orphan)


@breaks(Law.NOTHING_LOST)
def an_event_names_a_commit_that_is_not_there(field: Forged) -> None:
    field.tell(HONEST, "noted", f'{{"commit":"{"cd" * 20}"}}')


@breaks(Law.WHOLE)
def a_file_of_kept_work_is_damaged(field: Forged) -> None:
    blob = field.git("hash-object", "-w", "--stdin", result="rescued\n")
    tree = field.git("mktree", result=f"100644 blob {blob}\trescued.txt\n")
    field.git("update-ref", "refs/genba/rescue/forged", field.git("commit-tree", tree, result="rescued"))
    field.object_file(blob).unlink()


@breaks(Law.WHOLE)
def a_row_names_another_one_that_is_not_there(field: Forged) -> None:
    field.sql("DELETE FROM agents WHERE name = 'asker'")


@breaks(Law.WHOLE)
def an_event_cannot_be_read(field: Forged) -> None:
    field.tell(HONEST, "part_ended", "{")


@breaks(Law.WHOLE)
def the_file_of_the_database_is_cut_off(field: Forged) -> None:
    with field.database.open("r+b") as file:
        file.truncate(200_000)


# How tasks ended


@breaks(Law.RIGHT_END, Law.HISTORY)
def a_task_that_landed_is_not_done(field: Forged) -> None:
    field.sql("UPDATE tasks SET status = 'review' WHERE number = ?", HONEST)


@breaks(Law.RIGHT_END, Law.HISTORY, Law.NO_FALSE_DONE, Law.NOTHING_LEFT)
def a_task_that_never_landed_is_done(field: Forged) -> None:
    field.sql("UPDATE tasks SET status = 'done', blocker_kind = NULL WHERE number = ?", LYING)


@breaks(Law.RIGHT_END)
def a_task_waits_without_a_question(field: Forged) -> None:
    field.sql("UPDATE escalations SET status = 'withdrawn' WHERE task_id = ?", LYING)


@breaks(Law.RIGHT_END, Law.HISTORY)
def an_escalation_is_gone(field: Forged) -> None:
    field.sql("DELETE FROM escalations WHERE task_id = ?", LYING)


@breaks(Law.RIGHT_END)
def a_person_is_asked_about_what_is_done(field: Forged) -> None:
    field.sql("UPDATE escalations SET task_id = ? WHERE task_id = ?", HONEST, LYING)
    message = "UPDATE events SET task_id = ?, version = 1 WHERE task_id = ? AND kind = 'escalated'"
    field.sql(message, HONEST, LYING)


@breaks(Law.RIGHT_END, Law.HISTORY)
def a_task_outside_the_plan_is_open(field: Forged) -> None:
    field.sql("UPDATE tasks SET status = 'open' WHERE number = 10")


@breaks(Law.NO_FALSE_DONE)
def a_task_is_done_with_another_commit(field: Forged) -> None:
    (event,) = field.events(HONEST, "status_changed", '%"to":"done"%')
    field.sql("UPDATE events SET data = json_set(data, '$.commit', ?) WHERE id = ?", field.tip(), event)


@breaks(Law.NO_FALSE_DONE)
def a_task_is_done_with_a_commit_that_was_rejected(field: Forged) -> None:
    commit = field.one('SELECT "commit" FROM merge_entries WHERE task_id = ?', HONEST)
    field.sql("UPDATE verifications SET status = 'rejected' WHERE \"commit\" = ?", commit)
    field.sql(
        "UPDATE events SET data = json_set(data, '$.status', 'rejected') WHERE kind = 'verified'"
        " AND json_extract(data, '$.commit') = ?",
        commit,
    )


@breaks(Law.NO_FALSE_DONE)
def a_session_completed_with_another_commit(field: Forged) -> None:
    field.sql("UPDATE sessions SET verified = ? WHERE task_id = ?", field.tip(), HONEST)


@breaks(Law.NO_FALSE_DONE, Law.MERGED_ONCE)
def a_task_is_done_with_a_red_commit(field: Forged) -> None:
    commit = field.one('SELECT "commit" FROM merge_entries WHERE task_id = ?', HONEST)
    field.rename(commit, field.git("rev-parse", "refs/heads/genba/7-task-7"))


# What came first


@breaks(Law.DEPENDENCIES)
def a_task_began_before_what_it_waits_for_was_done(field: Forged) -> None:
    last = field.one("SELECT max(id) FROM events")
    (done,) = field.events(HONEST, "status_changed", '%"to":"done"%')
    (ended,) = field.events(HONEST, "part_ended", '%"outcome":"completed"%')
    field.move((done, ended), last)


@breaks(Law.DEPENDENCIES)
def it_is_forgotten_what_a_task_waits_for(field: Forged) -> None:
    field.sql("DELETE FROM task_dependencies")


@breaks(Law.DEPENDENCIES)
def a_task_did_not_wait_for_what_the_plan_says(field: Forged) -> None:
    parts = [
        msgspec.structs.replace(part, after=(SLOW,)) if part.number == SORRY else part for part in field.plan.parts
    ]
    field.plan = Plan(seed=0, parts=tuple(parts))
    field.sql("INSERT INTO task_dependencies (task_id, depends_on_id) VALUES (?, ?)", SORRY, SLOW)


# What the history tells


@breaks(Law.HISTORY)
def the_first_line_of_a_task_is_gone(field: Forged) -> None:
    field.drop(field.events(HONEST, "created")[0])


@breaks(Law.HISTORY)
def a_number_of_an_event_is_missing(field: Forged) -> None:
    field.sql("UPDATE events SET id = id + 1 WHERE id = (SELECT max(id) FROM events)")


@breaks(Law.HISTORY)
def a_note_for_the_next_attempt_was_never_recorded(field: Forged) -> None:
    field.drop(field.events(SORRY, "handed_over")[0])


@breaks(Law.HISTORY)
def a_verdict_was_recorded_twice(field: Forged) -> None:
    field.double(field.events(HONEST, "verified")[0])


@breaks(Law.HISTORY)
def a_change_was_recorded_twice(field: Forged) -> None:
    field.double(field.events(HONEST, "status_changed", '%"to":"done"%')[0])


@breaks(Law.HISTORY)
def a_change_was_never_recorded(field: Forged) -> None:
    field.drop(field.events(DOOMED, "status_changed", '%"to":"blocked"%')[0])


@breaks(Law.HISTORY)
def two_changes_are_recorded_in_the_wrong_order(field: Forged) -> None:
    began, back = field.events(LYING, "status_changed")[:2]
    field.move((began,), back)


@breaks(Law.HISTORY)
def a_task_has_changed_and_nothing_tells_of_it(field: Forged) -> None:
    field.sql("UPDATE tasks SET version = version + 1 WHERE number = ?", CRASHING)


@breaks(Law.HISTORY)
def an_agent_has_closed_its_own_task(field: Forged) -> None:
    (event,) = field.events(HONEST, "status_changed", '%"to":"done"%')
    field.sql("UPDATE events SET actor_kind = 'worker' WHERE id = ?", event)


@breaks(Law.HISTORY)
def a_task_went_a_way_that_there_is_not(field: Forged) -> None:
    (event,) = field.events(HONEST, "status_changed", '%"to":"in_progress"%')
    field.sql("UPDATE events SET data = json_set(data, '$.from', 'backlog') WHERE id = ?", event)
    (event,) = field.events(HONEST, "created")
    field.sql("UPDATE events SET data = json_set(data, '$.status', 'backlog') WHERE id = ?", event)


@breaks(Law.HISTORY)
def a_blocker_is_another_one(field: Forged) -> None:
    field.sql("UPDATE tasks SET blocker_kind = 'resource' WHERE number = ?", DOOMED)


@breaks(Law.HISTORY)
def an_event_knows_a_version_that_was_not_there_yet(field: Forged) -> None:
    field.sql("UPDATE events SET version = 9 WHERE id = ?", field.events(SORRY, "handed_over")[0])


# Sessions


@breaks(Law.SESSIONS, Law.NOTHING_LEFT)
def a_session_still_runs(field: Forged) -> None:
    field.sql("UPDATE sessions SET status = 'running', ended_at = NULL WHERE task_id = ?", HONEST)


@breaks(Law.SESSIONS)
def two_sessions_of_a_task_ran_at_once(field: Forged) -> None:
    first, second = field.events(SORRY, "part_began", '%"part":1%')
    (ended,) = field.events(SORRY, "part_ended", '%"incomplete"%')
    field.sql("UPDATE events SET version = 2 WHERE id IN (?, ?)", second, ended)
    field.move((second,), first)


@breaks(Law.SESSIONS)
def a_part_ended_twice(field: Forged) -> None:
    field.double(field.events(HONEST, "part_ended", '%"completed"%')[0])


@breaks(Law.SESSIONS)
def a_part_began_twice(field: Forged) -> None:
    field.double(field.events(HONEST, "part_began")[0])


@breaks(Law.SESSIONS)
def a_part_never_ended(field: Forged) -> None:
    field.drop(field.events(DOOMED, "part_ended")[-1])


@breaks(Law.SESSIONS)
def an_attempt_is_missing(field: Forged) -> None:
    field.sql("UPDATE sessions SET attempt = 3 WHERE task_id = ? AND attempt = 2", SORRY)


@breaks(Law.SESSIONS)
def a_session_has_more_parts_than_recorded(field: Forged) -> None:
    field.sql("UPDATE sessions SET part = part + 1 WHERE task_id = ?", ASKING)


@breaks(Law.SESSIONS)
def a_session_came_back_more_often_than_recorded(field: Forged) -> None:
    field.sql("UPDATE sessions SET rounds = rounds + 1 WHERE task_id = ?", HONEST)


@breaks(Law.SESSIONS)
def a_session_ended_otherwise_than_recorded(field: Forged) -> None:
    field.sql("UPDATE sessions SET outcome = 'completed' WHERE task_id = ?", DOOMED)


@breaks(Law.SESSIONS)
def a_session_began_without_an_event(field: Forged) -> None:
    field.sql(
        "INSERT INTO sessions (run, task_id, agent_id, attempt, status, outcome, purpose, started_at, heartbeat_at,"
        " ended_at) SELECT 'nobody', task_id, agent_id, 1, status, outcome, 'plan', started_at, heartbeat_at, ended_at"
        " FROM sessions WHERE task_id = ?",
        HONEST,
    )


@breaks(Law.SESSIONS)
def an_agent_was_started_that_no_session_asked_for(field: Forged) -> None:
    with (field.home / "starts.txt").open("a", encoding="utf-8") as file:
        file.write("3 worker-3-9-nobody\n")


@breaks(Law.SESSIONS)
def work_came_from_an_agent_that_was_never_started(field: Forged) -> None:
    path = field.home / "starts.txt"
    path.write_text("".join(f"{line}\n" for line in path.read_text("utf-8").split() if line != str(HONEST)), "utf-8")


# The merge queue


@breaks(Law.QUEUE)
def a_merge_was_recorded_twice(field: Forged) -> None:
    field.double(field.events(HONEST, "merge_settled")[0])


@breaks(Law.QUEUE)
def a_merge_was_never_recorded(field: Forged) -> None:
    field.drop(field.events(HONEST, "merge_settled")[0])


@breaks(Law.QUEUE)
def work_was_queued_before_it_was_verified(field: Forged) -> None:
    (queued,) = field.events(HONEST, "merge_queued")
    began = field.events(HONEST, "part_began")[0]
    field.sql("UPDATE events SET version = 2 WHERE id = ?", queued)
    field.move((queued,), began)


@breaks(Law.QUEUE)
def an_entry_of_the_queue_was_never_recorded(field: Forged) -> None:
    field.drop(field.events(CONFLICTING, "merge_queued")[-1])


@breaks(Law.QUEUE, Law.NOTHING_LEFT)
def an_entry_is_still_in_the_queue(field: Forged) -> None:
    field.sql("UPDATE merge_entries SET status = 'merging', finished_at = NULL WHERE status = 'conflict'")


# What is left


@breaks(Law.NOTHING_LEFT)
def the_branch_of_a_task_that_is_done_is_left(field: Forged) -> None:
    field.git("update-ref", "refs/heads/genba/3-task-3", TARGET)


@breaks(Law.NOTHING_LEFT)
def a_ref_is_left(field: Forged) -> None:
    field.git("update-ref", "refs/genba/fetched/worker-3-1-2707d9", TARGET)


@breaks(Law.NOTHING_LEFT)
def a_working_tree_is_left(field: Forged) -> None:
    field.git("worktree", "add", "-q", "--detach", str(field.home / "left"), TARGET)


@breaks(Law.NOTHING_LEFT)
def the_folder_of_a_working_tree_is_left(field: Forged) -> None:
    (field.repository / ".worktrees" / "genba-3-task-3").mkdir(parents=True)


@breaks(Law.NOTHING_LEFT)
def the_record_of_a_working_tree_is_left(field: Forged) -> None:
    (field.folder / "genba" / "trees" / "genba%2F3-task-3.json").write_text("{}", "utf-8")


@breaks(Law.NOTHING_LEFT)
def a_lock_of_git_is_left(field: Forged) -> None:
    (field.folder / "refs" / "heads" / "main.lock").touch()


@breaks(Law.NOTHING_LEFT)
def a_lock_is_held(field: Forged) -> None:
    handle = os.open(field.folder / "genba" / "locks" / "repository", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    field.ends.append(lambda: os.close(handle))


@breaks(Law.NOTHING_LEFT)
def a_temporary_file_is_left(field: Forged) -> None:
    (field.folder / "genba" / "landing.json").write_text("{}", "utf-8")


@breaks(Law.NOTHING_LEFT)
def something_is_left_in_the_trash(field: Forged) -> None:
    (field.folder / "genba" / "trash" / "tree-1-ab").mkdir(parents=True)


@breaks(Law.NOTHING_LEFT)
def the_users_checkout_is_changed(field: Forged) -> None:
    field.write("README.md", "changed\n")


@breaks(Law.NOTHING_LEFT)
def a_file_is_left_in_the_users_checkout(field: Forged) -> None:
    field.write("left.txt", "left\n")


@breaks(Law.NOTHING_LEFT)
def the_users_checkout_is_somewhere_else(field: Forged) -> None:
    field.git("checkout", "-q", "--detach")


@breaks(Law.NOTHING_LEFT)
def git_is_in_the_middle_of_a_merge(field: Forged) -> None:
    (field.folder / "MERGE_HEAD").write_text(f"{field.tip()}\n", "utf-8")


@breaks(Law.NOTHING_LEFT)
def a_process_stands_in_the_project(field: Forged) -> None:
    _runs(field, [], {}, field.repository)


@breaks(Law.NOTHING_LEFT)
def a_process_names_the_project_in_its_command(field: Forged) -> None:
    _runs(field, [str(field.repository)], {}, Path("/"))


@breaks(Law.NOTHING_LEFT)
def a_process_names_the_project_in_its_environment(field: Forged) -> None:
    _runs(field, [], {"HOME": str(field.home)}, Path("/"))


def _runs(field: Forged, words: list[str], environment: dict[str, str], place: Path) -> None:
    code = "import sys; print('here', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", code, *words],
        env=environment,
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    field.ends.append(process.communicate)


@breaks(Law.NOTHING_LEFT)
def a_workflow_has_not_ended(field: Forged) -> None:
    field.sql("UPDATE workflow_status SET status = 'PENDING' WHERE rowid = 1")


@breaks(Law.NOTHING_LEFT)
def a_connection_is_taken(field: Forged) -> None:
    field.sql("UPDATE agent_connections SET status = 'active'")


@breaks(Law.NOTHING_LEFT)
def the_connection_of_an_external_agent_is_tied_to_a_task(field: Forged) -> None:
    field.sql("UPDATE agent_connections SET status = 'active', spawned = 0")


@breaks(Law.NOTHING_LEFT)
def a_credential_is_still_good(field: Forged) -> None:
    field.sql("UPDATE credentials SET used_at = NULL")


@breaks(Law.SESSIONS)
def two_agents_were_at_work_on_a_task_at_once(field: Forged) -> None:
    (field.home / "doubled.txt").write_text("3 worker-3-1-ab\n", "utf-8")


@breaks(Law.NOTHING_LEFT)
def a_lock_is_left_among_the_objects(field: Forged) -> None:
    (field.folder / "objects" / "maintenance.lock").touch()


@breaks(Law.NOTHING_LEFT)
def a_patch_is_left_that_was_scanned_for_secrets(field: Forged) -> None:
    folder = field.folder / "genba" / "secrets" / "scan-77-ab"
    folder.mkdir(parents=True)
    (folder / "patch").write_text("a patch", "utf-8")


@breaks(Law.NOTHING_LEFT)
def a_secret_is_left_in_a_file(field: Forged) -> None:
    folder = field.folder / "genba" / "runs" / "asker-9-1-ab" / "supervised" / "1-1"
    folder.mkdir(parents=True)
    (folder / "credential").write_text("a secret", "utf-8")


@breaks(Law.NOTHING_LEFT)
def an_executor_is_live(field: Forged) -> None:
    field.sql("UPDATE executors SET status = 'live'")


@breaks(Law.NOTHING_LEFT)
def the_project_is_paused(field: Forged) -> None:
    field.sql("UPDATE projects SET paused = 1")


@breaks(Law.NOTHING_LEFT)
def a_task_is_held(field: Forged) -> None:
    field.sql("UPDATE tasks SET held = 1 WHERE number = ?", HONEST)
