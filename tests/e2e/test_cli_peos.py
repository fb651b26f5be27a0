"""PEOS and the sequential shuffle through the commands: the whole way, and refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.test_cli import veil, veil_json

from veil import GRR, OLH, SubsetSelection
from veil.accounting import Shuffler
from veil.histogram import Histogram
from veil.shuffle.collection import Device
from veil.shuffle.plan import CollectionPlan
from veil.shuffle.rehearsal import free_addresses, running
from veil.shuffle.settings import PartySettings
from veil.shuffle.transport.certificates import make_authority

PEOPLE, VALUES, FAKES = 300, 4, 120
HELD = np.arange(PEOPLE) % 8 % VALUES


def study_file(folder: Path, oracle: Any = None) -> Path:
    path = folder / "study.json"
    path.write_bytes(Histogram(oracle or GRR(4.0, VALUES)).to_bytes())
    return path


def parties(tmp_path: Path, *more: Any, oracle: Any = None) -> tuple[Path, CollectionPlan]:
    folder = tmp_path / "parties"
    places = [word for place in free_addresses(3) for word in ("--address", place)]
    veil("peos", "keys", folder, "--study", study_file(tmp_path, oracle), "--fakes", FAKES, *places, *more)
    return folder, CollectionPlan.read(folder / "plan.json")


def values(tmp_path: Path) -> Path:
    path = tmp_path / "values.csv"
    path.write_text("value\n" + "\n".join(map(str, HELD)) + "\n")
    return path


@pytest.mark.parametrize(
    ("oracle", "ring"), [(GRR(4.0, VALUES), 32), (OLH(4.0, VALUES, 8, seed_bytes=4), 64)], ids=["GRR", "OLH"]
)
def test_the_whole_way(tmp_path: Path, oracle: Any, ring: int) -> None:
    folder, plan = parties(tmp_path, "--bits", 512, "--ring", ring, oracle=oracle)
    with running(plan, folder):
        device = ("--config", folder / "device.toml")
        assert veil_json("peos", "submit", values(tmp_path), *device)["people"] == PEOPLE
        assert "--twice" in veil("peos", "submit", values(tmp_path), *device, code=3).output
        held = veil_json("peos", "status", "--config", folder / "server.toml")["parties"]
        assert {one["people"] for one in held.values()} == {PEOPLE}
        done = veil_json("peos", "server", "--config", folder / "server.toml")
        assert (done["people"], done["fakes"], len(done["costs"])) == (PEOPLE, FAKES, 3)
        again = veil_json("peos", "server", "--config", folder / "server.toml")  # acknowledges, and nothing else
        assert (again["people"], again["out"], again["costs"]) == (PEOPLE, done["out"], [])
    found = veil_json("estimate", folder / "study.json", done["out"], "--all")
    assert found["people"] == PEOPLE
    assert found["fakes"] == FAKES
    truth = np.bincount(HELD, minlength=VALUES) / PEOPLE
    for row in found["rows"]:
        error = 5 * row["stderr"]
        assert abs(row["frequency"] - truth[int(row["value"])]) < error
    # a file that hides its fakes would be read as 420 people: it says so itself
    assert veil_json("inspect", done["out"])["fakes"] == FAKES


def test_a_sequential_shuffle_with_spot_checks(tmp_path: Path) -> None:
    folder, plan = parties(tmp_path, "--protocol", "sequential")
    with running(plan, folder):
        veil("peos", "submit", values(tmp_path), "--config", folder / "device.toml")
        config = ("--config", folder / "server.toml")
        assert veil_json("peos", "spot-checks", 20, *config, "--device", folder / "device.toml")["accounts"] == 20
        done = veil_json("peos", "server", *config)
    assert (done["people"], done["fakes"]) == (PEOPLE, FAKES)
    found = veil_json("estimate", folder / "study.json", done["out"], "--all")
    assert (found["people"], found["fakes"]) == (PEOPLE, FAKES)


def test_shares_that_could_not_be_sent_are_sent_again(tmp_path: Path) -> None:
    folder, plan = parties(tmp_path, "--bits", 512)
    (folder / "device.toml").write_text((folder / "device.toml").read_text() + "patience = 0.5\n")
    config = ("--config", folder / "device.toml")
    said = veil("peos", "submit", values(tmp_path), *config, code=7)
    assert "cannot be reached" in said.output
    kept = sorted((folder / "data").rglob("*.shares"))
    assert len(kept) == 1
    assert "--again" in veil("peos", "submit", values(tmp_path), *config, "--twice", code=3).output
    with running(plan, folder):
        assert veil_json("peos", "submit", values(tmp_path), *config, "--again")["people"] == PEOPLE
        assert (
            "nothing of an earlier run" in veil("peos", "submit", values(tmp_path), *config, "--again", code=3).output
        )
        server = ("--config", folder / "server.toml")
        assert veil_json("peos", "server", *server)["people"] == PEOPLE
        late = veil("peos", "submit", values(tmp_path), *config, "--twice", code=7)
        assert "too late" in " ".join(late.output.split())
        assert veil_json("peos", "submit", *config, "--discard")["discarded"] == 1
        assert not list((folder / "data").rglob("*.shares"))


def test_parties_that_make_their_own_keys(tmp_path: Path) -> None:
    """The server makes its key alone; who writes the plan has nothing secret."""
    own = tmp_path / "server"
    veil("peos", "secret", own, "--bits", 512)
    assert (own / "secret.json").stat().st_mode & 0o077 == 0
    assert "is there already" in " ".join(veil("peos", "secret", own, "--bits", 512, code=3).output.split())
    folder, plan = parties(tmp_path, "--public", own / "public.json")
    assert not list(folder.glob("*.key")) + list(folder.glob("secret*"))
    assert plan.keys["server"] == json.loads((own / "public.json").read_text())
    names = [*plan.names, "server", "device"]
    make_authority(folder, names)
    shutil.copy(own / "secret.json", folder / "secret.json")
    with running(plan, folder):
        device = Device(PartySettings.read(folder / "device.toml"))
        assert device.answer([0, 1, 2]) == 3  # as a person's own device does, one after the other
        assert device.answer([3]) == 1
        assert veil_json("peos", "server", "--config", folder / "server.toml")["people"] == 4


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    study = study_file(tmp_path)

    def refused(*more: Any, code: int = 3, folder: str = "p", asked: Path = study) -> str:
        said = veil("peos", "keys", tmp_path / folder, "--study", asked, "--bits", 512, *more, code=code)
        assert not (tmp_path / folder / "plan.json").exists()
        return " ".join(said.output.replace("│", " ").split())

    assert "at least 3 shufflers" in refused("--shufflers", 2)
    assert "odd number of shufflers: with 4 as with 3, no more than 1 may be corrupt" in refused("--shufflers", 4)
    assert "HOST:PORT" in refused("--address", "here")
    assert "32 or 64" in refused("--ring", 16) or "64 bits, or 32" in refused("--ring", 16)
    assert "expected peos or sequential" in refused("--protocol", "magic")
    other = tmp_path / "other.json"
    other.write_bytes(Histogram(SubsetSelection(1.0, 8)).to_bytes())
    assert "GRR" in refused(asked=other)
    planned = tmp_path / "planned.json"
    planned.write_bytes(Histogram(GRR(2.0, 4), shuffler=Shuffler(1000, 1e-6, 50)).to_bytes())
    assert "planned with 50 fakes" in refused("--fakes", 60, asked=planned)
    made = tmp_path / "made"
    veil("peos", "keys", made, "--study", planned, "--bits", 512)
    assert CollectionPlan.read(made / "plan.json").fakes == 50
    assert "holds a plan already" in veil("peos", "keys", made, "--study", study, code=3).output.replace("\n", " ")


def test_parties_that_are_set_up_wrong(tmp_path: Path) -> None:
    folder, _ = parties(tmp_path, "--bits", 512)
    assert "expected the server's" in veil("peos", "server", "--config", folder / "device.toml", code=3).output
    said = veil("peos", "submit", values(tmp_path), "--config", folder / "shuffler-1.toml", code=3)
    assert "these are the settings of shuffler-1" in " ".join(said.output.split())
    assert "has no shuffler device" in veil("shuffler", "--config", folder / "device.toml", code=3).output
    assert "there is no file" in veil("shuffler", "--config", folder / "nobody.toml", code=3).output
    # a secret key of another folder
    other = tmp_path / "other"
    veil("peos", "keys", other, "--study", study_file(tmp_path), "--fakes", 1, "--bits", 512)
    shutil.copy(other / "secret.json", folder / "secret.json")
    said = veil("peos", "server", "--config", folder / "server.toml", code=4).output
    assert "does not belong to the plan's public key" in " ".join(said.split())
    (folder / "secret.json").write_text(json.dumps({"p": 1}))
    veil("peos", "server", "--config", folder / "server.toml", code=5)


@pytest.mark.acceptance
def test_the_demo(tmp_path: Path) -> None:
    told = veil_json("peos", "demo", "--people", 200, "--bits", 512)
    assert told["people"] == 200
    assert len(told["answer"]["rows"]) == 64
    assert told["covered"] >= 50
    assert [cost["party"] for cost in told["costs"]] == ["shuffler-1", "shuffler-2", "shuffler-3"]
