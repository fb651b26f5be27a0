"""The collector's settings: one TOML file, and VEIL_* variables of the environment over it. Nothing needs to be set."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from veil.errors import InputError
from veil.tools.messages import unknown_name

FILE = "veil.toml"
SQLITE = "sqlite:///"
_PREFIX = "VEIL_"
_OTHERS = ("SETTINGS", "DATA", "ENGINE", "THREADS", "TRACEBACK", "CHROMIUM", "FIREFOX")  # variables that others read
_MOST_DAYS = 36_525
_POSITIVE = (
    *("max_body_bytes", "max_reports", "group_reports", "max_connections", "head_bytes", "head_seconds"),
    *("ids_megabytes", "body_seconds", "close_seconds", "shutdown_seconds", "precision", "fold_seconds"),
    *("query_megabytes", "query_seconds"),
)


@dataclass(frozen=True)
class CollectorSettings:
    """Everything that can be set; each name in the file has the variable VEIL_NAME beside it.

    >>> CollectorSettings(port=9000).database
    'sqlite:///veil-collector/collector.sqlite3'
    """

    host: str = "127.0.0.1"
    port: int = 8321
    folder: str = "veil-collector"
    database_url: str = ""
    key_file: str = ""
    cors_origins: tuple[str, ...] = ("*",)
    max_body_bytes: int = 4 << 20
    max_reports: int = 10_000
    queue_reports: int = 100_000
    queue_bytes: int = 64 << 20
    group_reports: int = 20_000
    ids_megabytes: int = 256
    max_connections: int = 4_096
    head_bytes: int = 32 << 10
    head_seconds: int = 10
    body_seconds: int = 30
    close_seconds: int = 5
    shutdown_seconds: int = 20
    tally_seconds: float = 1.0
    fold_seconds: int = 3_600
    database_seconds: float = 5.0
    database_wait_seconds: int = 60
    query_megabytes: int = 1_024
    query_seconds: int = 300
    minimum: int = 100
    precision: int = 86_400
    valid_days: int = 30
    requests_per_minute: int = 120
    limits_at_proxy: bool = False
    address_header: str = ""
    metrics_open: bool = False
    log_level: str = "info"

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), field.default)
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise InputError(f"the setting {name} must be at least 1")
        if not 1 <= self.valid_days <= _MOST_DAYS:
            raise InputError(f"the setting valid_days must lie between 1 and {_MOST_DAYS}")
        if not 0 <= self.requests_per_minute < 65_535:
            raise InputError(f"requests_per_minute: expected 0 (no limit) to 65534, got {self.requests_per_minute}")
        if not 0 <= self.port < 65_536:
            raise InputError("the setting port must lie between 0 and 65535")
        if self.minimum < 1 or not 0 < self.tally_seconds < math.inf or not 0 < self.database_seconds < math.inf:
            raise InputError("the settings minimum, tally_seconds and database_seconds must be above 0")
        if self.queue_reports < self.max_reports or self.queue_bytes < self.max_body_bytes:
            raise InputError("the queue must have room for one request: raise queue_reports or queue_bytes")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise InputError("the setting log_level must be debug, info, warning or error")

    @property
    def database(self) -> str:
        """Where reports are kept: what is set, or a file in the folder."""
        return self.database_url or f"{SQLITE}{Path(self.folder) / 'collector.sqlite3'}"

    @property
    def database_file(self) -> Path | None:
        """The file of an SQLite database; None for any other."""
        return Path(self.database.removeprefix(SQLITE)) if self.database.startswith(SQLITE) else None

    @property
    def place(self) -> str:
        """Which database it is; of a server neither the account nor the password."""
        if self.database_file is not None:
            return str(self.database_file)
        parts = urlsplit(self.database)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def key_path(self) -> Path:
        """The file with the key that surveys are signed with."""
        return Path(self.key_file) if self.key_file else Path(self.folder) / "signing.key"


def load_settings(
    path: str | os.PathLike[str] | None = None, environment: Mapping[str, str] | None = None
) -> CollectorSettings:
    """The settings of a file (without one: VEIL_SETTINGS, or veil.toml where it is there) and of the environment."""
    environment = os.environ if environment is None else environment
    named = path if path is not None else environment.get(f"{_PREFIX}SETTINGS") or None
    chosen = Path(FILE) if named is None else Path(named)
    given: dict[str, Any] = {}
    if named is not None or chosen.exists():
        given = _read(chosen)
    _check_names(environment)
    for field in fields(CollectorSettings):
        text = environment.get(_PREFIX + field.name.upper())
        if text is not None:
            given[field.name] = _parsed(field.name, text, field.default)
    return CollectorSettings(**given)


def _read(path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"the settings {path} cannot be read") from None
    except (ValueError, RecursionError):  # also a number of more than 4,300 digits
        raise InputError(f"the settings {path} are not TOML") from None
    known = {field.name: field.default for field in fields(CollectorSettings)}
    for name in given:
        if name not in known:
            raise InputError(f"{path}: {unknown_name('a setting', name, known)}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _check_names(environment: Mapping[str, str]) -> None:
    """Refuse a variable that nobody would read: it was meant to set something."""
    known = [_PREFIX + name for name in (*(field.name.upper() for field in fields(CollectorSettings)), *_OTHERS)]
    for variable in environment:
        if variable.startswith(_PREFIX) and variable not in known and not variable.startswith(f"{_PREFIX}TEST_"):
            raise InputError(f"environment: {unknown_name('a variable', variable, known, prefix=_PREFIX)}")


def _parsed(name: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise InputError(f"{_PREFIX}{name.upper()} must be true or false")
        return text.lower() in ("true", "1")
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return type(default)(text)
    except ValueError:
        raise InputError(f"{_PREFIX}{name.upper()} must be a number") from None


def _check_type(name: str, value: Any, default: Any) -> None:
    kind = type(default)
    right = isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
    if not right or (kind is not bool and isinstance(value, bool)):
        raise InputError(f"the setting {name} has another type (expected {kind.__name__})")
    if kind is tuple and not all(isinstance(part, str) for part in value):
        raise InputError(f"the setting {name} must be a list of text")
