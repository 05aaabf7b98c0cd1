// Notifications through the admin API and the command line: resources, tests, dead letters; and secrets, which nothing
// repeats.
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { createConfigKeys } from '../../server/access/config-keys.ts'
import { createConfigs } from '../../server/access/configs.ts'
import { fleetEvent } from '../../server/fleet/fleet-event.ts'
import { createNotifier, type Notifier } from '../../server/notify/notifier.ts'
import type { Resolver } from '../../server/sources/address/guard.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { type Receiver, runUntil, startReceiver } from '../support/notify-kit.ts'
import { loopbackGuard } from '../support/source-guard.ts'

setDefaultTimeout(30_000)

let admin: TestAdmin
let notifier: Notifier
let receiver: Receiver
let answer: (text: string) => Response | undefined
let resolve: Resolver
const logged: string[] = []
const log: Logger = {
  ...{ debug: note, info: note, warn: note, error: note },
  with: () => log,
}
function note(message: string, fields: object = {}): void {
  logged.push(`${message} ${JSON.stringify(fields)}`)
}
const cli = (line: string, stdin = '') => runTestCli(admin, line.split(' '), { stdin })

beforeEach(async () => {
  logged.length = 0
  answer = () => undefined
  resolve = async () => ['127.0.0.1']
  // A receiver that repeats all it is sent, as a proxy does on its error pages.
  receiver = startReceiver(({ path, headers, text }) => answer(`${path} ${JSON.stringify(headers)} ${text}`))
  admin = await createTestAdmin(({ store, box }) => {
    notifier = createNotifier({
      ...{ store, clock: systemClock, random: seededRandom(1), log, instance: 'abcd1234', url: () => 'https://skerry.example' },
      configs: createConfigs(store, createConfigKeys(box)),
      addresses: loopbackGuard({ resolve: (host) => resolve(host) }),
      renderTexts: async () => ({ texts: {} }),
    })
    return { notifier }
  })
})
afterEach(async () => {
  receiver.stop()
  await admin.store.close()
})

const SECRETS = ['planted-hmac-key', 'planted-bearer-token', 'planted-path']
const resources = (hosts: string, url = receiver.url) => `
apiVersion: skerry.dev/v1
kind: Config
metadata: {name: hook}
spec: {secrets: {hmac: planted-hmac-key, token: planted-bearer-token, url: "${url}/planted-path"}, hosts: [${hosts}]}
---
apiVersion: skerry.dev/v1
kind: NotificationSink
metadata: {name: ops}
spec: {webhook: {url: "${url}/hook"}, auth: {secretRef: hook}}
---
apiVersion: skerry.dev/v1
kind: NotificationRoute
metadata: {name: all}
spec: {sinks: [ops], group: {wait: 100ms}}
`
const hostOf = (url: string) => new URL(url).host
const degraded = () =>
  fleetEvent(
    Date.now(),
    { type: 'Warning', reason: 'Degraded', message: 'no replica is ready' },
    { cluster: 'oslo', service: { project: 'shop', service: 'web' } },
  )

test('NO7 apply, test, get, describe and delete of sinks and routes on the command line', async () => {
  const written = await cli('apply -f -', resources(hostOf(receiver.url)))
  expect({ code: written.code, err: written.err }).toEqual({ code: 0, err: '' })
  expect(written.out).toBe('config/hook created\nnotificationsink/ops created\nnotificationroute/all created\n')
  const tested = await cli('notify test ops')
  expect(tested).toMatchObject({ code: 0, err: '' })
  expect(tested.out).toContain('notificationsink/ops: delivered in ')
  expect((await cli('get sinks')).out).toMatch(/PROJECT +NAME +TYPE +WAITING +DEAD.*\n.*ops +webhook/)
  expect((await cli('describe nroute all')).out).toContain('ops')
  const printed = await cli('get sink ops -o yaml')
  expect((await cli('apply -f -', printed.out)).out).toBe('notificationsink/ops unchanged\n')
  expect((await cli('delete nroute all --yes')).code).toBe(0)
  expect((await cli('notify test gone')).code).not.toBe(0)
})

test('NO4 a dead letter is listed, and sent again on request', async () => {
  await cli('apply -f -', resources(hostOf(receiver.url)))
  await admin.store.notifications.cursor()
  answer = () => new Response('gone', { status: 410 })
  await admin.store.appendEvents([degraded()])
  await runUntil(notifier, async () => (await admin.store.notifications.list({ limit: 9 }))[0]?.state === 'dead')
  const [head, row = ''] = (await cli('get notifications -o wide')).out.split('\n')
  expect(head).toMatch(/^ID +PROJECT +SINK +STATE/)
  expect(row).toMatch(/^1 .* ops +dead +critical +1 +no +0s +all +1 +shop\/web: Degraded in oslo \(127.0.0.1:\d+ answered 410: gone\)$/)
  answer = () => undefined
  expect((await cli('notify retry 1')).out).toBe('notification/1 will be sent again\n')
  await runUntil(notifier, async () => (await admin.store.notifications.get(1))?.sentVersion === 1)
  expect((await cli('notify retry 1')).code).toBe(1)
})

test('NX8 secrets of a sink are in no answer, log line, record or entry of the audit log', async () => {
  await cli('apply -f -', resources(hostOf(receiver.url)))
  await admin.store.notifications.cursor()
  answer = (text) => new Response(text, { status: 400 })
  await admin.store.appendEvents([degraded()])
  await runUntil(notifier, async () => (await admin.store.notifications.list({ limit: 9 }))[0]?.state === 'dead')
  expect(receiver.requests[0]?.headers['authorization']).toBe('Bearer planted-bearer-token')
  const seen = [...logged]
  for (const line of [
    'notify test ops',
    'notify test ops -o json',
    'get notifications -o json',
    'get sink ops -o json',
    'get configs -o json',
  ]) {
    const { out, err } = await cli(line)
    seen.push(out, err)
  }
  seen.push(JSON.stringify(await admin.store.notifications.list({ limit: 9 })), JSON.stringify(await admin.store.audit.list({ limit: 99 })))
  expect(seen.join('\n')).toContain('answered 400')
  expect(SECRETS.filter((secret) => seen.join('\n').includes(secret))).toEqual([])
})

test('NX10 a Config that is bound to another host is not sent', async () => {
  await cli('apply -f -', resources('hooks.example.com'))
  const { code, err } = await cli('notify test ops')
  expect(code).toBe(1)
  expect(err).toContain('it is bound to hooks.example.com')
  expect(receiver.requests).toEqual([])
})

test('NX9 a name that leads to another address after the check is connected at the checked one', async () => {
  const { port } = new URL(receiver.url)
  const url = `http://hooks.example.com:${port}`
  const answers = [['127.0.0.1'], ['169.254.169.254']]
  resolve = async () => answers.shift() ?? ['169.254.169.254']
  await cli('apply -f -', resources(hostOf(url), url))
  expect((await cli('notify test ops')).code).toBe(0)
  expect(receiver.requests.map(({ headers }) => headers['host'])).toEqual([`hooks.example.com:${port}`])
  // The next request resolves the name again, and the address of the cloud's metadata is refused.
  const refused = await cli('notify test ops')
  expect(refused.code).toBe(1)
  expect(refused.err).toContain('hooks.example.com')
  expect(receiver.requests).toHaveLength(1)
})
