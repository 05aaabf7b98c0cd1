// New recipient keys for ten thousand clusters, as a person asks for them: the command, the two sessions in which each
// agent learns of it and announces its new key, the transaction with its event, and the page with all rows of the
// cluster, whose keys are wrapped anew. The server is the program itself, on the data folder of a fleet that joined
// before; agents are simulated, and check the signature of what they get.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { withProofs } from '../../server/access/placement-proofs.ts'
import { loadSealing, type Sealing } from '../../server/access/sealing.ts'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { sealObject } from '../../shared/model/sealed-object.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { recipientBytes, type SessionAnswer, sessionProofBytes } from '../../shared/protocol/session.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { fingerprint, generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { residentMb, rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { readBody } from './polling-agent.ts'
import { RawConnection } from './raw-http.ts'
import { createProbedFleet, type ProbedFleet, peakResidentMb, processorMs } from './server-process.ts'
import { atOnce, joinSites, openStore, placeServices, type Site } from './store-sites.ts'

const CLUSTERS = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
const ANSWER_MS_MAX = 60_000
const TRIES_MAX = 50

export async function benchRotate(
  say: Say,
  service: ServiceId,
  secrets: readonly { id: string; object: K8sObject }[],
): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-rotate')
  let probed: ProbedFleet | null = null
  try {
    const dataDir = join(folder.path, 'server')
    mkdirSync(dataDir)
    const startMs = performance.now()
    const sites = await prepare(dataDir, service, secrets)
    say(`${CLUSTERS} clusters prepared in ${rounded((performance.now() - startMs) / 1_000)} s`)
    const recipients = sites.map(() => generateKey('x25519').publicKey)
    const serverKeys = [loadServerKeys(join(dataDir, 'keys')).publicKeys[0]]
    probed = await createProbedFleet({ dataDir })
    return await rotateAll(probed, { sites, recipients, serverKeys }, say)
  } catch (error) {
    say(`the server's last words:\n${probed?.fleet.serverLog().split('\n').slice(-5).join('\n') ?? ''}`)
    throw error
  } finally {
    await probed?.fleet.stop()
    await folder.remove()
  }
}

/** A fleet that seals: all clusters share one set. */
async function prepare(dataDir: string, service: ServiceId, secrets: readonly { id: string; object: K8sObject }[]): Promise<Site[]> {
  const sealing = loadSealing(join(dataDir, 'keys'))
  sealing.begin()
  const plain = await openStore(join(dataDir, 'fleet.sqlite'))
  const store = withProofs(plain, sealing)
  const sites = await joinSites(store, CLUSTERS)
  const placed = { ...service, ...sealedSet(sealing, service, secrets) }
  await placeServices(dataDir, store, sites, () => [placed])
  await plain.close()
  return sites
}

function sealedSet(sealing: Sealing, service: ServiceId, secrets: readonly { id: string; object: K8sObject }[]) {
  const keys = sealing.keysFor(service)
  if (keys === null) throw new Error('there is no sealing key')
  const objects = new Map(secrets.map(({ id, object }) => [id, sealObject(keys, id, object, canonicalJson(object))] as const))
  const row = { commit: 'c0ffee0', digest: setDigest(objects), count: objects.size, protect: false }
  const doc: ServiceRow = { ...row, sync: syncOptionsSchema.parse({}) }
  return { doc, objects }
}

interface Crowd {
  sites: readonly Site[]
  /** The new public keys. */
  recipients: readonly string[]
  serverKeys: readonly string[]
}

async function rotateAll({ fleet, measureLag }: ProbedFleet, crowd: Crowd, say: Say): Promise<Record<string, number>> {
  const pid = fleet.serverPid()
  const cpuMs = processorMs(pid)
  const lagging = measureLag()
  const startMs = performance.now()
  await fleet.run(['cluster', 'rotate-recipient', '--all', '--yes'])
  const askedS = (performance.now() - startMs) / 1_000
  const port = Number(new URL(fleet.serverUrl).port)
  await atOnce(crowd.sites, (site) => rotateOne(port, site, crowd))
  const seconds = (performance.now() - startMs) / 1_000
  const lag = await lagging.stop()
  const { items } = await fleet.api<{ items: Array<{ recipient: string; rotating: boolean }> }>('/agents?limit=500')
  if (items.some(({ rotating }) => rotating)) throw new Error('an agent still has to make another key')
  say(
    `${CLUSTERS} clusters in ${rounded(seconds)} s, ${rounded(askedS)} s of it to ask them; ` +
      `server ${residentMb(pid)} MB, at most ${peakResidentMb(pid)} MB`,
  )
  return {
    rotate_10000_s: rounded(seconds),
    rotate_10000_ask_s: rounded(askedS),
    rotate_10000_server_cpu_s: rounded((processorMs(pid) - cpuMs) / 1_000),
    rotate_10000_lag_p99_ms: lag.p99Ms,
  }
}

/** In the order of a real agent. */
async function rotateOne(port: number, { number, agentId, clusterId, signing }: Site, { recipients, serverKeys }: Crowd): Promise<void> {
  const connection = new RawConnection(port)
  const key = recipients[number] ?? ''
  const post = async (path: string, headers: Record<string, string>, body: string, expected: number): Promise<Buffer> => {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const answer = await connection.ask('POST', path, headers, Buffer.from(body), ANSWER_MS_MAX)
      if (answer.status === expected) return answer.body
      if (answer.status !== 429 && answer.status !== 503)
        throw new Error(`${path}: HTTP ${answer.status} ${answer.body.toString().slice(0, 200)}`)
      await Bun.sleep(1_000 * Number(answer.header('retry-after') ?? 1))
    }
    throw new Error(`${path}: sent away ${TRIES_MAX} times`)
  }
  const session = async (announce: boolean): Promise<SessionAnswer> => {
    const who = { agentId, incarnation: 1 }
    const { nonce } = JSON.parse((await post(ROUTES.session, {}, JSON.stringify(who), 401)).toString()) as { nonce: string }
    const sign = (bytes: Uint8Array) => signBytes(signing.privateKey, bytes)
    const recipient = announce ? { recipient: { key, signature: sign(recipientBytes(agentId, nonce, key)) } } : {}
    const proof = { ...who, nonce, signature: sign(sessionProofBytes(agentId, 1, nonce)), ...recipient }
    return JSON.parse((await post(ROUTES.session, {}, JSON.stringify(proof), 200)).toString()) as SessionAnswer
  }
  if ((await session(false)).recipient?.rotate !== true) throw new Error(`site ${number} is not asked for another key`)
  const { token } = await session(true)
  const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'zstd' }
  const read = readBody(await post(`${ROUTES.buckets}?seal=1&bound=1&projects=1&sops=1`, headers, '{}\n', 200), clusterId, serverKeys)
  connection.close()
  if (read.kind === 'refused') throw new Error(read.why)
  if (read.page.hello.seal?.to !== fingerprint(key)) throw new Error(`site ${number}: the page is sealed to another key`)
}
