// hermes-telegram-phone: answer OpenCode's questions from a phone.
// `hermes install opencode` wrote this file, `hermes uninstall opencode` takes it away; edits are lost.
//
// It hands what concerns questions to `hermes hook`, one process an event, in the order of the events. The hook
// of a question stays until the phone has answered; what it prints is applied through OpenCode's own in-process
// client, so no port is needed. Nothing here throws into OpenCode, and no handler makes it wait.

import { spawn } from "node:child_process"

const settings = "@SETTINGS@" // {python, store, log, config}: absolute paths
const PATIENCE_MS = 15_000 // for a hook to keep its payload
const CALL_MS = 5_000 // for OpenCode to answer itself
const ROUND_MS = 5_000 // between two looks at what is open
const LAST_TEXT_CHARS = 3000
const RETRY_MS = [1_000, 1_000, 2_000, 5_000] // Hermes takes an OpenCode without a hook for dead after 30 s
const STEADY_MS = 10_000 // a hook that has waited for so long was well

// OpenCode starts a plugin again after a dispose, in each directory, and sometimes twice in one: all share this.
// The number changes with the shape.
const state = (globalThis[Symbol.for("hermes-telegram-phone/1")] ??= {
  clients: new Map(), // directory -> its newest in-process client
  open: new Map(), // request id -> question that is not settled yet
  seen: new Set(), // what was already taken in, so that a second copy of this plugin doubles nothing
  queue: Promise.resolve(),
  round: null,
  told: false,
})

export const HermesTelegramPhone = async ({ client, directory }) => {
  state.clients.set(directory, client)
  return {
    event: async ({ event }) => {
      try {
        heard(directory, event)
      } catch {
        // not OpenCode's trouble
      }
    },
  }
}

// ---- what OpenCode tells

const listeners = {
  "question.asked": asked,
  "question.replied": settled,
  "question.rejected": settled,
  "question.v2.asked": asked,
  "question.v2.replied": settled,
  "question.v2.rejected": settled,
  "session.idle": quiet,
  "session.error": quiet,
  "session.deleted": quiet,
  "message.updated": movedOn,
}

function heard(directory, event) {
  const { type, properties } = event ?? {}
  if (!Object.hasOwn(listeners, type) || typeof properties !== "object" || !properties) return
  listeners[type](directory, type, properties)
}

function asked(directory, type, properties) {
  const { id, sessionID } = properties
  if (typeof id !== "string" || seenBefore(`asked ${id}`)) return
  const v2 = type.startsWith("question.v2.")
  const question = { id, sessionID, directory, properties, v2, family: [sessionID], open: true, hook: null }
  state.open.set(id, question)
  inOrder(async () => {
    const context = await contextOf(question)
    question.line = lineOf(directory, type, properties, context)
    if (v2 || !question.open) return run(question.line)
    await wait(question)
    aside(attend(question))
  })
  makeRounds()
}

function settled(directory, type, properties) {
  const id = properties.requestID
  if (typeof id !== "string" || seenBefore(`settled ${id}`)) return
  const question = state.open.get(id)
  close(question)
  inOrder(async () => {
    // A question whose turn was aborted "is replied" too; then nobody got the answer.
    if (question && type === "question.replied" && (await wasLost(question))) return tellGone(question)
    await run(lineOf(directory, type, properties))
  })
}

// A session that stops takes its open questions with it, and those of its subagents; OpenCode goes on listing
// them. A session can also report an error of something else while its question lives: so look.
function quiet(directory, type, properties) {
  const sessionID = properties.sessionID ?? properties.info?.id
  if (!state.open.size) return
  inOrder(async () => {
    const touched = [...state.open.values()].filter((question) => question.family.includes(sessionID))
    const checked = touched.map(async (question) => {
      const over = type === "session.deleted" || question.v2 || (await isOver(question))
      return over && question.open ? [question] : []
    })
    const dead = (await Promise.all(checked)).flat()
    dead.forEach(close)
    const own = isAsking(sessionID) ? [] : dead.filter((question) => question.sessionID === sessionID)
    if (own.length) await run(lineOf(directory, type, properties))
    for (const question of dead) if (!own.includes(question)) await tellGone(question)
  })
}

// A new turn of the model while its question is open: then the question's turn was aborted before.
function movedOn(directory, type, { info }) {
  if (info?.role !== "assistant" || !state.open.size) return
  for (const question of state.open.values()) {
    const { tool } = question.properties
    const later = question.sessionID === info.sessionID && tool?.messageID < info.id
    if (later && !question.v2) aside(judge(question))
  }
}

// ---- a question's life

// Keep a hook waiting for the answer as long as the question is open, whatever happens to the hook.
async function attend(question) {
  for (let tries = 0; question.open; tries += 1) {
    const started = performance.now()
    const answer = await question.hook.answer
    if (performance.now() - started > STEADY_MS) tries = 0
    if (question.open && answer) await apply(question, answer)
    await pause(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)])
    if (question.open) await judge(question)
    question.hook.release()
    if (question.open) await inOrder(async () => question.open && (await wait(question)))
  }
}

// Start the waiting hook; done when it has kept the question. It stays until the question is settled: as long as
// it is there, Hermes knows that this OpenCode is too, however slow.
async function wait(question) {
  question.hook = start(["--wait", "--stay"])
  question.hook.child?.stdin.write(question.line)
  await within(PATIENCE_MS, question.hook.kept)
}

async function apply(question, line) {
  const answer = parsed(line)
  if (answer?.requestID !== question.id) return
  await judge(question) // 1.1.53 says "true" to a reply that reaches nobody
  if (!question.open) return
  const reply = answer.kind === "reply"
  const body = reply ? { answers: answer.answers } : {}
  const path = { requestID: question.id }
  await call("post", question.directory, `/question/{requestID}/${reply ? "reply" : "reject"}`, path, { body })
  await within(3_000, question.closed ??= new Promise((done) => (question.onClose = done)))
}

function close(question) {
  if (!question?.open) return
  question.open = false
  state.open.delete(question.id)
  question.hook?.release()
  question.onClose?.()
}

// Close what is over, and say how it ended.
async function judge(question) {
  let found = await verdict(question)
  if (found.kind === "gone") {
    await pause(500) // the event that tells more may be on its way
    found = await verdict(question)
  }
  if (!question.open) return
  const told = { sessionID: question.sessionID, requestID: question.id }
  if (found.kind === "gone") gone(question)
  if (found.kind === "rejected") settled(question.directory, "question.rejected", told)
  if (found.kind === "answered") {
    settled(question.directory, "question.replied", { ...told, answers: found.answers })
  }
}

function gone(question) {
  close(question)
  inOrder(() => tellGone(question))
}

// "The session is quiet" ends all that it asked. Where it asks something else that is alive, the end of a
// waiting hook's input says the same of this question alone.
async function tellGone(question) {
  const { directory, sessionID, id } = question
  if (!isAsking(sessionID)) return run(lineOf(directory, "session.idle", { sessionID, requestID: id }))
  if (question.line) return run(question.line, ["--wait"])
}

async function isOver(question) {
  for (const waiting_ms of [0, 200, 400]) {
    await pause(waiting_ms) // the status may lag behind the event
    if (!question.open || (await verdict(question)).kind === "gone") return true
  }
  return false
}

async function wasLost(question) {
  for (let tries = 0; tries < 20; tries += 1) {
    const { status } = (await partOf(question))?.state ?? {}
    if (status !== "running" && status !== "pending") return status === "error"
    await pause(100) // its answer is there before its state says so
  }
  return false
}

// What became of a question: open, answered (with what), rejected, gone, or unknown where OpenCode is silent.
async function verdict(question) {
  const { directory, sessionID, id } = question
  const part = await partOf(question)
  const { status, metadata, error } = part?.state ?? {}
  if (status === "completed") return { kind: "answered", answers: metadata?.answers ?? [] }
  if (status === "error") return { kind: /dismissed/.test(error) ? "rejected" : "gone" }
  const listed = await call("get", directory, "/question")
  if (!Array.isArray(listed)) return { kind: "unknown" }
  if (!listed.some((one) => one?.id === id)) return { kind: "gone" }
  const busy = await call("get", directory, "/session/status")
  if (busy && typeof busy === "object" && !Object.hasOwn(busy, sessionID)) return { kind: "gone" }
  return { kind: (await hasMovedOn(question)) ? "gone" : "open" }
}

async function partOf({ directory, sessionID, properties: { tool } }) {
  if (!tool) return undefined
  const path = { sessionID, messageID: tool.messageID }
  const message = await call("get", directory, "/session/{sessionID}/message/{messageID}", path)
  return message?.parts?.find?.((part) => part.type === "tool" && part.callID === tool.callID)
}

// A prompt that the person queued is no sign; an answer of the model after the question is.
async function hasMovedOn({ directory, sessionID, properties: { tool } }) {
  if (!tool) return false
  const query = { limit: 5 }
  const messages = await call("get", directory, "/session/{sessionID}/message", { sessionID }, { query })
  if (!Array.isArray(messages)) return false
  const later = messages.slice(messages.findIndex(({ info }) => info.id === tool.messageID) + 1)
  return later.some(({ info }) => info.role === "assistant")
}

// ---- looking around, for what no event tells: after a dispose nothing is pending any more, in silence

function makeRounds() {
  if (state.round || !state.open.size) return
  state.round = timer(ROUND_MS, async () => {
    const directories = new Set([...state.open.values()].map((question) => question.directory))
    await Promise.allSettled([...directories].map(look))
    state.round = null
    makeRounds()
  })
}

async function look(directory) {
  const listed = await call("get", directory, "/question")
  const busy = await call("get", directory, "/session/status")
  if (!Array.isArray(listed) || !busy || typeof busy !== "object") return
  for (const question of [...state.open.values()].filter((each) => each.directory === directory)) {
    const there = listed.some((one) => one?.id === question.id) && Object.hasOwn(busy, question.sessionID)
    if (!there && !question.v2) await judge(question)
  }
}

function isAsking(sessionID) {
  return [...state.open.values()].some((question) => question.sessionID === sessionID)
}

// ---- what the phone shows beside the question

async function contextOf(question) {
  const { directory, sessionID } = question
  const session = await call("get", directory, "/session/{sessionID}", { sessionID })
  let root = session
  while (root?.parentID && !question.family.includes(root.parentID)) {
    question.family.push(root.parentID)
    root = await call("get", directory, "/session/{sessionID}", { sessionID: root.parentID })
  }
  const rootTitle = root === session ? "" : root?.title
  const lastText = await lastTextOf(question).catch(() => "")
  return { title: text(session?.title), rootTitle: text(rootTitle), lastText: text(lastText) }
}

// The end of what the agent said before it asked, in this turn of the person's. Its words are kept once they
// have ended, some ms after the question; so is its call.
async function lastTextOf({ directory, sessionID, properties: { tool } }) {
  const query = { limit: 5 }
  for (let tries = 1; ; tries += 1) {
    const messages = await call("get", directory, "/session/{sessionID}/message", { sessionID }, { query })
    if (!Array.isArray(messages)) return ""
    const end = messages.findIndex(({ info }) => info.id === tool?.messageID)
    if (!tool || isWritten(messages[end], tool) || tries === 10) {
      return wordsOf(messages.slice(0, end < 0 ? undefined : end + 1))
    }
    await pause(100)
  }
}

function isWritten(message, { callID }) {
  const parts = message?.parts ?? []
  return parts.some((part) => part.callID === callID) && parts.every(({ type, time }) => type !== "text" || time?.end)
}

function wordsOf(messages) {
  for (const { info, parts } of messages.reverse()) {
    if (info.role !== "assistant") return ""
    const said = parts.findLast((part) => part.type === "text" && !part.synthetic && part.text?.trim())
    if (said) return said.text.trim()
  }
  return ""
}

function text(value) {
  // a character of two units is not cut in half
  return typeof value === "string" ? value.slice(-LAST_TEXT_CHARS).replace(/^[\uDC00-\uDFFF]/, "") : ""
}

// ---- hooks

function lineOf(directory, type, properties, context = {}) {
  return JSON.stringify({ type, properties, directory, context }) + "\n"
}

// Run a hook to its end with this line as all its input; again where it was killed, or the disk was full.
async function run(line, options = []) {
  const began = performance.now()
  for (const waiting_ms of [0, ...RETRY_MS]) {
    if (performance.now() - began > PATIENCE_MS) return // others wait behind it
    await pause(waiting_ms)
    const hook = start(options)
    hook.child?.stdin.end(line)
    await within(PATIENCE_MS, hook.answer)
    if (hook.has !== "nothing") return
  }
}

// `kept` is done when the payload is on disk or the hook has ended, `answer` with the line that it printed, or
// with null when it has ended. `has` tells what it has done so far: "nothing", "kept", "refused", or "failed" to start.
function start(options) {
  const { python, store, log, config } = settings
  const paths = ["--store", store, "--log", log, "--config", config]
  const hook = { child: null, release: () => {}, kept: Promise.resolve(), answer: Promise.resolve(null), has: "nothing" }
  try {
    // The folder does not matter to the hook, but a working folder keeps a disk from being unmounted.
    const child = spawn(python, ["-I", "-m", "hermes", "hook", "opencode", ...paths, ...options], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      cwd: "/",
    })
    hook.child = child
    hook.release = () => child.kill("SIGTERM")
    Object.assign(hook, outcomeOf(child, (has) => (hook.has = has)))
    for (const each of [child, child.stdin, child.stdout, child.stderr]) each?.unref?.()
  } catch {
    hook.has = "failed"
    cannotStart()
  }
  return hook
}

function outcomeOf(child, note) {
  let printed = ""
  let said = ""
  let keep
  const kept = new Promise((done) => (keep = done))
  child.stdin.on("error", () => {}) // it left before it had read everything
  child.stderr.on("data", (data) => {
    said += data
    if (said.includes("refused\n")) note("refused")
    if (!said.includes("kept\n")) return
    note("kept")
    keep()
  })
  const answer = new Promise((done) => {
    const finish = () => {
      keep()
      done(printed.includes("\n") ? printed.slice(0, printed.indexOf("\n")) : null)
    }
    child.stdout.on("data", (data) => {
      printed += data
      if (printed.includes("\n")) finish()
    })
    const failed = () => {
      note("failed")
      cannotStart()
    }
    child.on("error", () => {
      failed()
      finish()
    })
    child.on("exit", (status) => {
      if (status) failed() // the hook itself always leaves with 0
      timer(500, finish) // should something else hold its pipes
    })
    child.on("close", finish)
  })
  return { kept, answer }
}

function cannotStart() {
  if (state.told) return
  state.told = true
  const body = {
    title: "Hermes",
    message: "Questions do not reach the phone: the hook cannot be started. Run: hermes install opencode",
    variant: "warning",
    duration: 15_000,
  }
  for (const directory of state.clients.keys()) aside(call("post", directory, "/tui/show-toast", {}, { body }))
}

// ---- OpenCode itself, in process

// The data of a good answer, else undefined. 1.1.53 needs both the directory and the password with each call.
async function call(method, directory, url, path = {}, { query = {}, body } = {}) {
  try {
    const answer = await within(
      CALL_MS,
      state.clients.get(directory)._client[method]({
        url,
        path,
        query: { ...query, directory: directory.replaceAll("%", "%25") }, // it is decoded twice
        headers: { "Content-Type": "application/json", ...authorization() },
        ...(body && { body }),
      }),
    )
    return answer?.response?.ok ? answer.data : undefined
  } catch {
    return undefined
  }
}

function authorization() {
  const { OPENCODE_SERVER_PASSWORD: password, OPENCODE_SERVER_USERNAME: name } = process.env
  if (!password) return {}
  return { Authorization: `Basic ${Buffer.from(`${name || "opencode"}:${password}`).toString("base64")}` }
}

// ---- small things

// One after another, in the order of the calls; what goes wrong in one does not touch the next.
function inOrder(job) {
  state.queue = state.queue.then(job).catch(() => {})
  return state.queue
}

function seenBefore(key) {
  if (state.seen.has(key)) return true
  state.seen.add(key)
  if (state.seen.size > 2000) state.seen.delete(state.seen.values().next().value)
  return false
}

// Let it run by itself; nobody is left to hear of its trouble.
function aside(promise) {
  promise.catch(() => {})
}

function parsed(line) {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function timer(after_ms, job) {
  const id = setTimeout(job, after_ms)
  id.unref?.() // OpenCode may leave whenever it likes
  return id
}

function pause(for_ms) {
  return new Promise((done) => timer(for_ms, done))
}

async function within(limit_ms, promise) {
  let id
  const late = new Promise((done) => (id = timer(limit_ms, done)))
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(id)
  }
}
