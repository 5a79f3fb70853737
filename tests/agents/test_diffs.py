"""What a turn changed becomes one text for a person."""

from __future__ import annotations

from hermes.agents.diffs import COMPARED_LINES, LONGEST, ChangedFile, joined

PATCH = "Index: a.txt\n=====\n--- a.txt\t\n+++ a.txt\t\n@@ -1,1 +1,1 @@\n-one\n+two\n"


def test_the_agents_own_diff_and_two_texts_look_alike() -> None:
    """1.18.33 gives the first, 1.1.53 the second."""
    own, compared = ChangedFile("a.txt", patch=PATCH), ChangedFile("a.txt", before="one\n", after="two\n")
    assert joined([own]) == "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two"
    assert joined([compared]) == "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two"
    assert joined([own, compared]).count("--- a.txt") == 2


def test_a_file_without_a_text_is_named() -> None:
    """A picture, a large file, and one that may hold secrets; nothing if the agent told no content."""
    assert joined([ChangedFile("bin.dat", patch="")]) == "bin.dat: changed, but not as text"
    assert joined([ChangedFile("bin.dat", before="", after="")]) == "bin.dat: changed, but not as text"
    long = ChangedFile("long.txt", before="", after="a\n" * (COMPARED_LINES + 1))
    assert joined([long]) == "long.txt: changed, but too long to show"
    secret = ChangedFile("deploy/.env", patch=PATCH)
    assert joined([secret]) == "deploy/.env: changed; not shown, because it may hold secrets"
    assert joined([ChangedFile("a.txt")]) == ""
    assert joined([]) == ""


def test_what_is_too_long_is_cut_and_says_so() -> None:
    """At the end of a line, with the number of files that are missing."""
    large = ChangedFile("a.txt", patch="+word word\n" * LONGEST)
    cut = joined([ChangedFile("b.txt", patch=PATCH), large, *[ChangedFile("c.txt", patch=PATCH)] * 3])
    assert cut.endswith("+word word\n… cut here, because it is too long; 3 more files")
    assert len(cut) < LONGEST + 100
    assert joined([large]).endswith("… cut here, because it is too long")
    assert len(joined([ChangedFile("a.txt", patch="+" * 2 * LONGEST)])) < LONGEST + 100
