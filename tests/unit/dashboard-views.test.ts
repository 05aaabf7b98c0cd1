// Words and views of the dashboard that need a page around them: what needs a person, what an action reaches, equal
// events, saved views, revisions that were healthy, and the reads that an outage makes old.
import { beforeAll, expect, test } from 'bun:test'
import type { Attention } from '../../shared/model/attention.ts'
import type { EventView } from '../../shared/model/views.ts'
import { standInForBrowser } from '../support/browser-page.ts'

let blast: typeof import('../../server/dashboard/ui/state/blast.ts')
let feed: typeof import('../../server/dashboard/ui/parts/feed.tsx')
let needs: typeof import('../../server/dashboard/ui/state/needs.ts')
let reads: typeof import('../../server/dashboard/ui/state/reads.ts')
let series: typeof import('../../server/dashboard/ui/parts/series.tsx')
let strip: typeof import('../../server/dashboard/ui/parts/revision-strip.tsx')
let views: typeof import('../../server/dashboard/ui/state/list-view.ts')
let rows: typeof import('../../server/dashboard/ui/parts/virtual-rows.tsx')
beforeAll(async () => {
  standInForBrowser()
  blast = await import('../../server/dashboard/ui/state/blast.ts')
  feed = await import('../../server/dashboard/ui/parts/feed.tsx')
  needs = await import('../../server/dashboard/ui/state/needs.ts')
  reads = await import('../../server/dashboard/ui/state/reads.ts')
  series = await import('../../server/dashboard/ui/parts/series.tsx')
  strip = await import('../../server/dashboard/ui/parts/revision-strip.tsx')
  views = await import('../../server/dashboard/ui/state/list-view.ts')
  rows = await import('../../server/dashboard/ui/parts/virtual-rows.tsx')
})

const change = (topic: string, more: object = {}) => ({
  id: 1,
  atMs: 1,
  topic,
  cluster: null,
  project: null,
  name: null,
  keys: null,
  ...more,
})
test.each([
  ['an outage of a cluster', 'event', { cluster: 'c-1' }, true],
  ['an event of the server alone', 'event', {}, false],
  ['a report of the service', 'status', { cluster: 'c-1', keys: ['service/shop/web'] }, true],
  ['a report of an object of the service', 'status', { cluster: 'c-1', keys: ['object/shop/web/apps/Deployment/n/x'] }, true],
  ['a report of a service whose name begins alike', 'status', { cluster: 'c-1', keys: ['service/shop/web-2'] }, false],
  ['a report with too many keys to name', 'status', { cluster: 'c-1' }, true],
  ['a new revision of another service', 'desired', { project: 'shop', name: 'api' }, false],
] as const)('a page of a service is read again after %s: %s', (_, topic, more, isConcerned) => {
  expect(reads.concernsService('shop', 'web')(change(topic, more))).toBe(isConcerned)
})

const event = (id: number, cluster: string | null, message = 'm'): EventView =>
  ({ id, atMs: id, type: 'Normal', reason: 'r', message, cluster, project: 'p', service: 's', object: null }) as EventView
test('the same in several clusters is one sentence; again in one cluster it is said again, with its cluster', () => {
  const said = (items: EventView[]) => feed.grouped(items).map((one) => [one.event.id, one.clusters])
  expect(said([event(1, 'a'), event(2, 'b'), event(3, 'c')])).toEqual([[1, 3]])
  expect(said([event(1, 'a'), event(2, 'a')])).toEqual([
    [1, 1],
    [2, 1],
  ])
  expect(said([event(1, null), event(2, null)])).toEqual([
    [1, 1],
    [2, 1],
  ])
})

test('each kind that needs a person leads somewhere, and what can be done at once is offered', () => {
  const of = { id: 'x', sinceMs: 1, project: 'shop', service: 'web' }
  const clusters = { count: 1, first: ['oslo'] }
  const confirmation = {
    ...{ id: 'k1', kind: 'leave_targets', project: 'shop', service: 'web', cluster: null, names: ['oslo'], why: 'w' },
    ...{ createdMs: 1, confirmedMs: null, confirmedBy: null },
  }
  const all: Attention[] = [
    { kind: 'restore', id: 'restore', sinceMs: 1 },
    { kind: 'confirmation', id: 'k1', sinceMs: 1, confirmation },
    { kind: 'render', ...of, message: 'm', problems: [] },
    { kind: 'repository', id: 'r', sinceMs: 1, project: 'shop', repository: 'apps', message: 'm' },
    { kind: 'contested', ...of, objects: 1, clusters },
    { kind: 'sync', ...of, clusters },
  ]
  const shown = all.map(needs.needOf)
  expect(shown.map(({ href, action }) => [href.replace('/skerry/dashboard/', ''), action?.kind])).toEqual([
    ['settings', undefined],
    ['needs-you/k1', undefined],
    ['services/shop/web', undefined],
    ['repositories/shop/apps', 'refresh'],
    ['clusters/oslo/shop/web', undefined],
    ['services/shop/web', 'sync'],
  ])
  expect(shown[1]?.title).toContain('clusters')
})

test('an action names exactly what it reaches', () => {
  const row = (cluster: string, service: string, word = 'Online') =>
    ({ project: 'p', service, cluster, liveness: { word, lastSeenMs: 1 } }) as never
  const all = [row('b', 'web'), row('a', 'web', 'Offline')]
  expect(blast.blastOf(all, { service: { project: 'p', name: 'web' } })).toEqual({
    names: ['a', 'b'],
    services: 1,
    clusters: 2,
    placements: 2,
    offline: 1,
  })
  expect(blast.blastOf([row('a', 'web'), row('a', 'api')], { cluster: 'a' }).names).toEqual(['p/api', 'p/web'])
  expect(blast.blastOf([], { cluster: 'a' })).toEqual({ names: [], services: 0, clusters: 0, placements: 0, offline: 0 })
})

test.each([
  ['as many placements as it reads', 20, false],
  ['more of them', 21, true],
])('an action on %s says whether its numbers are those of all', async (_, pages, isCut) => {
  const before = globalThis.fetch
  const row = { project: 'p', service: 'web', liveness: { word: 'Online', lastSeenMs: 1 } }
  globalThis.fetch = (async (url: string) => {
    const at = Number(new URL(url, 'http://localhost').searchParams.get('continue') ?? '0') + 1
    const items = Array.from({ length: 500 }, (_one, index) => ({ ...row, cluster: `c-${at}-${index}` }))
    return Response.json({ items, continue: at === pages ? null : String(at) })
  }) as never
  try {
    expect(await blast.readBlast({ service: { project: 'p', name: 'web' } })).toMatchObject({ clusters: blast.BLAST_MAX, isCut })
  } finally {
    globalThis.fetch = before
  }
})

test('order and columns are read from the address, and a saved view is the address without the open row', () => {
  expect(views.readSort('-seen', 'state')).toEqual({ key: 'seen', isDown: true })
  expect(views.readSort(undefined, 'state')).toEqual({ key: 'state', isDown: false })
  expect(views.nextSort({ key: 'seen', isDown: false }, 'seen')).toEqual({ key: 'seen', isDown: true })
  expect(views.nextSort({ key: 'seen', isDown: true }, 'name')).toEqual({ key: 'name', isDown: false })
  const columns = [{ key: 'name' }, { key: 'state' }, { key: 'drifts', isExtra: true }]
  expect(views.chosenColumns(columns, '').map(({ key }) => key)).toEqual(['name', 'state'])
  expect(views.chosenColumns(columns, 'drifts').map(({ key }) => key)).toEqual(['name', 'drifts'])
  views.saveView('clusters', 'mine', { state: 'bad', cluster: 'oslo' })
  views.saveView('clusters', 'other', {})
  expect(views.viewsOf('clusters')).toEqual([
    { name: 'mine', query: '?state=bad' },
    { name: 'other', query: '' },
  ])
  views.forgetView('clusters', 'mine')
  expect(views.viewsOf('clusters').map(({ name }) => name)).toEqual(['other'])
})

test('the head of a group stands before its first row, with the number of its rows', () => {
  const lines = rows.linesOf(['a1', 'a2', 'b1'], (one) => one.charAt(0))
  expect(lines.map((one) => (one.kind === 'head' ? `${one.name} ${one.count}` : one.item))).toEqual(['a 2', 'a1', 'a2', 'b 1', 'b1'])
})

test('a revision is marked healthy when the cluster reported so, now or earlier', () => {
  const none = { desired: null, applied: null, healthy: null }
  const history = [
    { commit: 'c3', health: 'Degraded' as const },
    { commit: 'c2', health: 'Healthy' as const },
  ]
  expect([...strip.healthyCommits(none, history)]).toEqual(['c2'])
  expect([...strip.healthyCommits({ ...none, healthy: { commit: 'c1', digest: 'd', atMs: 1 } }, [])]).toEqual(['c1'])
})

test('events are counted by half hours up to now; what is older is left out', () => {
  const now = 1_000 * 1_800_000 + 5
  const slots = series.slotsOf(
    [
      [1_000, 'Normal', 2],
      [1_000, 'Warning', 1],
      [953, 'Normal', 7],
      [952, 'Normal', 9],
    ],
    now,
  )
  expect([slots.length, slots.at(-1), slots[0]?.all]).toEqual([48, { fromMs: 1_800_000_000, all: 3, warnings: 1 }, 7])
})
