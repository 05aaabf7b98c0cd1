// Warnings of the API server: how the header is read, what is new, and where an agent shows them.
import { afterEach, expect, test } from 'bun:test'
import { parseWarnings, warningsOf } from '../../agent/cluster/api-failure.ts'
import { type WarningNews, warningNews } from '../../agent/reconcile/plan/problem-text.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { objectStatusSchema } from '../../shared/model/status.ts'
import { warningHeader } from '../support/fake-warnings.ts'
import { namespace, setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey } from '../support/reconcile-kit.ts'

afterEach(stopAll)

test.each<[name: string, header: string | null, texts: string[]]>([
  ['no header', null, []],
  ['one', '299 - "v1 Endpoints is deprecated"', ['v1 Endpoints is deprecated']],
  ['several in one line', '299 - "a, b", 299 - "c"', ['a, b', 'c']],
  ['quotes and backslashes', '299 - "use \\"x\\" and \\\\y"', ['use "x" and \\y']],
  ['an agent and a date', '299 kube "a" "Sat, 25 Aug 2012 23:34:45 GMT",199 host:80 "b"', ['a', 'b']],
  ['none of this form', 'warning!', []],
  ['one that is cut off', '299 - "a", 299 - "b', ['a']],
])('KA55 a header with %s', (_, header, texts) => expect(parseWarnings(header)).toEqual(texts))

test('KA55 warnings are sorted, each once, of bounded number and length, and without values of the object', () => {
  const sent = { kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'planted secret' } }
  expect(warningsOf(warningHeader(['b is planted secret', 'a', 'b is planted secret']), sent)).toEqual(['a', 'b is <redacted>'])
  const many = warningsOf(warningHeader(Array.from({ length: 50 }, (_, i) => `${i} ${'word '.repeat(1_000)}`)), sent)
  const status = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 0, warnings: many }
  expect(objectStatusSchema.parse(status).warnings).toEqual(many)
})

const ref = { group: '', kind: 'ConfigMap', namespace: 'shop', name: 'a' }
const news = (...texts: string[]): WarningNews['event'] => ({
  type: 'Warning',
  reason: 'AdmissionWarning',
  message: `ConfigMap shop/a: ${texts.join('; ')}`,
})
test.each<[name: string, warnings: string[], known: string[], isRefused: boolean, expected: WarningNews]>([
  ['AW1 the first ones are shown and told', ['a', 'b'], [], false, { warnings: ['a', 'b'], event: news('a', 'b') }],
  ['AW2 the same ones again are told no more', ['a'], ['a'], false, { warnings: ['a'], event: null }],
  ['AW2 only a new one is told', ['a', 'b'], ['a'], false, { warnings: ['a', 'b'], event: news('b') }],
  ['AW1 a write without any ends them', [], ['a'], false, { warnings: [], event: null }],
  ['AW1 a refused write without any says nothing', [], ['a'], true, { warnings: null, event: null }],
  ['AW1 a refused write may warn', ['b'], ['a'], true, { warnings: ['b'], event: news('b') }],
])('%s', (_, warnings, known, isRefused, expected) => expect(warningNews({ ref, warnings, known, isRefused })).toEqual(expected))

const KEY = configMapKey('a')
const told = (kit: ReturnType<typeof setup>['kit']) =>
  kit.events().flatMap(({ reason, message }) => (reason === 'AdmissionWarning' ? [message] : []))

test('AW1 AW2 an object shows its warnings until a write brings none, and each is told once, over a restart too', async () => {
  const { cluster, kit, run, settle } = setup()
  cluster.warn(({ metadata }) => (metadata.name === 'a' ? ['this ConfigMap is old, value 1 too'] : []))
  kit.desire([configMap('a')])
  await run()
  const warnings = ['this ConfigMap is old, value 1 too']
  expect(kit.object(KEY)).toMatchObject({ sync: 'Synced', health: 'Healthy', message: '', warnings })
  expect(told(kit)).toEqual(['ConfigMap default/a: this ConfigMap is old, value 1 too'])

  // Somebody changes it: the same document is applied again.
  cluster.editAs('somebody', refOfMap('a'), (live) => Object.assign(live, { data: { a: '2' } }))
  await settle()
  await kit.stop()
  kit.start()
  await settle()
  kit.desire([configMap('a', { a: '3' })])
  await settle()
  expect(kit.object(KEY)).toMatchObject({ warnings })
  expect(told(kit)).toHaveLength(1)

  cluster.warn(() => [])
  kit.desire([configMap('a', { a: '4' })])
  await settle()
  expect(kit.object(KEY)).not.toHaveProperty('warnings')
})
const refOfMap = (name: string) => ({ group: '', kind: 'ConfigMap', namespace: 'default', name })

test('AW1 a refused object shows the warnings of its refusal', async () => {
  const { cluster, kit, run } = setup()
  cluster.warn(({ metadata }) => (metadata.name === 'a' ? ['data is short'] : []))
  cluster.admit(({ metadata }) => (metadata.name === 'a' ? 'no' : null))
  kit.desire([configMap('a')])
  await run()
  expect(kit.object(KEY)).toMatchObject({ sync: 'OutOfSync', reason: 'Forbidden', warnings: ['data is short'] })
  expect(told(kit)).toEqual(['ConfigMap default/a: data is short'])
})

test('AW1 a Deployment against the security standard of its namespace is Synced, and says what it violates', async () => {
  const { kit, run } = setup({ told: { kubeEvents: 'problems' } })
  const space = { ...namespace('strict'), metadata: { name: 'strict', labels: { 'pod-security.kubernetes.io/warn': 'restricted' } } }
  const template = {
    metadata: { labels: { app: 'x' } },
    spec: { containers: [{ name: 'main', image: 'x', env: [{ name: 'A', value: 'main' }] }] },
  }
  const spec = { replicas: 0, selector: { matchLabels: { app: 'x' } }, template }
  const web = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'strict' }, spec } as unknown as K8sObject
  kit.desire([space as K8sObject, web])
  await run()
  expect(kit.object('apps/Deployment/strict/web')).toMatchObject({
    sync: 'Synced',
    warnings: [
      expect.stringContaining('would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main"'),
    ],
  })
})
