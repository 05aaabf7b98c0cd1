// Profiles of this process, to find where time or memory goes. One at a time, bounded, and without the content of
// strings, which may be secrets.

import type { Clock } from '../runtime/clock.ts'
import { AppError } from '../runtime/error.ts'

export interface Profiler {
  /** A `.cpuprofile` for the developer tools of a browser. */
  cpu(seconds: number, signal: AbortSignal): Promise<string>
  /** Sizes of the heap and its objects by type. */
  heap(): Promise<string>
  /** A `.heapsnapshot` for the same tools, without the content of strings. */
  snapshot(): Promise<string>
}

export const PROFILE_SECONDS_MAX = 60
export const PROFILE_SECONDS_DEFAULT = 10
/** Minimum time between two profiles of any kind. */
export const PROFILE_PAUSE_MS = 10_000
/** A snapshot blocks the process while it is taken and is several times as large as the heap. */
export const SNAPSHOT_HEAP_BYTES_MAX = 64 * 1_048_576
const SAMPLE_MICROS = 1_000
const TYPES_MAX = 200

export function createProfiler(clock: Clock): Profiler {
  let isBusy = false
  let freeAtMs = Number.NEGATIVE_INFINITY
  async function alone<T>(take: () => Promise<T>): Promise<T> {
    const nowMs = clock.monotonicMs()
    if (isBusy || nowMs < freeAtMs) {
      const retryAfterMs = isBusy ? PROFILE_PAUSE_MS : freeAtMs - nowMs
      const detail = isBusy ? 'another profile is being taken' : `one profile in ${PROFILE_PAUSE_MS / 1_000} s`
      throw new AppError('too_many_requests', { doing: 'profile', detail, retryAfterMs })
    }
    isBusy = true
    try {
      return await take()
    } finally {
      isBusy = false
      freeAtMs = clock.monotonicMs() + PROFILE_PAUSE_MS
    }
  }
  return {
    cpu: (seconds, signal) =>
      alone(async () => {
        const { Session } = await import('node:inspector/promises')
        const session = new Session()
        session.connect()
        try {
          await session.post('Profiler.enable')
          await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_MICROS })
          await session.post('Profiler.start')
          await clock.sleep(Math.min(seconds, PROFILE_SECONDS_MAX) * 1_000, signal)
          return JSON.stringify((await session.post('Profiler.stop')).profile)
        } finally {
          session.disconnect()
        }
      }),
    heap: () =>
      alone(async () => {
        const { heapStats } = await import('bun:jsc')
        const { heapSize, heapCapacity, extraMemorySize, objectCount, objectTypeCounts } = heapStats()
        const types = Object.entries(objectTypeCounts).sort(([, a], [, b]) => b - a)
        const sizes = { heapBytes: heapSize, heapCapacityBytes: heapCapacity, extraBytes: extraMemorySize, objects: objectCount }
        return JSON.stringify({ ...sizes, rssBytes: process.memoryUsage.rss(), types: Object.fromEntries(types.slice(0, TYPES_MAX)) })
      }),
    snapshot: () =>
      alone(async () => {
        const { heapSize } = await import('bun:jsc')
        if (heapSize() > SNAPSHOT_HEAP_BYTES_MAX)
          throw new AppError('too_large', {
            doing: 'take a heap snapshot',
            detail: `the heap has ${Math.round(heapSize() / 1_048_576)} MiB, the limit is ${SNAPSHOT_HEAP_BYTES_MAX / 1_048_576} MiB`,
            remedy: 'Read the types of objects instead (profile heap).',
          })
        return withoutContent(Bun.generateHeapSnapshot('v8'))
      }),
  }
}

interface Snapshot {
  snapshot: { meta: { node_fields: string[]; node_types: [string[]]; edge_fields: string[]; edge_types: [string[]] } }
  nodes: number[]
  edges: number[]
  strings: string[]
}

/** Names of classes and functions. */
const TYPE_NAME = /^[A-Za-z_$#<(][A-Za-z0-9_$#<>() .:-]{0,59}$/
/** Property names. A key with digits in the middle may be an id or a secret, because objects are also used as maps. */
const KEY_NAME = /^[A-Za-z_$#][A-Za-z_$]{0,29}\d{0,2}$/
const CONTENT_TYPES = ['string', 'concatenated string', 'sliced string', 'symbol', 'bigint', 'number']

/**
 * Removes content. It is in the names of string nodes and may be in keys. Each name is also a string of the heap, so
 * the nodes and edges that use a string decide whether it stays.
 */
export function withoutContent(text: string): string {
  const snapshot = JSON.parse(text) as Snapshot
  const { nodes, edges, strings } = snapshot
  const { node_fields: nodeFields, node_types: nodeTypes, edge_fields: edgeFields, edge_types: edgeTypes } = snapshot.snapshot.meta
  const shown = new Set<number>()
  const hidden = strings.length
  const [typeAt, nameAt] = [nodeFields.indexOf('type'), nodeFields.indexOf('name')]
  const content = new Set(nodeTypes[0].flatMap((type, index) => (CONTENT_TYPES.includes(type) ? [index] : [])))
  for (let at = 0; at < nodes.length; at += nodeFields.length) {
    const name = nodes[at + nameAt] ?? 0
    if (!content.has(nodes[at + typeAt] ?? -1) && TYPE_NAME.test(strings[name] ?? '')) shown.add(name)
    else nodes[at + nameAt] = hidden
  }
  const [edgeTypeAt, keyAt] = [edgeFields.indexOf('type'), edgeFields.indexOf('name_or_index')]
  const numbered = new Set(edgeTypes[0].flatMap((type, index) => (type === 'element' || type === 'hidden' ? [index] : [])))
  for (let at = 0; at < edges.length; at += edgeFields.length) {
    if (numbered.has(edges[at + edgeTypeAt] ?? 0)) continue
    const key = edges[at + keyAt] ?? 0
    if (KEY_NAME.test(strings[key] ?? '')) shown.add(key)
    else edges[at + keyAt] = hidden
  }
  snapshot.strings = [...strings.map((value, index) => (shown.has(index) ? value : '')), '(hidden)']
  return JSON.stringify(snapshot)
}
