// Waiting with a limit, for what can only be asked.
export async function until<T>(what: string, check: () => Promise<T | null>, timeoutMs: number, everyMs = 100): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < deadline) {
    try {
      const value = await check()
      if (value !== null) return value
    } catch (error) {
      last = error
    }
    await Bun.sleep(everyMs)
  }
  throw new Error(`${what}: not within ${timeoutMs / 1_000} s${last === undefined ? '' : ` (${last})`}`)
}
