"""The help of `hermes hook`, for a person who asks for it; a hook that an agent starts does not load it."""

HELP = """\
Usage: hermes hook AGENT --store DIR --log FILE [--config PATH] [--wait [--stay]]
       hermes hook generic [--config PATH]

Hands one question to Hermes. The plugin or the settings of an agent start it: opencode, claude-code, oh-my-pi,
neovate. `generic` is for any other program; it takes --store and --log from the configuration.

Example:
  echo '{"questions": [{"question": "Deploy?", "options": [{"label": "Yes"}, {"label": "No"}]}]}' | hermes hook generic

`hermes hook generic` reads one line of JSON from standard input:
  questions    a list, each {"question", "header"?, "options"?: [{"label", "description"?}], "multiple"?, "custom"?,
               "recommended"?}. "custom": false takes no typed answer; "recommended" counts from 0.
  agent, title, directory, context   texts that the phone shows with it; each may be absent
  ttl_s        the time to answer, in seconds
  on_expiry    "reject", "recommended", "skip" or "keep": what happens without an answer
  stops        false if a rejection does not end the work of the program
  stays        true if a person can also answer in the program; the phone then says so

It waits for the answer and prints one line:
  {"kind": "answer", "answers": [["Yes"]]}   for each question the chosen labels, then the typed text
  {"kind": "skip"} or {"kind": "reject"}     the person skipped it, or stopped the program
  {"kind": "desk"}                           the program's own answer came first
  {"kind": "refused", "error": "..."}        nothing was asked; the error says why
  nothing                                    no answer: the question is left to a program that "stays"
An answer has "by": "timer" if no person gave it in time. A program that no longer wants an answer ends the hook with
SIGTERM. A program with its own answer writes a second line, {"answers": [["Yes"]]} or {"kind": "reject"}.

The exit status is 0, whatever the answer is: some agents take another one as a veto. On a terminal, wrong usage is 2.
"""
