// `skerry get objects | head -3`: whoever reads has enough. That is no failure of the program, and no reason for a stack trace.

/** `onClosed` ends the process, or, of a program that works on without anybody who reads it, does nothing. */
export function onReaderGone(streams: readonly NodeJS.WriteStream[], onClosed: () => void): void {
  for (const stream of streams)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      onClosed()
    })
}
