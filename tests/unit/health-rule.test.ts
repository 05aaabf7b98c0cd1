import { expect, test } from 'bun:test'
import { CEL_ELEMENTS_MAX, CEL_MATCH_CHARS_MAX, checkServiceHealth, compileServiceHealth, loadCel } from '../../shared/adapters/cel.ts'
import { healthOf } from '../../shared/kube/health.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ServiceHealth } from '../../shared/model/health-rules.ts'
import { naming } from '../support/naming.ts'

const NOW_MS = 1_000
const boat = (status: Record<string, unknown> | undefined, spec: Record<string, unknown> = {}): K8sObject =>
  ({
    apiVersion: 'harbour.example/v1',
    kind: 'Boat',
    metadata: { name: 'x', generation: 3, labels: { size: 'big' }, managedFields: [] },
    spec,
    ...(status === undefined ? {} : { status }),
  }) as unknown as K8sObject
const rule = (parts: Partial<ServiceHealth> = {}): ServiceHealth => ({
  apiVersion: 'harbour.example/v1',
  kind: 'Boat',
  current: 'true',
  ...parts,
})

const judge = async (parts: Partial<ServiceHealth>, object: K8sObject) => {
  const compiled = await compileServiceHealth(rule(parts))
  if (typeof compiled === 'string') throw new Error(compiled)
  return healthOf(object, NOW_MS, { waitForAddress: false, rules: [compiled] })
}

const cel = await loadCel()
const evaluate = (text: string, members: Record<string, unknown>) => {
  const compiled = cel.compile(text)
  return compiled.kind === 'refused' ? compiled : compiled.test(members)
}

const FLUX = {
  current: "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True') && status.replicas == spec.replicas",
  inProgress: "status.conditions.exists(e, e.type == 'Ready' && e.status == 'Unknown')",
  failed: "status.phase == 'Sunk'",
}
const conditions = (status: string) => [{ type: 'Ready', status, message: 'says the captain' }]

test.each([
  ['current', { phase: 'Afloat', replicas: 2, conditions: conditions('True') }, 'Healthy', 'Healthy'],
  ['in progress', { phase: 'Afloat', conditions: conditions('Unknown') }, 'Progressing', 'HealthRuleInProgress'],
  ['failed wins over in progress', { phase: 'Sunk', conditions: conditions('Unknown') }, 'Degraded', 'HealthRuleFailed'],
  ['none of them', { phase: 'Afloat', replicas: 1, conditions: conditions('True') }, 'Progressing', 'HealthRuleNotMet'],
  ['a member that is missing', { phase: 'Afloat' }, 'Progressing', 'HealthRuleError'],
  ['no status at all', undefined, 'Progressing', 'HealthRuleError'],
] as const)('HE6 %s', async (_, status, word, reason) => {
  expect(await judge(FLUX, boat(status, { replicas: 2 }))).toMatchObject({ word, reason })
})

test('HE6 a rule comes before Stalled and Ready, and after deletion and observedGeneration', async () => {
  const stalled = boat({ conditions: [{ type: 'Stalled', status: 'True' }] })
  expect(await judge({}, stalled)).toMatchObject({ word: 'Healthy' })
  expect(await judge({}, boat({ observedGeneration: 2 }))).toMatchObject({ reason: 'GenerationNotObserved' })
  const going = { ...boat({}), metadata: { ...boat({}).metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
  expect(await judge({}, going)).toMatchObject({ reason: 'Deleting' })
})

test('HE6 a rule is for its group and kind, in whatever version the object is', async () => {
  const compiled = await compileServiceHealth(rule({ current: 'false' }))
  if (typeof compiled === 'string') throw new Error(compiled)
  const options = { waitForAddress: false, rules: [compiled] }
  expect(healthOf({ ...boat({}), apiVersion: 'harbour.example/v2' }, NOW_MS, options).word).toBe('Progressing')
  expect(healthOf({ ...boat({}), kind: 'Ship' }, NOW_MS, options).reason).toBe('NotReported')
  expect(healthOf({ ...boat({}), apiVersion: 'other.example/v1' }, NOW_MS, options).reason).toBe('NotReported')
})

test('HE6 what cannot be told names the expression and the error', async () => {
  const { message } = await judge({ current: 'status.crew.captain == "Ahab"' }, boat({}))
  expect(message).toEqual(naming('health rule of the service', 'current: No such key: crew'))
  expect((await judge({ current: 'spec.flag' }, boat({}, { flag: 3 }))).message).toContain('true nor false')
})

test.each([
  ['whole numbers are integers', 'status.ready + 1 == status.wanted && status.wanted % 2 == 1 && status.wanted > 2', true],
  ['whole numbers compare with doubles', 'status.ratio < 1 && status.ready > 1.5', true],
  ['has asks for a member', 'has(status.ready) && !has(status.x)', true],
  ['nothing of JavaScript is a member', "has(status.constructor) || has(status.__proto__) || 'toString' in status", false],
  ['optional members', "status.?x.orValue('none') == 'none'", true],
  ['in', "metadata.labels.size in ['small', 'big']", true],
  ['text', "kind.startsWith('Bo') && kind.endsWith('at') && kind.contains('oa') && kind.lowerAscii() == 'boat'", true],
  ['matches', "kind.matches('^B[a-z]+t$')", true],
  [
    'map, filter and nesting',
    "status.list.filter(e, e.ok).map(e, e.name) == ['a'] && status.list.exists(e, status.list.all(f, has(f.name)))",
    true,
  ],
  ['a missing member beside a true one', 'status.nothing == 1 || true', true],
  ['times', "timestamp(status.at) < timestamp('2027-01-01T00:00:00Z')", true],
] as const)('HE6 the language: %s', async (_, text, expected) => {
  const status = {
    ready: 2,
    wanted: 3,
    ratio: 0.5,
    at: '2026-01-01T00:00:00Z',
    list: [
      { name: 'a', ok: true },
      { name: 'b', ok: false },
    ],
  }
  expect((await judge({ current: text }, boat(status))).word).toBe(expected ? 'Healthy' : 'Progressing')
})

test.each([
  ['no CEL', '1 +', 'Unexpected token'],
  ['another type than bool', "'text'", 'type string'],
  ['an unknown function', 'nope(status)', 'nope is not supported'],
  ['values that are bound and doubled', 'cel.bind(a, status.x + status.x, a == a)', 'bind is not supported'],
  ['values that double in a macro', '[status.x].map(a, a + a).map(a, a + a) == []', '"+" inside'],
  ['texts that are made of lists', "status.list.map(e, e.name).join(',') == ''", 'join is not supported'],
  ['bytes as JSON', "b'{}'.json() == {}", 'json is not supported'],
  ['a pattern out of the object', 'kind.matches(status.pattern)', 'literal'],
  ['a repeated group', "kind.matches('(a+)+$')", 'group of a pattern'],
  ['a back reference', "kind.matches('(a)\\\\1')", 'back references'],
  ['a look ahead', "kind.matches('a(?=b)')", 'back references'],
  ['three repeats that begin anywhere', "kind.matches('.*a.*b.*c')", 'at most 2'],
  ['many that may be there or not', `kind.matches('${'a?'.repeat(17)}${'a'.repeat(17)}')`, 'at most 12 of ? and |'],
  ['many alternatives', `kind.matches('${'(a|aa)'.repeat(17)}b')`, 'at most 12 of ? and |'],
  ['alternatives beside repeats', "kind.matches('a*(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)')", 'or 3 beside'],
  ['a pattern that is none', "kind.matches('a[')", 'pattern is invalid'],
  ['too deep', `${'('.repeat(60)}true${')'.repeat(60)}`, 'maxDepth'],
] as const)('HE7 refused when it is written: %s', async (_, current, why) => {
  const problem = await checkServiceHealth(rule({ current }))
  expect(problem).toStartWith('current of ')
  expect(problem).toContain('Boat of harbour.example/v1: ')
  expect(problem).toContain(why)
  expect(await checkServiceHealth(rule({ failed: current }))).toStartWith('failed of')
})

test('HE7 a rule that can be used has no problem', async () => {
  expect(await checkServiceHealth(rule(FLUX))).toBeNull()
  expect(await checkServiceHealth(rule({ current: "status.version.matches('^v?[0-9]+\\\\.[0-9]+\\\\.[0-9]+$')" }))).toBeNull()
})

test('HE7 more elements than a rule may look at end it, also by nesting, and the next evaluation begins anew', () => {
  const list = (length: number) => Array.from({ length }, (_, n) => BigInt(n))
  const fits = { status: { list: list(CEL_ELEMENTS_MAX) } }
  expect(evaluate('status.list.all(e, e >= 0)', fits)).toEqual({ kind: 'answer', value: true })
  expect(evaluate('status.list.all(e, e >= 0)', fits)).toEqual({ kind: 'answer', value: true })
  expect(evaluate('status.list.all(e, e >= 0)', { status: { list: list(CEL_ELEMENTS_MAX + 1) } })).toMatchObject({
    kind: 'error',
    why: expect.stringContaining('2000 elements'),
  })
  const nested = 'status.list.all(a, status.list.all(b, status.list.all(c, status.list.all(d, true))))'
  expect(evaluate(nested, { status: { list: list(100) } })).toMatchObject({ kind: 'error' })
  expect(evaluate('(status.list).filter(a, (status.list.exists(b, b == a))).size() == 10', { status: { list: list(10) } })).toEqual({
    kind: 'answer',
    value: true,
  })
})

test.each([
  ['a list', 'spec.few.all(x, !(x in spec.many))'],
  ['both sides', 'spec.few.all(x, spec.many == spec.other)'],
  ['a text', 'spec.few.all(x, size(spec.text) > 1)'],
  ['a text as receiver', 'spec.few.all(x, spec.text.upperAscii() != "")'],
  ['a number of a million digits', 'spec.few.all(x, double(spec.digits) > 0.0)'],
  ['a list in parentheses', 'spec.few.all(x, !(x in ((spec.many))))'],
  ['what is left after an error', 'spec.few.exists(x, spec.many != spec.other || spec.text.contains("b") || x in spec.many)'],
  [
    'rounds of a list behind a choice',
    '((false) ? [] : spec.few).all(x, ((false) ? [] : spec.few).all(y, ((true) ? spec.few : []).all(z, true)))',
  ],
])('HE7 what looks at too much ends soon: %s', (_, rule) => {
  const many = Array.from({ length: 100_000 }, (_, n) => ({ n }))
  const few = Array.from({ length: 1_900 }, (_, n) => ({ few: n }))
  const spec = { few, many, other: structuredClone(many), text: 'a'.repeat(900_000), digits: '1'.repeat(900_000) }
  evaluate('spec.few.all(x, true)', { spec })
  const beganMs = performance.now()
  expect(evaluate(rule, { spec })).toMatchObject({ kind: 'error', why: expect.stringMatching(/reads? more than/) })
  expect(performance.now() - beganMs).toBeLessThan(4_000)
})

test('HE7 guards change no answer, wherever parentheses and texts are', () => {
  for (const [rule, value] of [
    ['(((((spec.a)) + (spec.b)))).size() == 4', true],
    ['"(" == ")" || ("a)" + (spec.open)) == "a)("', true],
    ['((spec.a) + "(").size() > (1) && (size((spec.open)) == 1)', true],
    ['!([1, 2].exists(c, (c) in (([2]))))', false],
    ['(spec.a) in {"ab": 1} && (spec.?none.orValue("z")) == "z"', true],
    ['(spec.a.matches("^a")) && ((spec.a)).matches("b$")', true],
  ] as const)
    expect([rule, evaluate(rule, { spec: { a: 'ab', b: 'cd', open: '(' } })]).toEqual([rule, { kind: 'answer', value }])
})

test('HE7 a text that is too long for a pattern ends the evaluation, and the worst pattern that is taken is soon done', () => {
  const text = (length: number) => ({ status: { text: 'a'.repeat(length) } })
  expect(evaluate("status.text.matches('^a*$')", text(CEL_MATCH_CHARS_MAX))).toEqual({ kind: 'answer', value: true })
  expect(evaluate("status.text.matches('^a*$')", text(CEL_MATCH_CHARS_MAX + 1))).toMatchObject({ kind: 'error' })
  const begin = performance.now()
  expect(evaluate("status.text.matches('^a*a*a*b')", text(CEL_MATCH_CHARS_MAX))).toEqual({ kind: 'answer', value: false })
  const others = [`^a*a*${'(a|aa)'.repeat(3)}b`, `${'a?'.repeat(12)}b`, `${'(a|aa)'.repeat(12)}b`, 'a*a*b', `^${'a?'.repeat(3)}a*?a+?a*b`]
  for (const pattern of others) {
    expect(evaluate(`status.text.matches('${pattern}')`, text(CEL_MATCH_CHARS_MAX))).toEqual({ kind: 'answer', value: false })
  }
  expect(performance.now() - begin).toBeLessThan(3_000)
})

test('HE7 a document of a thousand levels ends nothing', async () => {
  let deep: Record<string, unknown> = {}
  for (let level = 0; level < 1_000; level += 1) deep = { deep }
  expect((await judge({ current: 'has(status.deep)' }, boat(deep))).word).toBe('Healthy')
})
