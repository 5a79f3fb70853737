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
from hermes.model.signals import Asked, Replied
from hermes.model.verdicts import AnsweredWith, Dead, StillOpen, Unproven, Verdict
from tests.asks import ANN, wish

BASH = {"id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["echo a", "ls b"], "always": ["echo *"]}
LINE = "echo a && ls b"
DIFF = "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n"


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
    assert shown(permission="skill", patterns=["pdf"], metadata={"n": 1}) == ("other", "pdf", '{\n "n": 1\n}')


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
    told = {"timeout": 5, "env": "A=1\nB=2"}
    lines = 'env: "A=1\\nB=2"'
    assert shown(metadata={"command": LINE, **told}) == ("command", LINE, f"timeout: 5\n{lines}")
    edit = {"permission": "edit", "patterns": ["a"], "metadata": {"filepath": "/x/a", "diff": DIFF, "force": True}}
    assert shown(**edit) == ("change", "a", f"force: true\n{DIFF}")
    fetch = {"permission": "webfetch", "patterns": ["u"], "metadata": {"url": "u", "timeout": 5, "method": "POST"}}
    assert shown(**fetch) == ("fetch", "u", "method: POST")
    outside = {"permission": "external_directory", "patterns": ["/etc/*"], "metadata": {"mode": "w"}}
    assert shown(**outside) == ("folder", "/etc/*", "\nmode: w")
    assert completed(read_permission({**BASH, **outside}), {"command": LINE}).detail == f"{LINE}\nmode: w"


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


def test_what_only_the_tools_input_tells_is_added() -> None:
    """Old asks with single commands, without where their output goes; new has no need of it."""
    bare, whole = read_permission({**BASH, "metadata": {}}), read_permission({**BASH, "metadata": {"command": LINE}})
    assert bare.partial
    assert not whole.partial
    assert completed(bare, {"command": LINE}) == replace(bare, what=LINE, partial=False)
    assert completed(whole, {"command": "something else"}) == whole
    assert completed(bare, None) == bare
    outside = read_permission({**BASH, "permission": "external_directory", "metadata": {}})
    assert completed(outside, {"command": LINE}).detail == LINE
    assert completed(outside, {"filePath": "/etc/hosts"}).detail == "/etc/hosts"


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
    assert answers(wish(), decision) == reply
    assert reply_body(reply) == body
    printed = waiter_text(wish(), decision)
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
    ],
)
def test_a_word_is_known_by_the_tools_end_or_by_an_event(seen: Evidence, proof: str) -> None:
    """A tool that still runs has nothing in its record yet."""
    verdict = judge_permission(seen)
    assert isinstance(verdict, AnsweredWith)
    assert verdict.proof == proof
