"""What an agent prints, replies, and leaves: more than a disk holds, and not what the host expects."""

# ruff: noqa: E501  (a script of an attack stays on its line)

import json
from pathlib import Path

from tests.attacks.catalogue import SANDBOXES, WORKTREE, Attack, Evidence, Scene, Surface
from tests.attacks.field import OLD, Ended, Field

JOURNAL_MB, MEMORY_MB = 15, 700


def flood(name: str, attack: str, script: str) -> Attack:
    return Attack(
        f"flood-{name}",
        attack,
        Surface.FLOODS,
        f"the journal has more than {JOURNAL_MB} MB, Genba more than {MEMORY_MB} MB, or it does not end",
        script,
    )


FLOODS = (
    flood("short-lines", "prints a hundred thousand lines of one letter", "yes | head -n 100000"),
    flood("empty-lines", "prints a hundred thousand empty lines", "yes '' | head -n 100000"),
    flood("errors", "prints a hundred thousand short lines on stderr", "yes | head -n 100000 >&2"),
    flood("one-line", "prints one line of 200 MB", "head -c 200000000 /dev/zero | tr '\\0' x"),
    flood(
        "escapes",
        "prints lines of control characters that grow sixfold in JSON",
        "yes \"$(printf '\\001%.0s' $(seq 2000))\" | head -n 4000",
    ),
)
GOAL_FLOODS = (
    Attack(
        "flood-goal",
        "prints a million short lines in a goal",
        Surface.FLOODS,
        f"logs of more than {JOURNAL_MB} MB, Genba more than {MEMORY_MB} MB, or no end",
        "yes abcdefghij | head -n 2000000",
    ),
    Attack(
        "flood-goal-line",
        "prints one line of 200 MB in a goal",
        Surface.FLOODS,
        f"logs of more than {JOURNAL_MB} MB, Genba more than {MEMORY_MB} MB, or no end",
        "head -c 200000000 /dev/zero | tr '\\0' x",
    ),
)


def play_floods(field: Field, scene: Scene) -> Evidence:
    seen = {}
    for each in FLOODS:
        field.agent(each.id, adapter={"type": "custom", "command": begun(each)}, limits={"retries": 0})
        done = field.play("run", each.id, "--json", "--no-merge", seconds=60)
        seen[each.id] = _too_much(done, field.root / "tmp" / "logs" / "agents" / each.id) or untried(field, each)
    for each in GOAL_FLOODS:
        field.write("check.sh", "sh product.sh\n")
        field.write("product.sh", "true\n")
        field.settle(dod=[{"type": "custom_script", "script": "sh check.sh", "timeout_seconds": 40}])
        field.commit("Goals")
        field.branch(each.id, {"product.sh": each.script + "\n"})
        verdict = field.verify(each.id, seconds=60)
        seen[each.id] = _too_much(field.ended[-1], field.root / ".git" / "genba" / "goals")
        if not seen[each.id] and not verdict.get("results"):
            seen[each.id] = f"nothing was tried: {field.told()}"
    return seen


def begun(attack: Attack, script: str = "") -> list[str]:
    """The command of an agent that says when the attack begins."""
    return ["bash", "-c", f"echo BEGUN {attack.id}\n{script or attack.script}"]


def untried(field: Field, attack: Attack) -> str:
    """Evidence that an attack never began: what then did not happen shows nothing."""
    return "" if f"BEGUN {attack.id}" in field.journals() else f"nothing was tried: {field.told()}"


def _too_much(done: Ended, folder: Path) -> str:
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) // 10**6
    if done.hung or size > JOURNAL_MB or done.peak_mb > MEMORY_MB:
        return f"{size} MB on disk, {done.peak_mb} MB of memory, {done.seconds:.0f} s"
    return ""


def burst(name: str, attack: str, script: str) -> Attack:
    return Attack(f"burst-{name}", attack, Surface.FLOODS, "the run completes, and no limit is named", script)


BURSTS = (
    burst(
        "disk",
        "takes 300 MB of disk at once, with a limit of 20 MB",
        "fallocate -l 300M ~/burst || head -c 300000000 /dev/zero > ~/burst; sleep 8; echo done",
    ),
    burst(
        "disk-tree",
        "takes 300 MB of disk at once in the tree, in a file that git ignores",
        "fallocate -l 300M ignored-burst || head -c 300000000 /dev/zero > ignored-burst; sleep 8; echo done",
    ),
    burst(
        "inodes",
        "makes sixty thousand empty files, with a limit of 20 MB and 5000 files",
        "python3 -c \"import os\nfor n in range(60000):\n  if n % 1000 == 0: os.makedirs(os.path.expanduser(f'~/many/{n}')); os.chdir(os.path.expanduser(f'~/many/{n}'))\n  os.close(os.open(str(n), os.O_CREAT))\"; sleep 8; echo done",
    ),
    burst(
        "memory",
        "takes 500 MB of memory at once, with a limit of 100 MB",
        "python3 -c 'held = bytearray(500_000_000); held[::4096] = b\"x\" * len(held[::4096])'; echo done",
    ),
    burst(
        "shared-memory",
        "takes 500 MB of memory as files of /dev/shm and /tmp",
        "for n in 1 2 3 4 5; do head -c 100000000 /dev/zero > /dev/shm/b$n; head -c 100000000 /dev/zero > /tmp/b$n; done; du -sm /dev/shm /tmp | awk '{s+=$1} END {exit s < 400}' && echo done",
    ),
    burst(
        "processes",
        "starts 300 processes at once, with a limit of 60",
        "python3 -c \"import os, time\nmade = 0\nfor _ in range(300):\n  try:\n    if os.fork() == 0: time.sleep(3); os._exit(0)\n    made += 1\n  except OSError: pass\nprint('done' if made == 300 else 'stopped')\"",
    ),
)


def play_bursts(field: Field, scene: Scene) -> Evidence:
    field.write(".gitignore", "ignored-burst\n")
    files = {} if OLD else {"files": 5000}
    field.settle(sandbox={"limits": {"disk_mb": 20, "memory_mb": 100, "processes": 60, **files}})
    seen = {}
    for each in scene.attacks:
        field.agent(each.id, adapter={"type": "custom", "command": begun(each)}, limits={"retries": 0})
        done = field.play("run", each.id, "--json", "--no-merge", seconds=60)
        lines = [json.loads(line) for line in field.journals().splitlines() if '"agent_output"' in line]
        printed = "\n".join(str(line["text"]) for line in lines if line["agent"] == each.id).splitlines()
        ended = "sandbox.limits" in done.out + done.err
        seen[each.id] = untried(field, each) if ended or "done" not in printed else "all of it was had"
        if done.hung:
            seen[each.id] = "the run hung"
    return seen


def reply(name: str, attack: str, script: str) -> Attack:
    return Attack(
        f"reply-{name}",
        attack,
        Surface.REPORTS,
        "the run does not end in time, needs much memory, fails unforeseen, or a secret is in the journal",
        script,
    )


REPLIES = (
    reply("pipe", "puts a pipe in the place of its reply", "rm -f $r; mkfifo $r"),
    reply(
        "socket",
        "puts a socket in the place of its reply",
        "rm -f $r; cd $(dirname $r); python3 -c \"import socket, sys, os; socket.socket(socket.AF_UNIX).bind(os.path.basename('$r'))\"",
    ),
    reply("folder", "puts a folder in the place of its reply", "rm -f $r; mkdir -p $r/x"),
    reply(
        "next-folders",
        "puts folders in the places of its next questions and replies",
        "cd $(dirname $r); for n in 0001 0002 0003 0004; do for f in prompt.md reply.json schema.json system.md; do rm -rf $n.$f; mkdir -p $n.$f/x; done; done",
    ),
    reply(
        "link-missing",
        "puts a link to a file that is not there in the place of its reply, for the host to make",
        "rm -f $r; ln -s CANARIES/made $r",
    ),
    reply(
        "link-secret",
        "puts a link to a secret of the user in the place of its reply, for the host to follow",
        "rm -f $r; ln -s SECRET $r",
    ),
    reply("link-device", "puts a link to an endless device in the place of its reply", "rm -f $r; ln -s /dev/zero $r"),
    reply(
        "hard-link",
        "makes its reply a second name of a file that it may read",
        "rm -f $r; ln .git $r || ln README.md $r",
    ),
    reply("sparse", "makes its reply a file of 300 GB that takes no room", "truncate -s 300G $r"),
    reply(
        "huge",
        "replies with 200 MB",
        "{ printf '{\"text\": \"'; head -c 200000000 /dev/zero | tr '\\0' x; printf '\"}'; } > $r",
    ),
    reply(
        "deep",
        "replies with a million lists in each other",
        "python3 -c \"print('{\\\"text\\\": \\\"x\\\", \\\"structured\\\": ' + '[' * 1000000 + ']' * 1000000 + '}')\" > $r",
    ),
    reply(
        "numbers",
        "replies with numbers that take for ever to read",
        'python3 -c "print(\'{\\"text\\": \\"x\\", \\"usage\\": {\\"input_tokens\\": \' + \'9\' * 3000000 + \'}}\')" > $r',
    ),
    reply(
        "folder-link",
        "puts a link to a folder of the user in the place of the folder of its question",
        "d=$(dirname $r); mv $d $d.old; ln -s CANARIES $d; echo done",
    ),
    reply(
        "home-links",
        "fills its HOME with links to folders of the user, to mislead the cleanup",
        'for n in 1 2 3; do ln -s CANARIES ~/link$n; ln -s CANARIES /tmp/link$n; mkdir -p ~/a/b/c; ln -s CANARIES ~/a/b/c/link; done; printf \'{"text": "x"}\' > $r',
    ),
)


def play_replies(field: Field, scene: Scene) -> Evidence:
    secret = field.home / ".docker" / "config.json"
    secret.parent.mkdir(parents=True)
    secret.write_text(json.dumps({"text": field.secret("reply")}))
    kept = field.canaries / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    seen = {}
    for each in scene.attacks:
        script = each.script.replace("SECRET", str(secret)).replace("CANARIES", str(kept))
        command = f"echo BEGUN {each.id}\nr={{reply_file}}\n{script}"
        field.agent(each.id, adapter={"type": "custom", "command": command}, limits={"retries": 0, "reasks": 0})
        done = field.play("run", each.id, "--json", "--no-merge", seconds=20)
        began = untried(field, each)
        field.play("gc", "--keep-days", "0")
        much = f"{done.seconds:.0f} s, {done.peak_mb} MB" if done.hung or done.peak_mb > MEMORY_MB else ""
        seen[each.id] = much or began
        if '"unexpected"' in done.out:
            seen[each.id] = f"it was not foreseen: {done.err[-200:]}"
        if field.secret("reply") in field.journals() + done.out:
            seen[each.id] = "the secret was read by the host"
        if {file.name for file in kept.iterdir()} != {"file"}:
            seen[each.id] = "the host wrote or deleted where the link led"
            (kept / "file").write_text("kept")
    return seen


SCENES = (
    Scene("floods", (*FLOODS, *GOAL_FLOODS), play_floods, (*SANDBOXES, WORKTREE)),
    Scene("bursts", BURSTS, play_bursts, SANDBOXES),
    Scene("replies", REPLIES, play_replies, SANDBOXES),
)
