// Server-sent events from bytes. Pure except for reading; `follow` of the client connects and reconnects.

export interface StreamEvent {
  /** The last id that was sent, with this event or before it. Null means that none came yet. */
  id: string | null
  /** Empty in a block that only moves the id. */
  event: string
  data: string
}

/** Characters of a line, or of the data of one event. A server of ours sends none of that size. */
const CHARS_MAX = 4 * 1_024 * 1_024

/** Takes text in pieces and answers the events that are complete. An unfinished one at the end was cut and is none. */
export class EventReader {
  #rest = ''
  #id: string | null = null
  #event = ''
  #data: string[] = []
  #seen = false
  #size = 0

  take(piece: string): StreamEvent[] {
    const lines = (this.#rest + piece).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > CHARS_MAX) throw new Error('a line of the stream is too long')
    return lines.flatMap((line) => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line) ?? [])
  }

  #line(line: string): StreamEvent | null {
    if (line === '') return this.#end()
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    this.#size += value.length
    if (this.#size > CHARS_MAX) throw new Error('an event of the stream is too large')
    if (field === 'id') this.#id = value
    else if (field === 'event') this.#event = value
    else if (field === 'data') this.#data.push(value)
    else return null // comments, `retry`, and fields of later versions
    this.#seen = true
    return null
  }

  #end(): StreamEvent | null {
    const ended = { id: this.#id, event: this.#data.length === 0 ? '' : this.#event || 'message', data: this.#data.join('\n') }
    const seen = this.#seen
    this.#event = ''
    this.#data = []
    this.#seen = false
    this.#size = 0
    return seen ? ended : null
  }
}

export async function* readEventStream(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder()
  const events = new EventReader()
  for await (const chunk of body) yield* events.take(decoder.decode(chunk, { stream: true }))
}
