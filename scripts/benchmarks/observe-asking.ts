// Questions to one cluster: time of an answer, speed of a log, and whether commits arrive as fast while 50 people ask
// and one follows a log of 5 MB/s. Compiled programs, a real API server; the kubelet is a stub that sends logs.
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { type KubeletStub, startKubeletStub } from '../../tests/support/kubelet-stub.ts'
import type { AskLoad, AskLoadResult } from './ask-load.ts'
import { percentile, residentMb, rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { configMap, type ReconcileSite, serviceDocument, startReconcileSite, until } from './reconcile-site.ts'

const ROUNDTRIPS = 200
const FIRST_BYTES = 30
const LOG_MB = 60
const ROUNDS = 8
const COMMITS_A_ROUND = 6
const WARM_UP = 5
/** Askers and the log have begun by then. */
const SETTLE_MS = 1_500
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

type Load = 'quiet' | 'asked' | 'followed' | 'busy'

/**
 * Commits without and with questions, also beside one kind of load alone: a few of each in turn, in another order each
 * round, so that all meet the same noise of the machine.
 */
async function besideSync(site: ReconcileSite, kubelet: KubeletStub, say: Say): Promise<Record<string, number>> {
  const took: Record<Load, number[]> = { quiet: [], asked: [], followed: [], busy: [] }
  const busy: AskLoadResult = { askMs: [], bytes: 0, ms: 0 }
  const peak = { agent: 0, server: 0 }
  kubelet.log = ''
  kubelet.follow = async function* () {
    const piece = lines((FOLLOWED_MB_PER_S * 1_000_000 * PIECE_MS) / 1_000)
    for (let dueMs = performance.now(); ; dueMs += PIECE_MS) {
      yield piece
      await Bun.sleep(Math.max(0, dueMs + PIECE_MS - performance.now()))
    }
  }
  const people = startPeople(site)
  const beside = async (name: Load, round: number) => {
    people.begin({ askers: name === 'asked' || name === 'busy' ? ASKERS : 0, follows: name === 'followed' || name === 'busy' })
    await Bun.sleep(SETTLE_MS)
    took[name].push(...(await commits(site, `${name} ${round}`, COMMITS_A_ROUND)))
    const { askMs, bytes, ms } = await people.end()
    if (name !== 'busy') return
    peak.agent = Math.max(peak.agent, residentMb(site.agent.pid()))
    peak.server = Math.max(peak.server, residentMb(site.fleet.serverPid()))
    busy.askMs.push(...askMs)
    busy.bytes += bytes
    busy.ms += ms
  }
  try {
    await commits(site, 'warm up', WARM_UP)
    const names = Object.keys(took) as Load[]
    for (let round = 0; round < ROUNDS; round++) for (const name of round % 2 === 0 ? names : names.toReversed()) await beside(name, round)
  } finally {
    await people.stop()
  }
  const slowdownOf = (name: Load) => rounded(percentile(took[name], 50) / percentile(took.quiet, 50), 2)
  say(
    `push to apply: ${Object.entries(took)
      .map(([name, ms]) => `${name} ${rounded(percentile(ms, 50))} ms`)
      .join(', ')}`,
  )
  return {
    sync_slowdown_under_asking: slowdownOf('busy'),
    sync_slowdown_under_questions: slowdownOf('asked'),
    sync_slowdown_under_log: slowdownOf('followed'),
    busy_asks_per_s: rounded(busy.askMs.length / (busy.ms / 1_000)),
    followed_log_mb_per_s: rounded(busy.bytes / 1_000 / busy.ms),
    busy_ask_roundtrip_ms: rounded(percentile(busy.askMs, 95)),
    asked_agent_rss_mb: peak.agent,
    asked_server_rss_mb: peak.server,
  }
}

function startPeople(site: ReconcileSite) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'ask-load.ts')], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const answers = createInterface({ input: Readable.fromWeb(child.stdout as unknown as NodeReadableStream) })[Symbol.asyncIterator]()
  const url = `${site.fleet.serverUrl}/api/v1/clusters/${CLUSTER}/ask`
  const write = (line: string) => {
    child.stdin.write(`${line}\n`)
    child.stdin.flush()
  }
  return {
    begin: ({ askers, follows }: { askers: number; follows: boolean }) => {
      const follow = follows ? { kind: 'logs', ref: POD, follow: true } : null
      const question = { kind: 'object', ref: CONFIG_MAP }
      write(
        JSON.stringify({
          url,
          token: site.fleet.token,
          askers,
          everyMs: ASK_EVERY_MS,
          settleMs: SETTLE_MS,
          question,
          follow,
        } satisfies AskLoad),
      )
    },
    end: async () => {
      write('')
      const { value } = await answers.next()
      if (value === undefined) throw new Error('the process that asks has ended')
      return JSON.parse(value) as AskLoadResult
    },
    stop: async () => {
      child.kill()
      await child.exited
    },
  }
}

async function commits(site: ReconcileSite, label: string, count: number): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < count; n++) took.push(await commit(site, `${label} ${n}`))
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

/** Bytes of the answer: the log and a little around it. */
async function drain(response: Response): Promise<number> {
  let bytes = 0
  for await (const chunk of response.body ?? new ReadableStream<Uint8Array>()) bytes += chunk.length
  return bytes
}

const lines = (bytes: number): string => `${LINE}\n`.repeat(Math.ceil(bytes / (LINE.length + 1)))
