// `skerry get objects | head -3`: whoever reads has enough. That is no failure of the program, and no reason for a stack trace.

/** `staysUp`: a program that works on without anybody who reads it. */
export function endWithReader(streams: readonly NodeJS.WriteStream[], staysUp: () => boolean): void {
  for (const stream of streams)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      if (!staysUp()) process.exit(0)
    })
}
