// hermes-telegram-phone: answer from a phone what oh-my-pi asks.
// `hermes install oh-my-pi` wrote this file, `hermes uninstall oh-my-pi` takes it away; edits are lost.
//
// It stands around the dialog of oh-my-pi's own `ask`: both are asked, the first answer counts, and the other side
// closes. Whatever goes wrong here, that dialog goes on as if this were not there. It also tells when a turn has ended,
// and gives the session prompts from the phone, if they are on.

import { spawn } from "node:child_process"

const settings = "@SETTINGS@" // {python, store, log, config}: absolute paths; headless: ask where there is no dialog
const TELL_MS = 5_000 // for a hook to say who was first
const CONTEXT_CHARS = 3000
const WORDS_CHARS = 30_000 // of the last words of a turn
const GOES_ON_MS = 2_000 // after it summed up the session, oh-my-pi has begun the next run, if there is one
const ENDS = ["stop", "length", "error"] // a message of the model that stopped so can be the last one of its turn
const RETRY_CANCELLED = "Retry cancelled" // as oh-my-pi says it
const OURS = Symbol.for("hermes-telegram-phone") // on our dialog: the one that it stands around

// Called for each session: one process has many, since each subagent has its own, which may end while another asks.
export default function hermesTelegramPhone(pi) {
  // `asking` ends what it still asks; `began` is the time of its turn; `last` is the message with which that turn ends,
  // `answer` the newest message of its run that may be the last one; `goesOn`: the next run has yet to begin, and
  // `waiting` is the timer that ends the turn if none does.
  // `place` is the hook that waits for prompts, `sent` the prompts that it brought and that are not in the session yet.
  const session = { ctx: null, said: "", asking: new Set(), place: null, sent: [], ...noTurn() }
  const started = (_, ctx) => {
    try {
      settle(session)
      session.ctx = ctx
      Object.assign(session, noTurn())
      waitForPrompts(pi, session)
      standAround(ctx.ui, session)
      if (settings.headless && !pi.getAllTools().some(({ name }) => name === "ask")) pi.registerTool(tool(pi, session))
    } catch {
      // not oh-my-pi's trouble
    }
  }
  pi.on("session_start", started)
  pi.on("session_switch", started)
  pi.on("session_branch", started)
  pi.on("session_shutdown", () => {
    session.asking.forEach((release) => release())
    settle(session)
    session.place?.leave()
  })
  pi.on("message_end", ({ message }) => {
    if (message?.role === "user") {
      session.said = ""
      session.answer = null
      arrived(session, message)
    }
    if (message?.role === "assistant") {
      session.said = wordsOf(message) || session.said
      session.answer = ENDS.includes(message.stopReason) ? message : null
    }
  })
  pi.on("input", (_, ctx) => prompted(session, ctx))
  pi.on("agent_start", () => {
    session.began ??= Date.now()
    session.goesOn = false
    stopWaiting(session)
    waitForPrompts(pi, session)
    tellBegan(session)
  })
  pi.on("auto_retry_end", ({ finalError }) => {
    if (finalError === RETRY_CANCELLED) session.began = null // by Esc: the turn stops as one that failed
  })
  pi.on("session_stop", ({ last_assistant_message: last }) => void (session.last = last ?? {}))
  pi.on("agent_end", ({ willContinue }) => ended(session, willContinue))
  pi.on("auto_compaction_start", () => stopWaiting(session))
  pi.on("auto_compaction_end", ({ aborted }) => summedUp(session, aborted))
}

// ---- the end of a turn

function noTurn() {
  return { began: null, last: null, answer: null, goesOn: false, waiting: null }
}

// oh-my-pi says `agent_end` of each run: also of a subagent's, of one that is interrupted, and of one that goes on by
// itself (`willContinue`: a retry, a job in the background). Only a turn of its main agent that ends by itself has a
// `session_stop` before that. It has none if oh-my-pi sums up the session after the answer: then it says that it goes
// on and does not, or ends the run at once. In a session that a person sees, the answer counts then.
//
// A turn begins with the first run after the last one that ended so, or after a prompt that was typed while none ran, or
// behind an answer: what is typed while a job runs in the background, or while the session is summed up, is the next turn.
function prompted(session, ctx) {
  try {
    if (!ctx.isIdle() && !(session.goesOn && hasAnswered(session))) return
    settle(session)
    session.began = null
  } catch {
    // the prompt counts
  }
}

function ended(session, willContinue) {
  try {
    stopWaiting(session)
    const { began, said } = session
    const last = session.last ?? (session.place && session.answer)
    session.last = null
    session.goesOn = Boolean(willContinue)
    if (willContinue) return
    session.began = session.answer = null
    if (!began || !last || last.stopReason === "aborted") return void session.place?.tell({ stopped: { id: String(began) } })
    const failure = last.stopReason === "error" ? String(last.errorMessage || "an error") : ""
    const turn = { id: String(began), began, ended: Date.now(), words: tail(said, WORDS_CHARS), failure }
    if (session.place?.tell({ turn, ...placeNow(session) })) return // in the order of what was told before
    phone("oh-my-pi", { turn, ...placeOf(session) }, new Set()) // a session that is over takes no news back
  } catch {
    // the turn counts
  }
}

// Whether a run that said that it goes on does so after the summary, only time tells. A person may end the summary of a
// turn that was cut off.
function summedUp(session, aborted) {
  if (aborted && !hasAnswered(session)) session.answer = null
  if (session.goesOn) waitForRun(session)
}

function waitForRun(session) {
  stopWaiting(session)
  session.waiting = setTimeout(() => (isIdle(session) ? settle(session) : waitForRun(session)), GOES_ON_MS)
  session.waiting.unref?.()
}

function stopWaiting(session) {
  clearTimeout(session.waiting)
  session.waiting = null
}

// No further run comes, or nobody waits for it: the turn is over.
function settle(session) {
  if (session.goesOn) ended(session, false)
}

function hasAnswered({ answer }) {
  return answer?.stopReason === "stop"
}

function isIdle({ ctx }) {
  try {
    return ctx.isIdle()
  } catch {
    return true // the session is over
  }
}

// ---- prompts from the phone

// A hook of Hermes waits in this session for as long as it lasts, and prints a line of JSON when it begins to wait, and
// for each prompt. It ends at once if prompts from the phone are off; it is started again with the next turn. Only a
// session that a person sees has one: no subagent, no `-p`. News of turns goes through the same hook, so that it keeps
// its order; if that hook ends before it waits, the end of a turn goes by a hook of its own.
function waitForPrompts(pi, session) {
  try {
    const { ctx } = session
    if (!ctx.hasUI || ctx.mode !== "tui") return
    const place = placeOf(session)
    if (session.place?.session === place.session && session.place.waits()) return
    session.place?.leave()
    session.sent = []
    session.place = placed(place, (line) => received(pi, session, line))
    if (!session.began) session.place.tell({ stopped: { id: "" } }) // no turn runs, also if one did when oh-my-pi was killed
  } catch {
    // then no prompt comes here
  }
}

function placed(place, onLine) {
  const { python, store, log, config } = settings
  const command = ["-I", "-m", "hermes", "hook", "oh-my-pi", "--prompts", "--store", store, "--log", log, "--config", config]
  const child = spawn(python, command, { stdio: ["pipe", "pipe", "ignore"], detached: true, cwd: "/" })
  let state = "starting" // then "waits" or "over"
  let printed = ""
  const early = [] // what was told before the hook waits
  const write = (value) => void child.stdin.write(JSON.stringify(value) + "\n")
  const over = () => {
    state = "over"
    early.splice(0).forEach((news) => news.turn && phone("oh-my-pi", news, new Set()))
  }
  const began = () => {
    state = "waits"
    early.splice(0).forEach(write)
  }
  child.on("error", over)
  child.on("exit", over)
  child.stdin.on("error", over)
  child.stdout.on("error", () => {})
  child.stdout.on("data", (data) => {
    const lines = (printed + data).split("\n")
    printed = lines.pop()
    for (const each of lines) state === "starting" ? began() : onLine(each)
  })
  for (const each of [child, child.stdin, child.stdout]) each.unref?.()
  const tell = (news) => {
    if (state === "over") return false
    state === "starting" ? early.push({ ...place, ...news }) : write({ ...place, ...news })
    return true
  }
  const leave = () => {
    if (state === "over") return
    began() // it reads all that was told before it sees the end of its stdin
    tell({ left: true })
    child.stdin.end()
  }
  write(place)
  return { session: place.session, waits: () => state !== "over", tell, leave }
}

// The session of the hook may have got another name or folder since it began.
function placeNow(session) {
  const now = placeOf(session)
  return now.session === session.place?.session ? now : {}
}

function received(pi, session, line) {
  try {
    const { id, text, stop, session: meant } = JSON.parse(line)
    if (meant !== placeOf(session).session) return // it was switched meanwhile
    if (isIdle(session)) settle(session) // the answer that stands there is told first
    if (stop) return void session.ctx.abort()
    session.sent.push({ id, text })
    pi.sendUserMessage(text)
  } catch {
    // the prompt shows as one without an answer
  }
}

// The proof that a prompt is in the session. It begins the turn, or joins the one that runs.
function arrived(session, message) {
  const said = typeof message.content === "string" ? message.content : wordsOf(message)
  const at = session.sent.findIndex(({ text }) => text === said)
  if (at < 0) return
  const [{ id }] = session.sent.splice(at, 1)
  tellBegan(session, id)
}

function tellBegan({ began, place }, prompt = "") {
  if (began) place?.tell({ began: { id: String(began), at: began, prompt } })
}

// ---- the dialog

// `ctx.ui` gives dialogs that end with the handler that it was given to; the real ones are its own properties. A second
// copy of this file, or a newer one after a reload, takes the place of the first.
function standAround(ui, session) {
  const there = Object.getOwnPropertyDescriptor(ui, "askDialog")
  if (typeof there?.value !== "function") return
  const native = there.value[OURS] ?? there.value
  const raced = (questions, options) => race(native, ui, session, questions, options)
  Object.defineProperty(ui, "askDialog", { ...there, value: Object.assign(raced, { [OURS]: native }) })
}

async function race(native, ui, session, questions, options) {
  const closing = new AbortController()
  const signal = options?.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal
  const called = phone("oh-my-pi", payloadOf(questions, session), session.asking)
  try {
    const dialog = native.call(ui, questions, { ...options, signal }).then((result) => ({ result, onPhone: false }))
    const answered = called.answer.then((answer) => outcomeOf(answer, questions) ?? dialog) // it goes on alone
    let first = await Promise.race([dialog, answered])
    if (!first.onPhone && !signal.aborted) {
      first = outcomeOf(await called.tell(wordOf(first.result)), questions) ?? first
    }
    if (first.onPhone) close(ui, closing, first)
    return first.result
  } finally {
    called.release()
  }
}

function close(ui, closing, { result }) {
  closing.abort()
  try {
    ui.notify(result ? "Answered on the phone." : "Stopped from the phone.", "info")
  } catch {
    // it is said nowhere then
  }
}

// What the phone made of it: a result as the dialog has it (undefined is Esc); null where it made nothing of it.
function outcomeOf(answer, questions) {
  if (answer?.kind === "cancel") return { result: undefined, onPhone: true }
  const { kind, results } = answer ?? {}
  const fits = kind === "submit" && results?.length === questions.length
  if (!fits || !questions.every(({ id }, place) => results[place].id === id)) return null
  return { result: { kind, results }, onPhone: true }
}

// What the dialog made of it, for the phone. A result of another shape is an answer, too: it must never be lost here.
function wordOf(result) {
  if (result?.kind !== "submit") return { kind: "reject" }
  const results = Array.isArray(result.results) ? result.results : []
  const answers = results.map((one) => [...textsOf(one?.selectedOptions), ...textsOf([one?.customInput, one?.note])])
  return results.some((one) => one?.timedOut === true) ? { answers, timer: true } : { answers }
}

function textsOf(values) {
  return Array.isArray(values) ? values.filter((value) => typeof value === "string") : []
}

function payloadOf(questions, session) {
  return { questions, context: tail(session.said), ...placeOf(session) }
}

// `ctx.cwd` is that of the time when the session began: no event tells that it was moved to another folder.
function placeOf({ ctx }) {
  const place = {}
  try {
    place.directory = ctx.cwd
    place.session = ctx.sessionManager.getSessionId()
    place.title = ctx.sessionManager.getSessionName() ?? ""
    place.directory = ctx.sessionManager.getCwd?.() ?? ctx.cwd
  } catch {
    // the rest counts
  }
  return place
}

function wordsOf({ content }) {
  const texts = Array.isArray(content) ? content.filter(({ type }) => type === "text") : []
  return texts.map(({ text }) => text).join("\n\n")
}

// ---- where oh-my-pi offers no `ask`, since it has no dialog: one of our own, which asks on the phone alone

function tool({ zod: z }, session) {
  const option = z.object({ label: z.string(), description: z.string().optional() })
  const question = z.object({
    id: z.string().describe("question id"),
    question: z.string().describe("question text"),
    header: z.string().optional().describe("short name of the question"),
    options: z.array(option).describe("available options; the user can always answer in their own words instead"),
    multi: z.boolean().optional().describe("allow multiple selections"),
    recommended: z.number().optional().describe("index of the recommended option"),
  })
  return {
    name: "ask",
    label: "Ask",
    description:
      "Ask the user, who answers from a phone. Use it where a choice is theirs to make and what there is does not " +
      "tell which they want. Give 2 to 5 options a question; ask what belongs together in one call.",
    parameters: z.object({ questions: z.array(question).min(1) }),
    approval: "read",
    loadMode: "essential",
    async execute(_, { questions }, signal, __, ctx) {
      const called = phone("oh-my-pi", { ...payloadOf(questions, session), headless: true }, session.asking)
      signal?.addEventListener("abort", called.release, { once: true })
      const outcome = outcomeOf(await called.answer, questions)
      signal?.removeEventListener("abort", called.release)
      if (!outcome?.result) {
        ctx.abort() // as its own does: without an answer it must not go on
        throw new Error(outcome ? "The user cancelled this question." : "Nobody could be asked.")
      }
      const { results } = outcome.result
      return { content: [{ type: "text", text: textOf(results) }], details: { results } }
    },
  }
}

// In the words of its own tool.
function textOf(results) {
  if (results.length > 1) return `User answers:\n${results.map(lineOf).join("\n")}`
  const [{ selectedOptions, customInput, note, timedOut }] = results
  const parts = []
  if (selectedOptions.length) parts.push(`User selected: ${selectedOptions.join(", ")}${inTime(timedOut)}`)
  if (customInput !== undefined) parts.push(`User provided custom input: ${customInput}`)
  if (note) parts.push(`User added note: ${note}`)
  return parts.join("\n") || "User did not select any options"
}

function lineOf({ id, multi, selectedOptions, customInput, note, timedOut }) {
  const chosen = multi ? `[${selectedOptions.join(", ")}]` : (selectedOptions[0] ?? "(cancelled)")
  const answer = customInput === undefined ? `${chosen}${inTime(timedOut)}` : JSON.stringify(customInput)
  return `${id}: ${answer}${note ? ` (note: ${note})` : ""}`
}

function inTime(timedOut) {
  return timedOut ? " (auto-selected after timeout)" : ""
}

"@PHONE@"
