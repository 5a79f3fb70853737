// Several machines: which of them has the phone, which are away, and the one whose agent asks.

import { element } from "./drawing.js"

const at = (id) => document.getElementById(id)
const buttons = new Map()
let chosen = null

export const chosenMachine = () => chosen

// `left` gives the seconds until a moment.
export function drawMachines({ machines, database, spans }, left) {
  document.body.dataset.machines = machines.length
  for (const machine of machines) drawMachine(machine, database, left)
  if (chosen === null) choose(machines[1].name)
  const holder = machines.find(({ is_phone }) => is_phone)
  at("kill").ariaDisabled = String(!holder)
  at("kill").querySelector("span").textContent = "Kill the phone's machine"
  at("kill").querySelector("small").textContent = `kill -9; back in ${spans.down} s`
  at("database").querySelector("span").textContent = database.runs ? "Stop the database" : "Start the database"
  at("database").querySelector("small").textContent = database.runs ? "then answer" : "it is stopped"
}

function drawMachine(machine, database, left) {
  const { name } = machine
  if (!buttons.has(name)) {
    const made = element("button", { type: "button" }, element("span", {}, name), element("small", {}))
    made.onclick = () => choose(name)
    buttons.set(name, made)
    at("machines").append(made)
  }
  const [state, words] = stateOf(machine, database, left)
  const button = buttons.get(name)
  button.dataset.state = state
  button.dataset.machine = name
  const small = button.querySelector("small")
  if (small.textContent !== words) small.textContent = words
}

function stateOf({ pid, back_s, is_phone, is_away }, database, left) {
  if (pid === null && back_s === null) return ["dead", "starts…"]
  if (pid === null) return ["dead", `${is_away ? "away" : "killed"}; back in ${left(back_s)} s`]
  if (!database.runs) return ["standby", "waits for the database"]
  return is_phone ? ["phone", "has the phone"] : ["standby", "stands by"]
}

function choose(name) {
  chosen = name
  for (const [each, button] of buttons) button.ariaPressed = String(each === name)
}
