// FA1: the APIs that this cluster serves, for templates on the server. A new API counts at once. A missing API counts
// as gone when complete discovery has lacked it for a while; otherwise, a restart of its backend would change what is
// rendered.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { FACTS_APIS_MAX, FACTS_CHARS_MAX, type FactsStatus } from '../../shared/model/status.ts'
import type { Discovery } from './cluster.ts'

export const GONE_AFTER_MS = 10 * 60_000
/** Until the first complete discovery. */
const FIRST_AGAIN_MS = 60_000

export interface FactsLook {
  /** Facts to report. Null when nothing changed. */
  changed: FactsStatus | null
  /** Time of the next look. Null when nothing is missing. */
  againAtMs: number | null
}

/** `apps/v1` or `apps/v1/Deployment`. */
type Api = string

export class FactsBook {
  #held: FactsStatus | null
  #known: Set<Api>
  readonly #missingSince = new Map<Api, number>()

  /** `held`: the facts that were reported last, also by an earlier process. */
  constructor(held: FactsStatus | null) {
    this.#held = held
    this.#known = new Set(held === null ? [] : apisOf(held))
  }

  look({ resources, staleGroups }: Discovery, kubernetesVersion: string, nowMs: number): FactsLook {
    if (staleGroups.length > 0) {
      this.#missingSince.clear() // time counts from the next complete discovery
      return { changed: null, againAtMs: nowMs + (this.#known.size === 0 ? FIRST_AGAIN_MS : GONE_AFTER_MS) }
    }
    const found = new Set<Api>()
    for (const { group, version, kind } of resources) {
      const groupVersion = group === '' ? version : `${group}/${version}`
      found.add(groupVersion).add(`${groupVersion}/${kind}`)
    }
    for (const api of this.#known) {
      if (found.has(api)) this.#missingSince.delete(api)
      else if (!this.#missingSince.has(api)) this.#missingSince.set(api, nowMs)
    }
    for (const [api, sinceMs] of this.#missingSince) {
      if (found.has(api) || nowMs - sinceMs >= GONE_AFTER_MS) this.#missingSince.delete(api)
      else found.add(api)
    }
    this.#known = found
    const againAtMs = this.#missingSince.size === 0 ? null : Math.min(...this.#missingSince.values()) + GONE_AFTER_MS
    const doc = factsOf(found, kubernetesVersion)
    if (this.#held !== null && canonicalJson(doc) === canonicalJson(this.#held)) return { changed: null, againAtMs }
    this.#held = doc
    return { changed: doc, againAtMs }
  }
}

/** Groups kinds by version, so that each version is named once. */
export function factsOf(apis: ReadonlySet<Api>, kubernetesVersion: string): FactsStatus {
  const byVersion: Record<string, string[]> = {}
  const names = [...apis].sort()
  for (const api of names) {
    const [groupVersion, kind] = splitApi(api)
    const kinds = byVersion[groupVersion] ?? []
    byVersion[groupVersion] = kinds
    if (kind !== null) kinds.push(kind)
  }
  const whole: FactsStatus = { kubernetesVersion, apis: byVersion }
  if (names.length <= FACTS_APIS_MAX && JSON.stringify(whole).length <= FACTS_CHARS_MAX) return whole
  const versions = Object.keys(byVersion).sort().slice(0, FACTS_VERSIONS_MAX)
  return { kubernetesVersion, apis: Object.fromEntries(versions.map((version) => [version, []])), cut: true }
}

/** Far above any known cluster. */
const FACTS_VERSIONS_MAX = 1_000

const apisOf = ({ apis }: FactsStatus): Api[] =>
  Object.entries(apis).flatMap(([version, kinds]) => [version, ...kinds.map((kind) => `${version}/${kind}`)])

/** Kinds start with a capital letter; versions do not. */
function splitApi(api: Api): [groupVersion: string, kind: string | null] {
  const slash = api.lastIndexOf('/')
  return slash >= 0 && /^[A-Z]/.test(api.slice(slash + 1)) ? [api.slice(0, slash), api.slice(slash + 1)] : [api, null]
}
