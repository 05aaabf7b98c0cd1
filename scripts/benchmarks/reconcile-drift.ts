// Changes and deletions by others, one by one and all at once, and the changes of others that need no write of ours.
import { percentile, rounded } from './figures.ts'
import type { Part } from './parts.ts'
import { configMap, each, type ReconcileSite, serviceDocument, startReconcileSite, until } from './reconcile-site.ts'

const OBJECTS = 1_000
const EACH = 200
const CONCURRENCY = 20
const GAP_MS = 20
const name = (n: number): string => `drift-${n}`
const path = (n: number): string => `/api/v1/namespaces/drift/configmaps/${name(n)}`

type Look = (line: { type: string; name: string; uid: string; value: string | undefined }, atMs: number) => void

async function ear({ kube }: ReconcileSite): Promise<{ listen(look: Look): () => void; stop: () => void }> {
  const looks = new Set<Look>()
  const stop = await kube.watch('/api/v1/namespaces/drift/configmaps', ({ type, object }, atMs) => {
    const { name, uid } = object.metadata
    for (const look of [...looks]) look({ type, name, uid, value: object.data?.['value'] }, atMs)
  })
  return {
    stop,
    listen(look) {
      looks.add(look)
      return () => looks.delete(look)
    },
  }
}

/** The foreign change answered → the correction seen by an independent watch. */
async function heals(site: ReconcileSite, { listen }: Awaited<ReturnType<typeof ear>>): Promise<number[]> {
  const took: number[] = []
  const seen = (matches: (line: Parameters<Look>[0]) => boolean): Promise<number> =>
    new Promise((resolve) => {
      const end = listen((line, atMs) => {
        if (!matches(line)) return
        end()
        resolve(atMs)
      })
    })
  for (let n = 0; n < EACH; n++) {
    const { metadata } = (await (await site.kube.request('GET', path(n))).json()) as { metadata: { uid: string } }
    const back = seen((line) => line.type !== 'DELETED' && line.name === name(n) && line.uid !== metadata.uid)
    await (await site.kube.request('DELETE', path(n))).text()
    const answered = performance.now()
    took.push(Math.max(0, (await back) - answered))
    await Bun.sleep(GAP_MS)
  }
  for (let n = EACH; n < 2 * EACH; n++) {
    let edited = false
    const back = seen((line) => {
      if (line.name !== name(n)) return false
      if (line.value === 'foreign') edited = true
      return edited && line.value === 'start'
    })
    await (await site.kube.request('PATCH', path(n), { data: { value: 'foreign' } }, 'application/merge-patch+json')).text()
    const answered = performance.now()
    took.push(Math.max(0, (await back) - answered))
    await Bun.sleep(GAP_MS)
  }
  return took
}

/** A thousand edits as fast as the API server takes them: the first one sent → the last one healed. */
async function storm(site: ReconcileSite, { listen }: Awaited<ReturnType<typeof ear>>): Promise<number> {
  const edited = new Set<string>()
  const healed = new Set<string>()
  let finish: (atMs: number) => void = () => {}
  const done = new Promise<number>((resolve) => {
    finish = resolve
  })
  const end = listen(({ name, value }, atMs) => {
    if (value === 'storm') edited.add(name)
    else if (value === 'start' && edited.has(name)) healed.add(name)
    if (healed.size === OBJECTS) finish(atMs)
  })
  const started = performance.now()
  await each(
    Array.from({ length: OBJECTS }, (_, n) => n),
    CONCURRENCY,
    async (n) =>
      void (await (await site.kube.request('PATCH', path(n), { data: { value: 'storm' } }, 'application/merge-patch+json')).text()),
  )
  const tookMs = (await done) - started
  end()
  return tookMs
}

const WORKLOAD = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  minReplicas: 2
  maxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
`

/** An autoscaler, a person's rollout restart, annotations of controllers, statuses: none of it is drift. */
async function foreignChanges(site: ReconcileSite): Promise<number> {
  await site.services([serviceDocument('scaled')])
  await site.commit({ 'scaled/web.yaml': WORKLOAD })
  await site.fleet.webhook('apps')
  const deployment = '/apis/apps/v1/namespaces/scaled/deployments/web'
  await until('the scaled service', async () => (await site.kube.request('GET', deployment)).ok)
  await Bun.sleep(2_000)
  const mark = site.cluster.auditMark()
  const patch = async (at: string, manager: string, body: unknown) => {
    const response = await site.kube.request('PATCH', `${at}?fieldManager=${manager}`, body, 'application/merge-patch+json')
    if (!response.ok) throw new Error(`${manager}: HTTP ${response.status} ${await response.text()}`)
    await response.text()
    await Bun.sleep(GAP_MS)
  }
  for (let n = 0; n < 50; n++) {
    await patch(`${deployment}/scale`, 'kube-controller-manager', { spec: { replicas: 3 + (n % 6) } })
    const restartedAt = { 'kubectl.kubernetes.io/restartedAt': new Date(n * 1_000).toISOString() }
    await patch(deployment, 'kubectl-rollout', { spec: { template: { metadata: { annotations: restartedAt } } } })
    await patch(deployment, 'other-controller', { metadata: { annotations: { 'example.com/seen': String(n) } } })
    await patch(`${deployment}/status`, 'kube-controller-manager', { status: { observedGeneration: n + 1, replicas: n } })
  }
  await Bun.sleep(2_000)
  const writes = site.writes(mark).filter(({ requestURI }) => requestURI.includes('/namespaces/scaled/'))
  return writes.length
}

export const drift: Part = async (say) => {
  const site = await startReconcileSite('drift')
  try {
    await site.services([serviceDocument('drift')])
    await site.commit(Object.fromEntries(Array.from({ length: OBJECTS }, (_, n) => [`drift/${name(n)}.yaml`, configMap(name(n), 'start')])))
    await site.fleet.webhook('apps')
    await until('the service', async () => (await site.healthyServices()) === 1, 60_000)
    const heard = await ear(site)
    const took = await heals(site, heard)
    say(`${took.length} foreign changes, one after the other`)
    const stormMs = await storm(site, heard)
    heard.stop()
    return {
      drift_heal_p50_ms: rounded(percentile(took, 50)),
      drift_heal_p99_ms: rounded(percentile(took, 99)),
      drift_storm_1000_ms: rounded(stormMs, 0),
      false_drift_writes: await foreignChanges(site),
    }
  } finally {
    await site.stop()
  }
}
