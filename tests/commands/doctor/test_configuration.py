"""The configuration under the doctor's eyes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.commands.doctor import checkup, configuration, plugin
from hermes.commands.doctor.finding import Finding
from hermes.config.settings import AGENT_ONLY
from tests.commands.doctor.patient import Patient, named, told
from tests.faults.world import obedient


async def test_a_sound_configuration_has_four_good_lines(patient: Patient) -> None:
    """File, modes, people, log; the file is named."""
    found = await configuration.look(patient.around())
    assert told(found) == {"file": "good", "modes": "good", "people": "good", "log": "good"}
    assert named(found, "file").seen == str(patient.config_file)


async def test_an_agent_only_machine_has_no_bot_to_check(patient: Patient) -> None:
    """Nothing of it is broken for that."""
    del patient.tables["telegram"]
    patient.tables["store"]["url"] = "postgresql://ci@127.0.0.1/hermes"
    patient.write()
    found = await checkup.examine(patient.config_file, environ=patient.environ)
    assert [one for one in found if one.area == "Telegram"] == [Finding("Telegram", "token", "good", AGENT_ONLY)]
    assert not [one for one in found if one.area == "Configuration" and one.verdict != "good"]
    lock = named([one for one in found if one.area == "Listener"], "lock")
    assert lock.seen == "nobody listens, and no agent would start a listener"


async def test_a_password_of_the_database_that_others_may_read_is_broken(patient: Patient) -> None:
    """Its own file, that of libpq, and a service that has one; a service without one may be read."""
    home, own = patient.home, patient.root / "password"
    own.write_text("hush")
    (home / ".pgpass").write_text("*:*:*:*:hush")
    service = home / ".pg_service.conf"
    service.write_text("[hermes]\nuser=ann\ndbname=hermes\n")
    patient.tables["store"] |= {"url": "postgresql:///?service=hermes", "password_file": str(own)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patient.write()
        around = patient.around()
        for file in (own, home / ".pgpass", service):
            file.chmod(0o604)
        opened = [one.seen for one in await configuration.look(around) if one.check == "modes"]
        assert opened == [f"others may read or change {file}" for file in (own, home / ".pgpass")]
        service.write_text("[hermes]\nuser=ann\ndbname=hermes\npassword=hush\n")
        opened = [one.seen for one in await configuration.look(around) if one.check == "modes"]
        assert opened[2:] == [f"others may read or change {service}"]


async def test_what_cannot_be_read_is_the_first_finding_and_nearly_the_only_one(patient: Patient) -> None:
    """The sentence of the ConfigError; all else is one line; modes are still seen."""
    patient.config_file.write_text('[telegram]\ntoken = "1:x"\n')
    patient.config_file.chmod(0o644)
    first, modes, rest = await checkup.examine(patient.config_file, environ=patient.environ)
    assert (first.verdict, first.check) == ("broken", "file")
    assert first.seen.startswith(f"{patient.config_file}, [telegram] token")
    assert (modes.verdict, modes.fix is not None) == ("broken", True)
    assert rest.seen == "not looked at: it needs the configuration"
    missing = await checkup.examine(patient.root / "none.toml", environ=patient.environ)
    assert missing[0].mend == f"hermes setup --config {patient.root / 'none.toml'}"


@pytest.mark.parametrize("variable", ["HERMES_TELEGRAM__TOKN", "HERMES_QUESTIONS__TTL"])
async def test_a_variable_that_is_wrong_is_not_mended_in_the_file(patient: Patient, variable: str) -> None:
    """What the file says is right."""
    first, *_ = await checkup.examine(patient.config_file, environ=patient.environ | {variable: "soon"})
    assert variable in first.seen
    assert first.mend == "unset that variable, or correct it"


@pytest.mark.parametrize("name", ["file/config.toml", f"{'x' * 300}.toml"])
async def test_a_configuration_out_of_reach_is_one_sentence(patient: Patient, name: str) -> None:
    """A file where a folder should be, a name that no disk takes; a folder that may not be read is the same."""
    (patient.root / "file").touch()
    first, _ = await checkup.examine(patient.root / name, environ=patient.environ)
    assert (first.verdict, "cannot be read" in first.seen) == ("broken", True)
    assert first.mend.startswith("free the way to it")


def test_a_file_that_its_owner_may_not_read_is_opened_first(patient: Patient) -> None:
    """Nobody can edit it before that."""
    patient.config_file.chmod(0o200)
    command = [*obedient(), sys.executable, "-I", "-m", "hermes", "doctor", "--json"]
    environ = {**os.environ, **patient.environ, "HERMES_CONFIG": str(patient.config_file)}
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    first, *_ = json.loads(done.stdout)
    assert first["seen"].endswith("cannot be read (Permission denied); it must be a file that you may read.")
    assert first["mend"] == f"chmod u+r {patient.config_file}"


async def test_an_area_that_stumbles_is_a_finding_too(patient: Patient) -> None:
    """The store's folder cannot even be looked for; all the others are told."""
    patient.tables["store"]["path"] = str(patient.root / ("x" * 300))
    patient.write()
    found = await checkup.examine(patient.config_file, environ=patient.environ)
    not_here = {"Claude Code", *(one.area.name for one in plugin.PLUGINS)}  # of these there is no word
    assert {one.area for one in found} | not_here == {area.name for area, _ in checkup.AREAS}
    assert [one.verdict for one in found if one.area == "Store"] == ["broken"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
async def test_a_file_that_others_may_touch_is_broken_and_mended(patient: Patient, mode: int) -> None:
    """To read the token, or to change where answers go; `--fix` closes it and takes nothing from the owner."""
    patient.config_file.chmod(mode)
    found = named(await configuration.look(patient.around()), "modes")
    assert (found.verdict, found.mend) == ("broken", f"chmod 600 {patient.config_file}")
    (said,) = await checkup.mend([found])
    assert said == f"Closed to others: {patient.config_file}."
    assert patient.config_file.stat().st_mode & 0o777 == 0o600
    assert named(await configuration.look(patient.around()), "modes").verdict == "good"


async def test_the_files_of_secrets_are_looked_at_too(patient: Patient) -> None:
    """Token, passwords and the monitor's address, each by name."""
    token, password, ping = (patient.root / name for name in ("token", "password", "ping"))
    token.write_text(patient.tables["telegram"].pop("token"))
    password.write_text("hush-hush")
    token.chmod(0o644)
    password.chmod(0o640)
    ping.write_text("https://hc-ping.com/hush")
    ping.chmod(0o644)
    patient.tables["monitor"] = {"ping_url_file": str(ping)}
    patient.tables["telegram"]["token_file"] = str(token)
    patient.serve("http://127.0.0.1:9", password_file=str(password))
    found = [one for one in await configuration.look(patient.around()) if one.check == "modes"]
    assert [one.seen for one in found] == [f"others may read or change {path}" for path in (token, ping, password)]


async def test_a_private_chat_whose_person_may_not_answer_is_broken(patient: Patient) -> None:
    """Every tap there would be ignored."""
    patient.write(users=[7])
    found = named(await configuration.look(patient.around()), "people")
    assert (found.verdict, found.mend) == ("broken", "add 1001 to telegram.users")
    patient.write(chat_id=-7, users=[7, 8])
    assert named(await configuration.look(patient.around()), "people").seen == "2 may answer"


async def test_a_log_that_cannot_be_written_is_broken(patient: Patient) -> None:
    """A file stands where its folder should be, or a folder where it should be."""
    (patient.root / "log").write_text("")
    assert named(await configuration.look(patient.around()), "log").verdict == "broken"
    (patient.root / "log").unlink()
    (patient.root / "log" / "hermes.log").mkdir(parents=True)
    found = named(await configuration.look(patient.around()), "log")
    assert (found.verdict, found.seen) == ("broken", f"{patient.root / 'log' / 'hermes.log'} is a folder")
    (patient.root / "log" / "hermes.log").rmdir()
    (patient.root / "log" / "hermes.log").touch()
    assert named(await configuration.look(patient.around()), "log").verdict == "good"


async def test_a_log_may_be_a_device(patient: Patient) -> None:
    """Nothing is kept in /dev/null, and a container may have its log at /dev/stderr."""
    patient.tables["log"]["file"] = "/dev/null"
    patient.write()
    assert named(await configuration.look(patient.around()), "log").verdict == "good"


async def test_without_a_file_the_environment_says_all(patient: Patient, tmp_path: Path) -> None:
    """As under systemd or in a container: that is no trouble."""
    around = patient.around()
    patient.config_file.unlink()
    assert named(await configuration.look(around), "file").verdict == "good"


async def test_a_fix_that_fails_is_said_and_stops_no_other(patient: Patient) -> None:
    """The file went away meanwhile; the next one is mended."""
    token = patient.root / "token"
    token.write_text(patient.tables["telegram"].pop("token"))
    patient.write(token_file=str(token))
    patient.config_file.chmod(0o644)
    token.chmod(0o644)
    found = [one for one in await configuration.look(patient.around()) if one.fix]
    patient.config_file.rename(patient.root / "elsewhere.toml")
    failed, done = await checkup.mend(found)
    assert failed.startswith("Configuration, modes: this could not be fixed: ")
    assert done == f"Closed to others: {token}."
