"""Which permissions go to the phone, and which of them may be given for good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.config.settings import Permissions
from hermes.core.permission_rules import Rules, admitted
from tests.asks import ask, permission_ask, question

NEVER = Rules(never_always=Permissions().never_always)


def test_a_question_is_no_permission() -> None:
    """It goes to the phone whatever the rules say."""
    asked = ask(question())
    assert admitted(asked, Rules(wanted=False, without_tools=("bash",), without_projects=("shop-api",))) is asked


@pytest.mark.parametrize(
    "rules",
    [
        Rules(wanted=False),
        Rules(without_tools=("edit", "bash")),
        Rules(without_projects=("shop-api",)),
        Rules(without_projects=("/home/dev/shop-api/",)),
    ],
)
def test_what_is_excluded_stays_at_the_desk(rules: Rules) -> None:
    """Switched off, by its tool, by its project's name or its whole path."""
    assert admitted(permission_ask(), rules) is None


def test_a_windows_project_is_excluded_by_its_name() -> None:
    """The phone calls it by that name, too."""
    made = permission_ask()
    asked = replace(made, source=replace(made.source, directory="C:\\work\\shop-api"))
    assert admitted(asked, Rules(without_projects=("shop-api",))) is None


@pytest.mark.parametrize("rules", [Rules(), Rules(without_tools=("edit",), without_projects=("", "/", "shop", "api"))])
def test_what_is_not_excluded_is_asked_as_it_came(rules: Rules) -> None:
    """Part of a name is no name."""
    asked = permission_ask()
    assert admitted(asked, rules) is asked


@pytest.mark.parametrize(
    ("command", "always"),
    [
        ("rm -rf build", "rm *"),
        ("echo a && rm b", "echo *"),
        ("/bin/rm b", "/bin/rm *"),
        ("CI=1 FORCE=yes git push --force", "git push *"),
        ("sudo", "sudo *"),
        ("env LC_ALL=C ls", "env *"),
        ("find . -name x", "find *"),
        ("bash test.sh", "bash *"),
        ("timeout 9 make", "timeout *"),
        ("ls", "*"),
        ("git", "git *"),
        ("npm", "npm *"),
        ("git -C . push", "git -C *"),
        ("\\rm -rf x", "\\rm *"),
        ('"rm" -rf x', "ls *"),
        ("git -C . status", "git -C *"),
        ("git --no-pager log", "git --no-pager *"),
        ("npm --prefix . test", "npm --prefix *"),
        ('git "push" --force', 'git "push" *'),
        ("r\\m -rf build", "r\\m *"),
    ],
)
def test_some_commands_are_never_given_for_good(command: str, always: str) -> None:
    """By their first words, wherever the command lies and whatever is set before it; once is offered all the same."""
    patterns = tuple(part.strip() for part in command.split("&&"))
    found = admitted(permission_ask(command, always=(always,), patterns=patterns), NEVER)
    assert found is not None
    assert found.permission is not None
    assert found.permission.always == ()
    assert found.permission.what == command


@pytest.mark.parametrize("never", ["./deploy.sh", "/home/dev/shop-api/deploy.sh", "CI=1 deploy.sh", '"deploy.sh"'])
@pytest.mark.parametrize("command", ["./deploy.sh prod", "deploy.sh prod", "CI=1 ./deploy.sh prod"])
def test_a_program_of_the_configuration_may_be_named_by_its_path(never: str, command: str) -> None:
    """The first words of a command are read in one way, in the configuration and in what an agent wants to run."""
    asked = permission_ask(command, always=(f"{command.split()[-2]} *",), patterns=(command,))
    found = admitted(asked, Rules(never_always=(never,)))
    assert found is not None
    assert found.permission is not None
    assert found.permission.always == ()


@pytest.mark.parametrize("command", ["git pull", "rmdir x", "echo rm", "npm run publish:check", ""])
def test_others_are(command: str) -> None:
    """What only looks like one of them is none."""
    asked = permission_ask(command, always=("git pull *", "git pull --rebase *", "git -C . pull", "npm run *"))
    assert admitted(asked, NEVER) is asked


def test_always_can_be_switched_off() -> None:
    """For everything, also for what is no command."""
    made = permission_ask()
    assert made.permission is not None
    change = replace(made, permission=replace(made.permission, kind="change", always=("*",)))
    assert admitted(change, NEVER) is change
    found = admitted(change, Rules(always=False))
    assert found is not None
    assert found.permission == replace(made.permission, kind="change", always=())


def test_what_cannot_be_named_whole_is_not_given_for_good() -> None:
    """More patterns than a screen names, a pattern longer than its line, a command that is known in part."""
    made = permission_ask()
    assert made.permission is not None
    for always in (tuple(f"ls {number} *" for number in range(9)), ("ls " + "x" * 120 + " *",)):
        found = admitted(permission_ask(always=always), NEVER)
        assert found is not None
        assert found.permission is not None
        assert found.permission.always == ()
    part = admitted(replace(made, permission=replace(made.permission, partial=True)), NEVER)
    assert part is not None
    assert part.permission == replace(made.permission, partial=True, always=())
