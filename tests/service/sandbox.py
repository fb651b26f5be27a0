"""Runs what a systemd unit starts in the mount namespace that the unit describes: no systemd is needed, but root is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "veil.service"
NOBODY = 65_534
# What each line of the unit is here. One that is missing fails the test: whoever adds it says what it means.
MOUNTS = {
    "ProtectSystem=strict": "protect_system",
    "ProtectHome=yes": "protect_home",
    "PrivateTmp=yes": "private_tmp",
    "PrivateDevices=yes": "private_devices",
    "StateDirectory=veil": "state_directory",
}
OTHERWISE = {
    "User=veil": "another account without a home",
    "StateDirectoryMode=0700": "the folder's mode",
    "NoNewPrivileges=yes": "setpriv",
    "LimitNOFILE=65536": "ulimit",
    "MemoryMax=5G": "looked at in the end",
    "SystemCallFilter=@system-service": "the same filter, made by libseccomp",
    "SystemCallFilter=~@privileged @resources": "the same filter",
    "SystemCallErrorNumber=EPERM": "the same filter",
}
NOT_HERE = {
    "Restart=always",
    "RestartSec=1",
    "TimeoutStopSec=30",
    "EnvironmentFile=-/etc/veil/veil.env",  # there is none
    "UMask=0077",  # veil sets it as well
    "CapabilityBoundingSet=",  # setpriv leaves none to another account
    "PrivateUsers=yes",
    "ProtectProc=invisible",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "RemoveIPC=yes",
    "SystemCallArchitectures=native",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectControlGroups=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces=yes",
    "LockPersonality=yes",
}
SCRIPT = r"""
set -eu
over() {  # a folder whose changes are gone with this namespace
    mkdir "$scratch/$2" "$scratch/$2.work"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$scratch/$2,workdir=$scratch/$2.work" "$1"
}
state_directory() {
    mkdir -p /var/lib/veil
    mount --bind "$data" /var/lib/veil
}
private_devices() {
    mkdir "$scratch/dev" && mount -t tmpfs -o mode=755 tmpfs "$scratch/dev" && mkdir "$scratch/dev/shm"
    for one in null zero full random urandom; do
        touch "$scratch/dev/$one" && mount --bind "/dev/$one" "$scratch/dev/$one"
    done
    mount --rbind "$scratch/dev" /dev
}
protect_home() {
    for one in /home /root /run/user; do
        if [ ! -d "$one" ]; then continue; fi
        case "$interpreter" in
            "$one"/*)  # it is all that can be seen of this home
                mkdir "$scratch/python" && mount --bind "$interpreter" "$scratch/python"
                mount -t tmpfs -o mode=711 tmpfs "$one" && (umask 066 && mkdir -p "$interpreter")
                mount --bind "$scratch/python" "$interpreter" ;;
            *) mount -t tmpfs -o mode=000 tmpfs "$one" ;;
        esac
        mount -o remount,bind,ro "$one"
    done
}
private_tmp() {
    mount -t tmpfs tmpfs /var/tmp
    mount -t tmpfs tmpfs /tmp
}
protect_system() {  # everything but what the unit names
    while read -r _ place _; do
        case "$place" in
            /proc*|/sys*|/dev*|/tmp|/var/tmp|/var/lib/veil) ;;
            *) mount -o remount,bind,ro "$place" 2>/dev/null || [ "$place" != / ] ;;
        esac
    done < /proc/self/mounts
}
scratch=$1 data=$2 prefix=$3 interpreter=$4 toml=$5
shift 5
mount -t tmpfs tmpfs "$scratch"
for one in etc opt var/lib; do mkdir -p "/$one"; over "/$one" "$(basename "$one")"; done
mkdir -p /etc/veil /opt/veil && cp "$toml" /etc/veil/veil.toml && chmod 644 /etc/veil/veil.toml
mount --bind "$prefix" /opt/veil
cd /
STEPS
ulimit -n 65536 2>/dev/null || true  # a container may forbid it
exec "$@"
"""


# Loads a filter of system calls and runs a command: a call that is not allowed fails with EPERM.
FILTER = r"""
import ctypes, errno, os, sys
allowed, command = sys.argv[1].split(","), sys.argv[2:]
lib = ctypes.CDLL("libseccomp.so.2")
lib.seccomp_init.restype = ctypes.c_void_p
fails = 0x00050000 | errno.EPERM
context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(fails)))
for name in allowed:
    number = lib.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:  # others are calls of other machines
        assert lib.seccomp_rule_add(context, ctypes.c_uint32(0x7FFF0000), number, 0) == 0, name
assert lib.seccomp_load(context) == 0
os.execvp(command[0], command)
"""


def allowed_calls(lines: list[str]) -> list[str] | None:
    """Return the system calls that a unit allows, or None where systemd or libseccomp is not here to say."""
    if shutil.which("systemd-analyze") is None or find_library("seccomp") is None:
        return None
    allowed: set[str] = set()
    for line in lines:
        if line.startswith("SystemCallFilter="):
            words = line.removeprefix("SystemCallFilter=").removeprefix("~").split()
            calls = set().union(*map(_calls_of, words))
            allowed = allowed - calls if "=~" in line else allowed | calls
    return sorted(allowed)


def _calls_of(group: str) -> set[str]:
    command = ["systemd-analyze", "syscall-filter", group]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    words = [line.strip() for line in listed if line.startswith("    ") and not line.strip().startswith("#")]
    return set().union(*(_calls_of(word) if word.startswith("@") else {word} for word in words))


@dataclass(frozen=True)
class Unit:
    """The lines of a unit's section [Service]."""

    command: list[str]
    lines: list[str]


def shipped() -> Unit:
    lines = UNIT.read_text().partition("[Service]")[2].partition("[Install]")[0].splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    begin = ("ExecStartPre=", "ExecStart=")
    first, start = (next(line for line in lines if line.startswith(name)).removeprefix(name) for name in begin)
    command = ["sh", "-c", f"{first} > /dev/null && exec {start}"]
    return Unit(command, [line for line in lines if not line.startswith(begin)])


def check_possible() -> None:
    """Skip loudly where nobody may make a mount namespace; under CI, root may."""
    why = None
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        why = "needs root, unshare and setpriv"
    elif subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        why = "mount namespaces are not allowed here"
    hidden = ("/root", "/home", "/tmp", "/var/tmp")  # noqa: S108
    if why is None and any(Path(part).resolve().is_relative_to(one) for part in (sys.prefix, ROOT) for one in hidden):
        pytest.skip("the clone lies in a home or in /tmp, which the unit hides: the shipped unit was NOT tested")
    if why is not None:
        message = f"{why}: the shipped unit was NOT tested"
        if os.environ.get("CI") == "true" and os.geteuid() == 0:
            pytest.fail(message)
        pytest.skip(message)


def command(scratch: Path, data: Path, toml: Path) -> list[str]:
    """What starts the unit's command as the unit says; `data` becomes /var/lib/veil."""
    unit = shipped()
    steps = [MOUNTS[line] for line in unit.lines if line in MOUNTS]
    assert sorted({*unit.lines} - {*MOUNTS} - {*OTHERWISE} - NOT_HERE) == []
    order = [name for name in MOUNTS.values() if name in steps]
    order.sort(key=["state_directory", "private_devices", "protect_home", "protect_system", "private_tmp"].index)
    if "private_tmp" in order and "protect_system" in order:  # its own folders stay writable
        order.remove("protect_system")
        order.append("protect_system")
    script = SCRIPT.replace("STEPS", "\n".join(order))
    account = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--"]
    if (allowed := allowed_calls(unit.lines)) is not None:
        account += [sys.executable, "-c", FILTER, ",".join(allowed)]
    given = [str(scratch), str(data), sys.prefix, sys.base_prefix, str(toml)]
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *given, *account, *unit.command]
