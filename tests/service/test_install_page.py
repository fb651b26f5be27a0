"""docs/collector/install.md, followed from its first line to its last; the files in `deploy` that it installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.service import sandbox
from tests.service.installing import PAGE, ROOT, follow, has_nginx, page_blocks, without_tls
from tests.service.postgres import binaries, server
from tests.support.snippets import blocks

import veil
from veil.collector.settings import CollectorSettings, load_settings
from veil.collector.store.postgres import PostgresStore
from veil.errors import StoreError

DEPLOY = ROOT / "deploy"
SHOWN = {"ini": "veil.service", "toml": "veil.toml", "nginx": "nginx/veil.conf"}


def refuse(message: str) -> None:
    pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)


@pytest.mark.parametrize("language", SHOWN)
def test_the_page_shows_what_it_installs(language: str) -> None:
    (block,) = [one for one in blocks(PAGE.read_text(encoding="utf-8")) if one.language == language]
    assert block.code == (DEPLOY / SHOWN[language]).read_text(encoding="utf-8")


def test_a_collector_can_be_installed_and_backed_up(tmp_path: Path) -> None:
    sandbox.check_possible()
    begin = page_blocks()[:4]
    (backup,) = [block for block in page_blocks() if "now veil-backup.timer" in block]
    runbook = (ROOT / "docs/collector/deployment.md").read_text(encoding="utf-8")
    rotation = [one.code for one in blocks(runbook) if one.language == "sh" and "veil-admin key" in one.code]
    backed_up = """
test "$(stat -c '%U %a' /var/lib/veil /var/backups/veil /var/backups/veil/*.sqlite3 | sort | uniq -c | tr -s ' ')" = "\
 1 veil 600
 2 veil 700"
"""
    rotated = """
test "$(stat -c '%U %a' /var/lib/veil/signing.key)" = "veil 600"
curl --fail --silent --retry 60 --retry-all-errors --retry-delay 1 http://127.0.0.1:8321/readyz
"""
    done = follow(tmp_path, [*begin, backup, backed_up, "cd /root\n" + rotation[0], *rotation[1:], rotated])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert done.stdout.count('{"status":"ok"}') == 2
    assert "the key is now" in done.stdout
    assert "no damage" in done.stdout


@pytest.mark.acceptance
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    sandbox.check_possible()
    code = page_blocks() if has_nginx() else without_tls(page_blocks())
    (stopped,) = [place for place, block in enumerate(code) if "/opt/veil.before" in block and "readlink" in block]
    newer = 'cp -R "$(readlink /opt/veil)" /opt/veil-99\nln -sfn /opt/veil-99 /opt/veil'
    code.insert(stopped + 2, newer)  # after the backup
    code.insert(stopped + 4, 'test "$(readlink /opt/veil)" = /opt/veil-99')
    last = r"""
test "$(stat -c '%U %a' /var/lib/veil /var/backups/veil | sort -u)" = "veil 700"
cd /var/lib/veil
test "$(stat -c '%U %a' signing.key collector.sqlite3 /var/backups/veil/*.sqlite3 | sort -u)" = "veil 600"
test "$(stat -c '%U %a' /etc/veil/veil.env)" = "root 600"
test "$(ls /var/backups/veil | wc -l)" = 2
test "$(readlink /opt/veil)" = "/opt/veil-VERSION"
test ! -e veil-collector
veil-admin survey list --json | tee /dev/stderr | grep -q '"name": *"drinks"'
"""
    done = follow(tmp_path, [*code, last.replace("VERSION", veil.__version__)])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert done.stdout.count('{"status":"ok"}') == 4 + has_nginx()
    assert "no damage" in done.stdout
    assert "restoring /var/backups/veil/veil-" in done.stdout
    if not has_nginx():
        refuse("nginx is not installed (Debian: nginx-light): the page was followed, but TLS was NOT tested")


def test_backups_are_rotated(tmp_path: Path) -> None:
    veil = tmp_path / "veil"
    veil.write_text(
        '#!/bin/sh\nif [ "$1" = backup ]; then echo new > "$2"; fi\necho "$1 ${VEIL_DATABASE_URL-}" >> "$LOG"\n'
    )
    veil.chmod(0o755)
    folder = tmp_path / "backups"
    folder.mkdir()
    names = [f"veil-202601{day:02}T030000Z.sqlite3" for day in range(1, 10)]
    for name in (*names, "signing.key", "mine.sqlite3"):
        (folder / name).touch()
    script = tmp_path / "veil-backup"
    script.write_text((DEPLOY / "veil-backup").read_text().replace("/opt/veil/bin/veil", str(veil)))
    environment = {"PATH": os.environ["PATH"], "LOG": str(tmp_path / "log")}
    environment |= {"VEIL_BACKUPS": str(folder), "VEIL_BACKUPS_KEPT": "3"}
    subprocess.run(["sh", str(script)], env=environment, check=True)
    left = sorted(path.name for path in folder.iterdir())
    assert left[:2] == ["mine.sqlite3", "signing.key"]
    assert left[2:4] == names[-2:]
    assert len(left) == 5
    assert (tmp_path / "log").read_text().splitlines() == ["backup ", f"check sqlite:///{folder / left[4]}"]
    veil.write_text("#!/bin/sh\nexit 7\n")  # a backup that fails removes nothing
    assert subprocess.run(["sh", str(script)], env=environment, check=False).returncode == 7
    assert sorted(path.name for path in folder.iterdir()) == left


def test_the_settings_are_read_as_systemd_reads_them(tmp_path: Path) -> None:
    admin = (DEPLOY / "veil-admin").read_text()
    url = "postgresql://veil:a%24b@db.example/veil?sslmode=verify-full&sslrootcert=/etc/veil/database-ca.pem"
    (tmp_path / "veil.env").write_text(
        f"# passwords\nVEIL_DATABASE_URL={url}\nVEIL_KEY_FILE=/a b/$HOME/key\nPATH=/nowhere\nVEIL_LOG_LEVEL=debug"
    )
    shown = re.sub(r"^exec .*", "exec env", admin, flags=re.MULTILINE).replace(
        "/etc/veil/veil.env", str(tmp_path / "veil.env")
    )

    def seen(**given: str) -> dict[str, str]:
        """The variables that a command gets which `veil-admin` runs."""
        environment = {name: text for name, text in os.environ.items() if not name.startswith("VEIL_")} | given
        done = subprocess.run(["sh", "-c", shown], env=environment, capture_output=True, text=True, check=True)
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("VEIL_"))

    backup = {"VEIL_DATABASE_URL": "sqlite:////var/backups/veil/by-hand.sqlite3", "VEIL_SETTINGS": "/mine.toml"}
    assert seen(**backup)["VEIL_DATABASE_URL"] == backup["VEIL_DATABASE_URL"]  # `veil check` of a backup
    assert seen(**backup)["VEIL_SETTINGS"] == "/etc/veil/veil.toml"
    given = seen()
    assert given["VEIL_DATABASE_URL"] == url
    assert given["VEIL_LOG_LEVEL"] == "debug"  # systemd reads a last line without its end, too
    assert given["VEIL_KEY_FILE"] == "/a b/$HOME/key"
    assert given["VEIL_SETTINGS"] == "/etc/veil/veil.toml"
    settings = load_settings(
        DEPLOY / "veil.toml", {name: text for name, text in given.items() if name != "VEIL_SETTINGS"}
    )
    assert settings.database == url
    assert settings.address_header.lower() in (DEPLOY / "nginx/veil.conf").read_text().lower()


def test_collectors_are_installed_with_sql() -> None:
    for text in (PAGE.read_text(encoding="utf-8"), (ROOT / "Dockerfile").read_text(encoding="utf-8")):
        (extras,) = re.findall(r"--constraint constraints\.txt '\.\[([\w,]+)\]'", text)
        assert extras == "collector,sql"


def test_limits_of_memory_leave_room_for_four_answers() -> None:
    (unit,) = re.findall(r"^MemoryMax=(\d+)G$", (DEPLOY / "veil.service").read_text(), re.MULTILINE)
    (image,) = re.findall(r"^ *mem_limit: (\d+)g\b", (ROOT / "compose.yaml").read_text(), re.MULTILINE)
    needed = (
        4 * CollectorSettings().query_megabytes + 1024
    )  # docs/collector/service.md says so; 1 GiB is the collector's own
    assert int(unit) * 1024 == int(image) * 1024 == needed


@pytest.mark.parametrize(("unit", "most"), [("veil.service", 3.0), ("veil-backup.service", 4.0)])
def test_systemd_finds_the_units_safe(unit: str, most: float) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the units were NOT rated")

    def rated(path: Path) -> float:
        command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return float(re.search(r"Overall exposure level for \S+: ([\d.]+)", said)[1])  # type: ignore[index]

    level = rated(DEPLOY / unit)
    assert level < most
    if unit == "veil.service":
        assert f"gives it {level} " in PAGE.read_text(encoding="utf-8")


def test_the_timer_runs_daily(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the timer was NOT verified")
    for name in ("veil-backup.service", "veil-backup.timer"):
        (tmp_path / name).write_text((DEPLOY / name).read_text().replace("/usr/local/sbin/veil-backup", "/bin/true"))
    command = ["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line for line in (done.stdout + done.stderr).splitlines() if "veil-backup" in line] == []
    when = re.search(r"OnCalendar=(.*)", (DEPLOY / "veil-backup.timer").read_text())
    assert when is not None
    twice = ["systemd-analyze", "calendar", "--iterations=2", when[1]]
    said = subprocess.run(twice, capture_output=True, text=True, check=True).stdout
    times = [
        time.mktime(time.strptime(at, "%Y-%m-%d %H:%M:%S"))
        for at in re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?= UTC)", said)
    ]
    assert max(times) - min(times) in (86_400.0, 82_800.0, 90_000.0)


def certificate(folder: Path, name: str) -> Path:
    """Make a certificate for 127.0.0.1 that is its own authority."""
    made = folder / f"{name}.pem"
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=db.example"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(made.with_suffix(".key")), "-out", str(made)]
    subprocess.run(["openssl", "req", *options.split(), *names], check=True, capture_output=True)
    return made


def test_every_address_of_a_database_on_another_machine_asks_for_tls() -> None:
    pages = [path.read_text(encoding="utf-8") for path in PAGE.parent.glob("*.md")]
    addresses = [address for page in pages for address in re.findall(r"postgresql://\S+\.example\S*", page)]
    assert len(addresses) >= 2
    assert [address for address in addresses if "sslmode=verify-full" not in address] == []


def test_the_database_is_reached_by_tls_alone(tmp_path: Path) -> None:
    if binaries() is None or shutil.which("openssl") is None:
        refuse("PostgreSQL or openssl is not installed: TLS to the database was NOT tested")
    text = PAGE.read_text(encoding="utf-8")
    (line,) = [one.code.strip() for one in blocks(text) if one.code.startswith("VEIL_DATABASE_URL=postgresql://")]
    (allowed,) = re.findall(r"`(hostssl [^`]+)`", text)
    ours, others = certificate(tmp_path, "ours"), certificate(tmp_path, "others")
    with server() as one:
        one.execute("CREATE DATABASE veil", "ALTER ROLE veil PASSWORD 'secret'")
        for file in (ours, ours.with_suffix(".key")):
            shutil.copy(file, one.folder / "data" / file.name)
            (one.folder / "data" / file.name).chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(one.folder / "data" / file.name, "postgres", "postgres")
        one.execute(
            "ALTER SYSTEM SET ssl = on",
            "ALTER SYSTEM SET ssl_cert_file = 'ours.pem'",
            "ALTER SYSTEM SET ssl_key_file = 'ours.key'",
        )
        (one.folder / "data" / "pg_hba.conf").write_text(allowed.replace("10.0.0.0/8", "127.0.0.1/32") + "\n")
        one.stop()
        one.start()
        url = line.partition("=")[2].replace("PASSWORD", "secret").replace("db.example", f"127.0.0.1:{one.port}")
        url = url.replace("/etc/veil/database-ca.pem", str(ours))
        store = PostgresStore(url)
        with store.reading() as connection:
            (encrypted,) = (
                connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone() or ()
            )
        store.close()
        assert encrypted is True
        wrongs = {url.replace(str(ours), str(others)): "TLS", url.replace("verify-full", "disable"): "pg_hba.conf"}
        for wrong, why in wrongs.items():
            with pytest.raises(StoreError) as refused:
                PostgresStore(wrong).ping()
            assert why in str(refused.value)
            assert "secret" not in str(refused.value)
