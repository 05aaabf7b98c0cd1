// A thousand small services at once, and then one change among them: what kustomize-controller 1.9.4 needs 152 s and
// 34,000 requests for, on two such cores.
import { percentile, rounded } from './figures.ts'
import type { Part } from './parts.ts'
import { makeNamespace, type ReconcileSite, serviceDocument, startReconcileSite, until } from './reconcile-site.ts'

export const APPS = Number(process.env['SKERRY_BENCH_APPS'] ?? 1_000)
const CHANGES = 20
const CONCURRENCY = 20
export const CONTROLLER_QPS = 1_000

const appName = (n: number): string => `app-${String(n).padStart(4, '0')}`

function appObjects(name: string, namespace: string, revision = '0'): Record<string, unknown>[] {
  const metadata = { name, namespace }
  const labels = { app: name }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 8080 }] } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            containers: [{ name: 'web', image: `registry.example/${name}:1`, env: [{ name: 'REVISION', value: revision }] }],
          },
        },
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata,
      spec: {
        rules: [
          {
            host: `${name}.example.com`,
            http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name, port: { number: 80 } } } }] },
          },
        ],
      },
    },
  ]
}

const manifest = (name: string, namespace: string, revision?: string): string =>
  appObjects(name, namespace, revision)
    .map((object) => JSON.stringify(object, null, 1))
    .join('\n---\n')

const PATHS: Record<string, string> = {
  ServiceAccount: '/api/v1',
  Service: '/api/v1',
  Deployment: '/apis/apps/v1',
  Ingress: '/apis/networking.k8s.io/v1',
}
const objectPath = (object: Record<string, unknown>, namespace: string, name: string): string =>
  `${PATHS[String(object['kind'])]}/namespaces/${namespace}/${String(object['kind']).toLowerCase()}${object['kind'] === 'Ingress' ? 'es' : 's'}/${name}`

interface DeploymentLine {
  object: { metadata: { name: string; generation?: number }; status?: { observedGeneration?: number } }
}

/** Resolves when controllers have processed `APPS` Deployments of a namespace. */
async function allObserved({ kube }: ReconcileSite, namespace: string): Promise<{ done: Promise<number>; stop: () => void }> {
  const observed = new Set<string>()
  let finish: (atMs: number) => void = () => {}
  const done = new Promise<number>((resolve) => {
    finish = resolve
  })
  const stop = await kube.watch(`/apis/apps/v1/namespaces/${namespace}/deployments`, (line, atMs) => {
    const { metadata, status } = (line as unknown as DeploymentLine).object
    if ((status?.observedGeneration ?? 0) < (metadata.generation ?? 1)) return
    observed.add(metadata.name)
    if (observed.size === APPS) finish(atMs)
  })
  return { done, stop }
}

/** The same objects by a bare loop of server-side applies, until the controllers report them current. */
async function floor(site: ReconcileSite): Promise<number> {
  await makeNamespace(site, 'floor')
  const observed = await allObserved(site, 'floor')
  const documents = Array.from({ length: APPS }, (_, n) => appName(n)).flatMap((name) =>
    appObjects(name, 'floor').map((object) => ({ path: objectPath(object, 'floor', name), body: JSON.stringify(object) })),
  )
  const started = performance.now()
  await site.kube.applyAll(documents, CONCURRENCY)
  const tookMs = (await observed.done) - started
  observed.stop()
  return tookMs
}

/** Webhook of the commit that brings all manifests → the server shows every service Synced and Healthy. */
export async function rollOut(site: ReconcileSite): Promise<number> {
  await makeNamespace(site, 'apps')
  const names = Array.from({ length: APPS }, (_, n) => appName(n))
  await site.services(names.map((name) => serviceDocument(name, { namespace: 'apps' })))
  await site.commit(Object.fromEntries(names.map((name) => [`${name}/app.yaml`, manifest(name, 'apps')])))
  const started = performance.now()
  await site.fleet.webhook('apps')
  await until(`${APPS} healthy services`, async () => (await site.healthyServices()) >= APPS, 600_000, 250)
  return performance.now() - started
}

export const appsReady: Part = async (say) => {
  const site = await startReconcileSite('apps', { controllers: true, audit: false, controllerQps: CONTROLLER_QPS })
  try {
    const floorMs = await floor(site)
    say(`floor: ${4 * APPS} bare applies until the controllers have looked: ${rounded(floorMs, 0)} ms`)
    const readyMs = await rollOut(site)
    say(`ours: ${rounded(readyMs, 0)} ms`)
    return {
      apps_1000_ready_ms: rounded(readyMs, 0),
      apps_1000_floor_ms: rounded(floorMs, 0),
      apps_1000_ready_ratio: rounded(readyMs / floorMs, 2),
    }
  } finally {
    await site.stop()
  }
}

/** With an audit log, which slows the API server and is the only count of requests that there is. */
export const appsRequests: Part = async (say) => {
  const site = await startReconcileSite('counted', { controllers: true, controllerQps: CONTROLLER_QPS })
  try {
    const mark = site.cluster.auditMark()
    await rollOut(site)
    const byVerb = new Map<string, number>()
    const requests = site.requests(mark)
    for (const { verb } of requests) byVerb.set(verb, (byVerb.get(verb) ?? 0) + 1)
    say(`requests: ${[...byVerb].map(([verb, n]) => `${n} ${verb}`).join(', ')}`)
    const changes = await changeOne(site)
    return { apps_1000_requests: requests.length, ...changes }
  } finally {
    await site.stop()
  }
}

async function changeOne(site: ReconcileSite): Promise<Record<string, number>> {
  const times: number[] = []
  const counts: number[] = []
  for (let n = 0; n < CHANGES; n++) {
    const name = appName((n * 7) % APPS)
    await site.commit({ [`${name}/app.yaml`]: manifest(name, 'apps', String(n + 1)) })
    let stop = () => {}
    const seen = new Promise<number>((resolve) => {
      void site.kube
        .watch('/apis/apps/v1/namespaces/apps/deployments', ({ object }, atMs) => {
          if (object.metadata.name === name && JSON.stringify(object).includes(`"value":"${n + 1}"`)) resolve(atMs)
        })
        .then((end) => {
          stop = end
        })
    })
    await Bun.sleep(300)
    const mark = site.cluster.auditMark()
    const sent = performance.now()
    await site.fleet.webhook('apps')
    times.push((await seen) - sent)
    await Bun.sleep(700)
    counts.push(site.requests(mark).length)
    stop()
  }
  return {
    one_change_ms: rounded(percentile(times, 50)),
    one_change_p99_ms: rounded(percentile(times, 99)),
    one_change_requests: Math.max(...counts),
  }
}
