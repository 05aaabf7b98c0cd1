// Twenty services of sixty objects behind an admission webhook that takes ten seconds, and one service beside them
// whose objects are deleted.
import { AUTHORITY, SERVER_CERT, SERVER_PRIVATE_KEY } from '../../tests/support/test-certs.ts'
import { percentile, rounded } from './figures.ts'
import type { Part } from './parts.ts'
import { configMap, countIn, type ReconcileSite, serviceDocument, startReconcileSite, until } from './reconcile-site.ts'

const SERVICES = 20
const OBJECTS = 60
const WEBHOOK_MS = 10_000
const HEALS = 100
const GAP_MS = 250

function slowWebhook() {
  let running = 0
  const listener = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    tls: { cert: SERVER_CERT, key: SERVER_PRIVATE_KEY },
    fetch: async (request) => {
      const review = (await request.json()) as { request: { uid: string } }
      running += 1
      await Bun.sleep(WEBHOOK_MS)
      running -= 1
      return Response.json({ ...review, request: undefined, response: { uid: review.request.uid, allowed: true } })
    },
  })
  return { url: `https://127.0.0.1:${listener.port}/slow`, running: () => running, stop: () => listener.stop(true) }
}

const configuration = (url: string) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'slow' },
  webhooks: [
    {
      name: 'slow.example.com',
      clientConfig: { url, caBundle: Buffer.from(AUTHORITY).toString('base64') },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE', 'UPDATE'] }],
      namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: names }] },
      failurePolicy: 'Ignore',
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      timeoutSeconds: 30,
    },
  ],
})
const names = Array.from({ length: SERVICES }, (_, n) => `slow-${n}`)
const ownPath = (n: number): string => `/api/v1/namespaces/own/configmaps/own-${n}`

async function healMs(site: ReconcileSite, n: number): Promise<number> {
  await (await site.kube.request('DELETE', ownPath(n))).text()
  const answered = performance.now()
  await until(`own-${n}`, async () => (await site.kube.request('GET', ownPath(n))).ok, 700_000, 2)
  return performance.now() - answered
}

export const slowWebhookPart: Part = async (say) => {
  const webhook = slowWebhook()
  const site = await startReconcileSite('slow-webhook')
  try {
    await site.services([serviceDocument('own')])
    await site.commit(Object.fromEntries(Array.from({ length: HEALS }, (_, n) => [`own/own-${n}.yaml`, configMap(`own-${n}`, 'start')])))
    await site.fleet.webhook('apps')
    await until('the service beside them', async () => (await site.healthyServices()) === 1, 60_000)
    const made = await site.kube.request(
      'POST',
      '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
      configuration(webhook.url),
    )
    if (!made.ok) throw new Error(`webhook: HTTP ${made.status} ${await made.text()}`)
    await site.services(names.map((name) => serviceDocument(name)))
    const files = names.flatMap((name) =>
      Array.from({ length: OBJECTS }, (_, n) => [`${name}/${name}-${n}.yaml`, configMap(`${name}-${n}`, 'x')] as const),
    )
    await site.commit(Object.fromEntries(files))
    await site.fleet.webhook('apps')
    await until('a request in the webhook', async () => webhook.running() > 0, 60_000)
    const took: number[] = []
    for (let n = 0; n < HEALS; n += 1) {
      took.push(await healMs(site, n))
      await Bun.sleep(GAP_MS)
    }
    const applied = (await Promise.all(names.map((name) => countIn(site, name)))).reduce((sum, count) => sum + count, 0)
    say(`${HEALS} deleted objects, one after the other; ${applied} objects passed the webhook meanwhile`)
    return {
      healing_p50_ms_under_slow_webhook: rounded(percentile(took, 50)),
      healing_p99_ms_under_slow_webhook: rounded(percentile(took, 99)),
      healing_max_ms_under_slow_webhook: rounded(Math.max(...took)),
    }
  } finally {
    await site.stop()
    await webhook.stop()
  }
}
