// The API server's own words, without the documents that it quotes in them: a refused Job says its whole Pod template, environment and all, which nobody reads and which may hold what
// belongs into a Secret.

const QUOTED = 'Invalid value: '

/** `Invalid value: {"Containers":[…]}: field is immutable` says `Invalid value: {…}: field is immutable`; plain values stay, since people look for them. */
export function withoutDocuments(message: string): string {
  let text = ''
  let from = 0
  for (;;) {
    const at = message.indexOf(QUOTED, from)
    if (at < 0) return text + message.slice(from)
    const start = at + QUOTED.length
    const open = message[start]
    text += message.slice(from, start)
    from = start
    if (open !== '{' && open !== '[') continue
    const end = endOfDocument(message, start)
    text += open === '{' ? '{…}' : '[…]'
    from = end
  }
}

/** Behind the bracket that closes the one at `start`; a document that was cut off ends with the text. */
function endOfDocument(text: string, start: number): number {
  let depth = 0
  let isString = false
  for (let i = start; i < text.length; i += 1) {
    const char = text[i]
    if (isString) {
      if (char === '\\') i += 1
      else if (char === '"') isString = false
    } else if (char === '"') isString = true
    else if (char === '{' || char === '[') depth += 1
    else if (char === '}' || char === ']') {
      depth -= 1
      if (depth === 0) return i + 1
    }
  }
  return text.length
}
