// Reads server-sent events from a response: `fetch` instead of EventSource, because an EventSource cannot carry a token and does not say why it was refused.

export interface StreamEvent {
  id: string | null
  event: string
  data: string
}

/** The whole events of a text that came in pieces. */
export class EventReader {
  #rest = ''

  take(piece: string): StreamEvent[] {
    const blocks = (this.#rest + piece).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    return blocks.map(readBlock)
  }
}

function readBlock(block: string): StreamEvent {
  const read: StreamEvent = { id: null, event: 'message', data: '' }
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    const [name, value] = colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
    if (name === 'id') read.id = value
    else if (name === 'event') read.event = value
    else if (name === 'data') read.data += read.data === '' ? value : `\n${value}`
  }
  return read
}
