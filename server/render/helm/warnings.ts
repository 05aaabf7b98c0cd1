// Functions of a chart that mean something else here than with `helm install`, reported once each with the first place.
import type { Problem } from '../../../shared/protocol/error.ts'
import type { ChartScan, Use, UseKind } from './scan.ts'

const MEANING: Readonly<Record<UseKind, string>> = {
  random:
    'gives a new value whenever it is rendered anew. What was rendered stays until something that the chart reads changes; then it is another value and rolls out. Give the value from a Config, or name a Secret that exists',
  time: 'is the time of the render. What was rendered stays until something that the chart reads changes; then it is another time and rolls out',
  lookup: 'finds nothing: charts are rendered on the server, which asks no cluster. The chart does what it does at its first install',
  dns: 'gives no address: a render has no network',
  missing: 'is no function of helm: charts read no environment',
  install:
    'says nothing here: .Release.IsInstall is always true and .Release.IsUpgrade never, because one and the same render is applied each time',
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
