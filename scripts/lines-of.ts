// Lines of what a child prints, as they come; the rest without an end of line is dropped with the child.
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncIterable<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
