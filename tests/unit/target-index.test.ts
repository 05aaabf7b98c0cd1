import { expect, test } from 'bun:test'
import { TargetIndex } from '../../server/fleet/target-index.ts'
import { isTarget } from '../../server/fleet/targeting.ts'
import type { LabelSelector, Labels } from '../../shared/model/labels.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { seededRandom } from '../../shared/runtime/random.ts'

const KEYS = ['env', 'region', 'toString', 'tier']
const VALUES = ['a', 'b', 'c', '']

test('TG1 the index finds exactly the services whose targets take the labels, whatever changes', () => {
  const random = seededRandom(5)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const labels = (): Labels => Object.fromEntries(KEYS.flatMap((key) => (random() < 0.6 ? [[key, pick(VALUES)]] : [])))
  const rule = (): NonNullable<LabelSelector['matchExpressions']>[number] => {
    const operator = pick(['In', 'NotIn', 'Exists', 'DoesNotExist'] as const)
    const key = pick(KEYS)
    return operator === 'In' || operator === 'NotIn' ? { key, operator, values: [pick(VALUES), pick(VALUES)] } : { key, operator }
  }
  const selector = (): LabelSelector => ({
    ...(random() < 0.5 ? { matchLabels: Object.fromEntries(Object.entries(labels()).slice(0, 2)) } : {}),
    ...(random() < 0.5 ? { matchExpressions: [rule()] } : {}),
  })
  const specOf = () =>
    serviceSpecSchema.parse({
      source: { repository: 'apps', path: 'x' },
      targets: { selector: selector(), exclude: random() < 0.2 ? [selector()] : [] },
    })
  const index = new TargetIndex()
  const services = new Map(Array.from({ length: 40 }, (_, n) => [`s${n}`, specOf()]))
  let matches = 0
  for (let round = 0; round < 60; round++) {
    for (let change = 0; change < 5; change++) services.set(`s${Math.floor(random() * 50)}`, specOf())
    services.delete(`s${Math.floor(random() * 50)}`)
    const gone = pick([...services.keys()])
    const listed = [...services].map(([name, spec]) => ({
      ...{ project: 'p', name, spec: JSON.stringify(spec), deletingMs: name === gone ? 1 : null },
    }))
    index.update(listed)
    for (let n = 0; n < 10; n++) {
      const of = labels()
      const expected = [...services].filter(([name, { targets }]) => name !== gone && isTarget(of, targets)).map(([name]) => name)
      const found = index.matching(of).map(({ id }) => id.service)
      expect(found.toSorted()).toEqual(expected.toSorted())
      matches += found.length
    }
  }
  expect(matches).toBeGreaterThan(1_000)
})

test('TG1 a look at the index evaluates the services that share a label with the cluster, and parses only what changed', () => {
  let evaluations = 0
  const index = new TargetIndex((labels, targets) => {
    evaluations += 1
    return isTarget(labels, targets)
  })
  const listed = Array.from({ length: 2_000 }, (_, n) => {
    const targets = { selector: { matchLabels: { env: 'prod', region: `r${n % 100}` } } }
    const spec = serviceSpecSchema.parse({ source: { repository: 'apps', path: 'x' }, targets })
    return { project: 'p', name: `s${n}`, spec: JSON.stringify(spec), deletingMs: null }
  })
  index.update(listed)
  const first = index.matching({ env: 'prod', region: 'r7' })
  expect([first.length, evaluations <= 40]).toEqual([20, true])
  index.update(listed.slice(0, 1_999))
  expect(index.matching({ env: 'prod', region: 'r7' }).every((service) => first.includes(service))).toBe(true)
})
