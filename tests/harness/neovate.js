// What stands in for Neovate Code 0.28.2, which cannot be had from the registry that the tests use. It does what was
// seen of it when it ran: its plugins are CommonJS, `initialized` runs with a context that has a message bus, each
// question is a `toolApproval` on that bus, and the dialog in the terminal is closed by Esc, on stdin, and by nothing
// else. Esc without a dialog stops the turn. The dialog has one key an option, and Enter to send; d ends its session around it.
//
// node neovate.js PLUGIN SESSION CALLS: CALLS is a JSON list of the parameters of AskUserQuestion, asked in turn.

const [plugin, sessionId, calls] = process.argv.slice(2)
const say = (line) => process.stdout.write(`${line}\r\n`)
let modal = null
let destroy = () => {}

class MessageBus {
  handlers = new Map()

  registerHandler(method, handler) {
    this.handlers.set(method, handler)
  }

  // Both ends talk through a transport, a turn of the loop each way.
  async request(method, params) {
    await new Promise(setImmediate)
    const result = await this.handlers.get(method)(params)
    await new Promise(setImmediate)
    return result
  }

  async emitEvent() {}
}

function show({ toolUse }) {
  const { questions } = toolUse.params
  say(`DIALOG ${questions.map(({ question }) => question).join(" | ")}`)
  return new Promise((resolve) => {
    const chosen = questions.map(() => [])
    let at = 0
    modal = (key) => {
      const finish = (result) => {
        modal = null
        say("CLOSED")
        resolve(result)
      }
      if (key === ESC) return finish({ approved: false })
      if (key === "d") return destroy()
      if (key !== "\r") return chosen[at].push(questions[at].options[Number(key) - 1].label)
      at += 1
      if (at < questions.length) return say(`NEXT ${questions[at].question}`)
      const answers = questions.map(({ question }, place) => ({ question, answer: chosen[place].join(", ") }))
      finish({ approved: true, params: { ...toolUse.params, answers } })
    }
  })
}

const ESC = "\x1b"
process.stdin.setRawMode(true)
process.stdin.setEncoding("utf8")
process.stdin.on("data", (keys) => {
  for (const key of keys) {
    if (modal) modal(key)
    else if (key === ESC) say("STOPPED")
    else if (key === "q") process.exit()
  }
})

// Returns what the model gets, and whether its turn goes on.
async function run(bus, params, callId) {
  const toolUse = { name: "AskUserQuestion", params, callId }
  const result = await bus.request("toolApproval", { toolUse, category: "ask", sessionId })
  if (!result.approved && result.denyReason) return [`Tool use rejected with user message: ${result.denyReason}`, true]
  if (!result.approved) return ["denied", false]
  const { answers } = { ...params, ...result.params }
  if (!answers?.length) return ["No answers provided by user", true]
  const told = answers.map(({ question, answer }) => `"${question}" = "${answer}"`).join(", ")
  return [`User has answered your questions: ${told}.`, true]
}

async function main() {
  const bus = new MessageBus()
  bus.registerHandler("toolApproval", show)
  const { initialized, destroy: ended } = require(plugin)
  const context = { cwd: process.cwd(), messageBus: bus }
  destroy = () => ended?.call(context)
  for (let times = 0; times < 2; times += 1) await initialized?.call(context, { cwd: context.cwd, quiet: false })
  say(`ALLOWED ${JSON.stringify(await other(bus))}`)
  for (const [place, params] of JSON.parse(calls).entries()) {
    await bus.emitEvent("message", { sessionId, message: { role: "assistant", content: [{ type: "text", text: "Hm." }] } })
    const [told, goesOn] = await run(bus, params, `call_${place}`)
    say(`RESULT ${place} ${told} LISTENERS ${process.stdin.listenerCount("data")}`)
    if (!goesOn) break
  }
  say("DONE")
  await destroy()
}

// Approvals of other tools go their own way.
async function other(bus) {
  bus.registerHandler("toolApproval", async ({ toolUse }) => ({ approved: toolUse.name === "bash" }))
  const result = await bus.request("toolApproval", { toolUse: { name: "bash", params: { command: "ls" } } })
  bus.registerHandler("toolApproval", show)
  return result
}

main()
