// The page of the demo: what the server says is drawn, what the visitor does is posted. Nothing is decided here.

import { clock, drawn, element, exact, keep } from "./drawing.js"
import { chosenMachine, drawMachines } from "./machines.js"
import { chosenTopic, drawTopics, inTopic } from "./topics.js"

const TOAST_MS = 3_500
const SPINNER_MS = 60_000 // as long as a phone shows one
const END_PX = 40

const at = (id) => document.getElementById(id)
const [chat, messages, rows, text] = ["chat", "messages", "rows", "text"].map(at)
const shownMessages = new Map()
const shownRows = new Map()
const answeredTaps = new Set()
const waitingTaps = new Map() // "message data" -> the id of the tap, "" while it is on its way
const unfolded = new Set()
let last = null
let replyTo = null
let editing = null
let toastTimer = null

// ---- what the server says

const source = new EventSource("events")
source.onmessage = ({ data }) => {
  at("ended").hidden = true
  show(JSON.parse(data))
}
source.onerror = () => (at("ended").hidden = false)

async function act(told) {
  const headers = { "Content-Type": "application/json" }
  const answer = await fetch("do", { method: "POST", headers, body: JSON.stringify(told) }).catch(() => null)
  const said = await answer?.json()
  if (said?.error) toast(said.error)
  return said?.done
}

function show(state) {
  const first = last === null
  const known = new Set(last?.messages.map(({ message_id }) => message_id))
  last = state
  drawChat(first)
  if (!first) forcedReply(state.messages.filter(({ message_id }) => !known.has(message_id)))
  for (const one of state.toasts) hear(one, first)
  drawRows(state.rows, first)
  drawLock(state.phone, first)
  at("agent-name").textContent = state.agent.name
  tick()
}

// ---- the phone

function drawChat(first) {
  drawTopics(last.topics, drawAnew)
  drawMessages(inTopic(last.messages), first)
}

// Another topic: messages that were hidden must not come behind those that stayed.
function drawAnew() {
  messages.replaceChildren()
  shownMessages.clear()
  drawChat(true)
}

function drawMessages(all, first) {
  const wasAtEnd = isAtEnd()
  const held = focusedButton()
  const keyed = all.map((one) => ({ ...one, replied: one.reply_to && wordsOf(one.reply_to) }))
  const changed = keep(messages, shownMessages, keyed, ({ message_id }) => message_id, drawMessage)
  if ((replyTo ?? editing) && !shownMessages.has(replyTo ?? editing)) unlink()
  at("empty").hidden = all.length > 0
  for (const { item } of changed) fold(shownMessages.get(item.message_id).node, item.message_id)
  paintSpinners()
  refocus(held)
  const news = changed.some(({ isNew }) => isNew)
  if (first || wasAtEnd || changed.some(({ item, isNew }) => isNew && !item.from_bot)) toEnd()
  else if (news) at("newest").hidden = false
  if (news && !first) tell("phone")
}

function drawMessage(message, there) {
  const { message_id: id, from_bot: theirs, reply_to, replied, topic } = message
  const node = there ?? element("li", { id: `message-${id}` })
  node.className = theirs ? "theirs" : "mine"
  if (there) node.ariaLive = "off" // it was read when it came; what a tap did is in the toast
  const before = node.offsetHeight
  const words = element("div", { className: "words", dir: "auto" })
  words.append(message.text ? drawn(message.text, message.entities) : `(${message.kind})`)
  const bubble = element(
    "article",
    { className: "bubble", ariaLabel: theirs ? "Hermes" : "You" },
    topic ? element("p", { className: "topic", dir: "auto" }, topic) : null,
    reply_to ? repliedTo(reply_to, replied) : null,
    words,
    meta(message),
  )
  const [sign, word, act] = theirs ? ["↩", "Reply to", () => reply(id)] : ["✎", "Edit", () => edit(id)]
  const answer = element("button", { type: "button", className: "reply", title: word.split(" ")[0] }, sign)
  answer.ariaLabel = `${word} this message`
  answer.onclick = act
  bubble.ondblclick = act
  node.replaceChildren(element("div", { className: "beside" }, bubble, answer), ...keyboard(message))
  // What changes above what is read must not move it.
  if (there && node.offsetTop + before < chat.scrollTop) chat.scrollTop += node.offsetHeight - before
  return node
}

function meta({ date, edited, silent, from_bot }) {
  const told = [edited ? "edited" : "", clock(date), from_bot ? "" : "✓"].filter(Boolean).join(" ")
  const quiet = silent ? element("span", { className: "silent", title: "Came without a sound" }, "silent ") : null
  return element("footer", {}, quiet, told)
}

function repliedTo(id, words) {
  const quote = element("button", { type: "button", className: "quote" }, words || "A deleted message")
  quote.ariaLabel = `In reply to: ${words}`
  quote.onclick = () => at(`message-${id}`)?.scrollIntoView({ block: "center" })
  return quote
}

function keyboard(message) {
  if (!message.rows.length) return []
  const lines = message.rows.map((row) => element("div", { className: "row" }, ...row.map((one) => key(message, one))))
  return [element("div", { className: "keyboard" }, ...lines)]
}

function key({ message_id }, { text: label, data, style, copies }) {
  const words = element("span", { dir: "auto" }, label)
  const made = element("button", { type: "button", className: "key", disabled: data === null && !copies }, words)
  made.dataset.tap = `${message_id} ${data}`
  if (style) made.dataset.style = style
  made.onclick = () => (copies ? copy(copies) : tap(message_id, data))
  return made
}

async function copy(words) {
  await navigator.clipboard.writeText(words)
  toast("Copied")
}

async function tap(message_id, data) {
  const key = `${message_id} ${data}`
  waitingTaps.set(key, "")
  paintSpinners()
  const id = await act({ do: "tap", message_id, data })
  if (!id || answeredTaps.has(id)) waitingTaps.delete(key)
  else waitingTaps.set(key, id)
  setTimeout(() => {
    if (waitingTaps.get(key) === id) waitingTaps.delete(key)
    paintSpinners()
  }, SPINNER_MS)
  paintSpinners()
}

function hear({ tap_id, text: words, show_alert }, first) {
  if (answeredTaps.has(tap_id)) return
  answeredTaps.add(tap_id)
  for (const [key, id] of waitingTaps) if (id === tap_id) waitingTaps.delete(key)
  paintSpinners()
  if (words && !first) toast(words, show_alert)
}

function paintSpinners() {
  for (const one of messages.querySelectorAll(".key")) {
    one.ariaBusy = waitingTaps.has(one.dataset.tap) ? "true" : null
  }
}

function toast(words, long = false) {
  clearTimeout(toastTimer)
  at("toast").textContent = words
  at("toast").hidden = false
  toastTimer = setTimeout(() => (at("toast").hidden = true), long ? 2 * TOAST_MS : TOAST_MS)
}

// A quote of three lines or less has nothing to unfold.
function fold(node, id) {
  node.querySelectorAll(".fold").forEach((quote, place) => {
    const key = `${id} ${place}`
    const button = quote.querySelector(".unfold")
    const set = (open) => {
      quote.classList.toggle("open", open)
      button.ariaExpanded = String(open)
      button.ariaLabel = open ? "Show less of it" : "Show all of it"
      open ? unfolded.add(key) : unfolded.delete(key)
    }
    const words = quote.firstChild
    button.hidden = words.scrollHeight <= words.clientHeight + 1
    quote.onclick = () => button.hidden || set(!unfolded.has(key))
    set(unfolded.has(key))
  })
}

// ---- where the eyes and the keyboard are

const isAtEnd = () => chat.scrollHeight - chat.scrollTop - chat.clientHeight < END_PX

function toEnd() {
  chat.scrollTop = chat.scrollHeight
  at("newest").hidden = true
}

function focusedButton() {
  const focused = document.activeElement?.closest?.("#messages .key, #messages button")
  if (!focused) return null
  const item = focused.closest("li")
  return { item, focused, tap: focused.dataset.tap, place: [...item.querySelectorAll("button")].indexOf(focused) }
}

// A keyboard that is drawn again keeps the focus: on the same button, else on the one in its place.
function refocus(held) {
  if (!held || held.focused.isConnected) return
  const all = [...held.item.querySelectorAll("button")]
  const same = all.find((one) => held.tap && one.dataset.tap === held.tap)
  const next = held.item.isConnected ? (same ?? all[Math.min(held.place, all.length - 1)]) : null
  const target = next ?? chat
  target.focus({ preventScroll: true })
}

// ---- writing

function wordsOf(id) {
  const found = last.messages.find(({ message_id }) => message_id === id)
  return found ? found.text.split("\n").slice(0, 2).join(" ") : ""
}

function reply(id) {
  if (editing) unlink()
  replyTo = id
  linked("Reply to Hermes", "Do not reply", id)
}

function edit(id) {
  unlink()
  editing = id
  text.value = last.messages.find(({ message_id }) => message_id === id).text
  grow()
  linked("Edit message", "Do not edit", id)
}

function linked(what, undo, id) {
  const strip = at("replying")
  strip.hidden = false
  strip.querySelector("strong").textContent = what
  strip.querySelector("span").textContent = wordsOf(id)
  strip.querySelector("button").ariaLabel = undo
  text.focus()
}

// What was to be edited goes from the field, what was to be a reply stays.
function unlink() {
  if (editing) text.value = ""
  grow()
  replyTo = editing = null
  at("replying").hidden = true
}

function forcedReply(news) {
  const forced = news.find(({ force_reply }) => force_reply)
  if (forced) reply(forced.message_id)
}

async function send() {
  const words = text.value.trim()
  if (!words) return
  const written = { do: "write", text: words, reply_to: replyTo, thread_id: replyTo ? null : chosenTopic() }
  const told = editing ? { do: "rewrite", text: words, message_id: editing } : written
  unlink()
  text.value = ""
  grow()
  await act(told)
}

function grow() {
  text.rows = Math.min(6, Math.max(1, text.value.split("\n").length))
}

at("composer").onsubmit = (event) => {
  event.preventDefault()
  send()
}
text.oninput = grow
text.onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
  event.preventDefault()
  send()
}
document.onkeydown = ({ key }) => {
  if (key === "Escape") unlink()
}
at("replying").querySelector("button").onclick = () => {
  unlink()
  text.focus()
}
at("newest").onclick = toEnd
chat.onscroll = () => isAtEnd() && (at("newest").hidden = true)

// ---- the computer

const WAYS = { server: "", work: "", plugin: ", by its plugin", opencode2: ", OpenCode 2" }
const STATES = { waiting: "waits for you", received: "received", refused: "told no" }
const UNDER_WAY = new Set(["waiting", "queued", "working"])
const TURNS = { queued: "waits", working: "working", done: "done", failed: "failed", stopped: "stopped" }

function drawRows(all, first) {
  const changed = keep(rows, shownRows, all, ({ key }) => key, drawRow)
  at("nothing").hidden = all.length > 0
  for (const { item, isNew } of changed) if (isNew) rows.prepend(shownRows.get(item.key).node)
  if (!first && changed.some(({ item }) => !UNDER_WAY.has(item.state))) tell("computer")
}

function drawRow(row, there) {
  const { state, times } = row
  const node = there ?? element("li", { className: "row-card" })
  node.dataset.state = state
  const name = element("strong", { dir: "auto" }, row.title)
  const place = element("span", { className: "place" }, ` ${row.folder}${row.machine ? ` on the ${row.machine}` : ""}${WAYS[row.through] ?? ""}`)
  const chip = element("span", { className: "chip" }, times > 1 ? `received ${times} times` : STATES[state] ?? TURNS[state])
  const head = element("header", {}, element("p", {}, name, place), chip)
  if (row.kind === "turn") {
    node.replaceChildren(head, ...turn(row))
    return node
  }
  const asked = row.asked.map((words, place) =>
    element("div", { className: "asked" }, question(row, words), ...received(row, place)),
  )
  const hurry = row.hurried && state === "waiting" ? element("p", { className: "none" }, hurried()) : null
  node.replaceChildren(...[head, ...asked, hurry].filter(Boolean))
  return node
}

// The prompt, what was run for it, and how it ended.
function turn({ by_phone, ago_s, prompt, tools, words, state }) {
  const since = ago_s ? `, ${Math.round(ago_s / 60)} minutes earlier` : ""
  const from = element("small", {}, by_phone ? "You, from the phone" : `You, at this computer${since}`)
  const told = element("div", { className: "prompt" }, from, element("p", { dir: "auto" }, exact(prompt)))
  const used = tools.map((each) => element("li", {}, element("code", { dir: "auto" }, exact(each))))
  const end = state === "stopped" ? "Stopped; its turn ended here." : words
  return [
    told,
    used.length ? element("ul", { className: "tools" }, ...used) : null,
    end ? element("p", { className: "end", dir: "auto" }, exact(end)) : null,
  ].filter(Boolean)
}

function question({ permission }, words) {
  return permission ? element("p", {}, "Wants to run ", element("code", {}, exact(words))) : element("p", { dir: "auto" }, exact(words))
}

function received({ state, received: words }, place) {
  if (state === "waiting") return []
  if (state === "refused") return [element("p", { className: "none" }, "Told no; its turn ended here.")]
  const given = words[place] ?? []
  if (!given.length) return [element("p", { className: "none" }, "No answer: it decides by itself.")]
  return [element("ul", { className: "received" }, ...given.map((each) => element("li", {}, element("code", { dir: "auto" }, exact(each)))))]
}

function hurried() {
  const ttl = `${last.spans.hurried}s`
  return `For this question the listener was restarted with ttl = "${ttl}"; other questions now expire as soon, too.`
}

// What was pressed goes: the focus moves on to the next button.
function drawLock({ locked }, first) {
  if (at("locked").hidden === !locked) return
  const held = document.activeElement === at("unlock")
  at("locked").hidden = !locked
  if (held) at("scenes").querySelector("button")?.focus()
  if (locked && !first) tell("computer")
}

function light(id, isOn, words) {
  const sign = at(id)
  sign.dataset.on = String(isOn)
  if (sign.textContent !== words) sign.textContent = words
}

// What counts down.
function tick() {
  if (!last) return
  const { listener, agent, spans } = last
  const left = (until_s) => Math.max(1, Math.ceil(until_s - Date.now() / 1000))
  const down = listener.back_s === null ? "Hermes is starting…" : `Hermes is dead; started again in ${left(listener.back_s)} s`
  light("listener", listener.pid !== null, listener.pid === null ? down : `Hermes listens (process ${listener.pid})`)
  const away = agent.back_s !== null
  light("agent", !away, away ? `The agent is away, back in ${left(agent.back_s)} s` : "The agent can be reached")
  if (last.machines) return drawMachines(last, left)
  at("kill").ariaDisabled = String(listener.pid === null)
  at("away").ariaDisabled = String(away)
  at("kill").querySelector("small").textContent = `kill -9; back in ${spans.down} s`
  at("away").querySelector("span").textContent = `Agent away for ${spans.away} s`
}
setInterval(tick, 250)
at("unlock").onclick = () => act({ do: "unlock" })

async function drawScenes() {
  const scenes = await (await fetch("scenes")).json()
  for (const { name, label, hint, through } of scenes) {
    const made = element("button", { type: "button" }, element("span", {}, label), element("small", {}, hint))
    made.dataset.scene = name
    made.onclick = () => act({ do: "ask", scene: name, machine: chosenMachine() })
    at(through === "work" ? "tasks" : "scenes").append(made)
  }
  at("working").hidden = !at("tasks").children.length
}
drawScenes()
// Not `disabled`, which would take the focus from them.
for (const id of ["kill", "away", "database"]) at(id).onclick = () => at(id).ariaDisabled === "true" || act({ do: id })

// ---- one side at a time, where the screen is narrow

function tell(side) {
  if (document.body.dataset.side !== side) document.querySelector(`#sides [data-side=${side}]`).dataset.news = "yes"
}

for (const choice of document.querySelectorAll("#sides button")) {
  choice.onclick = () => {
    document.body.dataset.side = choice.dataset.side
    delete choice.dataset.news
    for (const each of document.querySelectorAll("#sides button")) each.ariaPressed = String(each === choice)
    if (choice.dataset.side === "phone") {
      for (const [id, { node }] of shownMessages) fold(node, id)
      toEnd()
    }
  }
}
