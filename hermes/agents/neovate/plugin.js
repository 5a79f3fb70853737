// hermes-telegram-phone: answer from a phone what Neovate Code asks.
// `hermes install neovate` wrote this file, `hermes uninstall neovate` takes it away; edits are lost.
//
// A question is an approval that Neovate's own bus asks its terminal for. This stands around that bus: both are asked,
// the first answer counts, and the other side closes. Whatever goes wrong here, the terminal's dialog goes on as if
// this were not there.

const { spawn } = require("node:child_process")

const settings = "@SETTINGS@" // {python, store, log, config}: absolute paths
const TELL_MS = 5_000 // for a hook to say who was first
const CLOSE_MS = 1_000 // for the dialog to close
const CROSSING_MS = 50 // for an answer that was given there at the same moment to arrive
const CONTEXT_CHARS = 3000
const TOOL = "AskUserQuestion"
const ESC = "\x1b"
const OURS = Symbol.for("hermes-telegram-phone") // on a bus that this stands around already
const asking = new Set() // ends what is still asked

module.exports = {
  name: "hermes-telegram-phone",
  initialized() {
    try {
      standAround(this.messageBus, this)
    } catch {
      // not Neovate's trouble
    }
  },
  destroy() {
    asking.forEach((release) => release())
  },
}

// ---- the bus

function standAround(bus, context) {
  if (bus[OURS]) return
  const { request, emitEvent } = bus
  const said = new Map() // session id -> what the agent said last
  Object.defineProperty(bus, OURS, { value: true })
  bus.request = (method, params, ...more) => {
    const native = () => request.call(bus, method, params, ...more)
    const { name, params: given } = (method === "toolApproval" && params?.toolUse) || {}
    return name === TOOL && Array.isArray(given?.questions) ? race(native, params, context, said) : native()
  }
  bus.emitEvent = (event, data, ...more) => {
    if (event === "message") listen(said, data)
    return emitEvent.call(bus, event, data, ...more)
  }
}

function listen(said, { sessionId, message } = {}) {
  const { role, content } = message ?? {}
  if (role === "user") said.delete(sessionId)
  if (role !== "assistant") return
  const texts = Array.isArray(content) ? content.filter((part) => part?.type === "text") : [{ text: content }]
  const text = texts.map((part) => part.text).join("\n\n")
  if (text) said.set(sessionId, text)
}

// ---- the race

async function race(native, params, context, said) {
  let shown = true
  const dialog = native()
    .finally(() => (shown = false))
    .then((result) => ({ result, onPhone: false }))
  const called = phone("neovate", payloadOf(params, context, said), asking)
  try {
    const answered = called.answer.then((answer) => outcomeOf(answer, params) ?? dialog) // it goes on alone
    let first = await Promise.race([dialog, answered])
    if (!first.onPhone) first = outcomeOf(await called.tell(wordOf(first.result, params)), params) ?? first
    if (first.onPhone) await close(dialog, () => shown)
    return first.result
  } finally {
    called.release()
  }
}

// Esc closes the dialog, and nothing else does. Where none is there any more it would stop the agent.
async function close(dialog, isShown) {
  const closed = dialog.catch(() => null)
  await within(CROSSING_MS, closed)
  if (!isShown() || !process.stdin.isTTY) return
  process.stdin.push(ESC)
  await within(CLOSE_MS, closed)
}

// What the phone made of it: a result as the dialog has it; null where it made nothing of it.
function outcomeOf(answer, { toolUse }) {
  if (answer?.approved === false) return { result: { approved: false, denyReason: answer.denyReason }, onPhone: true }
  const answers = answer?.approved === true ? answer.params?.answers : null
  if (!Array.isArray(answers)) return null
  return { result: { approved: true, params: { ...toolUse.params, answers } }, onPhone: true }
}

// What the dialog made of it, for the phone.
function wordOf(result, { toolUse }) {
  if (!result?.approved) return { kind: "reject" }
  const answers = Array.isArray(result.params?.answers) ? result.params.answers : []
  const of = (question) => answers.filter((one) => one?.question === question).map(({ answer }) => String(answer))
  return { answers: toolUse.params.questions.map((one) => of(one?.question)) }
}

function payloadOf({ toolUse, sessionId }, { cwd }, said) {
  return { questions: toolUse.params.questions, session: sessionId, directory: cwd, context: tail(said.get(sessionId)) }
}

"@PHONE@"
