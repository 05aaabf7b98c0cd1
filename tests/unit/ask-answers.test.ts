// Values that answers to questions must not show, and questions that the site refuses.
import { expect, test } from 'bun:test'
import { masked } from '../../agent/ask/masked.ts'
import { amountOf } from '../../agent/ask/node-summary.ts'
import { differences } from '../../agent/ask/object-differences.ts'
import { createSiteAnswerer } from '../../agent/ask/site-answerer.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
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
  ['a hidden kind', masked({ ...deployment([]), status: { note: 'hunter2' } }, { isHidden: true })],
  ['a variable with a telling name', masked(deployment([PASSWORD]))],
  ['Secrets that differ', differences(secret('swapped'), secret('hunter2'))],
  ['a hidden kind that differs', differences(deployment([]), { ...deployment([{ name: 'A', value: 'hunter2' }]) }, { isHidden: true })],
  ['a variable that differs', differences(deployment([{ ...PASSWORD, value: 'x' }]), deployment([PASSWORD]))],
  ['a variable that only one object has', differences(deployment([]), deployment([PASSWORD]))],
  ['a container that only one object has', differences({ ...deployment([]), spec: {} }, deployment([PASSWORD]))],
])('AK9 %s shows no secret', (_, answer) => {
  expect(JSON.stringify(answer)).not.toMatch(/hunter2|swapped/)
  expect(JSON.stringify(answer)).toContain('<redacted>')
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
  [undefined, 0],
])('AK2 the amount %p is %p', (text, amount) => expect(amountOf(text)).toBe(amount))

test('AK5 an agent with --asking read answers and restarts nothing, and its audit log has the refusal', async () => {
  const recorded: Array<string | undefined> = []
  const answerer = createSiteAnswerer({
    cluster: {} as never,
    state: { ownerOf: () => null, inventory: () => [] },
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
