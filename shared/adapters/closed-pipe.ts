// `skerry get objects | head -3`: the reader has enough. That is no failure of the program, and no reason for a stack
// trace.
import { constants, fstatSync, openSync } from 'node:fs'

/** `onClosed` ends the process, or does nothing in a program that continues without a reader. */
export function onReaderGone(streams: readonly NodeJS.WriteStream[], onClosed: () => void): void {
  for (const stream of streams)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      onClosed()
    })
}

/**
 * Aborts when the last reader of a pipe closes it, also while nothing is written to it: a stream of Bun reports it with
 * the next write only, the kernel reports it as an event of the pipe. Never for other files, and not if the pipe cannot
 * be opened again (no /proc).
 */
export function readerGone(fd: number): AbortSignal {
  const gone = new AbortController()
  const opened = openAgain(fd)
  if (opened === null) return gone.signal
  // It takes a file descriptor, too, which its types have forgotten (`FdSocketOptions` is there).
  const connection = { fd: opened, socket: { data: () => {}, close: () => gone.abort() } } as unknown as Bun.UnixSocketOptions
  Bun.connect(connection).then(
    (socket) => socket.unref(),
    () => {}, // then the next output ends it
  )
  return gone.signal
}

/** An end of its own: what is set of it (that nothing waits) is not set of the one that is shared with other processes.
 */
function openAgain(fd: number): number | null {
  try {
    return fstatSync(fd).isFIFO() ? openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK) : null
  } catch {
    return null
  }
}
