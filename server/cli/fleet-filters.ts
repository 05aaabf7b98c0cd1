// The filters of `get`, as parameters of the lists of the API. What a kind cannot be filtered by is refused: it would
// show more than was meant.

import type { Query } from '../../client/client.ts'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { parseSelectorText } from '../../shared/model/labels.ts'
import { SYNC_WORDS } from '../../shared/model/status.ts'
import { CLUSTER_SORTS, LIVENESS_WORDS, OBJECT_SORTS, PLACEMENT_SORTS } from '../../shared/model/views.ts'
import { nearest } from '../../shared/runtime/edit-distance.ts'
import { UsageError } from './io.ts'
import type { Kind } from './kinds.ts'
import { isPath } from './printing/documents.ts'

export interface FilterOptions {
  selector?: string | undefined
  statusSelector?: string | undefined
  search?: string | undefined
  sortBy?: string | undefined
  kind?: string | undefined
  namespace?: string | undefined
  image?: string | undefined
}

/** The values that the status selector of a kind accepts. Null for any text. */
const STATUS_KEYS: Partial<Record<Kind, Readonly<Record<string, readonly string[] | null>>>> = {
  objects: { sync: SYNC_WORDS, health: HEALTH_WORDS, reason: null, drift: ['open'] },
  placements: { sync: SYNC_WORDS, health: HEALTH_WORDS, revision: null },
  clusters: { liveness: LIVENESS_WORDS, version: null },
}
const SORTS: Partial<Record<Kind, readonly string[]>> = { objects: OBJECT_SORTS, placements: PLACEMENT_SORTS, clusters: CLUSTER_SORTS }
const SELECTABLE: readonly Kind[] = ['clusters', 'services', 'repositories', 'objects', 'placements']
/** The kinds whose texts are searched. */
const LISTS: readonly Kind[] = ['clusters', 'objects', 'placements']

export function filterQuery(kind: Kind, options: FilterOptions): Query {
  const { selector, statusSelector, search, sortBy, kind: objectKind, namespace, image } = options
  if (selector !== undefined && !SELECTABLE.includes(kind)) throw new UsageError(`-l does not apply to ${kind}`)
  if (search !== undefined && !LISTS.includes(kind)) throw new UsageError(`--search does not apply to ${kind}`)
  for (const [flag, value] of Object.entries({ '--kind': objectKind, '-n': namespace, '--image': image }))
    if (value !== undefined && kind !== 'objects') throw new UsageError(`${flag} does not apply to ${kind}`)
  const sorts = SORTS[kind]
  const order = sortBy === undefined || isPath(sortBy) ? undefined : sortBy
  if (order !== undefined && sorts === undefined) throw new UsageError(`--sort-by of ${kind} expects a path such as .metadata.name`)
  if (order !== undefined && sorts?.includes(order) === false)
    throw new UsageError(`--sort-by expects ${sorts.join(', ')}, or a path such as .metadata.name${meant(order, sorts)}`)
  return {
    labelSelector: selector,
    search,
    sort: order,
    kind: objectKind,
    namespace,
    image,
    ...(statusSelector === undefined ? {} : statusQuery(kind, statusSelector)),
  }
}

export const isFiltered = (query: Query): boolean => Object.values(query).some((value) => value !== undefined)

const meant = (word: string, known: readonly string[]): string => {
  const near = nearest(word, known)
  return near === null ? '' : `; did you mean "${near}"?`
}

/** `health in (Degraded,Missing),sync!=Synced`: what is not one of some words is one of the others. */
function statusQuery(kind: Kind, text: string): Query {
  const keys = STATUS_KEYS[kind]
  if (keys === undefined) throw new UsageError(`--status-selector does not apply to ${kind}`)
  const names = Object.keys(keys)
  const rules = parseSelectorText(text)?.matchExpressions
  if (rules === undefined)
    throw new UsageError(`--status-selector expects ${names[0]}=WORD or ${names[0]} in (WORD,WORD), joined by commas`)
  const query: Query = {}
  for (const rule of rules) {
    const words = keys[rule.key]
    if (words === undefined) throw new UsageError(`--status-selector of ${kind} expects ${names.join(', ')}${meant(rule.key, names)}`)
    if (query[rule.key] !== undefined) throw new UsageError(`--status-selector names ${rule.key} twice; write ${rule.key} in (…)`)
    if (!('values' in rule)) throw new UsageError(`--status-selector expects ${rule.key}=${words?.[0] ?? 'VALUE'}`)
    const known = rule.values.map((value) => (words === null ? value : wordOf(rule.key, value, words)))
    if (rule.operator === 'In') {
      if (words === null && known.length > 1) throw new UsageError(`--status-selector takes one ${rule.key}`)
      query[rule.key] = known.join(',')
    } else if (words === null || rule.key === 'drift') throw new UsageError(`--status-selector takes no ${rule.key}!=`)
    else query[rule.key] = words.filter((word) => !known.includes(word)).join(',')
  }
  return query
}

function wordOf(key: string, value: string, words: readonly string[]): string {
  const word = words.find((one) => one.toLowerCase() === value.toLowerCase())
  if (word === undefined) throw new UsageError(`--status-selector: ${key} is ${words.join(', ')}${meant(value, words)}`)
  return word
}
