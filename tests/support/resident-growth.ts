// How much larger this process became. Garbage is no growth: it is collected before both looks, and only what stays
// counts.

/** From now on, in bytes, whenever it is called. */
export function residentGrowth(): () => number {
  const look = (): number => {
    Bun.gc(true)
    return process.memoryUsage.rss()
  }
  const before = look()
  return () => look() - before
}
