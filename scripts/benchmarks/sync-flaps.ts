// A day without a network at a restless site: ten thousand changes of health and a hundred foreign edits go through the
// real reconciler on a fake cluster and a clock that is moved, into the real outbox. Then the agent comes back, and
// everything until its outbox is empty is counted at the socket, the new session too.
import { join } from 'node:path'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { refOf } from '../../shared/kube/object.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster, type FakeCluster } from '../../tests/support/fake-cluster.ts'
import { createReconcileKit } from '../../tests/support/reconcile-kit.ts'
import { startTcpProxy } from '../../tests/support/tcp-proxy.ts'
import { createVirtualClock } from '../../tests/support/virtual-clock.ts'
import { startCorpusServer, until } from './corpus-server.ts'
import { startSiteAgent } from './site-agent.ts'

const SERVICES = 10
const EACH = 20
const FLAPS = 10_000
const FLAPS_BETWEEN_EDITS = 100
const DAY_MS = 86_400_000

export async function benchFlaps(say: (text: string) => void): Promise<Record<string, number>> {
  const server = await startCorpusServer(10)
  const proxy = startTcpProxy(Number(new URL(server.fleet.serverUrl).port))
  const dir = join(server.dir, 'agent')
  const comeAndSpeak = async () => {
    const agent = startSiteAgent({ dir, serverUrl: proxy.url, joinToken: server.joinToken, name: 'site' })
    await until(() => agent.following() && agent.state.outboxDepth() === 0, 'the outbox to be empty')
    for (let before = -1, now = 0; before !== now; now = proxy.counts().upBytes) {
      before = proxy.counts().upBytes
      await Bun.sleep(500)
    }
    await agent.stop()
  }
  try {
    await comeAndSpeak()
    const site = startSite(join(dir, 'agent.sqlite'))
    await site.settle()
    await site.stop()
    await comeAndSpeak()
    await site.day()
    const waiting = site.outbox()
    await site.stop()
    proxy.resetCounts()
    await comeAndSpeak()
    const { upBytes, downBytes } = proxy.counts()
    say(`${FLAPS} flaps left ${waiting} rows; ${upBytes} bytes up, ${downBytes} down`)
    return { offline_24h_10k_flaps_bytes: upBytes + downBytes, offline_24h_outbox_rows: waiting }
  } finally {
    proxy.stop()
    await server.stop()
  }
}

interface Site {
  /** All is applied and well. */
  settle(): Promise<void>
  day(): Promise<void>
  outbox(): number
  stop(): Promise<void>
}

function startSite(statePath: string): Site {
  const clock = createVirtualClock(Date.now())
  const cluster = createFakeCluster({ clock })
  const random = seededRandom(7)
  const services = Array.from({ length: SERVICES }, (_, s) => ({
    id: { project: 'default', service: `service-${s}` },
    objects: Array.from({ length: EACH }, (_, n) => deployment(`service-${s}`, `app-${n}`)),
  }))
  const refs = services.flatMap(({ objects }) => objects.map(refOf))
  let kit = createReconcileKit({ cluster, clock, statePath })
  const open = () => {
    for (const { id, objects } of services) kit.desire([namespace(id.service), ...objects], {}, id)
    kit.start()
  }
  const close = async () => {
    const stopping = kit.stop()
    await clock.advance(1_000)
    await stopping
    kit.state.close()
  }
  let running = true
  open()
  return {
    async settle() {
      await clock.advance(60_000)
      for (const ref of refs) cluster.setStatus(ref, available(3))
      await clock.advance(60_000)
    },
    async day() {
      if (!running) kit = createReconcileKit({ cluster, clock, statePath })
      running = true
      open()
      await clock.advance(60_000)
      for (let n = 0; n < FLAPS; n++) {
        flap(cluster, pick(refs, random), random)
        if (n % FLAPS_BETWEEN_EDITS === 0) foreignEdit(cluster, pick(refs, random), n)
        await clock.advance(DAY_MS / FLAPS)
      }
    },
    outbox: () => kit.state.outboxDepth(),
    async stop() {
      await close()
      running = false
    },
  }
}

/** As a rollout, a node that comes and goes, or a probe that fails now and then. */
function flap(cluster: FakeCluster, ref: ObjectRef, random: Random): void {
  const roll = random()
  if (roll < 0.45) cluster.setStatus(ref, available(3))
  else if (roll < 0.9) cluster.setStatus(ref, available(Math.floor(random() * 3)))
  else {
    const message = `ReplicaSet "${ref.name}-6d4cf56db6" has timed out progressing.`
    const condition = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message }
    cluster.setStatus(ref, { ...available(0), conditions: [condition] })
  }
}

function foreignEdit(cluster: FakeCluster, ref: ObjectRef, n: number): void {
  cluster.editAs('kubectl-edit', ref, (object) => Object.assign(object['spec'] as Record<string, unknown>, { replicas: 4 + (n % 3) }))
}

const available = (count: number) => ({
  observedGeneration: 1,
  replicas: 3,
  updatedReplicas: 3,
  readyReplicas: count,
  availableReplicas: count,
})

const pick = <T>(items: readonly [T, ...T[]] | readonly T[], random: Random): T => {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}

const namespace = (name: string): K8sObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as K8sObject

const deployment = (namespace: string, name: string): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'app', image: `registry.example/${name}:1` }] } },
    },
  }) as K8sObject
