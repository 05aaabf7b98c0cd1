// Server-sent events from a stream of bytes. Pure except for reading; the caller connects and reconnects.

export interface StreamEvent {
  /** The last that was sent, with this event or before it; null: none yet. */
  id: string | null
  /** Empty with a block that only moves the id. */
  event: string
  data: string
}

/** Of a line or of one event's data; more is no event of ours. */
const CHARS_MAX = 4 * 1_024 * 1_024

export async function* readEventStream(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  let id: string | null = null
  let event = ''
  let data: string[] = []
  let seen = false
  let size = 0
  for await (const line of linesOf(body)) {
    if (line === '') {
      if (seen) yield { id, event: data.length === 0 ? '' : event || 'message', data: data.join('\n') }
      event = ''
      data = []
      seen = false
      size = 0
      continue
    }
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    size += value.length
    if (size > CHARS_MAX) throw new Error('an event of the stream is too large')
    if (field === 'id') id = value
    else if (field === 'event') event = value
    else if (field === 'data') data.push(value)
    else continue // comments, `retry`, and what is not known here
    seen = true
  }
}

/** An unfinished line at the end is none: it was cut. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > CHARS_MAX) throw new Error('a line of the stream is too long')
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line
  }
}
