// AZ4: what agents write about other services, as a caller sees it who may not read them. The texts come from the code
// that writes them.
import { expect, test } from 'bun:test'
import { blockedBy } from '../../agent/reconcile/plan/gates/dependencies.ts'
import { describeProblem } from '../../agent/reconcile/plan/problem-text.ts'
import { judgeHandover } from '../../agent/reconcile/plan/prune/handover.ts'
import { withoutHiddenServices } from '../../server/http/hidden-services.ts'
import { hideServices, serviceText } from '../../shared/runtime/ids.ts'

const blocked = (stateOf: Parameters<typeof blockedBy>[1]['stateOf'], dependsOn: Record<string, string[]>) =>
  blockedBy('shop/web', { stateOf, dependenciesOf: (key) => dependsOn[key] ?? [] })?.gate.message ?? ''
const ON_BANK = { 'shop/web': ['bank/payroll'] }
const MESSAGES: Array<[string, string]> = [
  ['an object of another service', describeProblem({ ...OWNED(), owner: serviceText('bank/payroll') }).message],
  [
    'an object of another cluster',
    describeProblem({ ...OWNED(), owner: `${serviceText('bank/payroll')} of Skerry cluster c-0123456789abcdef` }).message,
  ],
  ['a dependency that is absent', blocked(() => ({ kind: 'absent' }), ON_BANK)],
  ['a dependency that is being removed', blocked(() => ({ kind: 'removing' }), ON_BANK)],
  ['a dependency that is not ready', blocked(() => ({ kind: 'unready', words: 'OutOfSync, Missing' }), ON_BANK)],
  ['a dependency cycle', blocked(() => ({ kind: 'absent' }), { ...ON_BANK, 'bank/payroll': ['shop/web'] })],
  ['a handover', judgeHandover({ project: 'bank', service: 'payroll', object: 'x', after: '' }, { kind: 'unread' }) ?? ''],
  ['an owner, as earlier agents wrote it', 'already managed by the service bank/payroll; rename the object'],
  ['a dependency, as earlier agents wrote it', 'waiting for bank/payroll to be Healthy at its newest revision (now OutOfSync, Missing)'],
  ['a dependent, as earlier agents wrote it', 'waiting for the removal of bank/payroll, which depends on it'],
]
function OWNED() {
  return { kind: 'owned' } as Extract<Parameters<typeof describeProblem>[0], { kind: 'owned' }>
}

test.each(MESSAGES)('AZ4 %s is not named', (_, message) => {
  expect(message).toContain('bank/payroll')
  const shown = hideServices(message, ({ project }) => project === 'shop')
  expect([/bank|payroll/.exec(shown), shown.includes('a service that you may not read')]).toEqual([null, true])
  expect(hideServices(message, () => true)).toBe(message)
})

test.each([
  'waiting for wave 0: Deployment bank/payroll, which is not healthy since 1970-01-01T00:00:00Z',
  'Deployment bank/payroll: image registry.example/bank/payroll:1 cannot be pulled',
  'the service account bank/payroll does not exist',
])('AZ4 names of objects stay: %s', (message) => {
  expect(hideServices(message, () => false)).toBe(message)
})

test('AZ4 an answer is changed where it names a hidden service, and nowhere else', () => {
  const message = 'managed by service bank/payroll'
  const answer = { items: [{ spec: { note: message }, status: { message, counts: [1, null], list: [message] } }], continue: null }
  const shown = 'managed by a service that you may not read'
  const limited = () => [{ projects: ['shop'], services: null, clusters: null }]
  const whole = () => [{ projects: null, services: null, clusters: null }]
  expect(withoutHiddenServices(answer, '/api/v1/services', limited)).toEqual({
    items: [{ spec: { note: message }, status: { message: shown, counts: [1, null], list: [shown] } }],
    continue: null,
  })
  expect(withoutHiddenServices(answer, '/api/v1/services', whole)).toBe(answer)
  for (const route of [
    '/api/v1/audit/entries',
    '/api/v1/projects/:project/services/:name/render',
    '/api/v1/projects/:project/configs/:name',
  ])
    expect(withoutHiddenServices(answer, route, limited)).toBe(answer)
  const harmless = { items: [{ message: 'all is well' }] }
  expect(withoutHiddenServices(harmless, '/api/v1/events', limited)).toBe(harmless)
})
