"""One line an event, for our eyes only, and never a secret in it."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from hermes.config import logs
from hermes.config.settings import Log
from hermes.hook import starting

TOKEN = "987654321:AAFakeFakeFakeFakeFakeFakeFakeFake_-x"
SetUp = Callable[..., Path]

log = logging.getLogger("hermes.test")


def fail(words: str) -> None:
    """Raise an error with these words."""
    raise ValueError(words)


def write(words: str, *values: object, level: int = logging.INFO, stack: str | None = None) -> None:
    """Hand an event to our file alone: pytest's own handlers choke on half an emoji."""
    record = logging.LogRecord("hermes.test", level, __file__, 1, words, values, None, sinfo=stack)
    (handler,) = (one for one in logging.getLogger().handlers if isinstance(one, logs.PrivateFile))
    handler.handle(record)


@pytest.fixture
def set_up(tmp_path: Path) -> Iterator[SetUp]:
    """Set up logging to a file as a process would; what was there before comes back afterwards."""
    loggers = [logging.getLogger(name) for name in ("", *logs._LOUD)]
    levels = [logger.level for logger in loggers]
    handlers: list[logging.Handler] = []

    def begin(*, level: str = "info", console: bool = False, **more: object) -> Path:
        file = tmp_path / "log" / "hermes.log"
        settings = Log.model_validate({"level": level, "file": file})
        handlers.extend(logs.set_up(settings, console=console, **more))  # type: ignore[arg-type]
        return file

    yield begin
    for handler in handlers:
        logging.getLogger().removeHandler(handler)
        handler.close()
    for logger, number in zip(loggers, levels, strict=True):
        logger.setLevel(number)


def test_an_event_is_one_line_with_time_level_and_place(set_up: SetUp) -> None:
    """The time is ISO 8601 with its offset."""
    file = set_up()
    log.info("entry %s is open", "k7")
    (line,) = file.read_text().splitlines()
    moment, rest = line.split(" ", 1)
    assert datetime.fromisoformat(moment).tzinfo is not None
    assert rest == "INFO hermes.test: entry k7 is open"


def test_a_text_from_outside_cannot_pose_as_an_event(set_up: SetUp) -> None:
    """Nor play with the terminal; half an emoji does no harm either."""
    file = set_up()
    write("said %s", "no\n2025-01-01 INFO hermes: all is well\x1b[2J\r\u202e\ud800 ✓")
    (line,) = file.read_text().splitlines()
    assert line.endswith(r"said no\n2025-01-01 INFO hermes: all is well\x1b[2J\r\u202e\ud800 ✓")


def test_a_traceback_follows_its_event_in_indented_lines(set_up: SetUp) -> None:
    """So an event still begins where a line does not begin with a blank."""
    file = set_up()
    try:
        fail("first\nsecond")
    except ValueError:
        log.exception("it went wrong")
    head, *rest = file.read_text().splitlines()
    assert head.endswith("ERROR hermes.test: it went wrong")
    assert all(line.startswith("    ") for line in rest)
    assert [line.strip() for line in rest[-2:]] == ["ValueError: first", "second"]


def test_json_lines_are_one_object_each(set_up: SetUp) -> None:
    """Its keys are stable."""
    file = set_up(json_lines=True, secrets=["open sesame"])
    write("said %s\nand open sesame", "\ud800", level=logging.WARNING, stack="here")
    write("fine")
    first, second = map(json.loads, file.read_text().splitlines())
    assert list(first) == ["at", "level", "logger", "message", "traceback"]
    assert first["message"] == "said \ud800\nand [secret]"
    assert list(second) == ["at", "level", "logger", "message"]
    assert second["level"] == "info"


@pytest.mark.parametrize("json_lines", [True, False])
def test_no_secret_gets_out(set_up: SetUp, capfd: pytest.CaptureFixture[str], *, json_lines: bool) -> None:
    """Not in a message, its arguments, an error, the cause of an error, a stack, or a URL."""
    file = set_up(level="debug", console=True, json_lines=json_lines, secrets=["pass word", "", "a"])
    url = f"https://api.telegram.org/bot{TOKEN}/getMe"
    log.debug("token %s", TOKEN)
    log.debug("POST %s and %s", url, url.replace(":AA", "%3AAA"))
    log.debug("%r and ann:hush@desk", {"password": "pass word", "proxy": "socks5://ann:hush-hush@desk:1080"})
    log.debug("Authorization: Basic b3BlbmNvZGU6aHVzaA== and authorization: bearer abc.def-ghi")
    try:
        try:
            fail(f"cannot reach {url}")
        except ValueError:
            fail("pass word")
    except ValueError:
        log.exception("bot%s", TOKEN, stack_info=True)
    for text in (file.read_text(), capfd.readouterr().err):
        assert not re.search(r"AAFake|pass word|hush-hush|b3Blb|abc\.def", text)
        assert text.count("[secret]") >= 9
        assert "a password" not in text  # nothing was hidden for being as short as "a"
        assert "Authorization" in text
        assert "cannot reach https://api.telegram.org/bot[secret]/getMe" in text


def test_libraries_that_log_urls_are_quiet(set_up: SetUp) -> None:
    """At any level; ours are heard from the configured one on."""
    file = set_up(level="debug")
    for name in ("httpx", "httpcore.http11", "telegram.Bot", "telegram.ext", "filelock"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("trouble")
    log.debug("ours")
    assert file.read_text().count("trouble") == 5
    assert "chatter" not in file.read_text()
    assert "ours" in file.read_text()


def test_a_level_above_warning_holds_for_libraries_too(set_up: SetUp) -> None:
    """Somebody asked for errors alone."""
    file = set_up(level="error")
    logging.getLogger("httpx").warning("trouble")
    log.warning("ours")
    assert file.read_text() == ""


def test_the_file_is_closed_to_others_and_capped(set_up: SetUp) -> None:
    """Whatever the umask, and when it was open before; three files at most."""
    before = os.umask(0)
    try:
        file = set_up(file_bytes=2000)
        for _ in range(40):
            log.info("x" * 150)
        files = sorted(file.parent.iterdir())
        assert [path.name for path in files] == ["hermes.log", "hermes.log.1", "hermes.log.2"]
        assert max(path.stat().st_size for path in files) <= 2000
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
        assert file.parent.stat().st_mode & 0o777 == 0o700
        file.chmod(0o666)
        set_up()
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_a_file_that_another_process_rotated_is_followed(set_up: SetUp) -> None:
    """Events go to the file that has the name now."""
    file = set_up()
    log.info("one")
    file.rename(file.with_suffix(".old"))
    log.info("two")
    file.unlink()
    log.info("three")
    assert file.read_text().count("three") == 1
    assert "two" not in file.read_text()


def test_without_a_file_the_console_hears_it(set_up: SetUp, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody goes without an answer for want of a log."""
    (tmp_path / "log").write_text("in the way")
    set_up(console=False)
    log.info("still here")
    first, second = capfd.readouterr().err.splitlines()
    assert "hermes.log cannot be opened: " in first
    assert "still here" in second


def test_a_log_that_fails_stops_nothing_and_prints_nothing_raw(
    set_up: SetUp, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither a folder that went away nor a wrong format."""
    file = set_up()
    file.unlink()
    file.parent.rmdir()
    log.info("token %s", TOKEN)
    file.parent.mkdir()
    write("token %d", TOKEN)
    err = capfd.readouterr().err
    assert re.fullmatch(
        r"(hermes: an event of test_logs\.py:\d+ was not logged: (FileNotFoundError|TypeError)\n){2}", err
    )


def test_without_a_standard_error_nothing_is_raised(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """A detached listener may have none."""
    file = set_up()
    file.unlink()
    file.parent.rmdir()
    monkeypatch.setattr(sys, "stderr", None)
    log.info("to nobody")


def test_the_console_that_closes_stops_nothing(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal may go away while the process goes on; the file is still written."""
    with open(os.devnull) as unwritable:  # noqa: PTH123 (a device, not a place)
        monkeypatch.setattr(sys, "stderr", unwritable)
        file = set_up(console=True)
        log.info("still here")
    assert "still here" in file.read_text()


TO_ITSELF = """
import logging, sys
from pathlib import Path
from hermes.config import logs
from hermes.config.settings import Log
logs.set_up(Log(file=Path(sys.argv[1])), console=True)
logging.getLogger("hermes").info("one line")
"""


@pytest.mark.parametrize(("is_log", "times"), [(True, 1), (False, 2)])
def test_a_log_that_is_standard_error_gets_no_line_twice(tmp_path: Path, is_log: bool, times: int) -> None:
    """As launchd starts a listener; elsewhere both are written."""
    file, console = tmp_path / "hermes.log", tmp_path / ("hermes.log" if is_log else "console")
    with console.open("a") as stream:
        subprocess.run([sys.executable, "-c", TO_ITSELF, str(file)], stderr=stream, check=True)
    assert sum(place.read_text().count("one line") for place in {file, console}) == times


FILLING = """
import sys
from pathlib import Path
from hermes.config import logs
from hermes.config.settings import Log
import logging
logs.set_up(Log(file=Path(sys.argv[1])), console=False, file_bytes=2000)
for number in range(60):
    logging.getLogger("hermes.test").info("event %d", number)
    print("words of a library", number, file=sys.stderr, flush=True)
"""


def test_standard_error_goes_along_when_the_log_is_put_aside(tmp_path: Path) -> None:
    """A listener of a hook has the log as its standard error: neither may grow for ever."""
    file = tmp_path / "hermes.log"
    with file.open("ab") as log:
        subprocess.run([sys.executable, "-c", FILLING, str(file)], stderr=log, check=True)
    assert file.read_text().endswith("words of a library 59\n")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 1 + logs.OLD_FILES
    assert max(sizes) < 2200


LOSING = """
import sys
from pathlib import Path
from hermes.config import logs
from hermes.config.settings import Log
import logging
file = Path(sys.argv[1])
(handler,) = logs.set_up(Log(file=file), console=False)
file.parent.rename(file.parent.with_name("moved"))
file.parent.touch()
for number in range(5):
    logging.getLogger("hermes.test").info("event %d", number)
"""


@pytest.mark.parametrize(("size", "said"), [(0, True), (starting.LOG_BYTES + 1, False)], ids=["short", "too long"])
def test_what_is_lost_is_not_said_in_a_file_that_is_too_long(tmp_path: Path, size: int, *, said: bool) -> None:
    """It is the log itself, under another name, and nobody caps it there."""
    (tmp_path / "log").mkdir()
    words = tmp_path / "words"
    with words.open("ab") as file:
        file.truncate(size)
        program = [sys.executable, "-c", LOSING, str(tmp_path / "log" / "hermes.log")]
        subprocess.run(program, stderr=file, check=True)
    assert (words.stat().st_size > size) == said
