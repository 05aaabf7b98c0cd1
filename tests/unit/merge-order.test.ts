// The order in which layers win, held against a model that only knows a list: the last one that names a variable has
// it.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { settingsFor } from '../../server/render/overrides-of.ts'
import type { Labels } from '../../shared/model/labels.ts'
import type { Patch } from '../../shared/model/render.ts'

const ID = { project: 'default', service: 'shop' }
const REGIONS = ['eu', 'us']
const TIERS = ['edge', 'core']

/** null takes a name away. */
type Flat = Record<string, number | null>
const flat: fc.Arbitrary<Flat> = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.option(fc.nat(1_000)), { maxKeys: 4 })
const content = fc.record(
  { config: flat, helm: fc.record({ values: flat }), patches: fc.constant<Patch[]>([{ patch: { kind: 'X' } }]) },
  { requiredKeys: [] },
)
const labels: fc.Arbitrary<Labels> = fc.record({ region: fc.constantFrom(...REGIONS), tier: fc.constantFrom(...TIERS) })
const selector = fc.tuple(labels, fc.subarray(['region', 'tier'])).map(([all, keys]) => ({
  matchLabels: Object.fromEntries(keys.map((key) => [key, all[key] ?? ''])),
}))
const override = fc.tuple(selector, content).map(([chosen, rest]) => ({ selector: chosen, ...rest }))
const ownOverride = fc
  .tuple(fc.constantFrom('shop', 'other'), fc.constantFrom(undefined, 'default', 'p'), content)
  .map(([service, project, rest]) => ({ service, ...(project === undefined ? {} : { project }), ...rest }))
const given = fc.record({
  configs: fc.array(flat, { maxLength: 3 }),
  spec: fc.record({ config: flat, overrides: fc.array(override, { maxLength: 5 }) }, { requiredKeys: [] }),
  clusters: fc.array(
    fc
      .tuple(labels, fc.record({ config: flat, overrides: fc.array(ownOverride, { maxLength: 4 }) }, { requiredKeys: [] }))
      .map(([ownLabels, own]) => ({ labels: ownLabels, ...own })),
    { minLength: 1, maxLength: 4 },
  ),
})
type Given = typeof given extends fc.Arbitrary<infer T> ? T : never

function model({ configs, spec }: Given, cluster: Given['clusters'][number]) {
  const meant = (spec.overrides ?? []).flatMap((one, index) => {
    const wanted = Object.entries(one.selector.matchLabels)
    return wanted.every(([key, value]) => cluster.labels[key] === value) ? [{ from: `overrides[${index}]`, ...one }] : []
  })
  const own = (cluster.overrides ?? [])
    .filter(({ service, project }) => service === 'shop' && project !== 'p')
    .map((one, index) => ({ from: `cluster overrides[${index}]`, ...one }))
  const all = [...meant, ...own]
  const layers = [
    ...configs,
    spec.config ?? {},
    ...meant.map(({ config = {} }) => config),
    cluster.config ?? {},
    ...own.map(({ config = {} }) => config),
  ]
  const winners = [...new Set(layers.flatMap((layer) => Object.keys(layer)))].map(
    (name) => [name, layers.findLast((layer) => Object.hasOwn(layer, name))?.[name]] as const,
  )
  return {
    config: Object.fromEntries(winners.filter(([, value]) => value !== null)),
    helmValues: all.flatMap(({ from, helm }) => (helm === undefined ? [] : [{ from, values: helm.values ?? {} }])),
    patches: all.flatMap(({ from, patches }) => (patches === undefined ? [] : [from])),
  }
}

test('IC5 configFrom < config < overrides in their order < the cluster < what it says of the service, for variables, values and patches', () => {
  fc.assert(
    fc.property(given, (one) => {
      const settings = settingsFor(
        ID,
        one.spec,
        one.configs.map((values) => ({ values })),
      )
      for (const cluster of one.clusters) {
        const { config, helmValues, patches } = settings(cluster)
        expect({ config: config.values, helmValues, patches: patches.map(({ from }) => from) }).toEqual(model(one, cluster) as never)
      }
    }),
    { numRuns: 500 },
  )
})
