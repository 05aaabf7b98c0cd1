// The standard input and output of a worker as a stream of bytes. Nothing but the channel may write to standard output.
import type { ByteStream } from './channel/channel.ts'

export function stdioStream(): ByteStream {
  const sink = Bun.stdout.writer()
  for (const level of ['log', 'info', 'debug', 'warn', 'error'] as const)
    console[level] = (...said: unknown[]) => void process.stderr.write(`${said.map(String).join(' ')}\n`)
  return {
    incoming: Bun.stdin.stream(),
    async write(bytes) {
      sink.write(bytes)
      await sink.flush()
    },
    end: () => void sink.end(),
  }
}
