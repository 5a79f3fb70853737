"""The help of `hermes hook`, for a person who asks for it; a hook that an agent starts does not load it."""

HELP = """\
Usage: hermes hook generic [--config PATH]
       hermes hook AGENT --store DIR --log FILE [--config PATH]
                         [--wait [--stay]] [--prompts]

Hands one question to Hermes. The plugin or the settings of an agent start it:
opencode, claude-code, oh-my-pi, neovate. `generic` is for any other program;
it takes --store and --log from the configuration.

Example:
  echo '{"questions": [{"question": "Go?", "options": [{"label": "Yes"}]}]}' \\
    | hermes hook generic

`hermes hook generic` reads one line of JSON from standard input:
  questions   a list of {"question", "header"?, "options"?, "multiple"?,
              "custom"?, "recommended"?}. An option is {"label",
              "description"?}. "custom": false takes no typed answer;
              "recommended" counts the options from 0.
  agent, title, directory, context
              texts that the phone shows with it; each may be absent
  ttl_s       the time to answer, in seconds
  on_expiry   what happens without an answer: "reject", "recommended",
              "skip" or "keep"
  stops       false if a rejection does not end the work of the program
  stays       true if a person can also answer in the program

It waits for the answer and prints one line:
  {"kind": "answer", "answers": [["Yes"]]}
              for each question the chosen labels, then the typed text
  {"kind": "skip"}, {"kind": "reject"}
              the person skipped it, or stopped the program
  {"kind": "desk"}
              the program's own answer came first
  {"kind": "refused", "error": "..."}
              no answer can come; the error says why
It prints nothing if the question is left to a program that "stays". An answer
has "by": "timer" if no person gave it in time. A program that no longer wants
an answer ends the hook with SIGTERM. A program with an answer of its own
writes a second line: {"answers": [["Yes"]]} or {"kind": "reject"}.

The exit status is 0, whatever the answer is: some agents take another status
as a veto. At a terminal, wrong usage has the status 2.
"""
