// Functions of a chart that mean something else here than with `helm install`, reported once each with the first place.
import type { Problem } from '../../../shared/runtime/error.ts'
import type { ChartScan, Use, UseKind } from './scan.ts'

const MEANING: Readonly<Record<UseKind, string>> = {
  random:
    'returns a new value at each render. The rendered value stays until an input of the chart changes; then a new value rolls out. Set the value from a Config, or name an existing Secret',
  time: 'is the time of the render. The rendered time stays until an input of the chart changes; then a new time rolls out',
  lookup: 'finds nothing: charts are rendered on the server without access to the cluster. The chart behaves as at its first install',
  dns: 'returns no address: a render has no network',
  missing: 'is not a helm function: charts cannot read the environment',
  install:
    'has no effect: .Release.IsInstall is always true and .Release.IsUpgrade always false, because the same render is applied each time',
}

/** HM7: one for each function, at the first of its places. */
export function useWarnings({ uses }: ChartScan, placeOf: (file: string) => { path: string; lineText(line: number): string }): Problem[] {
  const byName = new Map<string, Use[]>()
  for (const use of uses) {
    const same = byName.get(use.name)
    if (same === undefined) byName.set(use.name, [use])
    else same.push(use)
  }
  return [...byName].flatMap(([name, [first, ...others]]) => {
    if (first === undefined) return []
    const { path, lineText } = placeOf(first.file)
    const more = others.length === 0 ? '' : ` (and in ${others.length} more ${others.length === 1 ? 'place' : 'places'})`
    const excerpt = lineText(first.line)
    const message = `${name} ${MEANING[first.kind]}${more}`
    return [{ path: `${path}:${first.line}:${first.column}`, message, ...(excerpt === '' ? {} : { excerpt }) }]
  })
}
