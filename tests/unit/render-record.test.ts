import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type InputRead, KIND_ONLY } from '../../server/render/inputs.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'
import { createRecorder, leastReads, valueAt } from '../../server/render/record/reads.ts'
import { recordedTree } from '../../server/render/record/tree.ts'
import type { SourceTree } from '../../server/sources/source.ts'

const inputs = {
  cluster: { name: 'fsn-1', labels: { region: 'eu', tier: 'edge' }, facts: { apiVersions: { v1: true } } },
  config: { colors: ['red', { deep: 1 }], shop: { title: 'x', empty: {} }, nothing: null, zero: 0 },
}
type Inputs = typeof inputs & { config: Record<string, unknown> }

function looksOf(dependency: (given: Inputs) => unknown): InputRead[] {
  const dependencies: InputRead[] = []
  dependency(recordedInputs(inputs as Inputs, (path) => dependencies.push(path)))
  return leastReads(dependencies)
}

describe('what counts as a dependency', () => {
  const cases: ReadonlyArray<[string, (given: Inputs) => unknown, InputRead[]]> = [
    ['a value', ({ cluster }) => cluster.labels.region, [['cluster', 'labels', 'region']]],
    ['a value that is not there', ({ config }) => config['missing'], [['config', 'missing']]],
    ['what is below a value that is not there', ({ config }) => (config['missing'] as { a?: 1 } | undefined)?.a, [['config', 'missing']]],
    ['null', ({ config }) => config.nothing, [['config', 'nothing', KIND_ONLY]]],
    ['whether there is an object', ({ config }) => Boolean(config.shop), [['config', 'shop', KIND_ONLY]]],
    ['`in`', ({ config }) => 'missing' in config, [['config', 'missing']]],
    ['hasOwn', ({ config }) => Object.hasOwn(config, 'zero'), [['config', 'zero']]],
    ['the names of an object', ({ cluster }) => Object.keys(cluster.labels), [['cluster', 'labels']]],
    ['a spread', ({ cluster }) => ({ ...cluster.labels }), [['cluster', 'labels']]],
    ['for … in', ({ cluster }) => { for (const _ in cluster.labels) return }, [['cluster', 'labels']]], // biome-ignore format: one line
    ['JSON', ({ config }) => JSON.stringify(config), [['config']]],
    ['an item of a list', ({ config }) => config.colors[0], [['config', 'colors']]],
    ['the length of a list', ({ config }) => config.colors.length, [['config', 'colors']]],
    ['everything', (given) => JSON.stringify(given), [[]]],
    ['nothing', () => 0, []],
  ]
  test.each(cases)('IC1 %s', (_, dependency, expected) => expect(looksOf(dependency)).toEqual(expected))
})

test('IC1 whoever looked at all of it looked at each part; who looked into it knows that it is there', () => {
  expect(
    leastReads([
      ['a', 'b', 'c'],
      ['a', 'b'],
      ['x', KIND_ONLY],
      ['x', 'y'],
      ['q', KIND_ONLY],
      ['a', 'd'],
    ]),
  ).toEqual([
    ['a', 'b'],
    ['a', 'd'],
    ['q', KIND_ONLY],
    ['x', 'y'],
  ])
})

test('IC1 the order of dependencies makes no difference', () => {
  const path = fc.array(fc.constantFrom('a', 'b', 'c', KIND_ONLY), { maxLength: 4 })
  fc.assert(
    fc.property(fc.array(path, { maxLength: 8 }), fc.array(fc.nat(), { minLength: 8, maxLength: 8 }), (paths, order) => {
      const shuffled = paths.map((one, index) => ({ one, at: order[index] ?? 0 })).sort((a, b) => a.at - b.at)
      expect(leastReads(shuffled.map(({ one }) => one))).toEqual(leastReads(paths))
    }),
  )
})

test('IC1 with equal values at the recorded places the same dependency sees the same', () => {
  // A reader that wanders through the inputs by the values it meets, over two sets of inputs.
  const leaf = fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.constant(null), fc.constant(['a']))
  const given = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof(leaf, fc.dictionary(fc.constantFrom('a', 'b', 'c'), leaf)))
  const steps = fc.array(fc.tuple(fc.constantFrom('get', 'in', 'keys', 'truth'), fc.constantFrom('a', 'b', 'c')), { maxLength: 6 })
  const wander = (from: object, walk: ReadonlyArray<readonly [string, string]>): string => {
    let at: unknown = from
    const seen: unknown[] = []
    for (const [how, name] of walk) {
      if (typeof at !== 'object' || at === null || Array.isArray(at)) at = from
      const here = at as Record<string, unknown>
      if (how === 'keys') seen.push(Object.keys(here))
      else if (how === 'in') seen.push(name in here)
      else if (how === 'truth') seen.push(Boolean(here[name]), typeof here[name])
      else {
        at = here[name]
        seen.push(typeof at === 'object' && at !== null && !Array.isArray(at) ? 'object' : at)
      }
    }
    return JSON.stringify(seen)
  }
  fc.assert(
    fc.property(given, given, steps, (one, other, walk) => {
      const dependencies: InputRead[] = []
      const saw = wander(
        recordedInputs(one, (path) => dependencies.push(path)),
        walk,
      )
      const places = leastReads(dependencies)
      if (places.every((path) => valueAt(one, path) === valueAt(other, path))) {
        const again = wander(
          recordedInputs(other, () => {}),
          walk,
        )
        expect(again).toBe(saw)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('IC1 inputs cannot be changed, and behave as plain objects do', () => {
  const given = recordedInputs(inputs as Inputs, () => {})
  expect(() => Object.assign(given.config, { zero: 1 })).toThrow(TypeError)
  expect(() => Reflect.deleteProperty(given.config, 'zero')).toThrow(TypeError)
  expect(() => given.config.colors.push('blue')).toThrow(TypeError)
  expect(JSON.parse(JSON.stringify(given))).toEqual(inputs)
  expect(`${given.cluster}`).toBe('[object Object]')
  expect(given.config.colors.map(String)).toHaveLength(2)
})

test.each([
  [['config', 'shop', 'title'], '="x"'],
  [['config', 'shop'], '={"empty":{},"title":"x"}'],
  [['config', 'shop', KIND_ONLY], ':object'],
  [['config', 'shop', 'none'], '2:absent'],
  [['config', 'shop', 'title', 'none'], '3:"x"'],
  [['config', 'none', 'none'], '1:absent'],
  [['config', 'nothing', 'none'], '2:null'],
  [['config', 'toString'], '1:absent'],
])('IC1 the value at %j is %s', (path, text) => expect(valueAt(inputs, path)).toBe(text))

test('IC3 dependencies keep the order in which they were made first, without what earlier ones tell already', () => {
  const recorder = createRecorder()
  const file = (path: string) => recorder.file({ source: 0, path, id: 'x' })
  for (const path of [
    ['config', 'shop', KIND_ONLY],
    ['config', 'shop', 'title'],
    ['cluster', 'name'],
  ])
    recorder.input(path)
  for (const path of ['b.yaml', 'a.yaml', 'b.yaml']) file(path)
  for (const path of [['cluster', 'name'], ['config', 'shop', KIND_ONLY], ['config'], ['config', 'other']]) recorder.input(path)
  expect(recorder.reads().dependencies.map((dependency) => ('path' in dependency ? dependency.path : dependency.join(' ')))).toEqual([
    ...[`config shop ${KIND_ONLY}`, 'config shop title', 'cluster name', 'b.yaml', 'a.yaml', 'config'],
  ])
})

describe('looks into a tree', () => {
  const file = (text: string) => ({ oid: `oid-${text}`, bytes: new TextEncoder().encode(text) })
  const tree: SourceTree = {
    id: async (path) =>
      ({ '': 'root', base: 'folder', 'base/a.yaml': 'oid-a', 'base/link.yaml': 'oid-elsewhere' })[path.replace('./', '')] ?? null,
    list: async (path) =>
      path === 'base'
        ? [
            { name: 'a.yaml', kind: 'file', id: 'oid-a' },
            { name: 'link.yaml', kind: 'link', id: 'link-text' },
          ]
        : null,
    file: async (path) => (path === 'base/a.yaml' ? file('a') : null),
    files: async () => new Map([['base/a.yaml', file('a')]]),
  }
  const looksAt = async (dependency: (recorded: SourceTree) => Promise<unknown>) => {
    const recorder = createRecorder()
    await dependency(recordedTree(tree, 1, recorder.file))
    return recorder.reads().files.map(({ source, path, id }) => `${source} ${path} ${id}`)
  }
  test('IC2 a file, and one that is not there', async () => {
    const dependencies = await looksAt(async (recorded) => [await recorded.file('./base/a.yaml'), await recorded.file('none.yaml')])
    expect(dependencies).toEqual(['1 base/a.yaml oid-a', '1 none.yaml null'])
  })
  test('WK8 a path longer than any file may have is refused, not recorded', async () => {
    const asked = looksAt((recorded) => recorded.file('a'.repeat(1_025)))
    expect(await asked.catch((error: unknown) => error)).toMatchObject({ code: 'source_refused' })
  })
  test('IC2 a folder by its id, and what its links lead to', async () => {
    expect(await looksAt((recorded) => recorded.files('base', () => true))).toEqual(['1 base folder', '1 base/link.yaml oid-elsewhere'])
    expect(await looksAt((recorded) => recorded.files('base', (path) => !path.includes('link')))).toEqual(['1 base folder'])
  })
})
