// Notifications of a real server: a commit that cannot be rendered, a server that is killed, and the commit that mends
// it.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { type Receiver, startReceiver } from '../support/notify-kit.ts'
import { configMapYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(60_000)
let scenario: Scenario
let receiver: Receiver
/** Answers 503 while it is down. */
let isDown = false
beforeAll(async () => {
  receiver = startReceiver(() => (isDown ? new Response('down', { status: 503 }) : undefined))
  scenario = await startScenario({ sites: { harbour: { controllers: false } } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(async () => {
  receiver?.stop()
  await scenario?.stop()
})

const resources = (url: string) => `apiVersion: skerry.dev/v1
kind: Config
metadata: {name: hook}
spec: {secrets: {hmac: planted-key}, hosts: ["${new URL(url).host}"]}
---
apiVersion: skerry.dev/v1
kind: NotificationSink
metadata: {name: hook}
spec: {webhook: {url: "${url}"}, auth: {secretRef: hook}}
---
apiVersion: skerry.dev/v1
kind: NotificationRoute
metadata: {name: all}
spec:
  sinks: [hook]
  events: [RenderFailed]
  group: {wait: 100ms}
  template: {title: "[{{ message.severity }}] {{ message.title }}"}
`

test('NO1 NT4 NT8 NX4 a failed render is told once, signed, also by a server that was killed, and then resolved', async () => {
  const { fleet } = scenario
  // First: until the push is read, the service fails to render at the commit before it.
  await scenario.push({ 'web/map.yaml': configMapYaml('web', { a: '1' }) })
  await fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web' }) })
  await scenario.settled('harbour', ['web'])
  await fleet.run(['apply', '-f', '-'], { stdin: resources(receiver.url) })
  expect(await fleet.run(['notify', 'test', 'hook'])).toContain('delivered in')

  isDown = true
  const commit = await scenario.push({ 'web/map.yaml': 'kind: [' }, 'break the map')
  await eventually('the server tries to deliver', async () => receiver.requests.length >= 2)
  await fleet.killServer()
  isDown = false
  await fleet.startServer()
  const told = () => receiver.requests.slice(1).map(({ body }) => body['data'] as Record<string, unknown>)
  await eventually('the message is delivered', async () => (await fleet.run(['get', 'notifications'])).includes('delivered'))
  const [first] = told()
  expect(first).toMatchObject({ title: `[warning] default/web: RenderFailed after apps@${commit.slice(0, 7)}`, resolved: false })
  expect(first?.['text']).toContain('break the map')
  // Each try is the same message.
  expect(new Set(receiver.requests.slice(1).map(({ body }) => body['id'])).size).toBe(1)
  const last = receiver.requests.at(-1)
  const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(last?.headers['x-skerry-signature'] ?? '') ?? []
  expect(hex).toBe(createHmac('sha256', 'planted-key').update(`${seconds}.${last?.text}`).digest('hex'))

  await scenario.push({ 'web/map.yaml': configMapYaml('web', { a: '2' }) }, 'mend the map')
  await eventually('the message is resolved', async () => told().at(-1)?.['resolved'] === true)
  expect(told().at(-1)?.['title']).toContain('Resolved: default/web: RenderFailed')
  expect(fleet.serverLog()).not.toContain('planted-key')
})
