// Waiting with a limit, for what can only be asked.
/** Thrown by a check: waiting has no sense any more. */
export class Ended extends Error {}

export async function until<T>(what: string, check: () => Promise<T | null>, timeoutMs: number, everyMs = 100): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < deadline) {
    try {
      const value = await check()
      if (value !== null) return value
    } catch (error) {
      if (error instanceof Ended) throw error
      last = error
    }
    await Bun.sleep(everyMs)
  }
  throw new Error(`${what}: not within ${timeoutMs / 1_000} s${last === undefined ? '' : ` (${last})`}`)
}
