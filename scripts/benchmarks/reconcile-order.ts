// The cost of waves and hooks besides the work itself: from the moment when the awaited object is Healthy to the next
// request.
import { percentile, rounded } from './figures.ts'
import type { Part } from './parts.ts'
import { type ReconcileSite, serviceDocument, startReconcileSite, until } from './reconcile-site.ts'

const WAVES = 20
const HOOKS = 10

const waveObject = (wave: number): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: wave-${wave}\n  annotations: {skerry.dev/wave: "${wave}"}\ndata: {a: "1"}\n`

/**
 * A ConfigMap is healthy as soon as it exists: answered → the next wave's request received, by the API server's own
 * clock.
 */
async function waves(site: ReconcileSite): Promise<number[]> {
  await site.services([serviceDocument('waves')])
  await site.commit({ 'waves/all.yaml': Array.from({ length: WAVES }, (_, n) => waveObject(n)).join('---\n') })
  const mark = site.cluster.auditMark()
  await site.fleet.webhook('apps')
  const applies = () => site.writes(mark).filter(({ requestURI }) => requestURI.includes('/configmaps/wave-'))
  await until('all waves', async () => applies().length >= WAVES, 60_000, 200)
  const events = applies().sort((a, b) => Date.parse(a.requestReceivedTimestamp) - Date.parse(b.requestReceivedTimestamp))
  return events.slice(1).map((event, n) => micros(event.requestReceivedTimestamp) - micros(events[n]?.stageTimestamp ?? ''))
}

/** Audit times have microseconds, which Date drops. */
const micros = (time: string): number => Date.parse(time) + Number(/\.\d{3}(\d{3})/.exec(time)?.[1] ?? 0) / 1_000

const hooked = (n: number): string => `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {skerry.dev/hook: pre-sync}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: "migrate:1", env: [{name: REVISION, value: "${n}"}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: after}
data: {revision: "${n}"}
`

/** The Job is seen complete by an independent watch → the first request of the next phase. */
async function hooks(site: ReconcileSite): Promise<number[]> {
  await site.services([serviceDocument('hooked')])
  const took: number[] = []
  for (let n = 0; n < HOOKS; n++) {
    await site.commit({ 'hooked/all.yaml': hooked(n) })
    const mark = site.cluster.auditMark()
    let completeMs = 0
    const stop = await site.kube.watch('/apis/batch/v1/jobs', ({ object }) => {
      const { status, metadata } = object as unknown as { metadata: { name: string }; status?: { conditions?: Array<{ type: string }> } }
      if (metadata.name === 'migrate' && status?.conditions?.some(({ type }) => type === 'Complete')) completeMs = Date.now()
    })
    await site.fleet.webhook('apps')
    const applied = () => site.writes(mark).find(({ requestURI, verb }) => verb === 'patch' && requestURI.includes('/configmaps/after'))
    await until(`hook ${n}`, async () => applied() !== undefined, 60_000, 50)
    stop()
    took.push(Math.max(0, micros(applied()?.requestReceivedTimestamp ?? '') - completeMs))
  }
  return took
}

export const order: Part = async () => {
  const site = await startReconcileSite('order', { controllers: true, kwok: true })
  try {
    return {
      wave_latency_ms: rounded(percentile(await waves(site), 50)),
      hook_phase_latency_ms: rounded(percentile(await hooks(site), 50)),
    }
  } finally {
    await site.stop()
  }
}
