// hermes-telegram-phone: answer from a phone what OpenCode asks: its questions, and for its permissions.
// `hermes install opencode` wrote this file, `hermes uninstall opencode` takes it away; edits are lost.
//
// It hands what concerns such a request to `hermes hook`, one process an event, in the order of the events. The
// hook of a request stays until the phone has answered; what it prints is applied through OpenCode's own
// in-process client, so no port is needed. Prompts from the phone come through a folder in the same way, if they are
// on. Nothing here throws into OpenCode, and no handler makes it wait.

import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import fs from "node:fs"

const settings = "@SETTINGS@" // {python, store, log, config}: absolute paths
const PATIENCE_MS = 15_000 // for a hook to keep its payload
const CALL_MS = 5_000 // for OpenCode to answer itself
const ROUND_MS = 5_000 // between two looks at what is open
const LAST_TEXT_CHARS = 3000
const TURN_TEXT_CHARS = 100_000
const MOST_SESSIONS = 500
const NEWS_MS = 60_000 // a session can be told to be idle long after its last turn
const INPUT_MS = 1_500 // for a call to have its input
const DIFF_CHARS = 60_000
const PERMISSION_BYTES = 1_000_000 // of JSON: a hook refuses a line of more than 1 MiB
const LOOKS_MS = [10, 20, 40, 80, 100, 150, 200, 200, 200] // between two looks at what OpenCode is about to write
const RETRY_MS = [1_000, 1_000, 2_000, 5_000] // Hermes takes an OpenCode without a hook for dead after 30 s
const REFUSED_MS = 30_000 // nobody is there to hear of the request, and none can be started
const LONGEST_MS = 600_000
const STEADY_MS = 10_000 // a hook that has waited for so long was well

// OpenCode starts a plugin again after a dispose, in each directory, and sometimes twice in one: all share this.
// The number changes with the shape.
const state = (globalThis[Symbol.for("hermes-telegram-phone/4")] ??= {
  clients: new Map(), // directory -> its newest in-process client
  open: new Map(), // request id -> question or permission that is not settled yet
  seen: new Set(), // what was already taken in, so that a second copy of this plugin doubles nothing
  working: new Map(), // session id -> since when it worked last, in epoch ms, and whether that is over
  queue: Promise.resolve(),
  round: null,
  told: false,
  box: null, // the folder through which Hermes calls
  signs: new Map(), // session id -> when this process worked on it, in epoch ms; the newest last
})

export const HermesTelegramPhone = async ({ client, directory }) => {
  state.clients.set(directory, client)
  takeCallsFromNowOn()
  return {
    event: async ({ event }) => {
      try {
        heard(directory, event)
        sign(event.type, event.properties)
      } catch {
        // not OpenCode's trouble
      }
    },
  }
}

// ---- what OpenCode asks

const GONE = { type: "gone" } // nobody waits for an answer any more

// `list` is where OpenCode lists what is pending, `unlisted` what it means not to be there. `posted` tells where
// an answer of the phone goes, `proof` how a request ended by the state of its call; undefined where it says nothing.
const kinds = {
  question: {
    list: "/question",
    unlisted: GONE,
    posted({ kind, answers }) {
      if (kind === "reply") return ["/question/{requestID}/reply", { answers }]
      if (kind === "reject") return ["/question/{requestID}/reject", {}]
    },
    proof({ status, metadata, error }) {
      if (status === "completed") return { type: "question.replied", answers: metadata?.answers ?? [] }
      if (status === "error" && /dismissed/.test(error)) return { type: "question.rejected" }
      if (status === "error" && /aborted/.test(error)) return GONE
    },
  },
  permission: {
    list: "/permission", // 1.18.33 fails to list some, and all others with them
    unlisted: undefined, // what was allowed may run for long
    posted({ kind, reply, message }) {
      if (kind !== "permission" || !["once", "always", "reject"].includes(reply)) return undefined
      return ["/permission/{requestID}/reply", { reply, ...(message && { message }) }]
    },
    proof({ status, error }) {
      const allowed = { type: "permission.replied", reply: "allowed" } // once, or for good: the part does not tell
      if (status === "completed") return allowed
      if (status !== "error") return undefined
      if (/Tool execution aborted/.test(error)) return GONE
      if (!/rejected permission to use this specific tool call/.test(error)) return allowed // a failure of its own
      const message = /with the following feedback: ([^]*)/.exec(error)?.[1]
      return { type: "permission.replied", reply: "reject", ...(message && { message }) }
    },
  },
}

// ---- what OpenCode tells

const listeners = {
  "question.asked": asked,
  "question.replied": settled,
  "question.rejected": settled,
  "question.v2.asked": asked,
  "question.v2.replied": settled,
  "question.v2.rejected": settled,
  "permission.asked": asked,
  "permission.replied": settled,
  "session.status": working,
  "session.idle": stopped,
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
  const kind = type.startsWith("permission.") ? "permission" : "question"
  const request = { id, kind, sessionID, directory, properties, v2, family: [sessionID], open: true, hook: null }
  state.open.set(id, request)
  inOrder(async () => {
    const hook = v2 ? null : start(WAITING) // it starts while the context is read
    const context = await contextOf(request)
    request.line = kind === "permission" ? permissionLine(request, context) : lineOf(directory, type, properties, context)
    if (hook && request.open) {
      await wait(request, hook)
      return aside(attend(request))
    }
    hook?.child?.kill("SIGKILL") // it has no line yet, so it leaves no trace
    await run(request.line)
  })
  makeRounds()
}

function settled(directory, type, properties) {
  const id = properties.requestID
  if (typeof id !== "string" || seenBefore(`settled ${id}`)) return
  const request = state.open.get(id)
  close(request)
  inOrder(async () => {
    const ended = request && type.endsWith(".replied") ? await effectOf(request, properties) : {}
    // A request whose turn was aborted "is replied" too; then nobody got the answer.
    if ((ended.type ?? type) !== type) return tellGone(request)
    const why = properties.reply === "reject" && ended.message ? { message: ended.message } : {}
    await run(lineOf(directory, type, { ...properties, ...why }))
  })
}

// A session that stops takes its open requests with it, and those of its subagents; OpenCode goes on listing
// them. A session can also report an error of something else while its request lives: so look.
function quiet(directory, type, properties) {
  const sessionID = properties.sessionID ?? properties.info?.id
  if (!state.open.size) return
  inOrder(async () => {
    const touched = [...state.open.values()].filter((request) => request.family.includes(sessionID))
    const checked = touched.map(async (request) => {
      const over = type === "session.deleted" || request.v2 || (await isOver(request))
      return over && request.open ? [request] : []
    })
    const dead = (await Promise.all(checked)).flat()
    dead.forEach(end)
    for (const request of dead) await tellGone(request)
  })
}

// ---- turns that have ended: the phone hears of those that took long

function working(_, __, { sessionID, status }) {
  const known = state.working.get(sessionID)
  if (status?.type !== "busy" || (known && !known.over)) return
  state.working.set(sessionID, { since: Date.now(), over: false })
  if (state.working.size > MOST_SESSIONS) state.working.delete(state.working.keys().next().value)
}

// OpenCode says more than once that a session which failed is idle, at first before its record shows the failure.
function stopped(directory, type, properties) {
  quiet(directory, type, properties)
  const work = state.working.get(properties.sessionID)
  if (work) work.over = true
  aside(tellTurn(directory, properties.sessionID, work?.since))
}

async function tellTurn(directory, sessionID, since) {
  const session = await call("get", directory, "/session/{sessionID}", { sessionID })
  if (!session || session.parentID) return // a subagent's turn is a part of another one
  const newest = (limit) => call("get", directory, "/session/{sessionID}/message", { sessionID }, { query: { limit } })
  let messages = await newest(8)
  if (!Array.isArray(messages)) return
  const { info } = messages.findLast((message) => message.info?.role === "assistant") ?? {}
  if (!hasEnded(info) || Date.now() - info.time.completed > NEWS_MS || seenBefore(`ended ${info.id}`)) return
  const prompt = await promptOf(directory, info, messages)
  if (isOfOpenCode(prompt)) { // that of the person may be far before
    const wider = (await newest(500)) ?? (await newest(100)) ?? []
    if (wider.some(({ info: { id } }) => id === info.id)) messages = wider
  }
  const asked = askedBy(messages)
  const ours = messages.filter((message) => asked.get(message.info.id) === asked.get(info.id))
  const prompts = [...ours.filter((message) => message.info.role === "user"), prompt].map((one) => one?.info.time?.created)
  const turn = {
    sessionID,
    id: info.id,
    prompt: asked.get(info.id),
    began: Math.min(...[since, info.time.created, ...prompts].filter(Number.isFinite)),
    ended: info.time.completed,
    words: info.error ? "" : text(answerIn(ours), TURN_TEXT_CHARS),
    failure: info.error ? reasonOf(info.error) : "",
    ...changesOf(prompt?.info),
  }
  await run(lineOf(directory, "turn.ended", turn, { title: text(session.title) }))
}

// By itself: nobody interrupted it, and it does not go on after the calls of its last step.
function hasEnded(info) {
  if (!info?.time?.completed || isSummary(info)) return false
  if (info.error) return info.error.name !== "MessageAbortedError"
  return Boolean(info.finish) && !["tool-calls", "unknown"].includes(info.finish)
}

// OpenCode can sum up a session after an answer, and go on: the last one to each prompt counts.
function answerIn(turn) {
  const answers = new Map()
  for (const { info, parts } of turn) {
    if (info.role === "assistant" && hasEnded(info) && !info.error) answers.set(info.parentID, parts)
  }
  return saidIn([...answers.values()].flat())
}

// OpenCode sums up a session that is too long for the model, and the turn goes on with a prompt of OpenCode's own: one
// of synthetic texts or, if the provider refused the request as too long, one that repeats the person's. So this finds,
// for each of these messages, oldest first, the prompt of a person that it is, goes on with, or answers.
function askedBy(messages) {
  const asked = new Map()
  const prompts = new Map()
  const compactions = new Map()
  let newest, summary
  for (const message of messages) {
    const { info, parts } = message
    if (info.role === "assistant") {
      if (!prompts.has(info.parentID)) prompts.set(info.parentID, (newest = info.parentID))
      asked.set(info.id, prompts.get(info.parentID))
      summary = compactions.has(info.parentID) && isSummary(info) ? info : undefined
      continue
    }
    const compaction = parts.find(({ type, auto }) => type === "compaction" && auto)
    if (compaction) compactions.set(info.id, compaction)
    else if (summary && goesOn(message, summary, compactions.get(summary.parentID))) summary = undefined
    else newest = info.id
    prompts.set(info.id, newest ?? info.id)
    asked.set(info.id, newest ?? info.id)
  }
  return asked
}

function goesOn(prompt, summary, compaction) {
  return prompt.info.time.created >= summary.time.completed && (compaction.overflow || isSynthetic(prompt))
}

function isOfOpenCode(prompt) {
  return isSynthetic(prompt) || Boolean(prompt?.parts.some(({ type }) => type === "compaction"))
}

// A failed one ends the turn.
function isSummary(info) {
  return info.summary === true && !info.error
}

function isSynthetic(prompt) {
  return Boolean(prompt?.parts.length) && prompt.parts.every(({ synthetic }) => synthetic)
}

function reasonOf({ name, data }) {
  const words = text(data?.message) || text(name)
  return Number.isInteger(data?.statusCode) ? `${words} (${data.statusCode})` : words
}

// The prompt that the last step of a turn names; its changes are counted some ms after that step.
async function promptOf(directory, { sessionID, parentID }, messages) {
  const steps = messages.filter(({ info }) => info.parentID === parentID)
  const changed = steps.some(({ parts }) => parts.some(({ type }) => type === "patch"))
  const path = { sessionID, messageID: parentID }
  for (const pause_ms of [...LOOKS_MS, 0]) {
    const prompt = parentID && (await call("get", directory, "/session/{sessionID}/message/{messageID}", path))
    if (!prompt || !changed || prompt.info.summary?.diffs?.length || !pause_ms) return prompt || undefined
    await pause(pause_ms)
  }
}

function changesOf(prompt) {
  const diffs = prompt?.summary?.diffs
  if (!Array.isArray(diffs) || !diffs.length) return {}
  const sum = (key) => diffs.reduce((total, diff) => total + (diff[key] || 0), 0)
  return { changes: { files: diffs.length, added: sum("additions"), removed: sum("deletions"), ...patchesOf(diffs) } }
}

// 1.1.53 has none.
function patchesOf(diffs) {
  let room = DIFF_CHARS
  const told = []
  for (const { file, patch } of diffs) {
    if (typeof patch !== "string" || room <= 0) continue
    told.push({ file: text(file), patch: patch.slice(0, room) })
    room -= patch.length
  }
  return told.length ? { diffs: told } : {}
}

// A new turn of the model while its request is open: then the request's turn was aborted before.
function movedOn(directory, type, { info }) {
  if (info?.role !== "assistant" || !state.open.size) return
  for (const request of state.open.values()) {
    const { tool } = request.properties
    const later = request.sessionID === info.sessionID && tool?.messageID < info.id
    if (later && !request.v2) aside(judge(request))
  }
}

// ---- a request's life

// Keep a hook waiting for the answer as long as the request is open, whatever happens to the hook.
async function attend(request) {
  let refusals = 0
  for (let tries = 0; request.open; tries += 1) {
    const started = performance.now()
    const answer = await request.hook.answer
    if (performance.now() - started > STEADY_MS) tries = 0
    refusals = request.hook.has === "refused" ? refusals + 1 : 0
    if (refusals) warn("Questions do not reach the phone; to see why, run: hermes doctor")
    if (request.open && answer) await apply(request, answer)
    await pause(refusals ? growing(REFUSED_MS, refusals - 1) : (RETRY_MS[tries] ?? growing(5_000, tries - 8)))
    if (request.open) await judge(request)
    request.hook.release()
    if (request.open) await inOrder(async () => request.open && (await wait(request)))
  }
}

// A pause that doubles from time to time: hooks that leave at once are not started for ever.
function growing(first_ms, doublings) {
  return Math.min(first_ms * 2 ** Math.max(0, doublings), LONGEST_MS)
}

// Start the waiting hook; done when it has kept the request. It stays until the request is settled: as long as
// it is there, Hermes knows that this OpenCode is too, however slow.
async function wait(request, hook = start(WAITING)) {
  request.hook = hook
  request.hook.child?.stdin.write(request.line)
  await within(PATIENCE_MS, request.hook.kept)
}

async function apply(request, line) {
  const answer = parsed(line)
  const posted = answer?.requestID === request.id && kinds[request.kind].posted(answer)
  if (!posted) return
  await judge(request) // 1.1.53 says "true" to a reply that reaches nobody; an aborted command may run even so
  if (!request.open) return
  const [url, body] = posted
  await call("post", request.directory, url, { requestID: request.id }, { body })
  await within(3_000, request.closed ??= new Promise((done) => (request.onClose = done)))
}

function close(request) {
  if (!request?.open) return
  request.open = false
  state.open.delete(request.id)
  request.hook?.release()
  request.onClose?.()
}

// Close what nobody waits for; should it be replied to later, then nobody got that.
function end(request) {
  close(request)
  if (!request.v2) seenBefore(`settled ${request.id}`)
}

// Close what is over, and say how it ended.
async function judge(request) {
  let found = await verdict(request)
  if (found === GONE) {
    await pause(500) // the event that tells more may be on its way
    found = await verdict(request)
  }
  if (!found || !request.open) return
  if (found === GONE) return gone(request)
  const { type, ...ending } = found
  settled(request.directory, type, { sessionID: request.sessionID, requestID: request.id, ...ending })
}

function gone(request) {
  end(request)
  inOrder(() => tellGone(request))
}

// Of this request alone: its session may ask something else, here or in another process.
function tellGone({ directory, sessionID, id }) {
  return run(lineOf(directory, "session.idle", { sessionID, requestID: id }))
}

async function isOver(request) {
  for (const waiting_ms of [0, 200, 400]) {
    await pause(waiting_ms) // the status may lag behind the event
    if (!request.open || (await verdict(request)) === GONE) return true
  }
  return false
}

// What became of a reply, by the state of its call, which may come a little later: how the request ended, or
// nothing against what the reply itself says.
async function effectOf(request, { reply }) {
  for (let tries = 0; tries < 20 && !request.v2 && !isPassed(request); tries += 1) {
    const found = await proofOf(request)
    if (found) return found
    if (await hasStopped(request)) return (await proofOf(request)) ?? GONE // it may have ended in between
    if (reply === "once" || reply === "always") return {} // the call runs
    await pause(100)
  }
  return {}
}

// How a request ended; undefined where it is open, or OpenCode silent. Some providers give two calls one id, and OpenCode
// keeps one state for both. So a request that is listed after the state was read is open, unless its turn was aborted.
async function verdict(request) {
  const { list, unlisted } = kinds[request.kind]
  const found = await proofOf(request)
  if (found === GONE) return GONE
  const listed = await call("get", request.directory, list)
  const isOpen = isListed(request, listed)
  if (found && !isOpen) return found
  if (unlisted && Array.isArray(listed) && !isOpen) return unlisted
  return (await hasStopped(request)) ? GONE : undefined
}

async function proofOf(request) {
  return isPassed(request) ? undefined : kinds[request.kind].proof((await partOf(request))?.state ?? {})
}

// A call may ask for one permission after the other; then its state tells of the last one only.
function isPassed({ id, properties: { tool } }) {
  return [...state.open.values()].some(
    ({ id: other, properties: { tool: its } }) =>
      tool && other > id && its?.messageID === tool.messageID && its.callID === tool.callID,
  )
}

async function partOf(request) {
  const message = await messageOf(request)
  const { callID } = request.properties.tool ?? {}
  return message?.parts?.find?.((part) => part.type === "tool" && part.callID === callID)
}

async function messageOf({ directory, sessionID, properties: { tool } }) {
  const path = { sessionID, messageID: tool?.messageID }
  return tool && call("get", directory, "/session/{sessionID}/message/{messageID}", path)
}

async function hasStopped(request) {
  const busy = await call("get", request.directory, "/session/status")
  if (busy && typeof busy === "object" && !Object.hasOwn(busy, request.sessionID)) return true
  return hasMovedOn(request)
}

// A prompt that the person queued is no sign; a later answer of the model to another prompt is. Steps of one turn answer
// the same prompt, and an earlier one is listed as a later one if the clock was set back after it.
async function hasMovedOn(request) {
  const { directory, sessionID, properties: { tool } } = request
  if (!tool) return false
  const query = { limit: 5 }
  const messages = await call("get", directory, "/session/{sessionID}/message", { sessionID }, { query })
  if (!Array.isArray(messages)) return false
  const later = messages.slice(messages.findIndex(({ info }) => info.id === tool.messageID) + 1)
  const answers = later.filter(({ info }) => info.role === "assistant")
  const prompt = answers.length ? (await messageOf(request))?.info?.parentID : undefined
  return answers.some(({ info }) => !prompt || info.parentID !== prompt)
}

// ---- looking around, for what no event tells: after a dispose nothing is pending any more, in silence

function makeRounds() {
  if (state.round || !state.open.size) return
  state.round = timer(ROUND_MS, async () => {
    const directories = new Set([...state.open.values()].map((request) => request.directory))
    await Promise.allSettled([...directories].map(look))
    state.round = null
    makeRounds()
  })
}

async function look(directory) {
  const busy = await call("get", directory, "/session/status")
  if (!busy || typeof busy !== "object") return
  for (const [kind, { list }] of Object.entries(kinds)) {
    const open = [...state.open.values()].filter((each) => each.directory === directory && each.kind === kind)
    const listed = open.length ? await call("get", directory, list) : []
    for (const request of open) {
      const there = isListed(request, listed) && Object.hasOwn(busy, request.sessionID)
      if (!there && !request.v2) await judge(request)
    }
  }
}

function isListed({ id }, listed) {
  return Array.isArray(listed) && listed.some((one) => one?.id === id)
}

// ---- what the phone shows beside the request

async function contextOf(request) {
  const [[title, rootTitle, rootID], lastText, input] = await Promise.all([
    titlesOf(request),
    lastTextOf(request).catch(() => ""),
    request.kind === "permission" ? within(INPUT_MS, inputOf(request).catch(() => {})) : undefined,
  ])
  const titles = { title: text(title), rootTitle: text(rootTitle), ...(rootID && { rootID: text(rootID) }) }
  return { ...titles, lastText: text(lastText), ...(input && { input }) }
}

// The title of the session, and title and id of the one that its chain of subagents began in.
async function titlesOf(request) {
  const { directory, sessionID } = request
  const session = await call("get", directory, "/session/{sessionID}", { sessionID })
  let root = session
  while (root?.parentID && !request.family.includes(root.parentID)) {
    request.family.push(root.parentID)
    root = await call("get", directory, "/session/{sessionID}", { sessionID: root.parentID })
  }
  return root === session ? [session?.title, ""] : [session?.title, root?.title, root?.id]
}

// What the call wants to do: the request does not tell all of it. It is written some ms after the request.
async function inputOf(request) {
  for (const pause_ms of request.properties.tool ? LOOKS_MS : []) {
    const { status, input } = (await partOf(request))?.state ?? {}
    if (status && status !== "pending") return input
    await pause(pause_ms)
  }
}

// A permission and the input of its call hold all of an edit's text; if that is too much, the longest texts are cut, or
// the input is left out, and the phone says that not all is known.
function permissionLine({ directory, properties }, context) {
  let told = { properties, context }
  const line = () => lineOf(directory, "permission.asked", told.properties, told.context)
  for (const limit of [100_000, 10_000, 1_000]) {
    if (Buffer.byteLength(line()) <= PERMISSION_BYTES) return line()
    told = JSON.parse(JSON.stringify(told, (_, value) => cut(value, limit)))
    told.context.cut = true
  }
  if (Buffer.byteLength(line()) > PERMISSION_BYTES) delete told.context.input
  return line()
}

function cut(value, limit) {
  if (typeof value !== "string" || value.length <= limit) return value
  return `${value.slice(0, limit).replace(/[\uD800-\uDBFF]$/, "")}…`
}

// The end of what the agent said before it asked, in this turn of the person's. Its words are kept once they
// have ended, some ms after the request; so is its call.
async function lastTextOf({ directory, sessionID, properties: { tool } }) {
  const query = { limit: 5 }
  for (const pause_ms of [...LOOKS_MS, 0]) {
    const messages = await call("get", directory, "/session/{sessionID}/message", { sessionID }, { query })
    if (!Array.isArray(messages)) return ""
    const end = messages.findIndex(({ info }) => info.id === tool?.messageID)
    if (!tool || isWritten(messages[end], tool) || !pause_ms) {
      return wordsOf(messages.slice(0, end < 0 ? undefined : end + 1))
    }
    await pause(pause_ms)
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

function saidIn(parts) {
  return parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n\n").trim()
}

function text(value, limit = LAST_TEXT_CHARS) {
  // a character of two units is not cut in half
  return typeof value === "string" ? value.slice(-limit).replace(/^[\uDC00-\uDFFF]/, "") : ""
}

// ---- hooks

const WAITING = ["--wait", "--stay"]

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
    if (said.includes("kept\n")) {
      note("kept")
      keep()
    }
    if (said.includes("refused\n")) note("refused") // also one that was kept at first
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
  warn("Questions do not reach the phone: the hook cannot be started. Run: hermes install opencode")
}

function warn(message) {
  if (state.told) return
  state.told = true
  const body = {
    title: "Hermes",
    message,
    variant: "warning",
    duration: 15_000,
  }
  for (const directory of state.clients.keys()) aside(call("post", directory, "/tui/show-toast", {}, { body }))
}

// ---- OpenCode itself, in process

// The data of a good answer, else undefined.
async function call(method, directory, url, path = {}, { query = {}, body } = {}) {
  try {
    const inQuery = directory.replaceAll("%", "%25") // it is decoded twice
    const more = { path, query: { ...query, directory: inQuery } }
    const answer = await within(CALL_MS, request(method, directory, url, body, more))
    return answer?.response?.ok ? answer.data : undefined
  } catch {
    return undefined
  }
}

// 1.1.53 needs both the directory and the password with each call.
async function request(method, directory, url, body, { headers, ...more }) {
  return state.clients.get(directory)._client[method]({
    url,
    headers: { "Content-Type": "application/json", ...authorization(), ...headers },
    ...(body && { body }),
    ...more,
  })
}

function authorization() {
  const { OPENCODE_SERVER_PASSWORD: password, OPENCODE_SERVER_USERNAME: name } = process.env
  if (!password) return {}
  return { Authorization: `Basic ${Buffer.from(`${name || "opencode"}:${password}`).toString("base64")}` }
}

"@CALLS@"
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
