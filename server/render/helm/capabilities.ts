// The facts of a cluster that helm gets: only those that the chart's text names, so that clusters with other
// differences share one render.
import type { Problem } from '../../../shared/runtime/error.ts'
import type { RenderInputs } from '../inputs.ts'
import type { ChartScan, Literal } from './scan.ts'

/** The limit of all names together, on helm's command line. */
export const API_VERSIONS_BYTES_MAX = 1024 * 1024
/** A single argument has to stay below 128 KiB. */
const ARGUMENT_BYTES_MAX = 64 * 1024

export interface Capabilities {
  /** Null for helm's own default. */
  kubeVersion: string | null
  /** Sorted. */
  served: readonly string[]
  /** Looks for what the cluster does not serve: helm takes every API version of its own Kubernetes for served, so they
   *  are answered in the template. */
  notServed: readonly Literal[]
  warnings: Problem[]
}

/** HM4. `chartKubeVersion`: '' of a chart that asks for none. `originOf`: where a file of the chart lies, for messages.
 */
export function capabilitiesOf(
  scan: ChartScan,
  chartKubeVersion: string,
  inputs: RenderInputs,
  originOf: (path: string) => string,
): Capabilities {
  const asksVersion = scan.kubeVersion || chartKubeVersion !== ''
  const asksApis = scan.anyApi !== null || scan.apis.length > 0
  if (!asksVersion && !asksApis) return { kubeVersion: null, served: [], notServed: [], warnings: [] }
  const { cluster } = inputs // a look
  const version = asksVersion ? (cluster?.facts.kubernetesVersion ?? '') : ''
  // `v1` is served by everyone: without it nothing is known.
  const known = asksApis && cluster !== null && cluster.facts.apiVersions['v1'] === true
  const warnings: Problem[] = []
  if ((asksVersion && version === '') || (asksApis && !known)) {
    const why = cluster === null ? 'it is rendered for no cluster' : 'the cluster has not reported the served kinds yet'
    const first = scan.anyApi ?? scan.apis[0]
    const path = first === null || first === undefined ? originOf('Chart.yaml') : originOf(first.file)
    warnings.push({
      path,
      message: `the chart uses .Capabilities, and ${why}: helm uses the Kubernetes version that it was built with`,
    })
  }
  if (!known) return { kubeVersion: version === '' ? null : version, served: [], notServed: [], warnings }
  if (scan.anyApi !== null) {
    const { file, line, column } = scan.anyApi
    const message = 'the API versions that the chart uses are not known, so it gets all of the cluster; helm adds its own list'
    warnings.push({ path: `${originOf(file)}:${line}:${column}`, message })
  }
  const { apiVersions } = cluster.facts
  const isServed = (api: string) => apiVersions[api] === true
  const names = scan.anyApi === null ? scan.apis.map(({ api }) => api).filter(isServed) : Object.keys(apiVersions)
  const served = [...new Set(names)].filter((name) => /^[\w./-]+$/.test(name)).sort()
  return { kubeVersion: version === '' ? null : version, served, notServed: scan.apis.filter(({ api }) => !isServed(api)), warnings }
}

/** Null if they are too many. */
export function apiVersionArguments(served: readonly string[]): string[] | null {
  const groups: string[] = []
  let total = 0
  for (const name of served) {
    total += name.length + 1
    const last = groups.at(-1)
    if (last === undefined || last.length + name.length >= ARGUMENT_BYTES_MAX) groups.push(name)
    else groups[groups.length - 1] = `${last},${name}`
  }
  return total > API_VERSIONS_BYTES_MAX ? null : groups.map((group) => `--api-versions=${group}`)
}

/** The looks give way to `false`, filled up with spaces: every line and column stays what it was. */
export function withoutServed(text: string, notServed: readonly Literal[]): string {
  const parts: string[] = []
  let kept = 0
  for (const { at, end } of [...notServed].sort((a, b) => a.at - b.at)) {
    if (at < kept) continue
    parts.push(text.slice(kept, at), 'false', text.slice(at + 'false'.length, end).replace(/[^\n]/g, ' '))
    kept = end
  }
  return [...parts, text.slice(kept)].join('')
}
