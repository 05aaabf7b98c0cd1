import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { mergeLayers, mergeMaps } from '../../server/render/config-merge.ts'
import { settingsFor } from '../../server/render/overrides-of.ts'
import type { Override } from '../../shared/model/render.ts'

const ID = { project: 'default', service: 'shop' }

describe('how variables are merged', () => {
  test.each([
    ['IC4 maps are merged', [{ a: { x: 1 } }, { a: { y: 2 } }], { a: { x: 1, y: 2 } }],
    ['IC4 lists are replaced', [{ a: [1, 2] }, { a: [3] }], { a: [3] }],
    ['IC4 a map takes the place of a text', [{ a: 'x' }, { a: { y: 2 } }], { a: { y: 2 } }],
    ['IC4 a text takes the place of a map', [{ a: { y: 2 } }, { a: 'x' }], { a: 'x' }],
    [
      'IC4 null takes away',
      [
        { a: { x: 1, y: 2 }, b: 1 },
        { a: { x: null }, b: null },
      ],
      { a: { y: 2 } },
    ],
    ['IC4 null of nothing is nothing', [{ a: { x: null } }, { b: null }], { a: {} }],
    [
      'IC4 a name that every object has is a name like any other',
      [{ constructor: { x: 1 } }, { toString: 'y' }],
      { constructor: { x: 1 }, toString: 'y' },
    ],
  ] as const)('%s', (_, layers, expected) =>
    expect(mergeLayers(layers.map((values) => ({ values }))).values).toEqual(expected as Record<string, unknown>),
  )

  const name = fc.constantFrom('a', 'b', 'c')
  const leaf = fc.oneof(fc.constant(null), fc.constantFrom(1, 'x', true), fc.array(fc.constantFrom(1, 2), { maxLength: 2 }))
  const map = fc.dictionary(name, fc.oneof(leaf, fc.dictionary(name, fc.oneof(leaf, fc.dictionary(name, leaf)))))
  /** RFC 7386, as its text has it. */
  const mergePatch = (target: unknown, patch: unknown): unknown => {
    if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
    const result: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
    for (const [key, value] of Object.entries(patch)) {
      if (value === null) delete result[key]
      else result[key] = mergePatch(result[key], value)
    }
    return result
  }
  test('IC4 layer by layer it is what RFC 7386 makes of it', () => {
    fc.assert(
      fc.property(fc.array(map, { maxLength: 5 }), (layers) => {
        const expected = layers.reduce<unknown>(mergePatch, {})
        expect(mergeLayers(layers.map((values) => ({ values }))).values).toEqual(expected as Record<string, unknown>)
      }),
    )
  })
  test('IC4 the last layer that names a place decides it, and merging changes no layer', () => {
    fc.assert(
      fc.property(map, map, (base, over) => {
        const before = JSON.stringify([base, over])
        const merged = mergeMaps(base, over)
        for (const [key, value] of Object.entries(over)) {
          if (value === null) expect(Object.hasOwn(merged, key)).toBe(false)
          else if (typeof value !== 'object' || Array.isArray(value)) expect(merged[key]).toEqual(value)
        }
        for (const key of Object.keys(base)) if (!Object.hasOwn(over, key)) expect(merged[key]).toEqual(base[key])
        expect(JSON.stringify([base, over])).toBe(before)
      }),
    )
  })
  test('IC6 a secret is known as one until something else takes its place', () => {
    const secret = { values: { password: 's3cret', host: 'db' }, secrets: new Set(['password']) }
    expect([...mergeLayers([secret]).secrets]).toEqual(['password'])
    expect([...mergeLayers([secret, { values: { host: 'other' } }]).secrets]).toEqual(['password'])
    expect([...mergeLayers([secret, { values: { password: 'open' } }]).secrets]).toEqual([])
    expect([...mergeLayers([secret, { values: { password: null } }]).secrets]).toEqual([])
    expect([...mergeLayers([{ values: { password: 'open' } }, secret]).secrets]).toEqual(['password'])
  })
})

describe('what is different in a cluster', () => {
  const eu: Override = { selector: { matchLabels: { region: 'eu' } }, config: { who: 'eu', eu: 1 }, helm: { values: { a: 1 } } }
  const edge: Override = { selector: { matchLabels: { tier: 'edge' } }, config: { who: 'edge' }, patches: [{ patch: { kind: 'X' } }] }
  const spec = { config: { who: 'service', service: 1 }, overrides: [eu, edge] }
  const of = settingsFor(ID, spec, [{ values: { who: 'first', first: 1 } }, { values: { who: 'second' } }])
  const own = {
    overrides: [
      { service: 'shop', config: { who: 'own' }, helm: { values: { b: 1 } } },
      { service: 'other', config: { who: 'no' } },
    ],
  }

  test.each([
    ['IC5 configFrom < config', { labels: {} }, 'service'],
    ['IC5 config < overrides that are meant for it', { labels: { region: 'eu' } }, 'eu'],
    ['IC5 overrides in their order', { labels: { region: 'eu', tier: 'edge' } }, 'edge'],
    ['IC5 overrides < the config of the cluster', { labels: { tier: 'edge' }, config: { who: 'cluster' } }, 'cluster'],
    ['IC5 the config of the cluster < what it says of this service', { labels: {}, config: { who: 'cluster' }, ...own }, 'own'],
    [
      'IC5 what it says of a service of another project is not meant',
      { labels: {}, overrides: [{ ...own.overrides[0], service: 'shop', project: 'p' }] },
      'service',
    ],
  ])('%s', (_, cluster, who) => expect(of(cluster).config.values).toMatchObject({ who, first: 1, service: 1 }))

  test('IC5 values and patches keep their order and say where they are from', () => {
    const { helmValues, patches } = of({ labels: { region: 'eu', tier: 'edge' }, ...own })
    expect(helmValues.map(({ from }) => from)).toEqual(['overrides[0]', 'cluster overrides[0]'])
    expect(patches.map(({ from }) => from)).toEqual(['overrides[1]'])
  })
  test('IC3 clusters for which the same is meant share one settings', () => {
    expect(of({ labels: { region: 'eu', name: 'a' } })).toBe(of({ labels: { region: 'eu', name: 'b' } }))
    expect(of({ labels: {}, config: { x: 1 } })).toBe(of({ labels: {}, config: { x: 1 } }))
    expect(of({ labels: {} })).not.toBe(of({ labels: {}, config: { x: 1 } }))
    expect(of({ labels: {}, config: { x: 1 } })).not.toBe(of({ labels: {}, config: { x: 2 } }))
  })
  test('IC3 what a cluster says is read once, not in each pass of each service', () => {
    let reads = 0
    const ownKeys = (target: object) => {
      reads += 1
      return Reflect.ownKeys(target)
    }
    const counted = (value: Record<string, number>) => new Proxy<Record<string, number>>(value, { ownKeys })
    const cluster = {
      labels: {},
      config: { all: counted({ x: 1 }) },
      overrides: [{ service: 'shop', config: { more: counted({ y: 1 }) } }],
    }
    of(cluster)
    const first = reads
    const later = settingsFor(ID, spec, [])({ ...cluster })
    expect([later.patches, reads]).toEqual([[], first]) // merged for those who look
    expect(later.config.values).toMatchObject({ all: { x: 1 }, more: { y: 1 } })
  })
})
