"""An agent inside its sandbox: what it reads, reaches and asks of the kernel. One session for all of it."""

# ruff: noqa: E501  (a script of an attack stays on its line)

import os
import socket
import subprocess
from pathlib import Path

from tests.attacks.catalogue import Attack, Evidence, Scene, Surface
from tests.attacks.field import Field, Listener

HOME_FILES = {
    "keys": (".ssh/id_ed25519", ".ssh/config", ".gnupg/private-keys-v1.d/key", ".pgpass", ".vault-token"),
    "clouds": (".aws/credentials", ".config/gcloud/credentials.db", ".azure/tokens.json", ".kube/config"),
    "tokens": (".netrc", ".git-credentials", ".config/gh/hosts.yml", ".npmrc", ".pypirc", ".docker/config.json"),
    "logins": (".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".claude.json"),
    "histories": (".bash_history", ".python_history", ".local/state/history", ".mozilla/firefox/logins.json"),
}
BESIDE_TOOLS = {
    "local-share": ".local/share/keyrings/login.keyring",
    "local-state": ".local/state/app/session",
    "home-of-bin": "documents/diary.txt",
    "cargo": ".cargo/credentials.toml",
    "npm-prefix": ".npm-global/etc/npmrc",
    "go": "go/pkg/private/token",
    "config-tool": ".config/composer/auth.json",
    "uv": ".local/share/uv/credentials/credentials.toml",
    "mise": ".local/share/mise/token",
    "claude": ".local/share/claude/history",
    "opencode": ".local/share/opencode/auth.json",
    "codex": ".codex/auth.json",
    "pnpm": ".local/share/pnpm/history",
    "bun": ".bun/install/global/history",
    "conda": "miniconda3/.condarc",
}
LINKED_TOOLS = (
    ".local/share/uv/tools/ruff/bin/uv-tool", ".local/share/mise/installs/x/bin/mise-tool",
    ".local/share/claude/versions/1.0", ".local/share/opencode/bin/opencode", ".codex/bin/codex",
)  # fmt: skip
"""Where installers put tools; `~/.local/bin` has links to them."""
TOOL_FOLDERS = (
    ".local/bin", "bin", ".cargo/bin", ".npm-global/bin", "go/bin", ".config/composer/vendor/bin", ".local/share/pnpm",
    ".bun/bin", "miniconda3/bin",
)  # fmt: skip


def reading(name: str, attack: str, script: str) -> Attack:
    return Attack(name, attack, Surface.READING, "the agent prints the secret that lies there", script)


def kernel(name: str, attack: str, script: str) -> Attack:
    return Attack(name, attack, Surface.EXIT, "the call is not refused", script)


def network(name: str, attack: str, script: str) -> Attack:
    return Attack(name, attack, Surface.NETWORK, "a server of the host answers or counts a connection", script)


READS = (
    *(
        reading(
            f"read-home-{name}",
            f"reads {paths[0]} and its like in the HOME of the user",
            f"read(*P['home_files'][{name!r}])",
        )
        for name, paths in HOME_FILES.items()
    ),
    *(
        reading(
            f"read-beside-tools-{name}",
            f"reads ~/{path}, which lies beside a folder of PATH",
            f"read(P['beside'][{name!r}])",
        )
        for name, path in BESIDE_TOOLS.items()
    ),
    reading(
        "read-other-repository",
        "reads the files and the git folder of another repository",
        "read(P['neighbour'] + '/**', P['neighbour'] + '/.git/**')",
    ),
    reading(
        "read-checkout",
        "reads what the user did not commit in the checkout",
        "read(P['root'] + '/.env', P['root'] + '/*')",
    ),
    reading(
        "read-git-config",
        "reads the address with a password in the settings of git",
        "read(P['root'] + '/.git/config')",
    ),
    reading("read-genba-folder", "reads what Genba keeps below .git/genba", "read(P['root'] + '/.git/genba/**')"),
    reading("read-database", "reads the database of tasks", "read(P['root'] + '/.genba/*')"),
    reading("read-journals", "reads the journals of other runs", "read(P['root'] + '/tmp/**')"),
    reading(
        "read-other-worktree", "reads the working tree of another session", "read(P['root'] + '/.worktrees/other/**')"
    ),
    reading(
        "read-environment-of-genba",
        "reads the environment of Genba in /proc",
        "read('/proc/*/environ', '/proc/*/task/*/environ')",
    ),
    reading(
        "read-by-proc-root",
        "goes to the files of the host by /proc/PID/root and /proc/PID/cwd",
        "read(*[f'/proc/{n}/{w}{P[\"home\"]}/.ssh/id_ed25519' for n in ('1', '2', 'self', 'thread-self') for w in ('root', 'cwd')])",
    ),
    reading(
        "read-by-inherited-handle",
        "goes out by a file handle that was left open",
        "for n in os.listdir('/proc/self/fd'):\n"
        "  if int(n) > 2:\n"
        "    read(f'/proc/self/fd/{n}/home/.ssh/id_ed25519', f'/proc/self/fd/{n}/../home/.ssh/id_ed25519',\n"
        "         f'/proc/self/fd/{n}/.env', f'/proc/self/fd/{n}/.git/config')",
    ),
    reading(
        "read-shadow",
        "reads the passwords of this machine",
        "print(*[line.split(':')[0] for line in open('/etc/shadow') if len(line.split(':')[1]) > 4])",
    ),
    reading(
        "read-host-keys",
        "reads the keys of the ssh server, and files of other users",
        "for name in glob.glob('/etc/ssh/ssh_host_*_key') + glob.glob('/root/.bash_history') + glob.glob('/var/spool/cron/**/*'):\n"
        "  print(name, len(open(name, 'rb').read()))",
    ),
    reading(
        "read-kernel-log",
        "reads the log and the memory of the kernel",
        "buffer = ctypes.create_string_buffer(4096)\n"
        "done, code = syscall(103, 3, buffer, 4096)\n"
        "if done > 0: print('syslog', done)\n"
        "for name in ('/dev/mem', '/proc/kcore', '/dev/kmsg'):\n"
        "  try: print(name, len(open(name, 'rb', 0).read(64)))\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    reading(
        "read-session-keyring",
        "reads a key of the user's session keyring",
        "done, code = syscall(249, b'user', b'genba-attack', None, 0)\n"
        "if done > 0:\n"
        "  buffer = ctypes.create_string_buffer(200)\n"
        "  syscall(250, 11, done, buffer, 200)\n"
        "  has(buffer.value.decode(), 'the keyring')",
    ),
    reading(
        "read-hidden-by-mount",
        "takes the mounts away that hide the HOME of the user",
        "sh('umount -l ' + P['home'] + '; umount -l /tmp; umount -l /root; umount -l /proc')\n"
        "sh('unshare -Urm sh -c \"umount -l %s; umount -l /tmp; cat %s/.ssh/id_ed25519\" > /dev/shm/out' % (P['home'], P['home']))\n"
        "read(P['home'] + '/.ssh/id_ed25519', '/dev/shm/out')",
    ),
)
OBJECTS = {
    "stash": "a stash of the user",
    "deleted-branch": "a branch that the user deleted",
    "private-branch": "a branch of the user that is not its base",
    "other-agent": "the branch of another agent",
    "amended": "a commit that the user amended",
    "staged": "a file that was staged and never committed",
}
STORE = tuple(
    reading(
        f"object-{name}",
        f"reads {what} in the store of objects",
        "has(sh('git cat-file --batch-all-objects --batch --buffer', 15), 'objects')\n"
        "for name in glob.glob(P['root'] + '/.git/objects/**', recursive=True): pass\n"
        "has(sh('git --git-dir=%s/.git cat-file --batch-all-objects --batch' % P['root'], 15), 'the git folder of the user')\n",
    )
    for name, what in OBJECTS.items()
)
SYSCALLS = (
    kernel("sys-io-uring", "opens an io_uring", "open_to(425, 4, ctypes.create_string_buffer(120))"),
    kernel(
        "sys-bpf", "loads a program into the kernel with bpf", "open_to(321, 5, ctypes.create_string_buffer(128), 128)"
    ),
    kernel("sys-userfaultfd", "opens a userfaultfd", "open_to(323, 1)"),
    kernel("sys-keyctl", "makes a keyring", "open_to(250, 1, b'attack')"),
    kernel("sys-add-key", "adds a key", "open_to(248, b'user', b'attack', b'x', 1, -3)"),
    kernel(
        "sys-perf",
        "watches the kernel with perf_event_open",
        "open_to(298, struct.pack('IIQ', 1, 128, 0) + bytes(112), 0, -1, -1, 0)",
    ),
    kernel("sys-ptrace", "attaches to process 1 of its sandbox with ptrace", "open_to(101, 0x4206, 1, 0, 0)"),
    kernel(
        "sys-vm-read",
        "reads the memory of process 1 of its sandbox",
        "where = int(open('/proc/1/maps').readline().split('-')[0], 16)\n"
        "buffer = ctypes.create_string_buffer(8)\n"
        "local = struct.pack('QQ', ctypes.addressof(buffer), 8)\n"
        "open_to(310, 1, local, 1, struct.pack('QQ', where, 8), 1, 0)",
    ),
    kernel(
        "sys-pidfd-getfd",
        "takes a file handle of process 1 with pidfd_getfd",
        "pid = os.pidfd_open(1)\n"
        "for number in range(64):\n"
        "  done, code = syscall(438, pid, number, 0)\n"
        "  if done >= 0: print('handle', number, os.readlink(f'/proc/self/fd/{done}'))",
    ),
    kernel(
        "sys-vsock",
        "opens a socket to the hypervisor (AF_VSOCK)",
        "socket.socket(40, socket.SOCK_STREAM); print('open')",
    ),
    kernel(
        "sys-alg",
        "opens a socket to the ciphers of the kernel (AF_ALG)",
        "socket.socket(38, socket.SOCK_SEQPACKET); print('open')",
    ),
    kernel("sys-packet", "opens a raw socket", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('open')"),
    kernel("sys-user-namespace", "makes a user namespace with all rights inside", "open_to(272, 0x10000000)"),
    kernel(
        "sys-clone3-namespace",
        "makes a user namespace by clone3",
        "words = struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0)\n"
        "done, code = syscall(435, words, 64)\n"
        "if done == 0: os._exit(0)\n"
        "if done > 0: print('made', done)",
    ),
    kernel(
        "sys-mount", "mounts the processes of the host over its own", "open_to(165, b'proc', b'/tmp', b'proc', 0, None)"
    ),
    kernel("sys-new-mount", "mounts by the newer calls", "open_to(430, b'tmpfs', 0)"),
    kernel(
        "sys-x32",
        "calls the kernel by the numbers of x32",
        "done, code = syscall(0x40000000 | 39)\nif done > 0: print('answered', done)",
    ),
    kernel(
        "sys-i386",
        "calls the kernel as a program of 32 bits",
        "code = mmap.mmap(-1, 4096, prot=7)\n"
        "code.write(bytes.fromhex('53 b8 14 00 00 00 cd 80 5b c3'))\n"
        "call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))\n"
        "done = call()\nif done > 0: print('answered', done)",
    ),
    kernel(
        "sys-tiocsti",
        "types into the terminal of the user",
        "import fcntl\n"
        "for name in ('/dev/tty', '/dev/console', '/proc/self/fd/0'):\n"
        "  try:\n"
        "    handle = os.open(name, os.O_RDWR | os.O_NOCTTY)\n"
        "    fcntl.ioctl(handle, 0x5412, b'x'); print('typed', name)\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    kernel(
        "sys-host-process",
        "sees a process of the host, or kills it by its number",
        "for name in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "  try:\n"
        "    if P['sleeper'] in open(name).read().split('\\0'): print(name)\n"
        "  except OSError: pass",
    ),
    kernel(
        "sys-cgroup",
        "raises its own limits in the control groups",
        "for name in glob.glob('/sys/fs/cgroup/**/memory.max', recursive=True) + glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True):\n"
        "  try:\n"
        "    open(name, 'w').write('max' if name.endswith('max') else '0'); print(name)\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    kernel(
        "sys-engine-socket",
        "talks to the engine of containers",
        "for name in ('/var/run/docker.sock', '/run/docker.sock', '/run/podman/podman.sock', P['docker_host']):\n"
        "  try:\n"
        "    one = socket.socket(socket.AF_UNIX); one.connect(name); print(name)\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
)
WRITES = (
    Attack(
        "write-places",
        "writes into the HOME, the checkout, the git folder and system folders",
        Surface.READING,
        "the file is there on the host",
        "for place in (P['canaries'], P['home'], P['root'], P['root'] + '/.git', P['root'] + '/.git/hooks', '/usr/local/bin', '/etc/cron.d', '/dev/shm', '/var/tmp', '/tmp'):\n"
        "  try: open(place + '/planted-' + P['word'], 'w').write('x')\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    Attack(
        "write-objects",
        "writes into the store of objects that it borrows",
        Surface.READING,
        "the file is there on the host",
        "for place in glob.glob(P['root'] + '/.git/objects/*/') + [P['root'] + '/.git/objects/']:\n"
        "  try: open(place + 'planted-' + P['word'], 'w').write('x')\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
)
CONNECT = """
def tried(target, head=None):
    try:
        where = os.environ.get('HTTPS_PROXY') or os.environ.get('HTTP_PROXY') or ''
        host, port = re.findall(r'([0-9.]+|localhost):([0-9]+)', where)[-1]
        with socket.create_connection((host, int(port)), 5) as one:
            one.settimeout(5)
            words = re.findall(r'//([^@/]+)@', where)
            auth = ''
            if words:
                import base64
                auth = 'Proxy-Authorization: Basic ' + base64.b64encode(words[0].encode()).decode() + '\\r\\n'
            one.sendall((head or f'CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n{auth}\\r\\n').replace('AUTH', auth).encode())
            text = one.recv(300)
            if head is None and b' 200' in text[:20]:
                one.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
                text = one.recv(300) + one.recv(300)
            if b'reached' in text: print('answered by', target)
            print(target, text[:60], file=sys.stderr)
    except (OSError, IndexError) as error:
        print(target, error, file=sys.stderr)
"""
FORMS = {
    "plain": ("127.0.0.1", "the loopback by its plain address"),
    "name": ("localhost", "the loopback by the name localhost, with and without a dot"),
    "decimal": ("2130706433", "the loopback as one number"),
    "hex": ("0x7f.0x0.0x0.0x1", "the loopback in hexadecimal parts"),
    "octal": ("0177.0.0.01", "the loopback in octal parts"),
    "short": ("127.1", "the loopback in its short form"),
    "zero": ("0.0.0.0", "the address that means this machine"),
    "mapped": ("[::ffff:127.0.0.1]", "the loopback inside of an IPv6 address"),
    "hostname": ("HOSTNAME", "this machine by its own name, which the list of hosts allows"),
    "own-address": ("OWN", "this machine by the address of its network card"),
}
NETWORK = (
    *(
        network(
            f"proxy-loopback-{name}",
            f"asks the proxy for {what}",
            CONNECT
            + f"tried({form!r}.replace('HOSTNAME', P['hostname']).replace('OWN', P['own']) + ':' + str(P['port']))",
        )
        for name, (form, what) in FORMS.items()
    ),
    network(
        "proxy-metadata",
        "asks the proxy for the metadata of the cloud",
        CONNECT
        + "tried('169.254.169.254:80', 'GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\nAUTH\\r\\n')",
    ),
    network(
        "proxy-host-header",
        "names an allowed host in the header and the loopback in the address",
        CONNECT
        + "tried('127.0.0.1', f'GET http://127.0.0.1:{P[\"port\"]}/ HTTP/1.1\\r\\nHost: allowed.example.com\\r\\nAUTH\\r\\n')",
    ),
    network(
        "proxy-userinfo",
        "hides the loopback behind an allowed name and an @",
        CONNECT
        + "tried('x', f'GET http://allowed.example.com@127.0.0.1:{P[\"port\"]}/ HTTP/1.1\\r\\nHost: allowed.example.com\\r\\nAUTH\\r\\n')\n"
        "tried('x', f'CONNECT allowed.example.com@127.0.0.1:{P[\"port\"]} HTTP/1.1\\r\\nHost: allowed.example.com\\r\\nAUTH\\r\\n')",
    ),
    network(
        "proxy-port",
        "asks for another port of a host that is allowed with one port",
        CONNECT + "tried('ports.example.com:22')",
    ),
    network(
        "direct-loopback",
        "connects to the loopback of the host without a proxy",
        "for host in ('127.0.0.1', '0.0.0.0', '::1', '::ffff:127.0.0.1', P['own']):\n"
        "  try:\n"
        "    with socket.create_connection((host, P['port']), 2) as one:\n"
        "      one.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); print(host, one.recv(20))\n"
        "  except OSError as error: print(host, error, file=sys.stderr)",
    ),
    network(
        "direct-outside",
        "connects to another machine without a proxy",
        "for host in ('10.255.255.1', '169.254.169.254', '192.0.2.1', '8.8.8.8'):\n"
        "  one = socket.socket(); one.settimeout(1)\n"
        "  code = one.connect_ex((host, 80))\n"
        "  if code in (0, errno.EAGAIN, errno.ETIMEDOUT, errno.EINPROGRESS, errno.ECONNREFUSED): print(host, code)",
    ),
    network(
        "direct-udp",
        "sends a datagram to the host, and asks a server of names",
        "for host in ('127.0.0.1', P['own']):\n"
        "  one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "  try: one.sendto(P['word'].encode(), (host, P['udp']))\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
    network(
        "unix-sockets",
        "connects to sockets of the host, by a path and by an abstract name",
        "for name in (P['unix'], '\\0' + P['unix']):\n"
        "  try:\n"
        "    one = socket.socket(socket.AF_UNIX); one.connect(name); print('connected')\n"
        "  except OSError as error: print(error, file=sys.stderr)",
    ),
)


def furnish(field: Field) -> dict[str, object]:
    """A HOME with secrets in the usual places, other repositories, and objects that no branch of the agent has."""
    secret = field.secret("x")
    for name in (*(path for paths in HOME_FILES.values() for path in paths), *BESIDE_TOOLS.values()):
        file = field.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(secret)
    for path in (*(f"{folder}/tool" for folder in TOOL_FOLDERS), *LINKED_TOOLS):
        tool = field.home / path
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    for path in LINKED_TOOLS:
        (field.home / ".local/bin" / Path(path).name).symlink_to(field.home / path)
    neighbour = field.place / "neighbour"
    subprocess.run(["git", "init", "-q", str(neighbour)], check=True)
    (neighbour / "secret.txt").write_text(secret)
    field.environment["PATH"] += "".join(f":{field.home}/{folder}" for folder in TOOL_FOLDERS)
    field.environment["GENBA_ATTACK_SECRET"] = secret
    return {
        "canary": secret,
        "home_files": {name: [f"{field.home}/{path}" for path in paths] for name, paths in HOME_FILES.items()},
        "beside": {name: f"{field.home}/{path}" for name, path in BESIDE_TOOLS.items()},
        "neighbour": str(neighbour),
    }


def hide_objects(field: Field) -> dict[str, str]:
    """Secrets in the store of objects, each on another way; by name, what stands in it."""
    words = {name: field.secret(name) for name in OBJECTS}

    def branch(name: str, word: str) -> None:
        field.git("checkout", "-q", "-b", name)
        field.write("note.txt", word)
        field.commit("A note")
        field.git("checkout", "-q", "main")

    field.write("README.md", f"# A project\n{words['stash']}\n")
    field.git("stash", "-q")
    branch("gone", words["deleted-branch"])
    field.git("branch", "-q", "-D", "gone")
    branch("private", words["private-branch"])
    branch("genba/7-other", words["other-agent"])
    branch("amended", words["amended"])
    field.git("checkout", "-q", "amended")
    (field.root / "note.txt").unlink()
    field.git("commit", "-q", "--amend", "--allow-empty", "-am", "Nothing")
    field.git("checkout", "-q", "main")
    field.write("staged.txt", words["staged"])
    field.git("add", "staged.txt")
    field.git("reset", "-q", "--hard")
    return words


def leave_data(field: Field, secret: str) -> None:
    """Data beside the work: uncommitted files, a password in git's settings, runs, tasks and another working tree."""
    field.write(".env", secret)
    with (field.root / ".git" / "info" / "exclude").open("a") as file:
        file.write("/.env\n/tmp/\n/.genba/genba.db*\n/.worktrees/\n")
    field.git("config", "remote.origin.url", f"https://user:{secret}@git.example.com/x.git")
    field.play("task", "add", f"A task {secret}")
    field.write("tmp/logs/agents/other/other-1.jsonl", secret)
    field.git("worktree", "add", "-q", "--detach", ".worktrees/other")
    field.write(".worktrees/other/secret.txt", secret)
    kept = field.root / ".git" / "genba" / "runs" / "other-1"
    kept.mkdir(parents=True)
    (kept / "memory.json").write_text(secret)


def join_keyring(secret: str) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(250, 1, b"attack")
    libc.syscall(248, b"user", b"genba-attack", secret.encode(), len(secret), -3)


def own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
            return str(one.getsockname()[0])
        except OSError:
            return "127.0.0.2"


def play(field: Field, scene: Scene) -> Evidence:
    parameters = furnish(field)
    words = hide_objects(field)
    leave_data(field, field.secret("x"))
    own, hostname = own_address(), socket.gethostname().lower()
    scripts = scene.scripts()
    for name in words:  # each looks for its own secret
        scripts[f"object-{name}"] = f"P['canary'] = {words[name][::-1]!r}[::-1]\n" + scripts[f"object-{name}"]
    unix = f"/tmp/genba-attack-{field.word}"
    server, everywhere = Listener(), Listener(address=("0.0.0.0", 0))
    named, abstract = Listener(socket.AF_UNIX, unix), Listener(socket.AF_UNIX, "\0" + unix)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("0.0.0.0", 0))
    udp.setblocking(False)
    number = f"86{os.getpid()}.{id(field) % 10**5}"
    sleeper = subprocess.Popen(["sleep", number])
    field.probe(
        scripts,
        port=everywhere.port,
        udp=udp.getsockname()[1],
        unix=unix,
        own=own,
        hostname=hostname,
        sleeper=number,
        docker_host=field.environment.get("DOCKER_HOST", "").removeprefix("unix://") or "/none",
        **parameters,
    )
    allowed = ["allowed.example.com", hostname, "localhost", "ports.example.com:443"]
    field.settle(sandbox={"network": "allowlist", "allow": allowed})
    field.before = lambda: join_keyring(field.secret("x"))
    field.actor(["python3", "attack/probes.py"])
    try:
        field.play("run", "worker", "--json", "--no-merge", seconds=120)
        seen = {name: message["evidence"] for name, message in field.reported().items()}
        seen |= _observed(field, [server, everywhere], [named, abstract], udp)
        if sleeper.poll() is not None:
            seen["sys-host-process"] = "a process of the host was killed"
    finally:
        sleeper.kill()
        sleeper.wait()
        for each in (server, everywhere, named, abstract, udp):
            each.close()
        Path(unix).unlink(missing_ok=True)
    return seen


def _observed(field: Field, loopback: list[Listener], sockets: list[Listener], udp: socket.socket) -> dict[str, str]:
    """What the host sees by itself, whatever the agent says."""
    seen = {}
    places = (
        field.canaries,
        field.home,
        field.root,
        field.root / ".git",
        field.root / ".git/hooks",
        Path("/usr/local/bin"),
    )
    planted = [
        str(place)
        for place in (*places, *map(Path, ("/etc/cron.d", "/dev/shm", "/var/tmp", "/tmp")))
        if (place / f"planted-{field.word}").exists()
    ]
    seen["write-places"] = " ".join(planted)
    seen["write-objects"] = " ".join(str(each) for each in (field.root / ".git/objects").rglob(f"planted-{field.word}"))
    if any(each.connections for each in sockets):
        seen["unix-sockets"] = "a socket of the host was connected to"
    try:
        seen["direct-udp"] = str(udp.recv(100))
    except BlockingIOError:
        seen["direct-udp"] = ""
    gates = [line for line in field.journals().splitlines() if "egress_used" in line and "ports.example.com:22" in line]
    if any('"denied"' not in line for line in gates):
        seen["proxy-port"] = "the proxy tried to connect"
    return seen


SCENES = (Scene("inside", (*READS, *STORE, *SYSCALLS, *WRITES, *NETWORK), play),)
