"""Shufflers as processes of their own on this machine, with small keys."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.patience import until
from tests.support.in_memory import small_keys, small_plan
from tests.support.warm_start import Started, start

from veil.entropy import Keyed
from veil.shuffle.coordinator import Coordinator, ShuffleOutcome
from veil.shuffle.peos import Peos, make_keys
from veil.shuffle.plan import DEVICE, SERVER, CollectionPlan
from veil.shuffle.rehearsal import free_addresses
from veil.shuffle.settings import PartySettings
from veil.shuffle.submissions import Submission, leave
from veil.shuffle.transport.certificates import make_authority

Elements = NDArray[np.uint64]


class World:
    """A folder with all parties' settings, and their processes."""

    def __init__(
        self,
        folder: Path,
        shufflers: int = 3,
        fakes: int = 50,
        silence: float = 20.0,
        *,
        full_keys: bool = False,
        least: int = 1,
        patience: float = 5.0,
        more: str = "",
    ) -> None:
        self.folder = folder
        public, self.secret = make_keys() if full_keys else small_keys()
        names = [f"shuffler-{i + 1}" for i in range(shufflers)]
        places = tuple(zip(names, free_addresses(shufflers), strict=True))
        keys = {"server": public.to_json()}
        self.plan: CollectionPlan = replace(small_plan(shufflers, fakes), shufflers=places, keys=keys, least=least)
        make_authority(folder, [*names, SERVER, DEVICE])
        (folder / "plan.json").write_bytes(self.plan.to_bytes())
        (folder / "secret.json").write_text(json.dumps(self.secret.to_json()))
        for name in (*names, SERVER, DEVICE):
            self._write(name, f"silence = {silence}", f"patience = {patience}", more)
        self.processes: dict[str, Started] = {}

    def _write(self, name: str, *more: str) -> None:
        lines = [f'{key} = "{name}.{end}"' for key, end in (("certificate", "crt"), ("key", "key"))]
        lines += [f'party = "{name}"', 'plan = "plan.json"', 'authority = "authority.crt"', f'data = "data/{name}"']
        lines += more
        lines += ['secret = "secret.json"'] if name == SERVER else []
        (self.folder / f"{name}.toml").write_text("\n".join(lines))

    def settings(self, name: str, **changes: Any) -> PartySettings:
        return replace(PartySettings.read(self.folder / f"{name}.toml"), **changes)

    # -- processes -----------------------------------------------------------------------------------------------------

    def fail(self, name: str, stage: str, signal_name: str = "SIGKILL") -> None:
        """Have a party end, or stop, when it comes to a stage."""
        (self.folder / "fail").write_text(f"{name}: {stage}\n{signal_name}")

    def start(self, *names: str, first: str = "") -> None:
        """Start shufflers (all, without names), and wait until they listen; `first` is code that they run before."""
        chosen = names or self.plan.names
        for name in chosen:
            if name in self.processes:
                self.end(name)
            command = ["party", str(self.folder / "fail"), "shuffler", "--config", str(self.folder / f"{name}.toml")]
            log = (self.folder / f"{name}.log").open("ab")
            log.write(b"-- start\n")
            log.flush()
            self.processes[name] = start(first + "from tests.support.party import main; main()", *command, stderr=log)
            log.close()
        for name in chosen:
            until(lambda name=name: self._ready(name), lambda name=name: self.log(name))  # type: ignore[misc]

    def _ready(self, name: str) -> bool:
        assert self.processes[name].poll() is None, self.log(name)
        return ": ready at" in self.log(name).rpartition("-- start")[2]

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def alive(self, name: str) -> bool:
        return self.processes[name].poll() is None

    def end(self, *names: str) -> None:
        for name in names or list(self.processes):
            process = self.processes.pop(name)
            process.send_signal(signal.SIGKILL)
            process.wait()

    # -- the protocol --------------------------------------------------------------------------------------------------

    def submissions(self, reports: Elements, together: int = 100) -> list[Submission]:
        protocol = Peos(self.plan)
        return [Submission.of(protocol, reports[i : i + together]) for i in range(0, len(reports), together)]

    def leave(self, submissions: list[Submission]) -> None:
        asyncio.run(leave(self.settings(DEVICE), Peos(self.plan), submissions))

    def shuffle(self, *, settings: PartySettings | None = None, **options: Any) -> tuple[ShuffleOutcome, Elements]:
        """Run the collection to its end; the outcome, and the fakes that must be in it."""
        found: list[tuple[ShuffleOutcome, Elements]] = []

        def keep(shuffled: ShuffleOutcome) -> None:
            found.append((shuffled, self.fakes()))

        coordinator = Coordinator(settings or self.settings(SERVER), Peos(self.plan, self.secret))
        asyncio.run(coordinator.run(keep, **options))
        return found[0]

    def fakes(self) -> Elements:
        """What the secrets that shufflers wrote down make of their shares of the fakes."""
        total = np.zeros(self.plan.fakes, dtype=np.uint64)
        for name in self.plan.names:
            seal = json.loads((self.folder / "data" / name / self.plan.collection / "seal.json").read_bytes())
            total += Keyed(bytes.fromhex(seal["secret"])).words(self.plan.fakes)
        return total
