"""A real PostgreSQL server for the tests, from Debian's package, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from tests.patience import LIMIT, until

from veil.shuffle.rehearsal import free_addresses

_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").exists() else []


def binaries() -> Path | None:
    """Where initdb and pg_ctl are; None where PostgreSQL is not installed."""
    if _FOLDERS:
        return _FOLDERS[-1]
    found = shutil.which("pg_ctl")
    return None if found is None else Path(found).resolve().parent


@dataclass
class Server:
    """A server that can be stopped and started again; `url` names one of its databases."""

    folder: Path
    port: int
    made: int = 0

    def run(self, *command: str) -> None:
        found = binaries()
        assert found is not None
        # the server refuses to run as root
        user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        full = [*user, str(found / command[0]), *command[1:]]
        subprocess.run(full, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        patient = ["-w", "-t", f"{LIMIT:.0f}", "-l", str(self.folder / "log")]
        self.run("pg_ctl", "-D", str(self.folder / "data"), *patient, "-o", options, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-W", "stop")
        until(lambda: not (self.folder / "data" / "postmaster.pid").exists())

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def standby(self) -> Server:
        """A server that follows this one: a copy that receives everything that is written here."""
        (place,) = free_addresses(1)
        folder = new_folder()
        source = f"host=127.0.0.1 port={self.port} user=veil"
        self.run(
            "pg_basebackup", "-D", str(folder / "data"), "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync"
        )
        other = Server(folder, place.port)
        other.start()
        return other

    def promote(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", f"{LIMIT:.0f}", "promote")

    def demote(self) -> None:
        """Make a server that was stopped one that only reads."""
        (self.folder / "data" / "standby.signal").touch()
        self.start()

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """All processes of the server stand still for the length of a block: connections stay, nothing is answered."""
        postmaster = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        postmaster.suspend()  # first, so that it makes no more children
        stopped = [postmaster, *postmaster.children(recursive=True)]
        try:
            for process in stopped[1:]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.suspend()
            yield
        finally:
            for process in stopped:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()

    def database(self) -> str:
        """A new, empty database."""
        self.made += 1
        name = f"veil_{self.made}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://veil@127.0.0.1:{self.port}/{database}"


def new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="veil-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    return folder


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """A running server."""
    (place,) = free_addresses(1)
    folder = new_folder()
    one = Server(folder, place.port)
    try:
        one.run("initdb", "-D", str(folder / "data"), "-U", "veil", "-A", "trust", "-E", "UTF8", "--no-sync")
        one.start()
        yield one
    finally:
        one.remove()


@contextlib.contextmanager
def server_pair(*, synchronous: bool) -> Iterator[tuple[Server, Server]]:
    """A running server, and a standby that follows it."""
    with server() as primary:
        standby = primary.standby()
        try:
            with psycopg.connect(primary.url("postgres"), autocommit=True) as watching:
                streaming = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"
                until(lambda: watching.execute(streaming).fetchone())
            if synchronous:
                primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
                with psycopg.connect(primary.url("postgres"), autocommit=True) as watching:
                    until(lambda: watching.execute("SHOW synchronous_standby_names").fetchone() == ("*",))
            yield primary, standby
        finally:
            standby.remove()


def url_of_both(primary: Server, standby: Server) -> str:
    """The address of a new database on the one of two servers that takes writes."""
    name = primary.database().rpartition("/")[2]
    return f"postgresql://veil@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/{name}?target_session_attrs=read-write"
