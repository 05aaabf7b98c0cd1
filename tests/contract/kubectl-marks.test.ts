// What a person at the site sees with kubectl: the commands of docs/how-to/kubectl.md, run by the real kubectl on what
// an agent applied.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { K8sObject } from '../../shared/kube/object.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { startRealAgent } from '../support/real-cluster.ts'

const PODINFO = { project: 'default', service: 'podinfo' }
const page = readFileSync(join(import.meta.dir, '../../docs/how-to/kubectl.md'), 'utf8')
const commands = [...page.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) => block.trim().split('\n'))

/** As a shell splits it: words, and texts in single quotes. */
const wordsOf = (command: string): string[] =>
  [...command.matchAll(/(?:[^\s']|'[^']*')+/g)].map(([word]) => word.replaceAll("'", '')).slice(1)

let agent: Awaited<ReturnType<typeof startRealAgent>>
beforeAll(async () => {
  agent = await startRealAgent({ name: 'kubectl-marks' }, { told: { kubeEvents: 'all' } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => agent.stop(), CLUSTER_START_TIMEOUT_MS)

const deployment = (name: string, image: string): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'app', image }] } },
  },
})
const settings: K8sObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'default' }, data: { a: '1' } }

/** What each command of the page has to show, in its order. */
const SHOWN: ReadonlyArray<readonly RegExp[]> = [
  [/deployment\.apps\/web /, /deployment\.apps\/cache /],
  [/configmap\/settings /],
  [/^default +web +.* default\.podinfo$/m, /^default +cache +.* default\.podinfo$/m],
  [/^default +web +default\.podinfo +second$/m, /^default +cache +default\.podinfo +first$/m],
  [/Applied +deployment\/web +.*\(commit second\)/],
]

test('RC24 kubectl shows service and commit of every object, by the commands of the documentation', async () => {
  const { kit, server } = agent
  const digest = kit.desire([deployment('web', 'web:1'), deployment('cache', 'cache:1'), settings], { commit: 'first' }, PODINFO)
  await eventually('the first commit is applied', async () => kit.service(PODINFO)?.applied?.digest === digest)
  const next = kit.desire([deployment('web', 'web:2'), deployment('cache', 'cache:1'), settings], { commit: 'second' }, PODINFO)
  await eventually('the second commit is applied', async () => kit.service(PODINFO)?.applied?.digest === next)
  expect(commands).toHaveLength(SHOWN.length)
  for (const [index, patterns] of SHOWN.entries()) {
    const [command = ''] = commands.slice(index)
    await eventually(command, async () => {
      const shown = await server.kubectl(wordsOf(command))
      const missing = patterns.filter((pattern) => !pattern.test(shown))
      if (missing.length > 0) throw new Error(`${missing.join(', ')} in\n${shown}`)
      return true
    })
  }
}, 60_000)

test('RC24 RC12 what is let go has no mark left', async () => {
  const { kit, server } = agent
  kit.remove('orphan', PODINFO)
  await eventually('the service is gone', async () => kit.service(PODINFO)?.removed === true)
  const { metadata } = JSON.parse(await server.kubectl(['get', 'deployment', 'web', '-o', 'json'])) as K8sObject
  expect([metadata.labels, Object.keys(metadata.annotations ?? {}).filter((name) => name.startsWith('skerry.dev/'))]).toEqual([
    undefined,
    [],
  ])
}, 60_000)
