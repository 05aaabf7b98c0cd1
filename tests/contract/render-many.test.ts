// A service with very many clusters: what a pass costs, and that others have their turn meanwhile.
import { expect, setDefaultTimeout, test } from 'bun:test'
import type { RenderCluster } from '../../server/ingest/render/dependency-values.ts'
import { ServiceRenderer, type ServiceRendererDeps } from '../../server/ingest/render/service-render.ts'
import { createRenderCache } from '../../server/render/cache/renders.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { type ContentKit, contentOf } from '../support/local-workers.ts'
import { memoryRendering, testMac } from '../support/render-kit.ts'

setDefaultTimeout(60_000)
const COUNT = 5_000
const SHOP = { project: 'default', service: 'shop' }
const clusters = Array.from({ length: COUNT }, (_, index): RenderCluster => {
  return { clusterId: `c${index}` as ClusterId, name: `cluster-${index}`, labels: { env: 'prod', own: `o${index}` } }
})

/** Of one template at one revision. */
function rendererOf(text: string) {
  const file = { bytes: new TextEncoder().encode(text) }
  const tree = {
    id: async (path: string) => (path === 'shop' || path === 'shop/a.yaml.liquid' ? `id of ${path}` : null),
    list: async () => [{ name: 'a.yaml.liquid', kind: 'file' }],
    file: async () => file,
    files: async () => new Map([['shop/a.yaml.liquid', file]]),
  }
  const source = { has: async () => true, open: async () => ({ tree, root: 'shop', version: 'abc' }) }
  const macs = { characters: 0 }
  const mac = (of: string) => {
    macs.characters += of.length
    return testMac(of)
  }
  const made = memoryRendering()
  const renders = { count: 0 }
  const raw = made.renderers.raw
  const store = {
    getResource: async ({ kind }: { kind: string }) =>
      kind === 'Project' ? null : { uid: 'u', spec: JSON.stringify({ git: { url: 'https://git.example/apps', ref: 'main' } }) },
    repositoryState: async () => ({ commit: 'abc' }),
    desiredOfService: async () => [],
  }
  const counted = (job: Parameters<typeof raw>[0]) => {
    renders.count += 1
    return raw(job)
  }
  const read = contentOf({
    ...{ ...made, renderers: { ...made.renderers, raw: counted }, cache: createRenderCache({ mac, files: null }), store },
    sources: { open: () => source },
  } as unknown as ContentKit)
  const deps = {
    ...{ ...read.rendering, sources: read.sources, store, clock: systemClock, log: silentLogger },
    content: { get: async () => null },
    facts: async (ids: readonly ClusterId[]) => new Map(ids.map((id) => [id, { kubernetesVersion: 'v1.36.0', apiVersions: { v1: true } }])),
    signal: new AbortController().signal,
  } as unknown as ServiceRendererDeps
  const renderer = new ServiceRenderer(deps)
  const spec = (change: Record<string, unknown> = {}) =>
    serviceSpecSchema.parse({ source: { repository: 'apps', path: 'shop' }, targets: { selector: {} }, namespace: 'shop', ...change })
  return { render: (change?: Record<string, unknown>) => renderer.render(SHOP, spec(change), clusters), renders, macs }
}
const configMap = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { value: "${value}" }\n`

test('IC3 each cluster another render: others have their turn meanwhile', async () => {
  const { render, renders } = rendererOf(configMap('{{ cluster.name }}'))
  let turns = 0
  const timer = setInterval(() => {
    turns += 1
  }, 1)
  const first = await render()
  clearInterval(timer)
  expect([first.kind, renders.count]).toEqual(['good', COUNT])
  expect(turns).toBeGreaterThan(20)
})

test('WK8 a render with thousands of warnings has its objects, and the first warnings', async () => {
  const documents = Array.from({ length: 3_000 }, (_, n) => `${configMap('x').replace('name: a', `name: a${n}`)}on: ${'y'.repeat(5)}\n`)
  const { render } = rendererOf(documents.join('---\n'))
  const rendering = await render()
  expect([rendering.kind, rendering.kind === 'good' && rendering.warnings.length]).toEqual(['good', 200])
})

test('IC14 what fails in each cluster in another way is not rendered again in each pass', async () => {
  const many = rendererOf(`${configMap('{{ cluster.labels.own }}')}{{ cluster.labels.none }}${'# '.padEnd(20_000, 'x')}`)
  expect((await many.render()).kind).toBe('failed')
  const { count } = many.renders
  expect(count).toBeGreaterThan(1)
  await many.render()
  expect(many.renders.count).toBe(count)
})

test('RL5 what clusters have in common is looked through once, however many look at facts', async () => {
  const { render, macs } = rendererOf(configMap('{{ cluster.facts.kubernetesVersion }}'))
  const config = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`name${index}`, 'value']))
  expect((await render({ config })).kind).toBe('good')
  expect(macs.characters / COUNT).toBeLessThan(1_000)
})
