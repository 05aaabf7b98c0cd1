// From commits to what each cluster shall have, with real Git, real helm and kustomize: as few renders as there are
// differences, and an error only where it belongs.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { decodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { createCacheFiles } from '../../server/render/cache/files.ts'
import { createRenderCache } from '../../server/render/cache/renders.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryRendering, testMac } from '../support/render-kit.ts'

const SECRET = 'hunter2-and-more'
let kit: IngestKit
let sandbox: Sandbox
/** Renderers that ran, by name, and programs. */
let ran: string[]
/** How far the clock is ahead, ms. */
let lateness: number
/** Programs are too slow. */
let outOfTime: boolean
let configsRead: number
let configs: Record<string, { data: Record<string, unknown>; secrets: Record<string, string> }>
beforeEach(async () => {
  ran = []
  configs = {}
  configsRead = 0
  sandbox ??= realSandbox()
  lateness = 0
  outOfTime = false
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + lateness }
  kit = await createIngestKit({ rendering: (dir) => rendering(dir), clock })
  await kit.git.commit({ 'shop/a.yaml': configMap('a', 'one') }, 'first')
  await kit.repository()
})
afterEach(() => kit.close())

function rendering(dir: string) {
  const renderers = Object.fromEntries(
    Object.entries(createRenderers()).map(([name, renderer]) => [
      name,
      (job: Parameters<typeof renderer>[0]) => {
        ran.push(name)
        return renderer(job)
      },
    ]),
  ) as ReturnType<typeof createRenderers>
  const files = createCacheFiles({
    dir: join(dir, 'renders'),
    seal: loadSecretBox(join(dir, 'keys')),
    clock: systemClock,
    bytesMax: 10_000_000,
  })
  return {
    ...memoryRendering({
      version: (program) => sandbox.version(program),
      run: async (run, signal) => {
        ran.push(`run ${String(run.program)}`)
        if (outOfTime) return { kind: 'stopped', why: 'time', message: 'took longer than 30 s', stderr: '' }
        return sandbox.run(run, signal)
      },
    }),
    renderers,
    cache: createRenderCache({ mac: testMac, files }),
    config: async (_: string, name: string) => {
      configsRead += 1
      return configs[name] ?? null
    },
  }
}

/** What a cluster shall have of a service: names and data. */
async function data(clusterId: ClusterId, service = 'shop'): Promise<Record<string, unknown>> {
  const row = (await kit.store.desiredInCluster(clusterId)).find((candidate) => candidate.service === service)
  const bytes = row?.setSha == null ? null : await kit.content.get(row.setSha)
  const docs = bytes === null ? [] : [...decodeRenderedSet(bytes).values()].map((doc) => JSON.parse(doc))
  return Object.fromEntries(docs.map((doc) => [doc.metadata.name, doc.data ?? doc.metadata.labels ?? {}]))
}
const error = async (service = 'shop') => (await kit.store.renderState({ ...SHOP, service })).error
const took = () => ran.splice(0)
const template = (name: string, value: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata: { value: "${value}" }\n`

describe('one render where nothing differs', () => {
  test('IC3 plain manifests are rendered once for all clusters, whatever their labels', async () => {
    for (const digit of ['1', '2', '3', '4']) await kit.join(digit, { env: 'prod', digit })
    await kit.service()
    expect(took()).toEqual(['raw'])
    await kit.relabel('cluster-2', { env: 'prod', other: 'label' })
    await kit.push({ 'README.md': 'not of this service' })
    expect(took()).toEqual([])
  })

  test('RD11 IC3 IC13 a folder for each value of a label: one render each, a commit renders the one it changes, and who has none keeps the rest', async () => {
    const [one, two, three] = [
      await kit.join('1', { env: 'prod' }),
      await kit.join('2', { env: 'test' }),
      await kit.join('3', { env: 'prod' }),
    ]
    const folder = (env: string, value: string) => ({ [`sites/${env}/a.yaml`]: configMap('a', value) })
    await kit.push({ ...folder('prod', 'one'), ...folder('test', 'one') })
    await kit.service({ source: { repository: 'apps', path: 'sites/{{ cluster.labels.env }}' }, targets: { selector: {} } })
    expect(took()).toEqual(['raw', 'raw'])
    await kit.push(folder('test', 'two'))
    expect(took()).toEqual(['raw'])
    await kit.push({ 'sites/dev/a.yaml': configMap('a', 'one') })
    expect(took()).toEqual([])
    const all = async () => [await data(one), await data(two), await data(three)]
    const of = (value: string) => ({ a: { value } })
    expect(await all()).toEqual([of('one'), of('two'), of('one')])
    await kit.relabel('cluster-2', { env: 'dev' })
    expect(await all()).toEqual([of('one'), of('one'), of('one')])
    await kit.relabel('cluster-2', { env: 'nowhere' })
    expect(await all()).toEqual([of('one'), of('one'), of('one')])
    expect(await error()).toMatchObject({ message: expect.stringContaining('sites/nowhere') })
    took()
    await kit.push(folder('nowhere', 'three'))
    expect(await all()).toEqual([of('one'), of('three'), of('one')])
    expect([took(), await error()]).toEqual([['raw'], null])
  })

  test('IC3 a template is rendered once for each value of what it looks at, and a relabelled cluster once or not at all', async () => {
    const [one, two, three] = [
      await kit.join('1', { env: 'prod', region: 'eu', rack: '1' }),
      await kit.join('2', { env: 'prod', region: 'us' }),
      await kit.join('3', { env: 'prod', region: 'eu', rack: '2' }),
    ]
    await kit.push({ 'shop/a.yaml': null, 'shop/a.yaml.liquid': template('a', '{{ cluster.labels.region }}') })
    await kit.service()
    expect(took()).toEqual(['raw', 'raw'])
    expect([await data(one), await data(two), await data(three)]).toEqual([
      { a: { value: 'eu' } },
      { a: { value: 'us' } },
      { a: { value: 'eu' } },
    ])
    await kit.relabel('cluster-1', { env: 'prod', region: 'eu', rack: '9' })
    expect(took()).toEqual([])
    await kit.relabel('cluster-1', { env: 'prod', region: 'us' })
    expect(took()).toEqual([])
    expect(await data(one)).toEqual({ a: { value: 'us' } })
    await kit.relabel('cluster-1', { env: 'prod', region: 'asia' })
    expect(took()).toEqual(['raw'])
    expect(await data(one)).toEqual({ a: { value: 'asia' } })
  })

  test('IC3 what a template looks at may depend on what it sees', async () => {
    const eu = await kit.join('1', { env: 'prod', region: 'eu', city: 'Falkenstein' })
    const us = await kit.join('2', { env: 'prod', region: 'us', state: 'Ohio' })
    await kit.join('3', { env: 'prod', region: 'us', state: 'Ohio', city: 'Falkenstein' })
    for (const [digit, city] of [
      ['4', 'Berlin'],
      ['5', 'Bonn'],
    ] as const)
      await kit.join(digit, { env: 'prod', region: 'us', state: 'Iowa', city })
    const text = '{% if cluster.labels.region == "eu" %}{{ cluster.labels.city }}{% else %}{{ cluster.labels.state }}{% endif %}'
    await kit.push({ 'shop/a.yaml': null, 'shop/a.yaml.liquid': template('a', text.replaceAll('"', "'")) })
    await kit.service()
    expect(took()).toEqual(['raw', 'raw', 'raw'])
    expect([await data(eu), await data(us)]).toEqual([{ a: { value: 'Falkenstein' } }, { a: { value: 'Ohio' } }])
  })

  test('IC8 a server that starts again renders nothing', async () => {
    await kit.join('1', { env: 'prod', region: 'eu' })
    await kit.join('2', { env: 'prod', region: 'us' })
    await kit.push({ 'shop/b.yaml.liquid': template('b', '{{ cluster.labels.region }}') })
    await kit.service()
    took()
    const again = kit.restarted()
    await again.serviceChanged(SHOP)
    expect(took()).toEqual([])
    expect(await error()).toBe(null)
  })

  test('IC13 of a repository with many services only those are rendered that looked at what a commit changed', async () => {
    await kit.join('1')
    await kit.git.commit({ 'a/x.yaml': configMap('x', '1'), 'b/x.yaml': configMap('x', '1'), 'c/x.yaml': configMap('x', '1') }, 'three')
    await kit.repository()
    for (const name of ['a', 'b', 'c']) await kit.service({}, name)
    took()
    await kit.push({ 'b/x.yaml': configMap('x', '2') })
    expect(took()).toEqual(['raw'])
  })

  test('IC13 a service whose folder came later is not looked at again for what changed elsewhere', async () => {
    await kit.join('1')
    await kit.service({ configFrom: [{ name: 'shared', optional: true }] }, 'late')
    expect((await error('late'))?.code).toBe('no_manifests')
    await kit.push({ 'late/x.yaml': configMap('x', '1') })
    expect(await error('late')).toBe(null)
    configsRead = 0
    await kit.push({ 'README.md': 'what the render that failed had looked at, too: it listed the root' })
    expect(configsRead).toBe(0)
    await kit.push({ 'late/x.yaml': configMap('x', '2') })
    expect(configsRead).toBeGreaterThan(0)
  })
})

describe('what is different in a cluster', () => {
  test('IC5 overrides by labels and of the cluster, for variables and patches', async () => {
    const [eu, us] = [await kit.join('1', { env: 'prod', region: 'eu' }), await kit.join('2', { env: 'prod', region: 'us' })]
    await kit.push({ 'shop/a.yaml': null, 'shop/a.yaml.liquid': template('a', '{{ config.color }} {{ config.size }}') })
    await kit.service({
      config: { color: 'red', size: 1 },
      overrides: [
        { selector: { matchLabels: { region: 'eu' } }, config: { color: 'blue' } },
        {
          selector: { matchLabels: { region: 'us' } },
          patches: [{ target: { kind: 'ConfigMap' }, patch: [{ op: 'add', path: '/data/patched', value: 'yes' }] }],
        },
      ],
    })
    expect([await data(eu), await data(us)]).toEqual([{ a: { value: 'blue 1' } }, { a: { value: 'red 1', patched: 'yes' } }])
    await kit.relabel(
      'cluster-1',
      { env: 'prod', region: 'eu' },
      {
        config: { size: 2 },
        overrides: [
          { service: 'shop', config: { color: 'green' } },
          { service: 'other', config: { color: 'no' } },
        ],
      },
    )
    expect(await data(eu)).toEqual({ a: { value: 'green 2' } })
  })

  test('RD4 common labels and annotations are on every object, and win', async () => {
    const one = await kit.join('1')
    await kit.push({ 'shop/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a, labels: { team: mine, own: x } }\n' })
    await kit.service({ render: { commonLabels: { team: 'platform' } } })
    expect(await data(one)).toEqual({ a: { own: 'x', team: 'platform' } })
  })

  test('IC12 an error of one cluster is its own: the others go on, and it keeps what it has', async () => {
    const [one, two] = [await kit.join('1', { env: 'prod', region: 'eu' }), await kit.join('2', { env: 'prod', region: 'us' })]
    await kit.push({ 'shop/a.yaml': null, 'shop/a.yaml.liquid': template('a', '{{ cluster.labels.region }}') })
    await kit.service()
    await kit.relabel('cluster-2', { env: 'prod' })
    await kit.push({ 'shop/b.yaml': configMap('b', 'two') })
    expect(await data(one)).toEqual({ a: { value: 'eu' }, b: { value: 'two' } })
    expect(await data(two)).toEqual({ a: { value: 'us' } })
    expect(JSON.stringify(await error())).toContain('cluster-2')
    await kit.relabel('cluster-2', { env: 'prod', region: 'us' })
    expect(await data(two)).toEqual({ a: { value: 'us' }, b: { value: 'two' } })
    expect(await error()).toBe(null)
  })

  test('IC12 an error that everybody has is one of the service, with file and line', async () => {
    const one = await kit.join('1')
    await kit.join('2')
    await kit.service()
    await kit.push({ 'shop/b.yaml.liquid': template('b', '{{ config.missing }}'), 'shop/c.yaml': 'kind: ConfigMap\n' })
    const found = await error()
    expect(found?.problems.map(({ path }) => path)).toEqual(['shop/b.yaml.liquid:4:20', 'shop/c.yaml:1:1', 'shop/c.yaml:1:1'])
    expect(await data(one)).toEqual({ a: { value: 'one' } })
    took()
    await kit.ingest.serviceChanged(SHOP)
    expect(took()).toEqual([])
  })
})

describe('several sources', () => {
  test('RD2 objects of all of them together; files of another one by its name', async () => {
    const one = await kit.join('1')
    await kit.git.commit({ 'base/b.yaml': configMap('b', 'two'), 'env/values.yaml': 'x: 1\n' }, 'more')
    await kit.repository()
    await kit.service({
      source: undefined,
      sources: [
        { repository: 'apps', path: 'shop' },
        { repository: 'apps', path: 'base', name: 'base' },
        { repository: 'apps', path: 'env', name: 'env', filesOnly: true },
      ],
    })
    expect(await data(one)).toEqual({ a: { value: 'one' }, b: { value: 'two' } })
  })

  test('RD2 one object in two of them is an error that names both places', async () => {
    await kit.join('1')
    await kit.git.commit({ 'base/a.yaml': configMap('a', 'two') }, 'twice')
    await kit.repository()
    await kit.service({
      source: undefined,
      sources: [
        { repository: 'apps', path: 'shop' },
        { repository: 'apps', path: 'base', name: 'base' },
      ],
    })
    expect((await error())?.problems).toEqual([
      { path: 'base/base/a.yaml:1:1', message: naming('ConfigMap shop/a', 'apps/shop/a.yaml:1:1'), excerpt: 'apiVersion: v1' },
    ])
  })
})

const CHART = {
  'chart/Chart.yaml': 'apiVersion: v2\nname: chart\nversion: 1.0.0\n',
  'chart/values.yaml': 'color: red\n',
  'chart/templates/a.yaml':
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { value: "{{ .Values.color }} {{ .Values.password }}" }\n',
}

describe('programs', () => {
  test('RD1 what a folder holds says how it is rendered', async () => {
    const one = await kit.join('1')
    await kit.git.commit(
      { ...CHART, 'kust/kustomization.yaml': 'resources: [a.yaml]\nnamePrefix: pre-\n', 'kust/a.yaml': configMap('a', 'k') },
      'charts',
    )
    await kit.repository()
    await kit.service({}, 'chart')
    expect(took()).toEqual(['helm', 'run helm'])
    await kit.service({}, 'kust')
    expect(took()).toEqual(['kustomize', 'run kustomize'])
    expect([await data(one, 'chart'), await data(one, 'kust')]).toEqual([{ a: { value: 'red ' } }, { 'pre-a': { value: 'k' } }])
    await kit.service({ source: { repository: 'apps', path: 'kust' }, render: { type: 'raw' } }, 'kust')
    expect((await error('kust'))?.problems.map(({ message }) => message)).toEqual([naming('kustomization', 'plain manifests')])
  })

  test('IC11 helm values by override: one program run for each difference, and none for what is known', async () => {
    const [eu, us] = [await kit.join('1', { env: 'prod', region: 'eu' }), await kit.join('2', { env: 'prod', region: 'us' })]
    await kit.join('3', { env: 'prod', region: 'eu', rack: '7' })
    await kit.git.commit(CHART, 'chart')
    await kit.repository()
    const overrides = [{ selector: { matchLabels: { region: 'us' } }, helm: { values: { color: 'white' } } }]
    await kit.service({ overrides, render: { helm: { values: { color: 'blue' } } } }, 'chart')
    expect(took().filter((name) => name.startsWith('run'))).toEqual(['run helm', 'run helm'])
    expect([await data(eu, 'chart'), await data(us, 'chart')]).toEqual([{ a: { value: 'blue ' } }, { a: { value: 'white ' } }])
    expect((await kit.store.renderState({ ...SHOP, service: 'chart' })).release?.tools).toEqual({
      helm: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    })
    await kit.restarted().serviceChanged({ ...SHOP, service: 'chart' })
    expect(took()).toEqual([])
  })

  test('IC10 a secret of a Config lies nowhere readable on the disk, and another value of it is another render', async () => {
    const one = await kit.join('1')
    configs['db'] = { data: { host: 'db' }, secrets: { password: SECRET } }
    await kit.git.commit(CHART, 'chart')
    await kit.repository()
    await kit.service(
      { configFrom: [{ name: 'db' }], render: { helm: { values: { password: '{{ config.password }}', color: '{{ config.host }}' } } } },
      'chart',
    )
    expect(await data(one, 'chart')).toEqual({ a: { value: `db ${SECRET}` } })
    const folder = join(kit.dir, 'renders')
    expect(readdirSync(folder).length).toBeGreaterThan(1)
    // Not as it is, and not in what can be unpacked without the key.
    for (const name of readdirSync(folder)) {
      const file = readFileSync(join(folder, name))
      expect(file.includes(SECRET)).toBe(false)
      expect(inflated(file).includes(SECRET)).toBe(false)
    }
    took()
    configs['db'] = { data: { host: 'db' }, secrets: { password: 'other' } }
    await kit.ingest.serviceChanged({ ...SHOP, service: 'chart' })
    expect(took()).toEqual(['helm', 'run helm'])
    expect(await data(one, 'chart')).toEqual({ a: { value: 'db other' } })
  })

  test('IC14 a program that ran out of time is tried again after a minute, then after two; what failed for another reason is not', async () => {
    const one = await kit.join('1')
    await kit.git.commit(CHART, 'chart')
    await kit.repository()
    const chart = { ...SHOP, service: 'chart' }
    outOfTime = true
    await kit.service({}, 'chart')
    expect((await error('chart'))?.problems[0]?.message).toContain('took longer')
    const runs = async (ms: number) => {
      took()
      lateness += ms
      await kit.ingest.serviceChanged(chart)
      return took().includes('run helm')
    }
    expect([await runs(0), await runs(50_000), await runs(20_000)]).toEqual([false, false, true])
    expect([await runs(100_000), await runs(30_000)]).toEqual([false, true])
    outOfTime = false
    expect(await runs(300_000)).toBe(true)
    expect(await data(one, 'chart')).toEqual({ a: { value: 'red ' } })
    expect(await runs(3_600_000)).toBe(false)
  })

  test('IC5 a Config that is not there is an error with its name, unless it is optional', async () => {
    await kit.join('1')
    await kit.service({ configFrom: [{ name: 'none' }, { name: 'maybe', optional: true }] })
    expect((await error())?.message).toEqual(naming('Config none', 'project default'))
  })
})

function inflated(file: Uint8Array): Buffer {
  const HEAD = 21
  try {
    return Buffer.from(Bun.zstdDecompressSync(file.subarray(HEAD)))
  } catch {
    return Buffer.from('')
  }
}
