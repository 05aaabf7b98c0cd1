// SC2: what of the wanted keys the ConfigMaps of the site hold. A key that was there counts as gone when its ConfigMap
// has lacked it for ten minutes: somebody may be replacing it. A ConfigMap that cannot be read changes nothing.
import { SITE_CHARS_MAX, SITE_VALUE_CHARS_MAX, type SiteMap, type SiteStatus } from '../../shared/model/site-config.ts'
import { sitePart } from '../messages/site-messages.ts'
import { GONE_AFTER_MS } from './facts-book.ts'

export type SiteLook = { kind: 'data'; data: Readonly<Record<string, string>> } | { kind: 'absent' } | { kind: 'unreadable'; why: string }

export class SiteBook {
  readonly #maps: Map<string, SiteMap>
  /** By ConfigMap and key. */
  readonly #missingSince = new Map<string, number>()

  /** `held`: what was reported last, also by an earlier process. */
  constructor(held: SiteStatus | null) {
    this.#maps = new Map(Object.entries(held?.maps ?? {}))
  }

  /** Forgets ConfigMaps that nobody wants any more. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of this.#maps.keys()) if (!ids.has(id)) this.#maps.delete(id)
    for (const place of this.#missingSince.keys()) if (!ids.has(place.split(' ')[0] ?? '')) this.#missingSince.delete(place)
  }

  /** When to look again without a change. Null means not. */
  look(id: string, keys: readonly string[], found: SiteLook, nowMs: number): number | null {
    const before = this.#maps.get(id)
    if (found.kind === 'unreadable') {
      const held = before === undefined ? {} : pick(before.values, keys)
      const absent = (before?.absent ?? []).filter((key) => keys.includes(key))
      this.#maps.set(id, { values: held, absent, refused: {}, problem: found.why })
      return null
    }
    const data = found.kind === 'absent' ? {} : found.data
    const next: SiteMap = { values: {}, absent: [], refused: {}, problem: null }
    let againMs: number | null = null
    for (const key of keys) {
      const place = `${id} ${key}`
      const value = Object.hasOwn(data, key) ? data[key] : undefined
      if (value !== undefined) {
        this.#missingSince.delete(place)
        if (value.length > SITE_VALUE_CHARS_MAX) next.refused[key] = sitePart('value_too_long', { most: SITE_VALUE_CHARS_MAX })
        else next.values[key] = value
        continue
      }
      const held = before !== undefined && Object.hasOwn(before.values, key) ? before.values[key] : undefined
      const sinceMs = this.#missingSince.get(place) ?? nowMs
      if (held === undefined || nowMs - sinceMs >= GONE_AFTER_MS) {
        next.absent.push(key)
        this.#missingSince.delete(place)
        continue
      }
      this.#missingSince.set(place, sinceMs)
      next.values[key] = held
      againMs = Math.min(againMs ?? Number.POSITIVE_INFINITY, sinceMs + GONE_AFTER_MS)
    }
    this.#maps.set(id, next)
    return againMs
  }

  /** Within the bound of a report: later ConfigMaps say that they have no room. */
  status(): SiteStatus {
    const maps: Record<string, SiteMap> = {}
    let chars = 0
    for (const [id, map] of [...this.#maps].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const size = JSON.stringify(map).length + id.length
      const fits = chars + size <= SITE_CHARS_MAX
      chars += fits ? size : 0
      const why = sitePart('values_too_long', { most: SITE_CHARS_MAX })
      maps[id] = fits ? map : { values: {}, absent: [], refused: {}, problem: why }
    }
    return { maps }
  }
}

const pick = (values: Readonly<Record<string, string>>, keys: readonly string[]): Record<string, string> =>
  Object.fromEntries(keys.flatMap((key) => (Object.hasOwn(values, key) ? [[key, values[key] ?? '']] : [])))
