// ---- calls: as long as prompts from the phone are on, Hermes calls OpenCode through a folder of this process
//
//   STORE/takes-prompts            prompts are on
//   STORE/plugins/ID/plugin.json   {v, pid, start, directories, sessions: {id: when this process worked on it, in ms}}
//   STORE/plugins/ID/in/N.json     a call, {method, path, query, directory, body}: taken by rename, so once at most
//   STORE/plugins/ID/out/N.json    its answer, {status, type, body}
//
// The folder stays for as long as the process lives: 1.1.53 hears nothing of a folder that was removed and made again.

const LOOK_MS = 1_000 // between two looks, for what no event of the file system tells
const PASS_MS = 60_000 // for OpenCode to answer a call; it may have to start an instance first
const LATE_MS = 120_000 // an answer that nobody took
const LARGEST = 8 * 1024 * 1024
const SIGN_MS = 10_000 // the work on a session is written down so often at most
const CALL_NAME = /^[A-Za-z0-9-]{1,80}\.json$/
const SESSION = "/session/[A-Za-z0-9_-]{1,200}"
const ROUTES = [
  ["GET", "/session"],
  ["POST", "/session"],
  ["GET", SESSION], // "/session/status", too
  ["GET", `${SESSION}/message`],
  ["GET", `${SESSION}/message/[A-Za-z0-9_-]{1,200}`],
  ["POST", `${SESSION}/prompt_async`],
  ["POST", `${SESSION}/abort`],
  ["GET", "/command"],
  ["GET", "/agent"],
].map(([method, path]) => [method, new RegExp(`^${path}$`)])

function takeCallsFromNowOn() {
  if (state.box) return
  const id = `p${process.pid}x${randomBytes(8).toString("hex")}`
  const folder = `${settings.store}/plugins/${id}`
  state.box = { folder, inbox: `${folder}/in`, outbox: `${folder}/out`, start: startOfProcess(), told: "", watcher: null }
  lookForCalls()
}

function lookForCalls() {
  try {
    if (isOpen()) {
      takeCalls()
      removeLate()
    }
  } catch {
    // the store may be removed at any time
  }
  timer(LOOK_MS, lookForCalls)
}

// The folder is a way in: it is used only if nobody else can reach it.
function isOpen() {
  if (!fs.existsSync(`${settings.store}/takes-prompts`)) return false
  const { folder, inbox, outbox } = state.box
  const folders = [`${settings.store}/plugins`, folder, inbox, outbox]
  if (!isPrivate(fs.statSync(settings.store))) return false // a link of the user's own, perhaps
  const isNew = folders.map(isMade).includes(true)
  if (!folders.every((path) => isPrivate(fs.lstatSync(path)))) return false
  tellOfProcess(isNew)
  if (isNew || !state.box.watcher) watchForCalls()
  return true
}

function isMade(path) {
  try {
    fs.mkdirSync(path, { mode: 0o700 })
    return true
  } catch (error) {
    if (error.code !== "EEXIST") throw error
    return false
  }
}

function isPrivate(found) {
  return found.isDirectory() && found.uid === process.getuid() && (found.mode & 0o077) === 0
}

function watchForCalls() {
  const { box } = state
  try {
    box.watcher?.close()
    box.watcher = fs.watch(box.inbox, () => {
      try {
        if (isOpen()) takeCalls()
      } catch {
        // the next look is soon
      }
    })
    box.watcher.on("error", () => {})
    box.watcher.unref?.()
  } catch {
    box.watcher = null // the system watches too much already; the looks find all calls
  }
}

function takeCalls() {
  const { folder, inbox } = state.box
  for (const name of fs.readdirSync(inbox).sort()) {
    const taken = `${folder}/.${name}.taken`
    if (!CALL_NAME.test(name) || !isRenamed(`${inbox}/${name}`, taken)) continue
    aside(answerCall(name, taken))
  }
}

function isRenamed(path, to) {
  try {
    fs.renameSync(path, to)
    return true
  } catch {
    return false // Hermes has withdrawn it
  }
}

async function answerCall(name, taken) {
  const asked = callIn(taken)
  const answer = asked ? await within(PASS_MS, passed(asked)) : { status: 403 }
  if (answer) put(`out/${name}`, JSON.stringify(answer))
}

// The call in this file; undefined if it is none that Hermes makes, or for a folder that is not open here.
function callIn(path) {
  let handle
  try {
    handle = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
    const found = fs.fstatSync(handle)
    if (!found.isFile() || found.uid !== process.getuid() || found.size > LARGEST) return undefined
    const { method, path: route, query, directory, body } = JSON.parse(fs.readFileSync(handle, "utf8"))
    const isKnown = ROUTES.some(([own, pattern]) => own === method && pattern.test(route))
    if (!isKnown || typeof route !== "string" || !state.clients.has(directory)) return undefined
    const limit = Number.parseInt(query?.limit, 10)
    return { method: method.toLowerCase(), route, directory, body, query: limit > 0 ? { limit } : {} }
  } catch {
    return undefined
  } finally {
    if (handle !== undefined) fs.closeSync(handle)
    fs.rmSync(path, { recursive: true, force: true })
  }
}

async function passed({ method, route, query, directory, body }) {
  // In the query, 1.1.53 would list no sessions of a folder with a percent sign.
  const headers = { "x-opencode-directory": encodeURIComponent(directory) }
  const more = { query, headers, parseAs: "text" }
  const answer = await request(method, directory, route, body, more).catch(() => undefined)
  if (!answer?.response) return { status: 500 }
  const { response, data, error } = answer
  const said = response.ok ? data : error
  const words = typeof said === "string" ? said : (JSON.stringify(said) ?? "")
  if (words.length > LARGEST) return { status: 413 }
  return { status: response.status, type: response.headers.get("content-type") ?? "", body: words }
}

function removeLate() {
  const { outbox } = state.box
  for (const name of fs.readdirSync(outbox)) {
    const path = `${outbox}/${name}`
    if (Date.now() - fs.lstatSync(path).mtimeMs > LATE_MS) fs.rmSync(path, { recursive: true, force: true })
  }
}

function put(name, words) {
  const made = `${state.box.folder}/.tmp` // always the same: a full disk leaves one at most
  fs.writeFileSync(made, words, { mode: 0o600 })
  fs.renameSync(made, `${state.box.folder}/${name}`)
}

// ---- who this is: a session is worked on by the process that has worked on it last

function sign(type, properties) {
  const { sessionID, info, part } = properties ?? {}
  const id = sessionID ?? info?.sessionID ?? part?.sessionID ?? (type.startsWith("session.") ? info?.id : undefined)
  if (typeof id !== "string") return
  const before = state.signs.get(id) ?? 0
  if (type === "session.deleted") state.signs.delete(id)
  else if (Math.abs(Date.now() - before) < SIGN_MS) return
  else {
    state.signs.delete(id) // it is the newest from now on
    state.signs.set(id, Date.now())
    if (state.signs.size > MOST_SESSIONS) state.signs.delete(state.signs.keys().next().value)
  }
  if (state.box?.told) isOpen()
}

function tellOfProcess(isNew) {
  const { box, clients, signs } = state
  const who = { v: 1, pid: process.pid, start: box.start }
  const words = JSON.stringify({ ...who, directories: [...clients.keys()], sessions: Object.fromEntries(signs) })
  if (words === box.told && !isNew) return
  put("plugin.json", words)
  box.told = words
}

// The system's own time of the start, "" if it has no /proc: another process may get this number one day.
function startOfProcess() {
  try {
    const told = fs.readFileSync("/proc/self/stat", "utf8")
    return told.slice(told.lastIndexOf(")") + 2).split(" ")[19]
  } catch {
    return ""
  }
}

