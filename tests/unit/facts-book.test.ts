import { describe, expect, test } from 'bun:test'
import type { Discovery } from '../../agent/cluster/cluster.ts'
import { FactsBook, factsOf, GONE_AFTER_MS } from '../../agent/cluster/facts-book.ts'
import type { ClusterRecord, StatusEntry } from '../../server/fleet/records.ts'
import { createKnownFacts, toFacts } from '../../server/ingest/cluster-facts.ts'
import { FACTS_APIS_MAX, FACTS_CHARS_MAX, type FactsStatus, factsStatusSchema } from '../../shared/model/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'

const resource = (api: string) => {
  const [group = '', version = '', kind = ''] = api.split('/')
  return { group, version, kind, plural: kind.toLowerCase(), namespaced: true, verbs: ['list'] }
}
const served = (apis: string[], staleGroups: string[] = []): Discovery => ({ resources: apis.map(resource), staleGroups })
const PODS = '/v1/Pod'
const MONITORS = 'mon/v1/Monitor'
const both: FactsStatus = { kubernetesVersion: 'v1.36.3', apis: { v1: ['Pod'], 'mon/v1': ['Monitor'] } }
const T = 1_000_000

describe('FA1 facts', () => {
  test('are versions and kinds, said when they change and not otherwise, also by the next process', () => {
    const book = new FactsBook(null)
    expect(book.look(served([MONITORS, PODS]), 'v1.36.3', T)).toEqual({ changed: both, againAtMs: null })
    expect(book.look(served([PODS, MONITORS]), 'v1.36.3', T + 1).changed).toBeNull()
    expect(new FactsBook(both).look(served([PODS, MONITORS]), 'v1.36.3', T).changed).toBeNull()
    expect(book.look(served([PODS, MONITORS]), 'v1.37.0', T + 2).changed?.kubernetesVersion).toBe('v1.37.0')
  })

  test('of incomplete discovery nothing is believed, and what it counts begins anew', () => {
    expect(new FactsBook(null).look(served([PODS], ['mon']), 'v1', T)).toEqual({ changed: null, againAtMs: T + 60_000 })
    const book = new FactsBook(both)
    expect(book.look(served([PODS, 'new/v1/Thing'], ['mon']), 'v1.36.3', T).changed).toBeNull()
    expect(book.look(served([PODS]), 'v1.36.3', T).changed).toBeNull()
    book.look(served([PODS], ['mon']), 'v1.36.3', T + GONE_AFTER_MS - 1)
    expect(book.look(served([PODS]), 'v1.36.3', T + GONE_AFTER_MS).changed).toBeNull()
    expect(book.look(served([PODS]), 'v1.36.3', T + 2 * GONE_AFTER_MS).changed?.apis).toEqual({ v1: ['Pod'] })
  })

  test('what is missing is gone after ten minutes of complete discovery, and looked at again then', () => {
    const book = new FactsBook(both)
    expect(book.look(served([PODS]), 'v1.36.3', T)).toEqual({ changed: null, againAtMs: T + GONE_AFTER_MS })
    expect(book.look(served([PODS]), 'v1.36.3', T + GONE_AFTER_MS - 1)).toEqual({ changed: null, againAtMs: T + GONE_AFTER_MS })
    expect(book.look(served([PODS]), 'v1.36.3', T + GONE_AFTER_MS)).toEqual({
      changed: { kubernetesVersion: 'v1.36.3', apis: { v1: ['Pod'] } },
      againAtMs: null,
    })
  })

  test('what comes back in time was never gone; what is new counts at once', () => {
    const book = new FactsBook(both)
    book.look(served([PODS]), 'v1.36.3', T)
    expect(book.look(served([PODS, MONITORS]), 'v1.36.3', T + 5)).toEqual({ changed: null, againAtMs: null })
    expect(book.look(served([PODS]), 'v1.36.3', T + GONE_AFTER_MS).changed).toBeNull()
    const more = book.look(served([PODS, 'new/v1/Thing']), 'v1.36.3', T + GONE_AFTER_MS + 1)
    expect(Object.keys(more.changed?.apis ?? {})).toEqual(['mon/v1', 'new/v1', 'v1'])
  })

  test.each([
    ['entries', (n: number) => Array.from({ length: n - 1 }, (_, i) => `g/v1/K${i}`), FACTS_APIS_MAX, undefined],
    ['one entry more', (n: number) => Array.from({ length: n }, (_, i) => `g/v1/K${i}`), FACTS_APIS_MAX, true],
    ['too many characters', (n: number) => Array.from({ length: n }, (_, i) => `g/v1/K${'x'.repeat(200)}${i}`), 300, true],
  ] as const)('FA2 at most so many: %s', (_, make, n, cut) => {
    const doc = factsOf(new Set(['g/v1', ...make(n)]), 'v1')
    expect(doc.cut).toBe(cut as true)
    if (cut) expect(doc.apis).toEqual({ 'g/v1': [] })
    expect(JSON.stringify(doc).length).toBeLessThanOrEqual(FACTS_CHARS_MAX)
    expect(factsStatusSchema.safeParse(doc).success).toBe(true)
  })

  test('FA2 the server refuses a row with more entries, over however many versions', () => {
    const doc = (versions: number) => {
      const apis = Array.from({ length: versions }, (_, n) => [`g${n}/v1`, ['A', 'B']])
      return { kubernetesVersion: 'v1', apis: Object.fromEntries(apis) }
    }
    const most = FACTS_APIS_MAX / 3
    expect([most, most + 1].map((versions) => factsStatusSchema.safeParse(doc(versions)).success)).toEqual([true, false])
  })
})

describe('FA3 what the server knows', () => {
  const id = (n: number) => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)
  const row = (doc: unknown) => ({ kind: 'facts' as const, key: 'cluster', rev: 1, doc })
  const entry = (n: number, doc: unknown): StatusEntry => ({ clusterId: id(n), kind: 'facts', key: 'cluster', rev: 1, doc, receivedMs: 1 })

  const knownOf = (entries: StatusEntry[], read = Promise.resolve()) =>
    createKnownFacts(
      {
        listClusters: async () => [1, 2, 3, 4].map((n) => ({ clusterId: id(n) }) as ClusterRecord),
        listStatus: async ({ clusterId }) => read.then(() => entries.filter((one) => one.clusterId === clusterId)),
      },
      systemClock,
    )

  test('equal facts are one object; of a cluster that said none, nothing is known', async () => {
    const known = knownOf([entry(1, both), entry(2, both), entry(3, { kubernetesVersion: 7 })])
    const facts = await known.of([id(1), id(2), id(3), id(4)])
    expect(facts.get(id(1))).toEqual({
      kubernetesVersion: 'v1.36.3',
      apiVersions: { v1: true, 'v1/Pod': true, 'mon/v1': true, 'mon/v1/Monitor': true },
    })
    expect(facts.get(id(2))).toBe(facts.get(id(1)))
    expect([...facts.keys()]).toEqual([id(1), id(2)])
  })

  test('a report changes what is known once; what was reported while the store was read is newer', async () => {
    const read = Promise.withResolvers<void>()
    const known = knownOf([entry(1, both)], read.promise)
    const versionOf = async () => (await known.of([id(1)])).get(id(1))?.kubernetesVersion
    const loading = known.of([id(1)])
    const newer = { kubernetesVersion: 'v1.37.0', apis: {} }
    expect([known.reported(id(1), [row(newer)]), known.reported(id(1), [row(newer)]), known.reported(id(1), [])]).toEqual([
      true,
      false,
      false,
    ])
    read.resolve()
    expect((await loading).get(id(1))).toEqual(toFacts(newer))
    expect(known.reported(id(1), [row(null)])).toBe(true)
    expect(await versionOf()).toBeUndefined()
    known.reported(id(1), [row(both)])
    expect(await versionOf()).toBe('v1.36.3')
  })
})
