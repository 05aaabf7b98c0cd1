// Questions to one cluster: time of an answer, speed of a log, and whether commits arrive as fast while 50 people ask
// and one follows a log of 5 MB/s. Compiled programs, a real API server; the kubelet is a stub that sends logs.
import { type KubeletStub, startKubeletStub } from '../../tests/support/kubelet-stub.ts'
import { percentile, residentMb, rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { configMap, type ReconcileSite, serviceDocument, startReconcileSite, until } from './reconcile-site.ts'

const ROUNDTRIPS = 200
const FIRST_BYTES = 30
const LOG_MB = 60
const COMMITS = 40
const ASKERS = 50
const ASK_EVERY_MS = 1_000
const FOLLOWED_MB_PER_S = 5
const PIECE_MS = 20
const CLUSTER = 'asking'

const LINE = '2026-11-24T00:00:00.000Z INFO order accepted customer=42 basket=3 total=17.50 currency=NOK latency_ms=12'
const CONFIG_MAP = { group: '', kind: 'ConfigMap', namespace: 'small', name: 'c0' }
const POD = { group: '', kind: 'Pod', namespace: 'small', name: 'web' }

export async function measureAsking(say: Say): Promise<Record<string, number>> {
  const kubelet = startKubeletStub()
  const site = await startReconcileSite(CLUSTER, { audit: false })
  try {
    await prepare(site, kubelet)
    const figures = { ...(await roundTrips(site)), ...(await logSpeed(site, kubelet, say)) }
    return { ...figures, ...(await besideSync(site, kubelet, say)) }
  } finally {
    await site.stop()
    await kubelet.stop()
  }
}

async function prepare(site: ReconcileSite, kubelet: KubeletStub): Promise<void> {
  await site.services([serviceDocument('small')])
  await commit(site, 'begin')
  await kubelet.register(site.cluster, 'node-1')
  await site.kube.request('POST', '/api/v1/namespaces/small/serviceaccounts', { metadata: { name: 'default' } })
  const spec = { nodeName: 'node-1', automountServiceAccountToken: false, containers: [{ name: 'app', image: 'web:1' }] }
  const made = await site.kube.request('POST', '/api/v1/namespaces/small/pods', { metadata: { name: 'web' }, spec })
  if (!made.ok) throw new Error(`make a Pod: ${await made.text()}`)
}

async function roundTrips(site: ReconcileSite): Promise<Record<string, number>> {
  const took: number[] = []
  for (let n = 0; n < ROUNDTRIPS; n++) {
    const startMs = performance.now()
    const text = await (await ask(site, { kind: 'object', ref: CONFIG_MAP })).text()
    took.push(performance.now() - startMs)
    if (!text.includes('"t":"object"')) throw new Error(`a question was not answered: ${text}`)
    await Bun.sleep(10)
  }
  return { ask_roundtrip_ms: rounded(percentile(took, 95)), ask_roundtrip_p50_ms: rounded(percentile(took, 50)) }
}

async function logSpeed(site: ReconcileSite, kubelet: KubeletStub, say: Say): Promise<Record<string, number>> {
  kubelet.log = `${LINE}\n`
  const firstMs: number[] = []
  for (let n = 0; n < FIRST_BYTES; n++) {
    const startMs = performance.now()
    const reader = (await ask(site, { kind: 'logs', ref: POD })).body?.getReader()
    await reader?.read()
    firstMs.push(performance.now() - startMs)
    await reader?.cancel()
  }
  const bytes = LOG_MB * 1_000_000
  kubelet.log = lines(bytes)
  const startMs = performance.now()
  const received = await drain(await ask(site, { kind: 'logs', ref: POD }))
  const seconds = (performance.now() - startMs) / 1_000
  if (received < bytes) throw new Error(`a log of ${bytes} bytes ended after ${received}`)
  say(`a log of ${LOG_MB} MB took ${rounded(seconds)} s`)
  return { log_first_byte_ms: rounded(percentile(firstMs, 95)), log_stream_mb_per_s: rounded(LOG_MB / seconds) }
}

/** Commits without and with questions, in turn, so that all meet the same noise; also beside one kind of load alone. */
async function besideSync(site: ReconcileSite, kubelet: KubeletStub, say: Say): Promise<Record<string, number>> {
  const took = { quiet: [] as number[], asked: [] as number[], followed: [] as number[], busy: [] as number[] }
  const answered: number[] = []
  let followed = 0
  kubelet.log = ''
  kubelet.follow = async function* () {
    const piece = lines((FOLLOWED_MB_PER_S * 1_000_000 * PIECE_MS) / 1_000)
    for (let dueMs = performance.now(); ; dueMs += PIECE_MS) {
      yield piece
      await Bun.sleep(Math.max(0, dueMs + PIECE_MS - performance.now()))
    }
  }
  const peak = { agent: 0, server: 0 }
  const ask50 = (signal: AbortSignal, ms: number[]) => Array.from({ length: ASKERS }, (_, n) => askOften(site, n, ms, signal))
  const follow = (signal: AbortSignal) =>
    ask(site, { kind: 'logs', ref: POD, follow: true }, signal).then((response) => drain(response).catch(() => 0))
  const beside = async (name: keyof typeof took, half: number, begin: (signal: AbortSignal) => Array<Promise<unknown>>) => {
    const leave = new AbortController()
    const [startMs, before] = [performance.now(), received.total]
    const load = begin(leave.signal)
    if (load.length > 0) await Bun.sleep(2_000)
    took[name].push(...(await commits(site, `${name} ${half}`)))
    if (name === 'busy') {
      peak.agent = Math.max(peak.agent, residentMb(site.agent.pid()))
      peak.server = Math.max(peak.server, residentMb(site.fleet.serverPid()))
      followed = (received.total - before) / 1e6 / ((performance.now() - startMs) / 1_000)
    }
    leave.abort()
    await Promise.all(load)
  }
  for (let half = 0; half < 2; half++) {
    await beside('quiet', half, () => [])
    await beside('busy', half, (signal) => [...ask50(signal, answered), follow(signal)])
    await beside('asked', half, (signal) => ask50(signal, []))
    await beside('followed', half, (signal) => [follow(signal)])
  }
  const slowdownOf = (name: keyof typeof took) => rounded(percentile(took[name], 50) / percentile(took.quiet, 50), 2)
  say(
    `push to apply: ${Object.entries(took)
      .map(([name, ms]) => `${name} ${rounded(percentile(ms, 50))} ms`)
      .join(', ')}`,
  )
  say(`${answered.length} questions, p95 ${rounded(percentile(answered, 95))} ms; the followed log brought ${rounded(followed)} MB/s`)
  return {
    sync_slowdown_under_asking: slowdownOf('busy'),
    sync_slowdown_under_questions: slowdownOf('asked'),
    sync_slowdown_under_log: slowdownOf('followed'),
    followed_log_mb_per_s: rounded(followed),
    busy_ask_roundtrip_ms: rounded(percentile(answered, 95)),
    asked_agent_rss_mb: peak.agent,
    asked_server_rss_mb: peak.server,
  }
}

async function askOften(site: ReconcileSite, n: number, took: number[], signal: AbortSignal): Promise<void> {
  await Bun.sleep((n * ASK_EVERY_MS) / ASKERS)
  while (!signal.aborted) {
    const startMs = performance.now()
    await (await ask(site, { kind: 'object', ref: CONFIG_MAP })).text()
    took.push(performance.now() - startMs)
    await Bun.sleep(Math.max(0, startMs + ASK_EVERY_MS - performance.now()))
  }
}

async function commits(site: ReconcileSite, label: string): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < COMMITS / 2; n++) took.push(await commit(site, `${label} ${n}`))
  return took
}

/** Webhook sent → the changed object read from the API server. */
async function commit(site: ReconcileSite, value: string): Promise<number> {
  await site.commit({ 'small/c0.yaml': configMap('c0', value) })
  const startMs = performance.now()
  await site.fleet.webhook('apps')
  const read = async () => {
    const response = await site.kube.request('GET', '/api/v1/namespaces/small/configmaps/c0')
    return response.ok && ((await response.json()) as { data?: Record<string, string> }).data?.['value'] === value
  }
  await until(value, read, 60_000, 5)
  return performance.now() - startMs
}

async function ask({ fleet }: ReconcileSite, question: object, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(`${fleet.serverUrl}/api/v1/clusters/${CLUSTER}/ask`, {
    method: 'POST',
    headers: { authorization: `Bearer ${fleet.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ question }),
    ...(signal === undefined ? {} : { signal }),
  })
  if (!response.ok) throw new Error(`ask: ${response.status} ${await response.text()}`)
  return response
}

const received = { total: 0 }
/** Bytes of the answer: the log and a little around it. */
async function drain(response: Response): Promise<number> {
  let bytes = 0
  for await (const chunk of response.body ?? new ReadableStream<Uint8Array>()) {
    bytes += chunk.length
    received.total += chunk.length
  }
  return bytes
}

const lines = (bytes: number): string => `${LINE}\n`.repeat(Math.ceil(bytes / (LINE.length + 1)))
