// A benchmark of several parts, each of which stands alone: `--only NAME`.
export type Say = (text: string) => void
export type Part = (say: Say) => Promise<Record<string, number>>

export async function runParts(parts: Record<string, Part>, say: Say, only: string | null): Promise<Record<string, number>> {
  if (only !== null && !Object.hasOwn(parts, only)) throw new Error(`no such part: ${only}; there are ${Object.keys(parts).join(', ')}`)
  const figures: Record<string, number> = {}
  for (const [name, part] of Object.entries(parts)) {
    if (only !== null && name !== only) continue
    const startMs = performance.now()
    Object.assign(figures, await part((text) => say(`${name}: ${text}`)))
    say(`${name}: took ${Math.round((performance.now() - startMs) / 1_000)} s`)
  }
  return figures
}
