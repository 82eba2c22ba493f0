"""Runs inside, as the attacker: every script alone, and a line for the host on how it went."""

import json
import pathlib
import subprocess
import sys

PRELUDE = """
import ctypes, ctypes.util, errno, glob, json, mmap, os, pathlib, re, socket, struct, subprocess, sys, time
P = json.loads(sys.argv[1])
P["canary"] = P["canary"][::-1]
libc = ctypes.CDLL(None, use_errno=True)
REFUSED = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOSPC, errno.ESRCH, errno.EAFNOSUPPORT)
def sh(line, seconds=8):
    done = subprocess.run(line, shell=True, capture_output=True, text=True, errors="replace", timeout=seconds)
    return done.stdout
def syscall(number, *words):
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(w) if isinstance(w, int) else w for w in words])
    return done, ctypes.get_errno()
def open_to(number, *words):
    done, code = syscall(number, *words)
    if done >= 0 or code not in REFUSED:
        print(f"system call {number}: {done}, {errno.errorcode.get(code, code)}")
def has(text, source):
    if P["canary"] in text:
        print("read from", source)
        return True
def read(*paths):
    for path in paths:
        for name in glob.glob(path, recursive=True, include_hidden=True) or [path]:
            try:
                with open(name, "rb") as file:
                    has(file.read(4_000_000).decode(errors="replace"), name)
            except OSError as error:
                print(error, file=sys.stderr)
"""


def main() -> None:
    result = json.loads(pathlib.Path(__file__).with_name("scripts.json").read_text())
    wanted = sys.argv[1:] or list(result["scripts"])
    for name in (each for each in wanted if each in result["scripts"]):
        script, given = result["scripts"][name], result["parameters"]
        words = [sys.executable, "-c", PRELUDE + script, json.dumps(given)]
        if script.startswith("#!"):
            words = ["bash", "-c", given["prelude"] + script, name, f"touch {given['canaries']}/{name}", name]
        try:
            done = subprocess.run(words, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
            out, err = (text.decode(errors="replace").strip() for text in (done.stdout, done.stderr))
        except subprocess.TimeoutExpired:
            out, err = "", "took too long"
        line = {"attack": name, "evidence": out[:300], "error": err[-200:]}
        sys.stdout.write(f"ATTACK {json.dumps(line)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
