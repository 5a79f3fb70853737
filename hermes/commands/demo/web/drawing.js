// Texts and boxes as nodes. Whatever a message says becomes a text node, so nothing in it is ever markup.

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value
    else made.setAttribute(key, value)
  }
  made.append(...children.filter((child) => child !== null && child !== ""))
  return made
}

const TAGS = {
  bold: "strong",
  italic: "em",
  underline: "u",
  strikethrough: "s",
  code: "code",
  pre: "pre",
  blockquote: "blockquote",
  expandable_blockquote: "blockquote",
}

const BLOCKS = new Set(["pre", "blockquote", "expandable_blockquote"])

// A text with its entities; their places are UTF-16 units, as those of JavaScript's strings. Links lead nowhere.
export function drawn(text, entities) {
  const inside = entities.toSorted((one, other) => one.offset - other.offset || other.length - one.length)
  return piece(text, inside, 0, text.length)
}

function piece(text, entities, start, end) {
  const made = document.createDocumentFragment()
  let at = start
  for (let i = 0; i < entities.length; ) {
    const { type, offset, length } = entities[i]
    const stop = Math.min(offset + length, end)
    let next = i + 1
    while (next < entities.length && entities[next].offset < stop) next += 1
    if (offset >= at) {
      made.append(text.slice(at, offset), marked(type, piece(text, entities.slice(i + 1, next), offset, stop)))
      // What stands in lines of its own brings its end of line along.
      at = BLOCKS.has(type) && text[stop] === "\n" ? stop + 1 : stop
    }
    i = next
  }
  made.append(text.slice(at, end))
  return made
}

function marked(type, content) {
  if (type === "expandable_blockquote") return folded(content)
  const tag = TAGS[type]
  return tag ? element(tag, {}, content) : element("span", { className: "mark" }, content)
}

function folded(content) {
  const words = element("span", {}, content)
  const unfold = element("button", { type: "button", className: "unfold", "aria-expanded": "false" })
  unfold.ariaLabel = "Show all of it"
  return element("blockquote", { className: "fold" }, words, unfold)
}

// The exact words, with the signs that turn the direction of writing shown by their names.
export function exact(words) {
  return words.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (sign) => {
    return `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`
  })
}

export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })
}

// Draw a list that changes: nodes stay as they are while what they show does.
export function keep(list, known, items, keyOf, draw) {
  const keys = new Set(items.map(keyOf))
  for (const [key, { node }] of known) {
    if (keys.has(key)) continue
    node.remove()
    known.delete(key)
  }
  const changed = []
  for (const item of items) {
    const key = keyOf(item)
    const says = JSON.stringify(item)
    const there = known.get(key)
    if (there?.says === says) continue
    const node = draw(item, there?.node)
    if (!there) list.append(node)
    known.set(key, { node, says })
    changed.push({ item, isNew: !there })
  }
  return changed
}
