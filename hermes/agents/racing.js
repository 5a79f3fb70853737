// ---- the phone

// Ask on the phone, by a hook of Hermes: one process that stays until something comes of it. News it only keeps.
// `answer` is done with what it printed, or with null where it has ended without a word: nobody answered there.
// `tell` says what was answered here, and is done with what counts then; `release` says that nobody wants to know, and
// is in `asking` for as long as it asks.
// Whatever goes wrong is null: the agent's own dialog does not depend on any of this.
function phone(agent, payload, asking) {
  const { python, store, log, config } = settings
  const paths = ["--store", store, "--log", log, "--config", config]
  try {
    // The folder does not matter to the hook, but a working folder keeps a disk from being unmounted.
    const command = ["-I", "-m", "hermes", "hook", agent, ...paths]
    const child = spawn(python, command, { stdio: ["pipe", "pipe", "ignore"], detached: true, cwd: "/" })
    const release = () => void child.kill("SIGTERM")
    const answer = answerOf(child).finally(() => asking.delete(release))
    asking.add(release)
    // Where a dialog of its own keeps it, the agent may leave whenever it likes.
    if (!payload.headless) for (const each of [child, child.stdin, child.stdout]) each.unref?.()
    child.stdin.write(JSON.stringify(payload) + "\n")
    const tell = async (word) => {
      child.stdin.write(JSON.stringify(word) + "\n")
      const said = await within(TELL_MS, answer)
      // One that does not answer is ended, and what it has printed until then counts: it may have taken an answer.
      child.kill(said === null ? "SIGKILL" : "SIGTERM")
      return answer
    }
    return { answer, tell, release }
  } catch {
    return { answer: Promise.resolve(null), tell: async () => null, release: () => {} }
  }
}

function answerOf(child) {
  return new Promise((done) => {
    let printed = ""
    child.stdin.on("error", () => {}) // it left before it had read everything
    child.stdout.on("data", (data) => {
      printed += data
      if (printed.includes("\n")) done(parsed(printed))
    })
    child.stdout.on("error", () => {})
    child.on("error", () => done(null))
    child.on("close", () => done(null))
  })
}

function parsed(line) {
  try {
    const value = JSON.parse(line.slice(0, line.indexOf("\n")))
    return value && typeof value === "object" ? value : null
  } catch {
    return null
  }
}

// Null after this time.
function within(limit_ms, promise) {
  let id
  const late = new Promise((done) => (id = setTimeout(done, limit_ms, null)))
  return Promise.race([promise, late]).finally(() => clearTimeout(id))
}

// The end of what was said, without half a character.
function tail(text, most = CONTEXT_CHARS) {
  return typeof text === "string" ? text.trim().slice(-most).replace(/^[\uDC00-\uDFFF]/, "") : ""
}
