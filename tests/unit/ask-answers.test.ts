// Values that answers to questions must not show, and questions that the site refuses.
import { expect, test } from 'bun:test'
import { setImmediate } from 'node:timers/promises'
import type { AnswerContext } from '../../agent/ask/ask-context.ts'
import { AskReads } from '../../agent/ask/ask-reads.ts'
import { hidingInService } from '../../agent/ask/hiding.ts'
import { masked } from '../../agent/ask/masked.ts'
import { amountOf } from '../../agent/ask/node-summary.ts'
import { differences } from '../../agent/ask/object-differences.ts'
import { answerDryRun } from '../../agent/ask/service-trials.ts'
import { createSiteAnswerer } from '../../agent/ask/site-answerer.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { objectRowId } from '../../shared/model/desired.ts'
import { sealingKeysOf, sealObject } from '../../shared/model/sealed-object.ts'
import type { AskFrame } from '../../shared/protocol/ask.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const COPY = 'kubectl.kubernetes.io/last-applied-configuration'
const secret = (token: string): K8sObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'keys', namespace: 'shop', annotations: { [COPY]: `{"data":"${token}"}` } },
  type: 'Opaque',
  data: { token },
})
const deployment = (env: object[]): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { template: { spec: { containers: [{ name: 'app', image: 'web:1', env }] } } },
})
const PASSWORD = { name: 'DB_PASSWORD', value: 'hunter2' }

test.each<[string, unknown]>([
  ['a Secret', masked(secret('hunter2'))],
  ['a hidden kind', masked({ ...deployment([]), status: { note: 'hunter2' } }, { hiding: 'hidden' })],
  ['a variable with a telling name', masked(deployment([PASSWORD]))],
  ['Secrets that differ', differences(secret('swapped'), secret('hunter2'))],
  ['a hidden kind that differs', differences(deployment([]), { ...deployment([{ name: 'A', value: 'hunter2' }]) }, { hiding: 'hidden' })],
  ['a variable that differs', differences(deployment([{ ...PASSWORD, value: 'x' }]), deployment([PASSWORD]))],
  ['a variable that only one object has', differences(deployment([]), deployment([PASSWORD]))],
  ['a container that only one object has', differences({ ...deployment([]), spec: {} }, deployment([PASSWORD]))],
])('AK9 %s shows no secret', (_, answer) => {
  expect(JSON.stringify(answer)).not.toMatch(/hunter2|swapped/)
  expect(JSON.stringify(answer)).toContain('<redacted>')
})

const POD = (status: object): K8sObject =>
  ({ ...deployment([PASSWORD, { name: 'LEVEL', value: 'info' }]), kind: 'Pod', apiVersion: 'v1', status }) as K8sObject
const FAILED = 'Pod "web-1" is invalid: spec: Invalid value: core.PodSpec{Env:[]core.EnvVar{{Name:"DB_PASSWORD", Value:"hunter2"}}}'

test.each<[string, unknown, RegExp]>([
  ['a condition', masked(POD({ conditions: [{ type: 'Failed', message: FAILED }] })), /Pod .*is invalid/],
  ['a word of the status', masked(POD({ seen: 'hunter2', phase: 'Running' })), /"Running"/],
  ['an annotation', masked({ ...POD({}), metadata: { name: 'web', annotations: { note: 'user:hunter2' } } }), /user:<redacted>/],
  ['an argument', masked({ ...POD({}), args: ['--password=hunter2', '--token', 'hunter2', '-v'] } as K8sObject), /--password=<redacted>/],
  ['an address', masked({ ...deployment([]), spec: { url: 'https://app:hunter2@db/x' } }), /app|db\/x/],
  ['an Event', masked({ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, message: FAILED } as K8sObject), /is invalid/],
  ['a Secret beside its data', masked({ ...secret(btoa('hunter2')), metadata: { name: 'k', annotations: { was: 'hunter2' } } }), /"was"/],
  ['a field that differs', differences(POD({}), { ...POD({}), extra: { url: 'hunter2 y' } } as K8sObject), /extra.* y/],
])('AK9 a masked value stays masked in %s, and other words are shown', (_, answer, shown) => {
  const text = JSON.stringify(answer)
  expect(text).not.toContain('hunter2')
  expect(text).toMatch(shown)
})

test('AK9 the path of a difference has keys of lists only where they are names', () => {
  const rows = (key: string) => ({ ...deployment([]), spec: { rows: [{ key, value: 1 }] } }) as K8sObject
  const paths = (key: string) => differences({ ...deployment([]), spec: { rows: [] } }, rows(key)).map(({ path }) => path)
  expect([...paths('blue'), ...paths('hunter2 of men')]).toEqual(['.spec.rows[key=blue]', '.spec.rows[key=<redacted>]'])
})

test('AK9 names, images and words of the API stay, also if a secret is such a word', () => {
  const web = { ...deployment([{ name: 'DB_PASSWORD', value: 'registry/web' }]), metadata: { name: 'registry', namespace: 'shop' } }
  const { object, masked: paths } = masked({ ...web, status: { image: 'registry/web:1' } })
  expect(object).toMatchObject({ metadata: { name: 'registry' }, status: { image: 'registry/web:1' } })
  expect(paths).toEqual(['spec.template.spec.containers[0].env[0].value'])
})

test('AK9 a difference names who wrote the field, the last one first, and when', () => {
  const owns = (manager: string, time: string) => ({
    ...{ manager, operation: 'Apply', apiVersion: 'apps/v1', fieldsType: 'FieldsV1', time },
    fieldsV1: { 'f:spec': { 'f:replicas': {} } },
  })
  const live = { ...deployment([]), spec: { replicas: 5 } }
  const managedFields = [owns('skerry', '2026-01-01T00:00:00Z'), owns('kubectl-edit', '2026-01-02T00:00:00Z')]
  const written = { ...live, metadata: { ...live.metadata, managedFields } } as K8sObject
  expect(differences({ ...deployment([]), spec: { replicas: 2 } }, written)).toEqual([
    { path: '.spec.replicas', desired: 2, live: 5, managers: ['kubectl-edit', 'skerry'], writtenMs: Date.UTC(2026, 0, 2) },
  ])
})

test('AK9 names and keys stay, and the answer lists what it masked', () => {
  const { object, masked: paths } = masked(secret('hunter2'))
  expect(object).toMatchObject({ metadata: { name: 'keys' }, type: 'Opaque', data: { token: '<redacted>' } })
  expect(paths).toEqual(['data.token', `metadata.annotations.${COPY}`])
})

test.each([
  ['500m', 0.5],
  ['2', 2],
  ['1Gi', 2 ** 30],
  ['1e3', 1_000],
  ['128k', 128_000],
  ['250000u', 0.25],
  ['500000000n', 0.5],
  ['1Ei', 2 ** 60],
  [undefined, 0],
])('AK2 the amount %p is %p', (text, amount) => expect(amountOf(text)).toBe(amount))

test('AK12 questions that come together share a read of the same object; one that comes during the read gets its own', async () => {
  const answers: Array<() => void> = []
  const get = async (_: unknown, ref: ObjectRef) => {
    await new Promise<void>((resolve) => answers.push(resolve))
    return { kind: 'found', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: ref.name, namespace: ref.namespace } } }
  }
  const resource = { group: '', kind: 'ConfigMap', plural: 'configmaps', verbs: ['get'] }
  const reads = new AskReads({ cluster: { get } as never, discovery: () => ({ resources: [resource] }) as never })
  const ref = (name: string) => ({ group: '', kind: 'ConfigMap', namespace: 'shop', name })
  const three = [reads.object(ref('a')), reads.object(ref('a')), reads.object(ref('b')), reads.object(ref('a'), { metadataOnly: true })]
  await setImmediate()
  await setImmediate()
  expect(answers.length).toBe(3)
  const later = reads.object(ref('a'))
  await setImmediate()
  await setImmediate()
  expect(answers.length).toBe(4)
  for (const answer of answers) answer()
  expect((await Promise.all([...three, later])).map(({ metadata }) => metadata.name)).toEqual(['a', 'a', 'b', 'a', 'a'])
})

test('AK5 an agent with --asking read answers and restarts nothing, and its audit log has the refusal', async () => {
  const recorded: Array<string | undefined> = []
  const answerer = createSiteAnswerer({
    cluster: {} as never,
    state: { ownerOf: () => null, inventory: () => [], facts: () => new Map() },
    replica: () => null,
    discovery: () => null,
    policy: () => null,
    record: (_, refusal) => void recorded.push(refusal),
    restarts: false,
    clock: systemClock,
  })
  const ref = { group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'web' }
  const frame = { question: { kind: 'restart', ref }, within: null } as unknown as AskFrame
  const answered = answerer.answer(frame, { write: async () => {} }, new AbortController().signal)
  await expect(answered).rejects.toMatchObject({ code: 'local_policy' })
  expect(recorded).toEqual([expect.stringContaining('--asking read')])
})

const SHOP = { project: 'shop', service: 'web' }
const KEYS = sealingKeysOf({ id: '0a0b0c0d', secret: new Uint8Array(32) }, SHOP)
/** Answers a dry run of one ConfigMap that is in the cluster. */
async function tryForeign(over: object): Promise<unknown[]> {
  const live = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'other' }, data: { key: 'foreign' } }
  const lines: unknown[] = []
  const row = { sync: {}, namespace: 'shop' }
  const context = {
    ...{ isConfined: true, policy: () => null, state: { ownerOf: () => null, inventory: () => [], facts: () => new Map() } },
    replica: () => ({ position: () => null, read: () => ({ kind: 'complete', revision: { row, objects: new Map() } }) }),
    reads: {
      objectOrNull: async () => live,
      find: async () => ({ namespaced: true }),
      turn: async () => ({ kind: 'applied', object: { ...live, data: { key: 'tried' } } }),
    },
    ...over,
  } as unknown as AnswerContext
  const objects = [{ ...live, data: { key: 'tried' } }]
  await answerDryRun(
    context,
    { kind: 'dryRun', service: SHOP, objects },
    { write: async (line) => void lines.push(line) },
    new AbortController().signal,
  )
  return lines
}

test('AK3 a dry run with a right on the service shows no field of an object that the service does not manage', async () => {
  expect(await tryForeign({ isConfined: false })).toMatchObject([{ result: 'changed', fields: [{ live: 'foreign' }] }])
  const confined = await tryForeign({})
  expect(confined).toMatchObject([{ result: 'refused' }])
  expect(JSON.stringify(confined)).not.toContain('foreign')
})

test('AK3 a dry run with a right on the service takes a revision of it in the cluster', async () => {
  await expect(tryForeign({ replica: () => null })).rejects.toMatchObject({ code: 'outside_service' })
})

test('AK10 the rows of a service are read once at each position of the replica, and again at the next', () => {
  const ref = { group: '', kind: 'ConfigMap', namespace: 'shop', name: 'conf' }
  const rowId = objectRowId(SHOP, ref)
  let [dv, reads] = [1, 0]
  let doc = '{}'
  const replica = {
    position: () => ({ dbId: 'a', term: 1, dv, hash: String(dv) }),
    read: () => {
      reads += 1
      return { kind: 'complete', revision: { objects: new Map([[rowId, doc]]) } }
    },
  }
  const site = { policy: () => null, state: { facts: () => new Map() }, replica: () => replica } as unknown as AnswerContext
  const seen = () => [hidingInService(site, SHOP)(ref), reads]
  expect([seen(), seen()]).toEqual([
    ['nothing', 1],
    ['nothing', 1],
  ])
  doc = sealObject(KEYS, rowId, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf' } }, '{}')
  dv = 2
  expect([seen(), seen()]).toEqual([
    ['sealed', 2],
    ['sealed', 2],
  ])
})

test('AK5 a dry run tells nothing of namespaces that the local policy leaves out', async () => {
  const policy = () => ({ ask: { namespaces: ['shop'] } })
  expect(await tryForeign({ isConfined: false, policy })).toMatchObject([
    { result: 'refused', message: expect.stringContaining('ask.namespaces') },
  ])
})
