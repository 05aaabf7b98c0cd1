// A benchmark of several parts, each of which stands alone: `--only NAME`.
import { type BenchmarkName, partsOf, type TABLE } from './table.ts'

export type Say = (text: string) => void
export type Part = (say: Say) => Promise<Record<string, number>>
type PartsOf<Name extends BenchmarkName> = Record<keyof (typeof TABLE)[Name], Part>

/** Runs one part, or all but those that run only alone. Sets the exit code when the figures are not those of the table.
 */
export async function runParts<Name extends BenchmarkName>(
  name: Name,
  parts: PartsOf<Name>,
  say: Say,
  only: string | null,
): Promise<Record<string, number>> {
  const figures: Record<string, number> = {}
  for (const [partName, { alone, figures: listed }] of Object.entries(partsOf(name))) {
    if (only === null ? alone === true : partName !== only) continue
    const startMs = performance.now()
    const measured = await parts[partName as keyof typeof parts]((text) => say(`${partName}: ${text}`))
    Object.assign(figures, measured)
    say(`${partName}: took ${Math.round((performance.now() - startMs) / 1_000)} s`)
    const differing = [...new Set(Object.keys(measured)).symmetricDifference(new Set(Object.keys(listed)))]
    if (differing.length === 0) continue
    say(`${partName}: measured figures and scripts/benchmarks/table.ts differ: ${differing.join(', ')}`)
    process.exitCode = 1
  }
  return figures
}
