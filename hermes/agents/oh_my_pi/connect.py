"""oh-my-pi's extension: one file of our own in the user's extension folder; their settings are never touched.

Both directions say what they did, and are safe to repeat.
"""

from collections.abc import Mapping
from pathlib import Path

from hermes.placing import MARKER, filled_in, installed, interpreter, put, take_away

PLUGIN_NAME = "hermes-telegram-phone.js"
_TEMPLATE = Path(__file__).parent / "plugin.js"
_HEADLESS = '"headless": true'


def install(
    *, environ: Mapping[str, str], python: str, config_path: Path, store: Path, log: Path, headless: bool | None = None
) -> list[str]:
    """Write the extension, and return what was done, one sentence each.

    `python` is the interpreter that has Hermes (`sys.executable`), `environ` says where oh-my-pi looks; `headless`
    gives it an `ask` where it has none (`-p`, `--mode rpc`), None leaves that as it is.
    Raises ConfigError and NotSaved as `hermes.placing.put`.
    """
    paths = {"store": store, "log": log, "config": config_path}
    settings = {"python": interpreter(python)} | {name: str(path.absolute()) for name, path in paths.items()}
    place = plugin_path(environ)
    if headless is None:
        headless = _HEADLESS in (installed(place, MARKER) or "")
    done = put(place, filled_in(_TEMPLATE, settings | {"headless": headless}), MARKER)
    said = [done] if "already" in done else [done, "An oh-my-pi that is running takes it in when it is started again."]
    return [*said, *(["Without a terminal it asks on the phone, too."] if headless else [])]


def uninstall(*, environ: Mapping[str, str]) -> list[str]:
    """Remove the extension, nothing else, and return what was done, one sentence each. Raises as `install`."""
    place = plugin_path(environ)
    if not take_away(place, MARKER):
        return [f"{place} is not there; nothing was changed."]
    return [f"{place} was removed.", "An oh-my-pi that is running keeps it until it is started again."]


def is_connected(environ: Mapping[str, str]) -> bool:
    """Tell whether something of this name is in place."""
    return plugin_path(environ).exists()


def plugin_path(environ: Mapping[str, str]) -> Path:
    """Return where the extension belongs: `extensions` in the folder of its agent.

    That is `~/.omp/agent`, or what PI_CODING_AGENT_DIR, OMP_PROFILE (before PI_PROFILE) or PI_CONFIG_DIR say, as its
    dirs.ts reads them.
    """
    root = Path(environ.get("HOME") or Path.home()) / (environ.get("PI_CONFIG_DIR") or ".omp")
    profile = environ.get("OMP_PROFILE", environ.get("PI_PROFILE", "")).strip()
    if profile not in {"", "default"}:
        agent = root / "profiles" / profile / "agent"
    else:
        agent = Path(environ.get("PI_CODING_AGENT_DIR") or root / "agent").absolute()
    return agent / "extensions" / PLUGIN_NAME
