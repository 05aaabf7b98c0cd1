// How many renders a service costs its clusters, whatever its renders look at: as many as there are differences, also
// where each cluster has a file of its own.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { RenderCluster } from '../../server/ingest/render/dependency-values.ts'
import { type ClusterRun, renderClusters } from '../../server/ingest/render/render-clusters.ts'
import { ToolVersions } from '../../server/ingest/render/tool-versions.ts'
import type { CacheFiles } from '../../server/render/cache/files.ts'
import { DependencyPaths } from '../../server/render/cache/paths.ts'
import { createRenderCache, type RenderCache } from '../../server/render/cache/renders.ts'
import type { Dependency } from '../../server/render/inputs.ts'
import type { RenderResult } from '../../server/render/object-rows.ts'
import { leastReads } from '../../server/render/record/reads.ts'
import { createSlots } from '../../server/render/sandbox/slots.ts'
import { setDigest } from '../../shared/kube/canonical.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { testMac } from '../support/render-kit.ts'

const SETTINGS = { config: { values: {}, secrets: new Set<string>() }, helmValues: [], patches: [] }
const file = (path: string): Dependency => ({ source: 0, path })
const fleet = (count: number, labelsOf: (index: number) => Labels = () => ({})): RenderCluster[] =>
  Array.from({ length: count }, (_, index) => ({ clusterId: `c${index}` as ClusterId, name: `c${index}`, labels: labelsOf(index) }))

interface Made {
  dependencies: readonly Dependency[]
  text: string | AppError
}

const resultOf = (text: string): RenderResult => {
  const objects = new Map([['object', text]])
  return { kind: 'rendered', objects, digest: setDigest(objects), count: 1, hooks: 0, warnings: [] }
}

const toolsOf = (version: () => string | null) => new ToolVersions({ version: async () => version() })

function runOf(make: (cluster: RenderCluster) => Made | Promise<Made>, change: Partial<ClusterRun> = {}): ClusterRun {
  return {
    ...{
      spec: 'spec',
      lastingSpec: 'lasting',
      inForce: async () => null,
      settingsOf: () => SETTINGS,
      configs: new Map(),
      versions: ['v1'],
    },
    ...{ fileId: async () => 'id', tools: toolsOf(() => null), factsOf: () => ({ kubernetesVersion: '', apiVersions: {} }) },
    render: async ({ cluster }) => {
      const { dependencies, text } = await make(cluster ?? { clusterId: '' as ClusterId, name: '', labels: {} })
      const files = dependencies.flatMap((dependency) => ('path' in dependency ? [{ ...dependency, id: 'id' }] : []))
      const inputs = leastReads(dependencies.flatMap((dependency) => ('path' in dependency ? [] : [dependency])))
      return {
        result: text instanceof AppError ? text : resultOf(text),
        reads: { dependencies, files, inputs, secret: false },
        late: false,
      }
    },
    ...change,
  }
}

/** Files in memory, and how much was written to them. */
function memoryFiles(): CacheFiles & { written: number; size(): number } {
  const held = new Map<string, Uint8Array>()
  const files = {
    written: 0,
    get: async (key: string) => held.get(key) ?? null,
    put: async (key: string, bytes: Uint8Array) => {
      files.written += bytes.byteLength
      held.set(key, bytes)
    },
    size: () => [...held.values()].reduce((sum, bytes) => sum + bytes.byteLength, 0),
  }
  return files
}
const cacheOf = (files: CacheFiles | null = null) => createRenderCache({ mac: testMac, files })

async function pass(cache: RenderCache, run: ClusterRun, clusters: readonly RenderCluster[], slots = createSlots(4)) {
  const outcomes = await renderClusters({ cache, slots: (work) => slots.run(work), pace: () => undefined }, run, clusters)
  const texts = [...outcomes.clusters].map(([cluster, { result }]): [string, string] => {
    const text = result instanceof AppError ? result.code : result.kind === 'rendered' ? result.objects.get('object') : 'failed'
    return [cluster?.name ?? '', text ?? '']
  })
  return { renders: outcomes.renders, texts: new Map(texts), clusters: outcomes.clusters }
}

describe('a values file for each cluster', () => {
  function kit() {
    const ids = new Map<string, string>()
    const fileId = async (_: number, path: string) => ids.get(path) ?? '1'
    const run = runOf(
      async ({ name }) => {
        const path = `envs/${name}.yaml`
        const text = `${path} ${await fileId(0, path)} ${await fileId(0, 'chart')}`
        return { dependencies: [file('chart'), ['cluster', 'name'], file(path), ['values'], ['tools', 'helm'], ['patches']], text }
      },
      { fileId },
    )
    return { ids, run }
  }

  test('IC3 IC8 a thousand clusters: each is rendered once, a changed file renders one, those that join render themselves, and a restart renders nothing', async () => {
    const { ids, run } = kit()
    const files = memoryFiles()
    const cache = cacheOf(files)
    const renders = [(await pass(cache, run, fleet(1_000))).renders, (await pass(cache, run, fleet(1_000))).renders]
    ids.set('envs/c5.yaml', '2')
    const changed = await pass(cache, run, fleet(1_000))
    renders.push(changed.renders, (await pass(cache, run, fleet(1_012))).renders, (await pass(cacheOf(files), run, fleet(1_012))).renders)
    expect(renders).toEqual([1_000, 0, 1, 12, 0])
    expect([changed.texts.get('c5'), changed.texts.get('c6')]).toEqual(['envs/c5.yaml 2 1', 'envs/c6.yaml 1 1'])
  })

  test('IC8 what is written grows with the clusters, not with their square; nothing is written when nothing changed', async () => {
    const written: number[] = []
    for (const count of [250, 1_000]) {
      const files = memoryFiles()
      const cache = cacheOf(files)
      await pass(cache, kit().run, fleet(count))
      written.push(files.written)
      expect(files.written).toBeLessThan(4 * files.size())
      await pass(cache, kit().run, fleet(count))
      expect(files.written).toBe(written.at(-1) ?? 0)
    }
    const [few = 0, many = 0] = written
    expect(many / few).toBeLessThan(6)
  })

  test('IC8 a server that is killed in the midst of a pass has lost less than half of it', async () => {
    const files = memoryFiles()
    const { run } = kit()
    const killed = { ...files, put: async (key: string, bytes: Uint8Array) => (rendered < 800 ? files.put(key, bytes, false) : undefined) }
    let rendered = 0
    const counted: ClusterRun = {
      ...run,
      render: (subject) => {
        rendered += 1
        return run.render(subject)
      },
    }
    await pass(cacheOf(killed), counted, fleet(1_000))
    expect((await pass(cacheOf(files), run, fleet(1_000))).renders).toBeLessThan(600)
  })
})

test('IC3 those who wait for a place are not rendered when somebody equal was meanwhile', async () => {
  const run = runOf(async ({ name, labels }) => {
    await new Promise((resolve) => setImmediate(resolve))
    const isProd = labels['env'] === 'prod'
    return { dependencies: [['cluster', 'labels', 'env'], ...(isProd ? [['cluster', 'name']] : [])], text: isProd ? name : 'same' }
  })
  const clusters = fleet(400, (index) => ({ env: index < 2 || index % 2 === 0 ? 'prod' : 'staging' }))
  expect((await pass(cacheOf(), run, clusters)).renders).toBe(202)
})

test('IC9 beyond what is remembered of a service it is rendered again, and right', async () => {
  const small = new DependencyPaths('spec', testMac, 20)
  const cache = Object.assign(cacheOf(), { paths: async () => small })
  const run = runOf(({ name }) => ({ dependencies: [['cluster', 'name'], file(name), ['values']], text: name }))
  for (const _ of [1, 2]) {
    const { texts } = await pass(cache, run, fleet(100))
    expect([...texts]).toEqual(fleet(100).map(({ name }) => [name, name]))
    expect(small.size).toBeLessThanOrEqual(20)
  }
})

test('IC3 IC8 IC9 clusters with many variables of their own cost an entry and an eighth of one for each further dependency, and are not rendered again, also after a restart', async () => {
  const clusters = fleet(500)
  const keys = Array.from({ length: 55 }, (_, index) => `v${index}`)
  const dependencies = keys.map((key): Dependency => ['config', key])
  const own = new Map(clusters.map(({ name }) => [name, Object.fromEntries(keys.map((key) => [key, `${key} of ${name}`]))]))
  const settings = new Map(clusters.map(({ name }) => [name, { ...SETTINGS, config: { ...SETTINGS.config, values: own.get(name) ?? {} } }]))
  const settingsOf: ClusterRun['settingsOf'] = (cluster) => settings.get((cluster as RenderCluster).name) ?? SETTINGS
  const run = runOf(({ name }) => ({ dependencies, text: name }), { settingsOf })
  const held = { paths: new DependencyPaths('spec', testMac, 5_000) }
  const cache = Object.assign(cacheOf(), { paths: async () => held.paths })
  const renders: number[] = []
  for (const _ of [1, 2, 3]) renders.push((await pass(cache, run, clusters)).renders)
  expect(held.paths.size).toBeLessThan(500 * (1 + 55 / 8) + 1)
  const saved = held.paths.toBytes()
  held.paths = new DependencyPaths('spec', testMac, 5_000)
  held.paths.fill(saved)
  const last = await pass(cache, run, [...clusters].reverse())
  expect([...renders, last.renders]).toEqual([500, 0, 0, 0])
  expect(last.texts.get('c7')).toBe('c7')
})

test('IC3 whoever was rendered alone makes others look at nothing that their own renders do not look at', async () => {
  const run = runOf(({ name, labels }) => ({
    dependencies: [file('chart'), ['cluster', 'labels', 'env'], ...(labels['env'] === 'own' ? [['cluster', 'name']] : []), ['values']],
    text: labels['env'] === 'own' ? name : 'same',
  }))
  const cache = cacheOf()
  const clusters = fleet(50, (index) => ({ env: index === 0 ? 'own' : 'shared' }))
  const renders = [(await pass(cache, run, clusters.slice(0, 1))).renders, (await pass(cache, run, clusters)).renders]
  expect([...renders, (await pass(cache, run, clusters)).renders]).toEqual([1, 1, 0])
})

test('IC8 a long name of a file or a variable costs nobody what is remembered', async () => {
  const files = memoryFiles()
  const run = runOf(({ name }) => ({
    dependencies: [['cluster', 'name'], file('x'.repeat(5_000)), ['config', 'y'.repeat(70_000)]],
    text: name,
  }))
  const renders = [(await pass(cacheOf(files), run, fleet(20))).renders, (await pass(cacheOf(files), run, fleet(20))).renders]
  expect(renders).toEqual([20, 0])
})

describe('what cannot be read again', () => {
  test('IC15 a good render whose places cannot be read again is nobody else’s: it fails, and is tried again', async () => {
    const readable = { now: false }
    const run = runOf(({ name }) => ({ dependencies: [file('shop'), ['cluster', 'name']], text: name }), {
      fileId: async () => (readable.now ? 'id' : undefined),
    })
    const cache = cacheOf()
    const failed = await pass(cache, run, fleet(3))
    expect([...failed.texts.values()]).toEqual(['git_failed', 'git_failed', 'git_failed'])
    expect(failed.renders).toBe(1)
    for (const { shape } of failed.clusters.values()) expect(shape.files).toEqual([{ source: 0, path: 'shop' }]) // for who asks whether a commit changes it
    readable.now = true
    expect([...(await pass(cache, run, fleet(3))).texts]).toEqual(['c0', 'c1', 'c2'].map((name) => [name, name]))
  })

  test('IC12 a file of one cluster that cannot be read is the error of that one', async () => {
    const run = runOf(
      ({ name }) => ({
        dependencies: [['cluster', 'name'], file(name)],
        text: name === 'c1' ? new AppError('source_refused', { detail: 'no' }) : name,
      }),
      { fileId: async (_, path) => (path === 'c1' ? undefined : 'id') },
    )
    const { texts, renders } = await pass(cacheOf(), run, fleet(3))
    expect([...texts].sort()).toEqual([
      ['c0', 'c0'],
      ['c1', 'source_refused'],
      ['c2', 'c2'],
    ])
    expect(renders).toBe(3)
  })

  test('IC12 an error of a source is shared by those who see the same, and asked for again by the next pass', async () => {
    const run = runOf(() => ({ dependencies: [['cluster', 'labels', 'env']], text: new AppError('source_unreachable') }))
    const cache = cacheOf()
    for (const _ of [1, 2]) {
      const { renders, clusters } = await pass(
        cache,
        run,
        fleet(40, (index) => ({ env: `${index % 2}` })),
      )
      expect(renders).toBe(2)
      expect(new Set([...clusters.values()].map(({ result }) => result)).size).toBe(2)
    }
  })
})

test('RL6 what a render was made of has one name, in whatever order it looked and whoever was rendered first', async () => {
  const dependencies: Dependency[] = [['tools', 'helm'], file('chart'), ['cluster', 'name'], file('other')]
  const names = async (order: readonly Dependency[], clusters: readonly RenderCluster[]) => {
    const run = runOf(({ name }) => ({ dependencies: order, text: name }), { tools: toolsOf(() => '4.1.0') })
    const { clusters: found } = await pass(cacheOf(), run, clusters)
    return new Map([...found].map(([cluster, { renderedFrom, tools }]) => [cluster?.name, [renderedFrom, tools]]))
  }
  const first = await names(dependencies, fleet(3))
  const second = await names([...dependencies].reverse(), fleet(3).reverse())
  for (const [name, made] of first) expect(second.get(name)).toEqual(made)
  expect(new Set([...first.values()].map(([renderedFrom]) => renderedFrom)).size).toBe(3)
})

test('RL3 a program that is replaced in the midst of a pass: what came since is not kept, nothing more is rendered, and the next pass goes by the new one', async () => {
  const program = { version: 'helm 4.1.0', minor: 1, pending: -1 }
  const cache = cacheOf()
  const renders: number[] = []
  const texts: string[][] = []
  // During the render of the third; when the pass itself has asked already, or only the renderer before it ran the
  // program.
  for (const [index, at] of [3, 0].entries()) {
    const clusters = fleet(6).map((cluster) => ({ ...cluster, name: `${cluster.name}-${index}` }))
    const passOf = async () => {
      const tools = toolsOf(() => program.version)
      let run = 0
      const made = runOf(
        async ({ name }) => {
          tools.note('helm', program.version)
          if (run++ === at && index === program.pending) program.version = `helm 4.${++program.minor}.0`
          return {
            dependencies: [
              ['cluster', 'name'],
              ['tools', 'helm'],
            ],
            text: `${name} ${program.version}`,
          }
        },
        { tools },
      )
      return pass(cache, made, clusters, createSlots(1))
    }
    program.pending = index
    const first = await passOf()
    program.pending = -1
    const second = await passOf()
    renders.push(first.renders, second.renders)
    texts.push([...first.texts.values()].map((text) => text.replace(/^.* /, '')).sort(), [
      ...new Set([...second.texts.values()].map((text) => text.replace(/^.* /, ''))),
    ])
  }
  expect(renders).toEqual([4, 6, 1, 6])
  expect(texts).toEqual([
    [...Array(3).fill('4.1.0'), ...Array(3).fill('renderer_missing')],
    ['4.2.0'],
    Array(6).fill('renderer_missing'),
    ['4.3.0'],
  ])
})
/** What is looked at next, by the value that was there; a text is the end. */
type Program = string | { dependency: string; on: readonly [Program, Program] }
const VALUES = ['0', '1']

test('IC3 any program, its dependencies in any order: each cluster gets what it makes for it, once for equal values, and nothing is rendered again', async () => {
  const { program } = fc.letrec<{ program: Program }>((tie) => ({
    program: fc.oneof(
      { maxDepth: 4, depthSize: 'large' },
      fc.constantFrom('a', 'b', 'c'),
      fc.record({ dependency: fc.constantFrom('k', 'l', 'm', 'n'), on: fc.tuple(tie('program'), tie('program')) }),
    ),
  }))
  const labels = fc.record({ k: fc.constantFrom(...VALUES), l: fc.constantFrom(...VALUES), m: fc.constantFrom(...VALUES) })
  const cases = fc.asyncProperty(
    fc.array(program, { minLength: 1, maxLength: 3 }),
    fc.array(labels, { maxLength: 12 }),
    fc.infiniteStream(fc.nat(2)),
    async (tasks, all, turns) => {
      // Tasks that run at the same time: whose turn it is is anybody's guess.
      const make = (cluster: RenderCluster): Made => {
        const dependencies: Dependency[] = []
        const at = [...tasks]
        for (;;) {
          const open = at.flatMap((task, index) => (typeof task === 'string' ? [] : [{ task, index }]))
          const next = open[(turns.next().value ?? 0) % Math.max(1, open.length)]
          if (next === undefined) return { dependencies, text: at.join(' ') }
          const dependency = ['cluster', 'labels', next.task.dependency]
          if (!dependencies.some((one) => JSON.stringify(one) === JSON.stringify(dependency))) dependencies.push(dependency)
          at[next.index] = next.task.on[cluster.labels[next.task.dependency] === '1' ? 1 : 0]
        }
      }
      const cache = cacheOf()
      const clusters = fleet(all.length, (index) => all[index] ?? {})
      const { texts, renders } = await pass(cache, runOf(make), clusters)
      for (const cluster of clusters) expect(texts.get(cluster.name)).toBe(`${make(cluster).text}`)
      const kinds = new Set(
        clusters.map((cluster) =>
          JSON.stringify(
            make(cluster)
              .dependencies.map((dependency) => [
                'path' in dependency ? '' : dependency[2],
                cluster.labels[`${'path' in dependency ? '' : dependency[2]}`],
              ])
              .sort(),
          ),
        ),
      )
      expect(renders).toBe(kinds.size)
      expect((await pass(cache, runOf(make), clusters)).renders).toBe(0)
    },
  )
  await fc.assert(cases, { numRuns: 300 })
})
