// docs/reference/health.md against the code: the order of rules, the words, the grace time and the list of kinds.
import { expect, test } from 'bun:test'
import { compileFleetRule, compileServiceHealth } from '../../shared/adapters/cel.ts'
import { HEALTHY, healthOf } from '../../shared/kube/health.ts'
import { DATA_RULES } from '../../shared/kube/health-data.ts'
import { DELIVERY_RULES } from '../../shared/kube/health-delivery.ts'
import { NETWORK_RULES } from '../../shared/kube/health-network.ts'
import { HEALTH_WORDS, STATUS_GRACE_MS } from '../../shared/kube/health-object.ts'
import { OPERATOR_RULES } from '../../shared/kube/health-operators.ts'
import { PLATFORM_RULES } from '../../shared/kube/health-platform.ts'
import { FAMILIES, PROVISION_RULES } from '../../shared/kube/health-provision.ts'
import { SILENT_GROUPS, SILENT_RULES } from '../../shared/kube/health-silent.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { conditions } from '../support/health-table.ts'

const page = await Bun.file('docs/reference/health.md').text()
const sectionOf = (title: string): string => page.split(`## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
/** The first cells of the rows of a table, without their marks. */
const firstCells = (section: string): string[] => [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, cell = '']) => cell)

test('HE1 the page names the rules in the order in which they are asked', async () => {
  const fleetRule = await compileFleetRule('thing', { group: 'example.com', kind: 'Thing', healthy: { when: 'true' } })
  const serviceRule = await compileServiceHealth({ apiVersion: 'example.com/v1', kind: 'Thing', current: 'true' })
  if ('why' in fleetRule || typeof serviceRule === 'string') throw new Error('a rule of this test cannot be compiled')
  const decidedBy = (object: object, rules = {}): string => {
    let decided = ''
    healthOf({ apiVersion: 'example.com/v1', kind: 'Thing', ...object } as K8sObject, 0, rules, (rule) => {
      decided = rule
    })
    return decided
  }
  const stalled = conditions('Stalled:True', 'Reconciling:True')
  const all = { rules: [serviceRule], fleetRules: [fleetRule] }
  const seen = { metadata: { name: 'x' }, spec: { suspend: true }, status: stalled }
  const unseen = { ...seen, metadata: { name: 'x', generation: 2 }, status: { ...stalled, observedGeneration: 1 } }
  const deleted = { ...unseen, metadata: { ...unseen.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
  // Each object gives the rule before no cause to apply; all later rules still apply.
  const decisions = [
    decidedBy(deleted, all),
    decidedBy(unseen, all),
    decidedBy(seen, all),
    decidedBy(seen, { fleetRules: [fleetRule] }),
    decidedBy(seen),
    decidedBy({ ...seen, spec: {} }),
    decidedBy({ ...seen, spec: {}, status: conditions('Reconciling:True') }),
    decidedBy({ apiVersion: 'cert-manager.io/v1', kind: 'Issuer', metadata: { name: 'x' } }),
    decidedBy({ metadata: { name: 'x' } }),
    decidedBy({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } }),
  ]
  const named = firstCells(sectionOf('Which rule decides?')).map((cell) => cell.replace(/<.*/, ''))
  expect(decisions.map((decided) => decided.replace(/^(healthrule:|kind:).*/, '$1'))).toEqual(named)
})

test('HE17 the page names every word and the grace time', () => {
  expect(firstCells(sectionOf('What do the words mean?')).sort()).toEqual([...HEALTH_WORDS].sort())
  expect(sectionOf('What if the controller reports nothing?')).toContain(`${STATUS_GRACE_MS / 1_000} seconds`)
  expect(HEALTH_WORDS).toContain(HEALTHY.word)
})

test('HE4 HE19 the page lists every custom kind and every group with a rule', () => {
  const kindsOf = new Map<string, string[]>()
  const tables = [DATA_RULES, DELIVERY_RULES, NETWORK_RULES, OPERATOR_RULES, PLATFORM_RULES, PROVISION_RULES, SILENT_RULES]
  for (const key of tables.flatMap((rules) => Object.keys(rules)).sort()) {
    const [group = '', kind = ''] = key.split('/')
    kindsOf.set(group, [...(kindsOf.get(group) ?? []), kind])
  }
  const lines = [...kindsOf].map(([group, kinds]) => `- \`${group}\`: ${kinds.join(', ')}`)
  const groups = [...FAMILIES.map(([suffix]) => (suffix.startsWith('.') ? `*${suffix}` : suffix)), ...SILENT_GROUPS].sort()
  const listed = sectionOf('Which custom kinds have a rule?')
    .replaceAll(/\n {2}/g, ' ')
    .split('\n')
    .filter((line) => line.startsWith('- '))
  expect(listed).toEqual([...lines, ...groups.map((group) => `- \`${group}\``)])
})
