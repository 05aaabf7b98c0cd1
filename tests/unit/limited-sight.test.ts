// AZ11: what a caller sees of a service that it may read in some clusters only.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { renderStateIn, selectorIn, specIn } from '../../server/fleet/limited-sight.ts'
import type { StoredError } from '../../server/fleet/records.ts'
import { gatherFailing } from '../../server/fleet/unrendered.ts'
import { type LabelSelector, type Labels, matchesSelector } from '../../shared/model/labels.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'

const key = fc.constantFrom('site', 'env')
const value = fc.constantFrom('oslo', 'bergen', 'prod', 'dev')
const labels: fc.Arbitrary<Labels> = fc.dictionary(key, value, { maxKeys: 2 })
const values = fc.uniqueArray(value, { minLength: 1, maxLength: 3 })
const rule = fc.oneof(
  fc.record({ key, operator: fc.constantFrom('In' as const, 'NotIn' as const), values }),
  fc.record({ key, operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const) }),
)
const selector: fc.Arbitrary<LabelSelector> = fc.record(
  { matchLabels: labels, matchExpressions: fc.array(rule, { maxLength: 2 }) },
  { requiredKeys: [] },
)

test('AZ11 a shown selector selects the same of the shown clusters and has no value of another one', () => {
  fc.assert(
    fc.property(selector, fc.array(labels, { minLength: 1, maxLength: 3 }), (asked, seen) => {
      const narrowed = selectorIn(asked, seen)
      for (const one of seen) expect(narrowed !== null && matchesSelector(one, narrowed)).toBe(matchesSelector(one, asked))
      if (narrowed === null) return
      const shown = [
        ...Object.entries(narrowed.matchLabels ?? {}),
        ...(narrowed.matchExpressions ?? []).flatMap((one) => ('values' in one ? one.values.map((text) => [one.key, text] as const) : [])),
      ]
      for (const [name, text] of shown) expect(seen.some((one) => one[name] === text)).toBe(true)
    }),
  )
})

const oslo = { name: 'oslo-1', labels: { site: 'oslo', env: 'prod' } }
const spec = serviceSpecSchema.parse({
  source: { repository: 'apps', path: 'web' },
  targets: {
    selector: { matchExpressions: [{ key: 'site', operator: 'In', values: ['oslo', 'hidden'] }] },
    exclude: [{ matchLabels: { site: 'hidden' } }, { matchLabels: { env: 'dev' } }],
  },
  overrides: [
    { selector: { matchLabels: { site: 'hidden' } }, config: { address: 'hidden' } },
    { selector: { matchLabels: { site: 'oslo' } }, config: { color: 'red' } },
  ],
})

test('AZ11 targets and overrides are those of the shown clusters, and form a valid spec', () => {
  const shown = specIn(spec, [oslo])
  expect(JSON.stringify(shown)).not.toContain('hidden')
  expect(shown.overrides).toMatchObject([{ config: { color: 'red' } }])
  expect(serviceSpecSchema.parse(shown)).toEqual(shown)
  const leaving = specIn({ ...spec, targets: { selector: { matchLabels: { site: 'hidden' } }, exclude: [] } }, [oslo])
  expect(leaving.targets).toEqual({ selector: {}, exclude: [{}] })
})

const failure = (message: string) => ({ code: 'render_failed', message, problems: [{ path: 'a.yaml', message }] })
const errorOf = (message: string, clusters: Record<string, string>): StoredError => ({
  ...{ code: 'render_failed', message, sinceMs: 1, at: { commit: 'c0ffee', author: null } },
  problems: Object.values(clusters).map((text) => ({ path: 'a.yaml', message: text })),
  failing: gatherFailing(Object.entries(clusters).map(([cluster, text]) => ({ cluster, holds: false, error: failure(text) }))),
})
const stateOf = (error: StoredError) => ({
  ...{ commit: 'c0ffee', generation: 1, digest: 'd', objectCount: 1, renderedMs: 1, error },
  release: { variants: 7, revisions: {}, tools: {}, warnings: [] },
})
const errorIn = (error: StoredError) => renderStateIn(stateOf(error), spec.targets, [oslo], () => false).error

test('AZ11 a render error is the one of the shown clusters', () => {
  const both = errorOf('in 2 of 9 clusters (hidden-1, oslo-1): hidden text, among others', { 'hidden-1': 'hidden text', 'oslo-1': 'own' })
  const shown = errorIn(both)
  expect(JSON.stringify(shown)).not.toContain('hidden')
  expect(shown).toMatchObject({ message: 'in 1 of 1 clusters (oslo-1): own', problems: [{ message: 'own' }], at: { commit: 'c0ffee' } })
  expect(errorIn(errorOf('in 1 of 9 clusters (hidden-1): hidden text', { 'hidden-1': 'hidden text' }))).toBeNull()
  const before: StoredError = { code: 'render_failed', message: 'in 1 of 9 clusters (hidden-1): no folder', problems: [], sinceMs: 1 }
  expect(errorIn(before)?.message).toBe('no folder')
  expect(renderStateIn(stateOf(both), spec.targets, [oslo], () => false).release?.variants).toBe(1)
})

test('AZ11 of a failure of all clusters the problems of the others are left out', () => {
  const all = { ...errorOf('2 problems', { 'hidden-1': 'x', 'oslo-1': 'x' }), problems: [{ path: '', message: 'hidden' }] }
  const shown = errorIn({ ...all, message: 'x' })
  expect([shown?.message, shown?.problems]).toEqual(['x', [{ path: 'a.yaml', message: 'x' }]])
})
