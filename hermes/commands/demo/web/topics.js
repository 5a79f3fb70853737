// The topics of the chat, as tabs: which one is shown, and which one a text goes to.

import { element, keep } from "./drawing.js"

const tabs = document.getElementById("topics")
const shown = new Map()
let chosen = 0 // the id of the topic, 0 for all of them
let names = new Map()

export const chosenTopic = () => chosen || null

// `redraw` draws the messages of the topic that was chosen.
export function drawTopics(topics, redraw) {
  names = new Map(topics.map(({ id, name }) => [id, name]))
  if (!names.has(chosen)) chosen = 0
  tabs.hidden = !topics.length
  const all = [{ id: 0, name: "All" }, ...topics].map((one) => ({ ...one, isChosen: one.id === chosen }))
  keep(tabs, shown, all, ({ id }) => id, (one, there) => drawTab(one, there, redraw))
}

function drawTab({ id, name, isChosen }, there, redraw) {
  const tab = there ?? element("button", { type: "button", dir: "auto" })
  tab.textContent = name
  tab.ariaPressed = String(isChosen)
  tab.onclick = () => {
    chosen = id
    redraw()
  }
  return tab
}

// The messages of the topic that is shown; where all are shown, each with the name of its own.
export function inTopic(messages) {
  if (chosen) return messages.filter(({ thread_id }) => thread_id === chosen)
  return messages.map((one) => ({ ...one, topic: names.get(one.thread_id) }))
}
