"""Which files OpenCode's permissions exclude: as the real versions themselves let their agents read, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx
import pytest

from hermes.agents.http import Api
from hermes.agents.opencode.client import OpenCodeServer
from hermes.agents.opencode.exclusions import fits, is_denied
from hermes.agents.opencode.prompting import OpenCodePrompts
from hermes.agents.opencode.wire import Rule
from hermes.agents.prompting import MOST_CHARACTERS
from hermes.errors import AgentRefused
from hermes.model.ask import Source

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.agents.prompting import Excludes
    from tests.harness.home import Json
    from tests.harness.opencode import OpenCode

OLD: Final = "1.1.53"
READ: Final = {
    "*": "allow",
    "*.key2": "deny",
    "secret/**": "deny",
    "deep/*.txt": "deny",
    "a?c.txt": "deny",
    "odd[1].txt": "deny",
    "spaced *": "deny",
    "late.txt": "deny",
    "late*": "allow",
}
BY_BOTH: Final = {"my.key2", "in/my.key2"}
BY_PATH: Final = {"secret/a", "secret/in/a", "deep/a.txt", "deep/in/a.txt", "abc.txt", "odd[1].txt", "spaced", "src/a"}
"""What only 1.18.33 denies, because 1.1.53 compares whole paths."""
ALLOWED: Final = {"README.md", "in/secret/a", "abbc.txt", "odd1.txt", "late.txt", "my.key23", "SECRET/a"}
ALL: Final = sorted(BY_BOTH | BY_PATH | ALLOWED)


async def excluded(opencode: OpenCode, session: str, project: Path, *names: str) -> set[str]:
    """Return those of these files that the permissions exclude."""
    async with OpenCodeServer(Api("desk", opencode.url), machine="laptop") as server:
        source = Source("opencode", "laptop", session, directory=str(project), server="desk")
        excludes = await server.prompts.exclusions(source)
    return {name for name in names if excludes(str(project / name))}


def made(opencode: OpenCode, name: str, *names: str, **config: Json | str) -> Path:
    """Return a project with these files."""
    project = opencode.home.project(f"{name}-{len(list(opencode.home.projects.iterdir()))}", **config)
    for one in names:
        (project / one).parent.mkdir(parents=True, exist_ok=True)
        (project / one).write_text("text")
    return project


@pytest.mark.story
async def test_what_the_agent_may_not_read_is_excluded(opencode: OpenCode) -> None:
    """By the rules of the project and by those of the session's own agent; others may have stricter ones."""
    agents: Json = {"careful": {"mode": "primary", "permission": {"read": {"src/*": "deny"}}}, "mute": {"mode": "all"}}
    agents["mute"]["permission"] = {"*": "deny"}
    project = made(opencode, "kept", *ALL, permission={"read": READ}, agent=agents)
    session = opencode.session(project)
    assert await excluded(opencode, session, project, *ALL) == BY_BOTH | BY_PATH - {"src/a"}  # by the default agent
    reads = [{"tool": "read", "args": {"filePath": str(project / name)}} for name in ALL]
    opencode.prompt(session, [*reads, *reads, {"text": "Read."}], agent="careful")  # its prompt is far back
    opencode.wait_idle(session)
    parts = [part["state"] for part in opencode.tool_parts(session, "read")]
    denied = {part["input"]["filePath"].removeprefix(f"{project}/") for part in parts if part["status"] == "error"}
    assert denied == (BY_BOTH if opencode.version == OLD else BY_BOTH | BY_PATH)
    assert await excluded(opencode, session, project, *ALL) == BY_BOTH | BY_PATH
    opencode.discard(project)


async def test_a_session_may_have_rules_and_a_list_of_the_allowed(opencode: OpenCode) -> None:
    """What a list does not name is excluded; the worktree counts, also in a folder of it."""
    permission: Json = {"read": {"*": "deny", "src/*": "allow"}}
    project = made(opencode, "listed", "src/a", "a", "sub/src/a", permission=permission)
    session = opencode.session(project)
    assert await excluded(opencode, session, project, "src/a", "a", "sub/src/a") == {"a", "sub/src/a"}
    below = opencode.session(project / "sub")
    opencode.prompt(below, [{"text": "Here."}])
    opencode.wait_idle(below)
    assert await excluded(opencode, below, project / "sub", "src/a", "../src/a") == {"src/a"}
    rule = {"permission": "read", "pattern": "src/*", "action": "deny"}
    own = opencode.request("POST", "/session", project, {"title": "own", "permission": [rule]}).json()["id"]
    assert await excluded(opencode, own, project, "src/a") == {"src/a"}
    opencode.discard(project)


@pytest.mark.parametrize(
    ("text", "pattern", "is_fit"),
    [
        ("secret/a", "secret/**", True),
        ("secret", "secret/**", False),
        ("a/b.txt", "a*.txt", True),
        ("a\nb", "a?b", True),
        ("[a]", "[a]", True),
        ("a", "[a]", False),
        ("!a", "[!b]a", False),
        ("a\\b", "a/b", True),
        ("spaced", "spaced *", True),
        ("spaced out", "spaced *", True),
        ("spacedout", "spaced *", False),
        ("a+b(c)|^$.txt", "a+b(c)|^$.txt", True),
        ("axtxt", "a.txt", False),
        ("", "*", True),
        ("A", "a", False),
        ("a" * 3000, "a*" * 1500 + "b", False),
    ],
)
def test_patterns_fit_as_in_opencode(text: str, pattern: str, is_fit: bool) -> None:
    """And none takes long."""
    assert fits(text, pattern) == is_fit


@pytest.mark.parametrize(
    ("rules", "is_no"),
    [
        ([("read", "/shop/*", "deny")], True),
        ([("*", "*", "deny")], True),
        ([("*", "*", "deny"), ("read", "src/*", "allow")], False),
        ([("read", "src/*", "deny"), ("read", "*", "ask")], False),
        ([("edit", "*", "deny"), ("grep", "*", "deny")], False),
        ([("r*", "src/*", "deny")], True),
        ([("read", "a.py", "deny")], True),
        ([("read", "*", "deny"), ("read", "a.py", "allow")], True),
        ([], False),
    ],
)
def test_the_last_rule_that_fits_counts(rules: list[tuple[str, str, str]], is_no: bool) -> None:
    """A file of the worktree, asked for by a session in the folder "src": only a denial counts from there, too."""
    given = [Rule(permission=one, pattern=pattern, action=action) for one, pattern, action in rules]
    assert is_denied("/shop/src/a.py", given, {"/shop"}, {"/shop/src"}) == is_no


@pytest.mark.parametrize(
    "agents",
    [
        [],
        [{"name": "build"}],
        [{"name": "build", "permission": {"edit": "allow"}}],
        [{"name": "build", "permission": [{"permission": "read", "pattern": "a" * MOST_CHARACTERS, "action": "deny"}]}],
    ],
)
async def test_rules_that_cannot_be_read_are_no_rules(agents: list[Json]) -> None:
    """None, of another shape, or too many: then nobody can tell what is excluded."""
    with pytest.raises(AgentRefused):
        await told(agents, [])


async def test_the_agent_of_the_newest_messages_counts() -> None:
    """The prompt itself may be far back; an agent that is not there any more tells nothing."""
    rule = {"permission": "read", "pattern": "*", "action": "deny"}
    agents: list[Json] = [{"name": "build", "permission": []}, {"name": "careful", "permission": [rule]}]
    said: Json = {"info": {"id": "msg_1", "role": "assistant", "agent": "careful"}, "parts": []}
    assert (await told(agents, [said]))("/shop/a")
    assert not (await told(agents, []))("/shop/a")
    with pytest.raises(AgentRefused, match="the session's agent"):
        await told(agents[:1], [said])


async def test_a_rule_counts_from_each_folder_above_until_the_worktree_is_known() -> None:
    """Before the first answer of a session; after it, a folder above the worktree has no say."""
    rule = {"permission": "read", "pattern": "sub/secret/*", "action": "deny"}
    agents: list[Json] = [{"name": "build", "permission": [rule]}]
    assert (await told(agents, [], directory="/shop/sub"))("/shop/sub/secret/a")
    path = {"cwd": "/sub/secret", "root": "/sub/secret"}
    said: Json = {"info": {"id": "msg_1", "role": "assistant", "path": path}, "parts": []}
    assert not (await told(agents, [said], directory="/sub/secret"))("/sub/secret/a")


async def told(agents: list[Json], messages: list[Json], directory: str = "/shop") -> Excludes:
    """Return what a server with these agents excludes in a session with these messages."""

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        return httpx.Response(
            200, json=agents if path == "/agent" else messages if path.endswith("/message") else {"id": "s"}
        )

    api = Api("desk", "http://desk", transport=httpx.MockTransport(answer))
    server = OpenCodeServer(api, machine="laptop")
    return await OpenCodePrompts(server).exclusions(Source("opencode", "laptop", "s", directory=directory))
