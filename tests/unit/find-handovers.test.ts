// Who gains what a service is about to lose, looked up for a whole fleet at once.
import { expect, test } from 'bun:test'
import { encodeRenderedSet } from '../../server/desired/rendered-set.ts'
import type { DesiredService } from '../../server/fleet/records.ts'
import { findHandovers, type HandoverDeps } from '../../server/ingest/find-handovers.ts'
import { objectRowPrefix, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import { type ClusterId, clusterIdSchema, type ServiceId } from '../../shared/runtime/ids.ts'

const GIVER: ServiceId = { project: 'web', service: 'giver' }
const TAKER: ServiceId = { project: 'web', service: 'taker' }
const X = '/ConfigMap/web/x'
const clusterId = (n: number): ClusterId => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)
const docOf = (digest: string, change: Partial<ServiceRow> = {}): ServiceRow =>
  serviceRowSchema.parse({ commit: 'c', digest, count: 1, sync: {}, ...change })
const setOf = (id: ServiceId, names: string[]) => encodeRenderedSet(new Map(names.map((name) => [objectRowPrefix(id) + name, '{}'])))

function world(labels: readonly string[], takerRows: ReadonlyMap<number, ServiceRow>) {
  const clusters = labels.map((env, n) => ({ clusterId: clusterId(n), name: `site-${n}`, labels: { env } }))
  const row = (id: ServiceId, n: number, doc: ServiceRow, setSha: string): DesiredService => ({
    ...id,
    clusterId: clusterId(n),
    doc,
    placedBy: '',
    ordinal: 1,
    setSha,
  })
  const shared = docOf('g1')
  const current = labels.map((_, n) => row(GIVER, n, shared, 'with-x'))
  const spec = { source: { repository: 'apps', path: 'taker' }, targets: { selector: { matchLabels: { env: 'prod' } } } }
  const takes = new Map([[objectRowPrefix(TAKER) + X, '{}']])
  const deps = {
    store: {
      getResource: async ({ kind }: { kind: string }) => (kind === 'Project' ? null : { spec: JSON.stringify(spec), deletingMs: null }),
      desiredOfService: async () => [...takerRows].map(([n, doc]) => row(TAKER, n, doc, doc.digest === 't2' ? 'taker-x' : 'empty')),
    },
    content: {
      get: async (sha: string) =>
        sha === 'with-x' ? setOf(GIVER, [X]) : sha === 'taker-x' ? setOf(TAKER, [X]) : setOf(TAKER, ['/ConfigMap/web/y']),
    },
    renderer: { rendersNaming: (names: ReadonlySet<string>) => (names.has(X) ? [{ id: TAKER, objectsIn: () => takes }] : []) },
  } as unknown as HandoverDeps
  const targets = new Set(clusters.map(({ clusterId: id }) => id))
  const render = { digest: 'g2', objects: new Map() }
  const find = () => findHandovers(deps, GIVER, current, clusters, () => render, targets)
  return { current, find }
}

test('PR8 each cluster is told by what the taker holds there', async () => {
  const rows = new Map([
    [1, docOf('t1')],
    [2, docOf('t2')],
    [3, docOf('t2', { removal: { policy: 'prune', by: 'x', atMs: 1, why: '' } })],
  ])
  const { current, find } = world(['prod', 'prod', 'prod', 'prod', 'test'], rows)
  const handover = await find()
  const to = { object: X, ...TAKER }
  const found = current.map((row) => handover(row, 'revision'))
  expect(found).toEqual([[to], [{ ...to, after: 't1' }], [to], [{ ...to, after: 't2' }], []])
})

test('PR8 of a large fleet clusters that hold the same share one answer', async () => {
  const count = 3_000
  const { current, find } = world(
    Array.from({ length: count }, () => 'prod'),
    new Map(Array.from({ length: count }, (_, n) => [n, docOf(n % 2 === 0 ? 't1' : 't2')])),
  )
  const handover = await find()
  const answers = new Set(current.map((row) => handover(row, 'revision')))
  expect(answers.size).toBe(2)
})
