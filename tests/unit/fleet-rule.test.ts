// HealthRules: what they say of an object, in which order rules are asked, and which expressions are refused.
import { describe, expect, test } from 'bun:test'
import { compileFleetRule, compileServiceHealth } from '../../shared/adapters/cel.ts'
import { healthOf } from '../../shared/kube/health.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { type HealthRuleSpec, healthRuleSpecSchema } from '../../shared/model/health-rules.ts'
import { naming } from '../support/naming.ts'

const boat = (status: Record<string, unknown>, apiVersion = 'harbour.example/v1'): K8sObject =>
  ({ apiVersion, kind: 'Boat', metadata: { name: 'x' }, spec: { seats: 2 }, status }) as unknown as K8sObject
const compiled = async (parts: Partial<HealthRuleSpec>, id = 'boats') => {
  const rule = await compileFleetRule(id, healthRuleSpecSchema.parse({ group: 'harbour.example', kind: 'Boat', ...parts }))
  if ('why' in rule) throw new Error(rule.why)
  return rule
}
const judge = async (parts: Partial<HealthRuleSpec>, object: K8sObject) =>
  healthOf(object, 0, { waitForAddress: false, rules: [], fleetRules: [await compiled(parts)] })

const FULL: Partial<HealthRuleSpec> = {
  degraded: { when: "has(status.fault) && status.fault != ''", messageExpression: "'fault ' + status.fault" },
  suspended: { when: 'has(status.moored) && status.moored', message: 'moored by the harbour master' },
  progressing: { when: "status.state == 'Leaving'" },
  healthy: { when: "status.state == 'Afloat'" },
}

test.each([
  ['degraded first', { state: 'Afloat', moored: true, fault: 'leak' }, 'Degraded', 'HealthRuleDegraded', 'fault leak'],
  ['suspended before progressing', { state: 'Leaving', moored: true }, 'Suspended', 'Suspended', 'moored by the harbour master'],
  ['progressing', { state: 'Leaving' }, 'Progressing', 'HealthRuleProgressing', naming('progressing.when', 'HealthRule boats')],
  ['healthy', { state: 'Afloat' }, 'Healthy', 'Healthy', ''],
  ['none of them', { state: 'Docked' }, 'Progressing', 'HealthRuleNotMet', naming('healthy.when', 'HealthRule boats', 'not true')],
  ['a member that is missing', {}, 'Progressing', 'HealthRuleError', naming('progressing.when', 'state')],
] as const)('HR1 %s', async (_, status, word, reason, message) => {
  expect(await judge(FULL, boat(status))).toEqual({ word, reason, message })
})

test('HR1 what Ready says goes along where the rule has no message', async () => {
  const conditions = [{ type: 'Ready', status: 'False', message: 'says the captain' }]
  expect((await judge({ healthy: { when: 'false' } }, boat({ conditions }))).message).toEndWith(': says the captain')
})

test('HR1 a message that cannot be made, or is no text, leaves what the rule says by itself', async () => {
  for (const messageExpression of ["'x' + status.nothing", 'status.seats'])
    expect(await judge({ degraded: { when: 'true', messageExpression } }, boat({ seats: 3 }))).toMatchObject({
      word: 'Degraded',
      message: naming('degraded.when', 'HealthRule boats'),
    })
})

test('HR1 a message is one line of at most 500 characters', async () => {
  const { message } = await judge({ degraded: { when: 'true', messageExpression: 'status.log' } }, boat({ log: `a\nb${'x'.repeat(900)}` }))
  expect([message.length, message.startsWith('a b')]).toEqual([500, true])
})

test('HR1 a rule is for its versions, or for all', async () => {
  const degraded = { when: 'true' }
  expect((await judge({ degraded, versions: ['v2'] }, boat({}))).word).not.toBe('Degraded')
  expect((await judge({ degraded, versions: ['v2'] }, boat({}, 'harbour.example/v2'))).word).toBe('Degraded')
  expect((await judge({ degraded }, boat({}, 'harbour.example/v3'))).word).toBe('Degraded')
  expect((await judge({ degraded }, boat({}, 'other.example/v1'))).word).not.toBe('Degraded')
})

describe('HR2', () => {
  const ready = { conditions: [{ type: 'Ready', status: 'False', reason: 'Leak' }] }

  test('the first rule that says something decides; without healthy the next one is asked, last the built-in ones', async () => {
    const [silent, loud] = [await compiled({ degraded: { when: 'false' } }), await compiled({ healthy: { when: 'true' } }, 'loud')]
    const told = (fleetRules: Awaited<ReturnType<typeof compiled>>[]) =>
      healthOf(boat(ready), 0, { waitForAddress: false, rules: [], fleetRules }).word
    expect([told([silent, loud]), told([loud, silent]), told([silent])]).toEqual(['Healthy', 'Healthy', healthOf(boat(ready), 0).word])
  })

  test('the rule of the service itself wins', async () => {
    const own = await compileServiceHealth({ apiVersion: 'harbour.example/v1', kind: 'Boat', current: 'true' })
    if (typeof own === 'string') throw new Error(own)
    const fleetRules = [await compiled({ degraded: { when: 'true' } })]
    expect(healthOf(boat({}), 0, { waitForAddress: false, rules: [own], fleetRules }).word).toBe('Healthy')
  })

  test('deletion comes before every rule', async () => {
    const going = { ...boat({}), metadata: { name: 'x', deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect((await judge({ healthy: { when: 'true' } }, going)).reason).toBe('Deleting')
  })
})

describe('HR3', () => {
  const verdict = (parts: object) => ({ group: 'x.example', kind: 'X', ...parts })
  test.each([
    ['without a verdict', verdict({})],
    ['two messages', verdict({ healthy: { when: 'true', message: 'a', messageExpression: "'b'" } })],
    ['a Secret', { group: '', kind: 'Secret', healthy: { when: 'true' } }],
    ['no group', { kind: 'X', healthy: { when: 'true' } }],
    ['an unknown verdict', verdict({ broken: { when: 'true' } })],
  ])('a rule is refused: %s', (_, spec) => expect(healthRuleSpecSchema.safeParse(spec).success).toBe(false))

  test.each([
    ['degraded.when', { degraded: { when: 'status.x +' } }],
    ['healthy.when', { healthy: { when: "'text'" } }],
    ['suspended.messageExpression', { suspended: { when: 'true', messageExpression: '1 + 1' } }],
    ['progressing.when', { progressing: { when: 'fetch(status.url)' } }],
  ])('an expression is refused by its place: %s', async (path, parts) => {
    expect(await compileFleetRule('x', healthRuleSpecSchema.parse(verdict(parts)))).toMatchObject({ path })
  })
})
