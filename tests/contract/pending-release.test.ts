// A server that got a new version of a render tool: what the fleet has stays until a person says yes. A tool of its own
// stands for helm, with everything behind it real.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { allowSync } from '../../server/actions/sync-actions.ts'
import { createFleetViews } from '../../server/http/fleet-views.ts'
import type { GoodRender, Rendering } from '../../server/ingest/render/rendering.ts'
import type { ServiceRenderer } from '../../server/ingest/render/service-render.ts'
import { passService } from '../../server/ingest/service-pass.ts'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { objectRowPrefix } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'

/** What the tool makes of a commit in a cluster: text of its one ConfigMap. */
type Make = (commit: string, cluster: string, version: string) => string

let kit: IngestKit
let clusters: ClusterId[]
let version: string
let head: string
let make: Make
let asked: string[]
beforeEach(async () => {
  kit = await createIngestKit()
  clusters = [await kit.join('1'), await kit.join('2'), await kit.join('3')]
  await kit.service()
  ;[version, head, asked] = ['4.1.0', 'c1', []]
  make = (commit) => commit
})
afterEach(() => kit.close())

const renderer = {
  forget() {},
  againMs: () => null,
  rendersNaming: () => [],
  async render(_: unknown, __: unknown, wanted: ReadonlyArray<{ clusterId: ClusterId; name: string }>, at?: Record<string, string>) {
    const commit = at?.['apps'] ?? head
    asked.push(commit)
    const renders = new Map<string, GoodRender>()
    const rendering: Rendering = {
      kind: 'good',
      release: { commit, revisions: { apps: commit }, tools: { helm: version } },
      clusters: new Map(
        wanted.map(({ clusterId, name }) => {
          const text = make(commit, name, version)
          const doc = canonicalJson({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'shop' }, data: { text } })
          const objects = new Map([[`${objectRowPrefix(SHOP)}/ConfigMap/shop/a`, doc]])
          const render = renders.get(text) ?? { kind: 'rendered', objects, digest: sha256Hex(doc), count: 1, hooks: 0 }
          renders.set(text, render)
          return [clusterId, render]
        }),
      ),
      forNobody: null,
      warnings: [],
    }
    return rendering
  },
} as unknown as ServiceRenderer

const pass = () =>
  passService({ store: kit.store, content: kit.content, shards: kit.shards, renderer, clock: systemClock, log: silentLogger }, SHOP, {})
const digests = async () => Promise.all(clusters.map(async (clusterId) => (await kit.row(clusterId))?.digest ?? null))
const question = async () => (await kit.store.listConfirmations())[0]
const tools = async () => (await kit.store.renderState(SHOP)).release?.tools

describe('a new version of a render tool', () => {
  test('RL3 that makes the same of it is taken without a word, and new commits flow', async () => {
    await pass()
    const before = await digests()
    version = '4.2.0'
    await pass()
    expect([await digests(), await question(), await tools()]).toEqual([before, undefined, { helm: '4.2.0' }])
    head = 'c2'
    await pass()
    expect(await digests()).not.toEqual(before)
  })

  test('RL3 that makes something else of it changes nothing and asks, once, with versions, objects and clusters', async () => {
    await pass()
    const before = await digests()
    version = '4.2.0'
    make = (commit, cluster, by) => (cluster === 'cluster-3' ? commit : `${commit} by ${by}`)
    await pass()
    await pass()
    expect([await digests(), await tools()]).toEqual([before, { helm: '4.1.0' }])
    const held = await question()
    expect(held).toMatchObject({ kind: 'release', names: ['ConfigMap shop/a'], cluster: null })
    expect(held?.why).toEqual(naming('helm 4.1.0 → 4.2.0', '2 of 3 clusters', '1 object', 'new commits'))
    expect((await kit.events()).filter((event) => event.startsWith('ConfirmationNeeded'))).toHaveLength(1)
    expect((await kit.store.revisions(SHOP, { limit: 9 })).length).toBe(1)
  })

  test('RL3 a yes lets it flow; the commits that waited with it come, too', async () => {
    await pass()
    version = '4.2.0'
    make = (commit, _, by) => `${commit} by ${by}`
    await pass()
    const first = await question()
    head = 'c2'
    await pass()
    expect((await question())?.id).toBe(first?.id ?? '') // a commit makes it no other question
    expect(new Set(asked)).toEqual(new Set(['c1', 'c2']))
    await kit.store.confirm(first?.id ?? '', 'ada', 5)
    await pass()
    expect(await tools()).toEqual({ helm: '4.2.0' })
    expect(await kit.store.confirmationsOfService(SHOP)).toEqual([])
    expect((await kit.row(clusters[0] as ClusterId))?.commit).toBe('c2')
    const after = await digests()
    await pass()
    expect(await digests()).toEqual(after)
  })

  test('RL3 a commit that came together with it flows when the tool makes the same of what is published', async () => {
    await pass()
    version = '4.2.0'
    head = 'c2'
    await pass()
    expect([await question(), (await kit.row(clusters[0] as ClusterId))?.commit]).toEqual([undefined, 'c2'])
  })

  test('RL3 with the old version back the question goes; while it waits nobody joins, and who leaves leaves', async () => {
    await pass()
    version = '4.2.0'
    make = (commit, _, by) => (by === '4.1.0' ? commit : by)
    await pass()
    const late = await kit.join('4')
    await kit.relabel('cluster-1', { env: 'test' })
    await pass()
    expect(await kit.row(late)).toBeNull()
    expect((await kit.row(clusters[0] as ClusterId))?.removal).toBeDefined()
    version = '4.1.0'
    await pass()
    expect(await kit.store.confirmationsOfService(SHOP)).toEqual([])
    expect(await kit.row(late)).not.toBeNull()
  })

  test('RL3 another new version is another question; a yes to the first is none to it', async () => {
    await pass()
    make = (commit, _, by) => `${commit} by ${by}`
    version = '4.2.0'
    await pass()
    const first = await question()
    await kit.store.confirm(first?.id ?? '', 'ada', 5)
    version = '4.3.0'
    const before = await digests()
    await pass()
    expect((await question())?.why).toContain('helm 4.1.0 → 4.3.0')
    expect(await digests()).toEqual(before)
  })
})

test('RL3 TG17 a sync meanwhile says which question waits', async () => {
  await kit.service({ sync: { mode: 'manual' } })
  await pass()
  version = '4.2.0'
  make = (commit, _, by) => `${commit} by ${by}`
  await pass()
  const deps = { ...kit, ingest: { serviceChanged: async () => void (await pass()) }, clock: systemClock, log: silentLogger }
  const digest = (await kit.row(clusters[0] as ClusterId))?.digest ?? ''
  const failure = await allowSync(deps, SHOP, { digest }, 'ada').catch((error: unknown) => error)
  const { id = '', why = '' } = (await question()) ?? {}
  expect(failure).toMatchObject({ code: 'conflict', data: { detail: expect.stringContaining(why) } })
  expect((failure as AppError).remedy).toEqual(naming(`\`skerry confirm ${id}\``, 'sync again'))
})

test('FA6 a cluster that just joined gets what looks at facts with its first word, or after a minute without', async () => {
  await pass()
  const late = await kit.join('4')
  const joinedMs = (await kit.store.clusterByName('cluster-4'))?.joinedMs ?? 0
  const known = new Map<ClusterId, unknown>()
  const asking = {
    ...renderer,
    async render(...args: Parameters<typeof renderer.render>) {
      const rendering = await renderer.render(...args)
      if (rendering.kind !== 'good') return rendering
      const looked = [...rendering.clusters].map(([id, render]) => [id, { ...render, factsKey: 'm' }] as const)
      return { ...rendering, clusters: new Map(looked) }
    },
  } as unknown as ServiceRenderer
  const passAt = (nowMs: number) => {
    const deps = {
      store: kit.store,
      content: kit.content,
      shards: kit.shards,
      renderer: asking,
      log: silentLogger,
      factsOf: async () => known,
    }
    return passService({ ...deps, clock: { ...systemClock, nowMs: () => nowMs } }, SHOP, {})
  }
  expect([(await passAt(joinedMs + 59_999)).young, await kit.row(late)]).toEqual([
    { clusters: new Set([late]), untilMs: joinedMs + 60_000 },
    null,
  ])
  known.set(late, {})
  expect([(await passAt(joinedMs + 59_999)).young, (await kit.row(late))?.commit]).toEqual([null, 'c1'])
  known.clear()
  const later = await kit.join('5')
  await passAt(joinedMs + 59_999)
  expect(await kit.row(later)).toBeNull()
  expect([(await passAt(joinedMs + 60_000)).young, (await kit.row(later))?.commit]).toEqual([null, 'c1'])
})

describe('clusters whose render fails', () => {
  const failFor = (names: readonly string[]) => {
    const inner = renderer.render.bind(renderer)
    return {
      ...renderer,
      async render(...args: Parameters<typeof inner>) {
        const rendering = await inner(...args)
        if (rendering.kind !== 'good') return rendering
        const ids = new Set((await kit.store.listClusters()).flatMap(({ clusterId, name }) => (names.includes(name) ? [clusterId] : [])))
        const failed = { kind: 'failed' as const, error: { code: 'render_failed', message: 'no region', problems: [] } }
        return { ...rendering, clusters: new Map([...rendering.clusters].map(([id, render]) => [id, ids.has(id) ? failed : render])) }
      },
    } as unknown as ServiceRenderer
  }

  test('RL7 are shown with why, next to those that have it, in every list and count; what has no revision keeps none', async () => {
    await pass()
    await kit.join('4')
    head = 'c2'
    const deps = { store: kit.store, content: kit.content, shards: kit.shards, clock: systemClock, log: silentLogger }
    await passService({ ...deps, renderer: failFor(['cluster-1', 'cluster-4']) }, SHOP, {})
    const git = JSON.stringify({ git: { url: 'https://git.example/a.git', ref: 'main' }, poll: '60s' })
    await kit.store.applyResource({ kind: 'Repository', project: SHOP.project, name: 'apps' }, { labels: {}, spec: git, nowMs: 1 })
    const views = createFleetViews(kit.store, systemClock, { pendingSinceMs: async () => null })
    const service = await kit.store.getResource({ kind: 'Service', project: SHOP.project, name: SHOP.service })
    const [one] = await views.resources(service === null ? [] : [service])
    const [listed] = await views.listed(service === null ? [] : [service])
    for (const view of [one, listed]) {
      if (view?.kind !== 'Service') throw new Error('no service')
      expect([view.status.clusters.total, view.status.reason]).toEqual([4, 'RenderFailed'])
      expect(view.status.message).toEqual(naming('cluster-4', 'last good revision'))
    }
    const said = (await views.placementsOfService(SHOP)).filter(({ reason }) => reason === 'RenderFailed')
    expect(said.map(({ cluster, desired }) => [cluster, desired === null])).toEqual([['cluster-4', true]])
    const late = await kit.store.clusterByName('cluster-4')
    const [there] = late === null ? [] : await views.placementsInCluster(late)
    expect(there).toMatchObject({ service: SHOP.service, sync: 'OutOfSync', health: 'Missing', reason: 'RenderFailed' })
    expect(there?.message).toEqual(naming('no region', 'nothing is published'))
    expect(there?.next).toStartWith('Fix the manifests')
    await pass()
    expect((await views.placementsOfService(SHOP)).filter(({ reason }) => reason === 'RenderFailed')).toEqual([])
  })

  test('RL3 are asked about when they render again, if a new version of a tool makes something else for them', async () => {
    await pass()
    const before = await digests()
    const deps = { store: kit.store, content: kit.content, shards: kit.shards, clock: systemClock, log: silentLogger }
    version = '4.2.0'
    make = (commit, cluster, by) => (cluster === 'cluster-1' ? `${commit} by ${by}` : commit)
    await passService({ ...deps, renderer: failFor(['cluster-1']) }, SHOP, {})
    expect([await question(), await tools()]).toEqual([undefined, { helm: '4.1.0' }])
    await pass()
    expect((await question())?.why).toEqual(naming('helm 4.1.0 → 4.2.0', '1 of 3 clusters'))
    expect(await digests()).toEqual(before)
    make = (commit) => commit
    await pass()
    expect([await question(), await tools(), await digests()]).toEqual([undefined, { helm: '4.2.0' }, before])
  })

  test('RL1 keep what they have, and do not join; the others go on, and the error names them', async () => {
    await pass()
    const [kept] = await digests()
    const late = await kit.join('4')
    head = 'c2'
    const deps = { store: kit.store, content: kit.content, shards: kit.shards, clock: systemClock, log: silentLogger }
    const failing = failFor(['cluster-1', 'cluster-4'])
    await passService({ ...deps, renderer: failing }, SHOP, {})
    const [first, second] = await digests()
    expect([first, await kit.row(late)]).toEqual([kept ?? '', null])
    expect(second).not.toBe(kept ?? '')
    expect((await kit.store.renderState(SHOP)).error?.message).toEqual(naming('2 of 4', 'cluster-1, cluster-4', 'no region'))
    await kit.relabel('cluster-1', { env: 'test' })
    await passService({ ...deps, renderer: failing }, SHOP, {})
    expect((await kit.row(clusters[0] as ClusterId))?.removal).toBeDefined()
  })
})
