"""Follows the page on installing in namespaces of its own: nothing here is changed, and no systemd is needed.

The mount namespace has copies of /etc, /opt, /usr/local, /var and /run that are gone afterwards, the network one has no
other ports. Stand-ins take the place of apt-get, of `python3 -m venv` with pip, and of systemctl, which starts what the
unit files name, as their account and with their environment. Everything else runs as it stands on the page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.patience import LIMIT
from tests.support.snippets import blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "collector" / "install.md"

SYSTEMCTL = r"""
import os, pathlib, shlex, signal, subprocess, sys, time
STATE = pathlib.Path("/run/stand-in")
STATE.mkdir(exist_ok=True)
words = [word for word in sys.argv[1:] if word != "--now"]
action, names = words[0], words[1:]

def unit(name):
    lines = pathlib.Path(f"/etc/systemd/system/{name}.service").read_text().splitlines()
    return [line.partition("=")[::2] for line in lines if "=" in line and not line.startswith("#")]

def environment(settings):
    given = {"PATH": "/usr/bin:/bin", "HOME": "/var/lib/veil", "LANG": "C.UTF-8"}
    for name, value in settings:
        if name == "Environment":
            given.update([value.split("=", 1)])
        if name == "EnvironmentFile":
            file = pathlib.Path(value.removeprefix("-"))
            if file.exists() or not value.startswith("-"):
                lines = file.read_text().splitlines()
                given.update(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return given

def run(settings, command, **more):
    account = dict(settings)["User"]
    become = ["setpriv", f"--reuid={account}", f"--regid={account}", "--init-groups", "--no-new-privs", "--"]
    words = become + shlex.split(command)
    return subprocess.Popen(words, env=environment(settings), cwd="/", umask=0o077, start_new_session=True, **more)

def start(name):
    settings = unit(name)
    for key, command in settings:
        if key == "ExecStartPre":
            assert run(settings, command).wait() == 0
    (command,) = [value for key, value in settings if key == "ExecStart"]
    if dict(settings).get("Type") == "oneshot":
        sys.exit(run(settings, command).wait())
    log = open(f"/run/stand-in/{name}.log", "ab")
    process = run(settings, command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    (STATE / name).write_text(str(process.pid))

def stop(name):
    pid = int((STATE / name).read_text())
    os.kill(pid, signal.SIGTERM)
    while os.path.exists(f"/proc/{pid}") and "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2]:
        time.sleep(0.05)

if action == "daemon-reload":
    sys.exit(0)
for name in names:
    if name.endswith(".timer"):
        assert pathlib.Path(f"/etc/systemd/system/{name}").is_file()
    elif name == "nginx":
        sys.exit(subprocess.call(["nginx"]))
    elif action == "stop":
        stop(name)
    else:
        start(name)
"""
# What `python3 -m venv` and `pip install` would bring is there: this environment.
VENV = r"""#!/bin/sh
set -eu
if [ "${1-}" != -m ] || [ "${2-}" != venv ]; then exec PYTHON "$@"; fi
mkdir -p "$3/bin"
printf '#!/bin/sh\nexec PYTHON -m veil.cli "$@"\n' > "$3/bin/veil"
said="install --quiet --constraint constraints.txt .[collector,sql]"
printf '#!/bin/sh\n[ "$*" = "%s" ] && [ -f constraints.txt ]\n' "$said" > "$3/bin/pip"
chmod 755 "$3/bin/veil" "$3/bin/pip"
"""
SCRIPT = r"""
set -eu
scratch=$1 interpreter=$2
mount -t tmpfs tmpfs "$scratch"
for one in etc opt usr/local var run; do
    mkdir -p "$scratch/$one" "$scratch/$one.work"
    mount -t overlay overlay -o "lowerdir=/$one,upperdir=$scratch/$one,workdir=$scratch/$one.work" "/$one"
done
mkdir -p /var/log/nginx /var/lib/nginx /var/backups
case "$interpreter" in
    /root/*)  # the collector's account may not look into this home: it sees the interpreter alone
        mkdir "$scratch/python" && mount --bind "$interpreter" "$scratch/python"
        mount -t tmpfs -o mode=711 tmpfs /root && (umask 066 && mkdir -p "$interpreter")
        mount --bind "$scratch/python" "$interpreter" ;;
esac
PYTHON -c 'import fcntl, socket, struct
with socket.socket() as any:  # the loopback of this namespace, up
    fcntl.ioctl(any, 0x8914, struct.pack("16sh22x", b"lo", 0x1 | 0x40))'
"""


def page_blocks() -> list[str]:
    """The blocks of the page that run, in their order."""
    return [block.code for block in blocks(PAGE.read_text(encoding="utf-8")) if block.runs]


def follow(folder: Path, code: list[str], before: str = "") -> subprocess.CompletedProcess[str]:
    """Run blocks as root, in a namespace, in the folder of the repository. `before` runs first."""
    commands = folder / "stand-ins"
    commands.mkdir()
    (folder / "systemctl.py").write_text(SYSTEMCTL)
    written = {
        "systemctl": f'#!/bin/sh\nexec {sys.executable} {folder}/systemctl.py "$@"\n',
        "apt-get": "#!/bin/sh\n",
        "python3": VENV.replace("PYTHON", sys.executable),
    }
    for name, text in written.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    (folder / "scratch").mkdir()
    ready = SCRIPT.replace("PYTHON", sys.executable)
    # each block is a shell of its own, as for somebody who pastes them
    pasted = "\n".join(f"bash -euo pipefail -c {_quoted(block)}" for block in code)
    end = "trap 'kill $(cat /run/stand-in/veil) || true; nginx -s stop 2> /dev/null || true' EXIT"
    script = f"{ready}\nPATH={commands}:$PATH\ncd {ROOT}\n{end}\n{before}\n{pasted}"
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    if "HOME" in os.environ:
        environment["HOME"] = os.environ["HOME"]
    command = [
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--propagation",
        "private",
    ]
    return subprocess.run(
        [*command, "bash", "-c", script, "bash", str(folder / "scratch"), sys.base_prefix],
        env=environment,
        capture_output=True,
        text=True,
        timeout=10 * LIMIT,
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def has_nginx() -> bool:
    return shutil.which("nginx", path="/usr/sbin:/usr/bin") is not None


def without_tls(code: list[str]) -> list[str]:
    return [block for block in code if not re.search(r"\bnginx -t\b", block)]
