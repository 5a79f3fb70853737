"""OpenCode's permissions: read as both versions send them, proven by what became of their tool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.agents.opencode.adapter import answers, read, reply_body, waiter_text
from hermes.agents.opencode.permissions import completed, read_permission
from hermes.agents.opencode.proof import Evidence, Settling, ToolPart, judge_permission
from hermes.agents.questions import read_reply
from hermes.errors import PayloadError
from hermes.model.answer import Allowed, Always, Answer, Decision, Once, Refused, Reply
from hermes.model.ask import Permission
from hermes.model.signals import Asked, Replied
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict
from tests.asks import ANN, permission_ask

BASH = {"id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["echo a", "ls b"], "always": ["echo *"]}
LINE = "echo a && ls b"
DIFF = "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n"


CALL = {"tool": {"messageID": "msg_1", "callID": "call_1"}}


def with_input(given: object, **more: object) -> Permission:
    """Such a request of a call whose input has come."""
    return completed(read_permission({**BASH, **CALL, **more}), given)


def shown(**more: object) -> tuple[str, str, str]:
    """What a person is shown of such a request: its kind, what, and detail."""
    found = read_permission({**BASH, **more})
    return found.kind, found.what, found.detail


def test_each_kind_is_read_as_what_it_is_about() -> None:
    """By its metadata where there is any, by its patterns else."""
    assert shown(metadata={"command": LINE}) == ("command", LINE, "")
    assert shown(metadata={}) == ("command", "echo a\nls b", "")
    edit = {"permission": "edit", "patterns": ["src/a.py"], "metadata": {"filepath": "/x/src/a.py", "diff": DIFF}}
    assert shown(**edit) == ("change", "src/a.py", DIFF)
    fetch = {"permission": "webfetch", "patterns": ["http://x/"], "metadata": {"url": "http://x/", "format": "text"}}
    assert shown(**fetch) == ("fetch", "http://x/", "")
    outside = {"permission": "external_directory", "patterns": ["/etc/*"], "metadata": {"filepath": "/etc/hosts"}}
    assert shown(**outside) == ("folder", "/etc/*", "/etc/hosts")
    assert shown(permission="skill", patterns=["pdf"], metadata={"n": 1}) == ("other", "pdf", "n: 1")


@pytest.mark.parametrize("kind", ["doom_loop", "bash"])
def test_what_is_nested_too_deeply_is_refused(kind: str) -> None:
    """A model chooses the input of its tools. An error of another kind would end the event stream."""
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PayloadError, match="nested too deeply"):
        shown(permission=kind, metadata={"input": deep})


def test_what_is_not_known_is_shown() -> None:
    """Every key of the metadata but for those that are shown elsewhere, or say nothing of what would be done."""
    told = {"timeout": 5, "background": False, "env": "A=1\nB=2", "shell": "", "also": None}
    lines = 'background: false\nenv: "A=1\\nB=2"'
    assert shown(metadata={"command": LINE, **told}) == ("command", LINE, lines)
    edit = {"permission": "edit", "patterns": ["a"], "metadata": {"filepath": "/x/a", "diff": DIFF, "force": True}}
    assert shown(**edit) == ("change", "a", f"force: true\n{DIFF}")
    fetch = {"permission": "webfetch", "patterns": ["u"], "metadata": {"url": "u", "timeout": 5, "method": "POST"}}
    assert shown(**fetch) == ("fetch", "u", "method: POST")
    outside = {"permission": "external_directory", "patterns": ["/etc/*"], "metadata": {"mode": "w"}}
    assert shown(**outside) == ("folder", "/etc/*", "\nmode: w")
    assert with_input({"command": LINE}, **outside).detail == f"{LINE}\nmode: w"


def test_a_patch_says_what_it_deletes_and_moves() -> None:
    """Above its diff, in which a deletion looks like any other change."""
    files = [
        {"filePath": "/x/a.py", "type": "update"},
        {"filePath": "/x/b.py", "type": "delete"},
        {"filePath": "/x/c.py", "type": "move", "movePath": "/x/d.py"},
        5,
    ]
    edit = {"permission": "edit", "patterns": ["a.py", "b.py"], "metadata": {"files": files, "diff": DIFF}}
    assert shown(**edit)[2] == f"deletes the file /x/b.py\nmoves the file /x/c.py to /x/d.py\n{DIFF}"


def test_the_line_of_1_1_53_is_in_the_tools_input_alone() -> None:
    """It asks with single commands, without where their output goes; 1.18.33 tells the line."""
    bare, whole = read_permission({**BASH, "metadata": {}}), read_permission({**BASH, "metadata": {"command": LINE}})
    assert bare.partial
    assert not whole.partial, "it names no call"
    assert completed(bare, {"command": LINE}) == replace(bare, what=LINE, partial=False)
    assert completed(whole, {"command": "something else"}) == whole
    assert completed(bare, None) == bare
    assert completed(bare, {"timeout": 5}) == bare
    spaced = {**BASH, "patterns": ["ls b"], "metadata": {}}
    assert completed(read_permission(spaced), {"command": "ls \n  b > c"}).what == "ls \n  b > c"


def test_every_parameter_of_a_call_is_shown() -> None:
    """It is partial until the input of the call is known; what is empty, or shown already, is not shown again."""
    bash = {"metadata": {"command": LINE}, **CALL}
    assert read_permission({**BASH, **bash}).partial
    given = {"command": LINE, "description": "List files", "timeout": 5, "workdir": "/x/precious", "env": {}, "n": ""}
    assert with_input(given, **bash).detail == "workdir: /x/precious"
    mcp = {"permission": "shop_query", "patterns": ["*"], "metadata": {}}
    found = with_input({"sql": "DROP TABLE customers", "table": "*", "force": False}, **mcp)
    assert (found.what, found.detail) == ("*", "sql: DROP TABLE customers\ntable: *\nforce: false")
    assert with_input({}, **mcp).detail == ""
    told = {"description": "Look around", "subagent_type": "general"}
    task = {"permission": "task", "patterns": ["general"], "metadata": told}
    found = with_input({**told, "prompt": "Delete it.\nNow."}, **task)
    assert (found.what, found.detail) == ("general", 'description: Look around\nprompt: "Delete it.\\nNow."')
    loop = {"permission": "doom_loop", "patterns": ["bash"], "metadata": {"tool": "bash", "input": {"command": "ls"}}}
    assert with_input({"command": "ls"}, **loop).detail == 'input: {"command": "ls"}'
    fetch = {"permission": "webfetch", "patterns": ["http://x/"], "metadata": {"url": "http://x/", "format": "text"}}
    assert with_input({"url": "http://x/", "format": "text", "timeout": 9}, **fetch).detail == ""
    assert with_input({"url": "http://x/", "method": "PUT"}, **fetch).detail == "method: PUT"


def test_what_a_diff_shows_is_not_shown_twice() -> None:
    """The texts of an edit and the content of a file are in the diff; without one, they are shown."""
    edit = {"permission": "edit", "patterns": ["a.py"], "metadata": {"filepath": "/x/a.py", "diff": DIFF}}
    given = {"filePath": "/x/a.py", "oldString": "one", "newString": "two", "replaceAll": False}
    assert with_input(given, **edit).detail == DIFF
    assert with_input({"filePath": "/x/a.py", "content": "two\n"}, **edit).detail == DIFF
    assert with_input({**given, "force": True}, **edit).detail == f"force: true\n{DIFF}"
    bare = {**edit, "metadata": {}}
    assert with_input(given, **bare).detail == "oldString: one\nnewString: two\nreplaceAll: false"


def test_a_folder_shows_what_is_done_there() -> None:
    """A command, or a file with all that is done to it."""
    outside = {"permission": "external_directory", "patterns": ["/etc/*"], "metadata": {}}
    assert with_input({"command": LINE, "description": "Look", "workdir": "/etc"}, **outside).detail == (
        f"{LINE}\nworkdir: /etc"
    )
    assert with_input({"filePath": "/etc/hosts"}, **outside).detail == "/etc/hosts"
    told = {**outside, "metadata": {"filepath": "/etc/hosts", "parentDir": "/etc"}}
    assert with_input({"filePath": "/etc/hosts", "content": "x"}, **told).detail == "/etc/hosts\ncontent: x"


def test_a_line_that_a_plugin_changed_is_shown_as_it_will_run() -> None:
    """The input of the part may still be what the model sent."""
    for patterns, line in ((["rtk git status"], "rtk git status"), (["ls"], "cd /y && ls")):
        found = with_input({"command": "cd /x && ls"}, patterns=patterns, metadata={"command": line})
        assert (found.what, found.detail, found.partial) == (line, "command: cd /x && ls", False)


def test_an_input_that_is_nested_too_deeply_stays_untold() -> None:
    """A model chooses it. The permission is still asked for."""
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    assert with_input({"sql": deep}, permission="shop_query", patterns=["*"]).partial


def test_an_input_of_an_earlier_plugin_is_taken_as_it_is() -> None:
    """It told the command and the file of an input, and nothing of another one."""
    assert with_input({}, permission="webfetch", patterns=["http://x/"]).partial is False
    assert with_input({"command": LINE}, metadata={}).what == LINE


def test_what_the_plugin_cut_is_known_in_part() -> None:
    """Although the input has come."""
    payload = {
        "type": "permission.asked",
        "properties": {**BASH, "metadata": {}, **CALL},
        "directory": "/home/dev/shop-api",
        "context": {"title": "Fix login", "input": {"command": f"{LINE}…"}, "cut": True},
    }
    told = read(payload, machine="laptop")
    assert isinstance(told, Asked)
    assert told.ask.permission is not None
    assert (told.ask.permission.what, told.ask.permission.partial) == (f"{LINE}…", True)


@pytest.mark.parametrize(
    "odd",
    [{"patterns": "echo"}, {"patterns": [1]}, {"always": {}}, {"permission": None}, {"id": ""}, {"id": 5}],
)
def test_another_shape_is_an_error_that_says_where(odd: dict[str, object]) -> None:
    """And holds no value."""
    with pytest.raises(PayloadError, match=r"permission\.") as caught:
        read_permission({**BASH, **odd})
    assert "echo" not in str(caught.value)


def test_more_than_anybody_reads_is_never_given_for_good() -> None:
    """What is beyond is not shown, so it is not covered either."""
    found = read_permission({**BASH, "patterns": ["ls"] * 100 + ["rm -rf x"], "always": ["ls *", "rm *"]})
    assert found.always == ()
    assert len(found.patterns) == 100


def test_a_hooks_payload_is_an_ask_of_one_tap() -> None:
    """With the tool's input in its context."""
    payload = {
        "type": "permission.asked",
        "properties": {**BASH, "metadata": {}, "tool": {"messageID": "msg_1", "callID": "call_1"}},
        "directory": "/home/dev/shop-api",
        "context": {"title": "Fix login", "input": {"command": LINE}},
    }
    told = read(payload, machine="laptop")
    assert isinstance(told, Asked)
    (asked,) = told.ask.questions
    assert [option.label for option in asked.options] == ["Allow once"]
    assert asked.header == LINE
    assert told.ask.permission is not None
    assert told.ask.permission.what == LINE
    assert told.ask.source.call_id == "call_1"
    assert not told.ask.capabilities.can_skip


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"reply": "once"}, Once()),
        ({"reply": "always"}, Always()),
        ({"reply": "reject"}, Refused(None)),
        ({"reply": "reject", "message": "use pnpm"}, Refused("use pnpm")),
    ],
)
def test_a_reply_is_read(properties: dict[str, str], said: tuple[tuple[str, ...], ...]) -> None:
    """The event alone never says why; the plugin does."""
    payload = {"type": "permission.replied", "properties": {**properties, "sessionID": "ses_1", "requestID": "per_1"}}
    assert read(payload, machine="laptop") == Replied("per_1", "ses_1", said)
    assert read_reply({"reply": "allowed"}, "permission.replied") == Allowed()
    with pytest.raises(PayloadError):
        read_reply({"reply": "maybe"}, "permission.replied")


@pytest.mark.parametrize(
    ("decision", "reply", "body"),
    [
        (Decision("answer", 1.0, (Answer((0,)),), ANN), Once(), {"reply": "once"}),
        (Decision("always", 1.0, (), ANN), Always(), {"reply": "always"}),
        (Decision("reject", 1.0, (), ANN), Refused(), {"reply": "reject"}),
        (Decision("reject", 1.0), Refused(), {"reply": "reject"}),
        (
            Decision("answer", 1.0, (Answer((), "use\npnpm"),), ANN),
            Refused("use\npnpm"),
            {"reply": "reject", "message": "use\npnpm"},
        ),
    ],
)
def test_a_decision_becomes_its_own_word(decision: Decision, reply: Reply, body: dict[str, str]) -> None:
    """To the letter; a refusal without a word has none."""
    assert answers(permission_ask(), decision) == reply
    assert reply_body(reply) == body
    printed = waiter_text(permission_ask(), decision)
    assert '"kind": "permission"' in printed
    assert "\n" not in printed


RUNNING, DONE = ToolPart("bash", "running"), ToolPart("bash", "completed")
REFUSED = ToolPart("bash", "error", "Error: The user rejected permission to use this specific tool call.")
TOLD_WHY = ToolPart("bash", "error", f"{REFUSED.error[:-1]} with the following feedback: use pnpm")
FAILED, ABORTED = ToolPart("webfetch", "error", "Transport error"), ToolPart("bash", "error", "Tool execution aborted")
ONCE, NO, NO_WORD, WHY = Once(), Refused(None), Refused(), Refused("use pnpm")


def evidence(part: ToolPart | None, *flags: str, heard: Reply | None = None, listed: bool | None = False) -> Evidence:
    """Evidence of a permission of our server; `flags` name what else is so."""
    return Evidence(
        listed=listed,
        ours="foreign" not in flags,
        busy="busy" in flags,
        part=part,
        known="unknown" not in flags,
        gone="gone" in flags,
        went_on="went on" in flags,
        heard=heard,
    )


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (evidence(RUNNING, "busy", listed=True), StillOpen()),
        (evidence(RUNNING, listed=True), Dead()),
        (evidence(ABORTED, "busy", listed=True), Dead()),
        (evidence(RUNNING, "busy", "went on", listed=True), Dead()),
        (evidence(RUNNING, "busy", heard=ONCE), AnsweredWith(ONCE)),
        (evidence(DONE, heard=ONCE), AnsweredWith(ONCE)),
        (evidence(DONE), AnsweredWith(Allowed())),
        # Two calls with one id: the part is that of the other one.
        (evidence(DONE, "busy", listed=True), StillOpen()),
        (evidence(FAILED, "busy", listed=True), StillOpen()),
        (evidence(DONE, heard=NO), AnsweredWith(NO)),
        (evidence(DONE, "foreign"), AnsweredWith(Allowed())),
        (evidence(FAILED), AnsweredWith(Allowed())),
        (evidence(ABORTED, heard=ONCE), Dead()),
        (evidence(REFUSED, heard=NO), AnsweredWith(NO_WORD)),
        (evidence(TOLD_WHY), AnsweredWith(WHY)),
        # The folder was allowed, the command refused: one call, two permissions.
        (evidence(REFUSED, heard=ONCE), AnsweredWith(ONCE)),
        (evidence(RUNNING, "busy", heard=NO), Settling()),
        (evidence(RUNNING, "busy"), Settling()),
        (evidence(RUNNING), Dead()),
        (evidence(RUNNING, heard=ONCE), Dead()),
        (evidence(RUNNING, "busy", "went on", heard=ONCE), Dead()),
        (evidence(RUNNING, "busy", "foreign"), Unproven()),
        (evidence(RUNNING, "busy", "unknown"), Dead()),
        (evidence(None, "gone"), Dead()),
        (evidence(None, heard=ONCE), AnsweredWith(ONCE)),
        (evidence(None), Unproven()),
        # contract 4: new answers 400 while a webfetch without a timeout is asked for
        (evidence(RUNNING, "busy", listed=None), StillOpen()),
        (evidence(RUNNING, "busy", listed=None, heard=ONCE), AnsweredWith(ONCE)),
        (evidence(RUNNING, listed=None), Dead()),
    ],
)
def test_what_became_of_a_permission(seen: Evidence, verdict: Verdict | Settling) -> None:
    """Each row of what the list, the event and the tool can say."""
    assert judge_permission(seen) == verdict


@pytest.mark.parametrize(
    ("seen", "proof"),
    [
        (evidence(DONE, heard=ONCE), "record"),
        (evidence(TOLD_WHY), "record"),
        (evidence(None, heard=ONCE), "event"),
        (evidence(RUNNING, "busy", heard=ONCE), "event"),
        (evidence(DONE, heard=NO), "event"),
    ],
)
def test_a_word_is_known_by_the_tools_end_or_by_an_event(seen: Evidence, proof: str) -> None:
    """A tool that still runs has nothing in its record yet."""
    verdict = judge_permission(seen)
    assert isinstance(verdict, AnsweredWith)
    assert verdict.proof == proof
