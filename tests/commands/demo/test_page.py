"""Whole scenes on the page of the demo, in a real Chromium: what is answered there is what the agent receives."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect

from hermes.commands.demo.scenes import LONG
from tests.commands.demo.browser import NARROW, Visitor, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from hermes.commands.demo.stage import Stage

pytestmark = pytest.mark.xdist_group("page")

DATABASE, CHECKS, PORT, MERGE = "Which database", "Which checks", "Port 8080", "Shall I merge"
NOTE = "What shall the release note say"


def let_agent_back(stage: Stage) -> None:
    """End the agent's absence now."""
    stage.agent_back_s = time.time()


@pytest.mark.story
def test_one_tap_answers_one_choice(visitor: Visitor) -> None:
    """The tap is acknowledged, the agent gets the label to the letter, and the message keeps the answer."""
    visitor.ask("one")
    visitor.tap(DATABASE, "SQLite ⭐")
    visitor.toast("SQLite")
    assert visitor.received("Fix login flow") == ["SQLite (Recommended)"]
    ended = visitor.sees("✅ SQLite")
    expect(ended.locator(".key")).to_have_count(0)
    expect(ended.locator("footer")).to_contain_text("edited")
    assert ended.locator("strong").all_text_contents()[0] == "Database"


def test_ticks_and_done(visitor: Visitor) -> None:
    """Several options go out in the order chosen."""
    visitor.ask("many")
    visitor.tap(CHECKS, "☐ Types")
    visitor.tap(CHECKS, "☐ Formatting")
    visitor.tap(CHECKS, "Done (2)")
    assert visitor.received("Set up CI") == ["Types", "Formatting"]


def test_three_questions_with_a_review(visitor: Visitor) -> None:
    """Pages are drawn in place: a pick, ticks, a typed text, the review, Send."""
    visitor.ask("three")
    visitor.tap("Which colour", "Teal")
    visitor.tap("Which sizes", "☐ Large")
    visitor.tap("☑ 3 Large", "Name ▶")
    visitor.sees("What shall the component be called?")
    visitor.write("Trigger", to="What shall the component")
    visitor.tap("Ready to send?", "Send")
    assert visitor.received("Draw the buttons") == ["Teal", "Large", "Trigger"]
    expect(visitor.page.locator("#messages .theirs")).to_have_count(1)


def test_a_typed_reply_is_the_answer_to_the_letter(visitor: Visitor) -> None:
    """A reply shows what it replies to, and its lines and signs arrive as they were typed."""
    visitor.ask("text")
    visitor.sees(NOTE)
    text = "Imports are faster,\nand <b>calm</b> & 'quoted' ☕"
    visitor.write(text, to=NOTE)
    assert visitor.received("Release 2.0") == [text]
    mine = visitor.page.locator("#messages .mine")
    expect(mine.locator(".quote")).to_contain_text("Release note")
    expect(mine.locator(".words")).to_have_text(text)
    visitor.sees("✅ “Imports are faster")


def test_the_pencil_takes_the_next_text(visitor: Visitor) -> None:
    """After ✏️ a plain text counts; the message that asked for it vanishes."""
    visitor.ask("one")
    visitor.tap(DATABASE, "✏️ Other")
    visitor.toast("Type your answer as your next message")
    typing = visitor.sees("Type your answer to Database")
    visitor.write("let's take DuckDB")
    assert visitor.received("Fix login flow") == ["let's take DuckDB"]
    expect(typing).to_have_count(0)


@pytest.mark.parametrize(
    ("taps", "words"),
    [(("Allow once",), ["once"]), (("Always…", "Yes, always"), ["always"])],
)
def test_a_permission_is_given(taps: tuple[str, ...], words: list[str], visitor: Visitor) -> None:
    """The command is shown as it is, and what the agent is told is the person's word."""
    visitor.ask("permission")
    asked = visitor.sees("OpenCode wants to run:")
    expect(asked.locator("pre, code").first).to_have_text("make migrate ENV=staging")
    for label in taps:
        visitor.page.locator(".key", has_text=label).last.click()
    assert visitor.received("Move the tables") == words


def test_a_permission_is_refused_with_a_word_why(visitor: Visitor) -> None:
    """The person's words go to the agent with the refusal."""
    visitor.ask("permission")
    visitor.tap("OpenCode wants to run:", "Refuse with a reason")
    visitor.toast("Write why not, as your next message")
    visitor.sees("Write why not")
    visitor.write("Not on a Friday.")
    assert visitor.received("Move the tables") == ["reject", "Not on a Friday."]


def test_a_command_is_copied(visitor: Visitor) -> None:
    """As the app does it: nothing is sent. Allow is green, Refuse is red."""
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.ask("permission")
    visitor.tap("OpenCode wants to run:", "Copy")
    visitor.toast("Copied")
    assert visitor.page.evaluate("navigator.clipboard.readText()") == "make migrate ENV=staging"
    asked = visitor.sees("OpenCode wants to run:")
    colours = asked.locator(".key[data-style]").evaluate_all("keys => keys.map(key => key.dataset.style)")
    assert colours == ["success", "danger"]


@pytest.mark.story
def test_what_is_hostile_is_shown_as_text(visitor: Visitor) -> None:
    """Markup, scripts, links and turned letters of an agent are letters, on the phone and on the computer."""
    title = visitor.page.title()
    visitor.ask("odd")
    words = visitor.sees("<script>alert(1)").locator(".words")
    # Hermes itself has put word joiners where a client would make links.
    expect(words).to_contain_text(re.compile("<script>document.\u2060?title='taken'</\u2060?script>"))
    assert visitor.page.locator("#messages :is(a, img, script, iframe), #rows :is(a, img, script, iframe)").count() == 0
    assert visitor.page.title() == title
    expect(visitor.row("Trouble for screens")).to_contain_text("⟨U+202E⟩exe.gpj⟨U+202C⟩")
    visitor.tap("<script>", "2 Rewrite")
    assert visitor.received("Trouble for screens") == [LONG]


def test_an_agent_without_a_port_is_answered_through_its_hook(visitor: Visitor) -> None:
    """The real hook waits, prints the answer, and its plugin applies it."""
    visitor.ask("plugin")
    visitor.tap(PORT, "9000")
    assert visitor.received("Start the server") == ["9000"]
    visitor.sees("✅ 9000")


def test_an_opencode_2_is_found_by_its_file_and_asks_for_a_number(visitor: Visitor) -> None:
    """A number that does not fit comes back with the reason; then both values arrive as what they are."""
    visitor.ask("opencode2")
    visitor.write("40", to="at least 1, at most 16")
    visitor.tap("tried again", "Yes")
    visitor.tap("Ready to send?", "Send")
    visitor.sees("too large")
    visitor.tap("Ready to send?", "1")
    visitor.write("4", to="at least 1, at most 16")
    visitor.tap("“4”", "Send")
    assert visitor.received("Import the orders") == ["4", "true"]
    assert "OpenCode 2" in visitor.row("Import the orders").inner_text()


def test_a_question_that_nobody_answers_expires(visitor: Visitor, stage: Stage) -> None:
    """A final call comes, then the agent is told no; the page says how the time came to be so short."""
    # The final call stands for two seconds only: it goes when it has been seen.
    stage.api.control.fault(method="deleteMessage", action="hang", hang_s=600.0, times=20)
    visitor.ask("hurried")
    expect(visitor.row("Merge the branch")).to_contain_text('restarted with ttl = "6s"')
    visitor.sees("⏰")
    stage.api.control.clear_faults()
    visitor.received("Merge the branch", state="refused")
    visitor.sees("No answer to Merge")
    expect(visitor.page.get_by_text("⏰")).to_have_count(0)


def test_after_it_questions_wait_as_long_as_ever(visitor: Visitor, stage: Stage) -> None:
    """The next question is asked of a listener with the usual time to answer."""
    stage.spans = replace(stage.spans, hurried=120.0)  # the tap is to come in time
    visitor.ask("hurried")
    visitor.tap(MERGE, "Yes")
    assert visitor.received("Merge the branch") == ["Yes"]
    hurried = stage.listener_pid
    visitor.ask("one")
    visitor.sees(DATABASE)
    assert stage.listener_pid != hurried
    assert 'ttl = "1800s"' in stage.config_text()


def test_a_tap_outlives_a_killed_listener(visitor: Visitor, stage: Stage) -> None:
    """The button spins while nobody listens; the next listener takes the tap, and the answer arrives once."""
    stage.spans = replace(stage.spans, down=600.0)
    visitor.ask("one")
    visitor.sees(DATABASE)
    visitor.page.locator("#kill").click()
    expect(visitor.page.locator("#listener")).to_contain_text("Hermes is dead")
    visitor.tap(DATABASE, "Redis")
    expect(visitor.key(DATABASE, "Redis")).to_have_attribute("aria-busy", "true")
    stage.listener_back_s = time.time()
    assert visitor.received("Fix login flow") == ["Redis"]
    expect(visitor.row("Fix login flow").locator(".chip")).to_have_text("received")
    expect(visitor.page.locator("#listener")).to_contain_text("Hermes listens")
    expect(visitor.page.locator("[aria-busy=true]")).to_have_count(0)


def test_the_button_spins_until_the_tap_is_acknowledged(visitor: Visitor, stage: Stage) -> None:
    """The acknowledgement ends it, also where the message is not drawn anew yet."""
    visitor.ask("many")
    visitor.sees(CHECKS)
    control = stage.api.control
    control.fault(method="editMessageText", action="hang", hang_s=60.0, times=2)
    visitor.tap(CHECKS, "☐ Types")
    types = visitor.key(CHECKS, "Types")
    visitor.toast("Types")
    expect(types).not_to_have_attribute("aria-busy", "true")
    expect(types).to_have_text("☐ Types")
    control.clear_faults()
    expect(types).to_have_text("☑ Types")


def test_an_answer_waits_for_an_agent_that_is_away(visitor: Visitor, stage: Stage) -> None:
    """The phone says that it is saved; when the agent is back it has the answer, and the phone says so."""
    stage.spans = replace(stage.spans, away=600.0)
    visitor.ask("one")
    visitor.sees(DATABASE)
    visitor.page.locator("#away").click()
    expect(visitor.page.locator("#agent")).to_contain_text("The agent is away")
    visitor.tap(DATABASE, "PostgreSQL")
    visitor.sees("saved")
    let_agent_back(stage)
    assert visitor.received("Fix login flow") == ["PostgreSQL"]
    visitor.sees("✅ Delivered")
    expect(visitor.page.locator("#agent")).to_contain_text("can be reached")


def test_the_hook_starts_a_listener_where_none_is(visitor: Visitor, stage: Stage) -> None:
    """An agent's question finds its way to the phone although the listener was killed a moment ago."""
    stage.spans = replace(stage.spans, down=600.0)
    visitor.page.locator("#kill").click()
    expect(visitor.page.locator("#listener")).to_contain_text("Hermes is dead")
    visitor.ask("plugin")
    visitor.tap(PORT, "8081")
    assert visitor.received("Start the server") == ["8081"]


def test_a_phone_that_was_locked_is_unlocked_at_the_computer(visitor: Visitor) -> None:
    """After /lock no tap counts; the computer offers `hermes unlock` meanwhile, by keyboard too, and then one does."""
    page, locked = visitor.page, visitor.page.locator("#locked")
    visitor.ask("one")
    visitor.sees(DATABASE)
    expect(locked).to_be_hidden()
    visitor.write("/lock")
    visitor.sees("🔒 Locked")
    expect(locked).to_be_visible()
    visitor.tap(DATABASE, "Redis")
    visitor.toast("🔒 Locked")
    page.locator("#away").focus()
    while visitor.focused() != "Unlock it\nhermes unlock":
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(locked).to_be_hidden()
    expect(page.locator("[data-scene=one]")).to_be_focused()
    visitor.tap(DATABASE, "SQLite ⭐")
    assert visitor.received("Fix login flow") == ["SQLite (Recommended)"]


# --- hands and eyes


def test_all_of_it_by_keyboard(visitor: Visitor) -> None:
    """Tab reaches every button, the focus is seen and stays where a keyboard is drawn anew, Escape ends a reply."""
    page = visitor.page
    page.locator("[data-scene=many]").focus()
    page.keyboard.press("Enter")
    visitor.sees(CHECKS)
    page.locator("#chat").focus()
    while visitor.focused() != "☐ Types":
        page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Space")
    expect(visitor.key(CHECKS, "☑ Types")).to_be_focused()
    while visitor.focused() != "Done (1)":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert visitor.received("Set up CI") == ["Types"]
    # Its buttons are gone; the focus has stayed in the message.
    expect(visitor.message(CHECKS).get_by_label("Reply to this message")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(page.locator("#replying")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#replying")).to_be_hidden()


def test_a_button_that_waits_keeps_the_focus(visitor: Visitor, stage: Stage) -> None:
    """Who has pressed "Agent away" with a key is still there, and a second press changes nothing."""
    stage.spans = replace(stage.spans, away=600.0)
    away = visitor.page.locator("#away")
    away.focus()
    visitor.page.keyboard.press("Enter")
    expect(away).to_have_attribute("aria-disabled", "true")
    back_s = stage.agent_back_s
    visitor.page.keyboard.press("Enter")
    expect(away).to_be_focused()
    assert back_s is not None
    pressed_s = stage.agent_back_s
    assert pressed_s == back_s
    let_agent_back(stage)
    expect(away).to_have_attribute("aria-disabled", "false")
    assert stage.agent_back_s is None
    expect(away).to_be_focused()


def test_what_is_read_stays_where_it_is(visitor: Visitor) -> None:
    """Who has scrolled up or begun a reply is not disturbed by news, but told of them; one press brings the newest."""
    page, chat = visitor.page, visitor.page.locator("#chat")
    for scene in ("one", "many", "three"):
        visitor.ask(scene)
    visitor.sees("Which colour")
    chat.evaluate("chat => { chat.scrollTop = 0 }")
    top = visitor.place(DATABASE)
    visitor.message(DATABASE).get_by_label("Reply to this message").click()
    chat.evaluate("chat => { chat.scrollTop = 0 }")
    visitor.ask("text")
    page.locator("#newest").click()
    expect(page.locator("#replying")).to_contain_text("Which database")
    expect(page.locator("#newest")).to_be_hidden()
    assert chat.evaluate("chat => chat.scrollHeight - chat.scrollTop - chat.clientHeight < 5")
    chat.evaluate("chat => { chat.scrollTop = 0 }")
    assert visitor.place(DATABASE) == top


def test_a_long_quote_folds_and_unfolds(visitor: Visitor) -> None:
    """The agent's last words show three lines, and all of them at a press; they stay so when the message changes."""
    visitor.ask("one")
    visitor.sees(DATABASE)
    quote = visitor.message(DATABASE).locator(".fold")
    unfold = quote.get_by_role("button", name="Show all of it")
    folded = quote.evaluate("quote => quote.offsetHeight")
    unfold.click()
    assert quote.evaluate("quote => quote.offsetHeight") > folded + 20
    visitor.tap(DATABASE, "✏️ Other")
    visitor.sees("✏️ Waiting for your text…")
    expect(visitor.message(DATABASE).locator(".fold.open")).to_have_count(1)


def test_news_are_told_to_a_screen_reader(visitor: Visitor) -> None:
    """New messages (not each tick), acknowledgements, and what the agent received; every button has a name."""
    visitor.ask("many")
    visitor.sees(CHECKS)
    page = visitor.page
    expect(visitor.message(CHECKS)).not_to_have_attribute("aria-live", "off")
    visitor.tap(CHECKS, "☐ Types")
    visitor.key(CHECKS, "☑ Types").wait_for()
    expect(visitor.message(CHECKS)).to_have_attribute("aria-live", "off")
    expect(page.get_by_role("log", name="Messages")).to_have_attribute("aria-live", "polite")
    expect(page.locator("#toast")).to_have_role("status")
    expect(page.locator("#rows")).to_have_attribute("aria-live", "polite")
    names = page.locator("button").evaluate_all("all => all.map(one => one.textContent.trim() || one.ariaLabel)")
    assert len(names) > 15
    assert all(names)


def test_one_side_at_a_time_where_it_is_narrow(browser: Browser, url: str) -> None:
    """A phone's screen shows the chat or the computer, tells of news on the other, and never scrolls sideways."""
    with visiting(browser, url, size=NARROW) as visitor:
        page = visitor.page
        expect(page.locator("#computer")).to_be_hidden()
        page.get_by_role("button", name="Computer", exact=True).click()
        expect(page.locator("#phone")).to_be_hidden()
        visitor.ask("odd")
        visitor.ask("one")
        phone = page.locator("#sides [data-side=phone]")
        expect(phone).to_have_attribute("data-news", "yes")
        phone.click()
        expect(phone).not_to_have_attribute("data-news", "yes")
        visitor.tap(DATABASE, "Redis")
        visitor.sees("✅ Redis")
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW[0]
        page.locator("#sides [data-side=computer]").click()
        assert visitor.received("Fix login flow") == ["Redis"]
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW[0]
        phone.click()
        visitor.write("/lock")
        expect(page.locator("#sides [data-side=computer]")).to_have_attribute("data-news", "yes")


READABLE = """
all => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
  const paint = (colours) => {
    canvas.clearRect(0, 0, 1, 1)
    for (const colour of colours) {
      canvas.fillStyle = colour
      canvas.fillRect(0, 0, 1, 1)
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255)
  }
  const light = (colour) => colour.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0)
  const below = (one) => (one ? [...below(one.parentElement), getComputedStyle(one).backgroundColor] : [])
  return all.filter((one) => one.offsetParent && one.textContent.trim()).map((one) => {
    const [front, back] = [paint([...below(one), getComputedStyle(one).color]), paint(below(one))].map(light)
    const [high, low] = front > back ? [front, back] : [back, front]
    return [one.textContent.trim().slice(0, 40), Math.round(((high + 0.05) / (low + 0.05)) * 10) / 10]
  }).filter(([, contrast]) => contrast < 4.5)
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_can_be_read(scheme: Literal["light", "dark"], browser: Browser, url: str) -> None:
    """In light and dark every text stands out from what is behind it (4.5 to 1, as WCAG wants it)."""
    with visiting(browser, url, scheme=scheme) as visitor:
        visitor.ask("one")
        visitor.tap(DATABASE, "SQLite ⭐")
        visitor.received("Fix login flow")
        visitor.ask("permission")
        visitor.write("hello", to="wants to run")
        visitor.sees("hello")
        visitor.ask("fails")
        visitor.write("Go on, please.", to="credit balance")
        visitor.row("Describe the products").locator(".prompt", has_text="Go on, please.").wait_for()
        visitor.ask("hurried")
        visitor.received("Merge the branch", state="refused")
        visitor.page.mouse.move(0, 0)
        visitor.page.evaluate("Promise.all(document.getAnimations().map(one => one.finished))")
        texts = visitor.page.locator("h1, h2, p, small, code, footer, .words, .key, .chip, .quote, .choices span")
        assert texts.evaluate_all(READABLE) == []
        page = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (page == "rgb(13, 19, 25)") == (scheme == "dark")
