// Records the wire: `bun tests/support/record-wire.ts`. A real server and the agent's own code exchange what every
// agent exchanges in its life; keys are fixed.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { joinRequest } from '../../agent/link/join.ts'
import { createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { cursorText } from '../../shared/crdt/position.ts'
import { joinAnswerSchema, parseJoinToken } from '../../shared/protocol/join.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionAnswerSchema, sessionProofBytes } from '../../shared/protocol/session.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { SLICE_BYTES_MIN, SLICE_PARAM } from '../../shared/protocol/transfer.ts'
import { PROTOCOL_HEADER } from '../../shared/protocol/version.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { unzstd } from '../../shared/runtime/zstd.ts'
import { DB, WEB } from './sync-kit.ts'
import { SyncServer } from './sync-world.ts'
import { createVirtualClock } from './virtual-clock.ts'
import { type Exchange, jsonOf, WireCorpus, type WireSetting } from './wire-corpus.ts'

const random = seededRandom(41)
const noise = (length: number) => Array.from({ length }, () => Math.floor(random() * 36).toString(36)).join('')

class Recorder {
  readonly exchanges = new Map<string, Exchange>()
  readonly server: SyncServer
  token = ''
  constructor(server: SyncServer) {
    this.server = server
  }

  async ask(
    name: string,
    method: string,
    path: string,
    { json, body, headers = {} }: { json?: unknown; body?: Uint8Array; headers?: Record<string, string> } = {},
  ): Promise<Buffer> {
    const sent = json === undefined ? (body ?? new Uint8Array()) : Buffer.from(JSON.stringify(json))
    const sentHeaders = { 'accept-encoding': 'zstd', ...(this.token === '' ? {} : { authorization: `Bearer ${this.token}` }), ...headers }
    const init = { method, headers: sentHeaders, ...(method === 'GET' ? {} : { body: sent as Uint8Array<ArrayBuffer> }) }
    const response = await this.server.handle(new Request(`http://localhost${path}`, init))
    if (response === null) throw new Error('the server is down')
    const bytes = Buffer.from(await response.arrayBuffer())
    const answer = { status: response.status, headers: Object.fromEntries(response.headers), body: bytes.toString('base64') }
    this.exchanges.set(name, { request: { method, path, headers: sentHeaders, body: Buffer.from(sent).toString('base64') }, answer })
    return bytes
  }
}

async function record(): Promise<WireCorpus> {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-wire-'))
  const keys = { server: generateKey('ed25519'), agent: { signing: generateKey('ed25519'), recipient: generateKey('x25519') } }
  mkdirSync(join(dir, 'keys'))
  writeFileSync(join(dir, 'keys', 'signing.json'), JSON.stringify(keys.server))
  const server = new SyncServer({ dir, clock: createVirtualClock(), random: seededRandom(7) })
  await server.open()
  await server.createJoinToken(1)
  const recorder = new Recorder(server)

  const secret = parseJoinToken(server.joinToken)?.secret ?? ''
  const input = { joinToken: server.joinToken, clusterName: 'ship', clusterUid: 'uid', agentVersion: '1.0.0' }
  await recorder.ask('join', 'POST', ROUTES.join, { json: joinRequest(keys.agent, input, secret) })
  const joined = joinAnswerSchema.parse(jsonOf(recorder.exchanges.get('join')?.answer ?? { body: '' }))
  const { agentId } = joined
  const clusterId = clusterIdSchema.parse(joined.clusterId)
  await recorder.ask('session-required', 'POST', ROUTES.session, { json: { agentId, incarnation: null } })
  const nonce = String(jsonOf(recorder.exchanges.get('session-required')?.answer ?? { body: '' })['nonce'])
  const signature = signBytes(keys.agent.signing.privateKey, sessionProofBytes(agentId, null, nonce))
  await recorder.ask('session', 'POST', ROUTES.session, { json: { agentId, incarnation: null, nonce, signature } })
  const session = sessionAnswerSchema.parse(jsonOf(recorder.exchanges.get('session')?.answer ?? { body: '' }))
  recorder.token = session.token

  const digests = await recordPages(recorder, clusterId, keys.server.publicKey, join(dir, 'replica.db'))
  await recordStatus(recorder, session.incarnation)
  await recordRefusals(recorder, joined, keys)
  await server.kill()
  rmSync(dir, { recursive: true })
  const setting: WireSetting = { ...keys, joinToken: server.joinToken, clusterId, agentId, digests }
  return new WireCorpus(setting, recorder.exchanges)
}

async function recordPages(recorder: Recorder, clusterId: ClusterId, serverKey: string, path: string): Promise<WireSetting['digests']> {
  const { server } = recorder
  const replica = createCrdtReplica({ path, clusterId, serverKeys: () => [serverKey], log: silentLogger })
  const digests: WireSetting['digests'] = {}
  const pull = async (name: string, method = 'GET', route = cursor(), body?: Uint8Array) => {
    const bytes = await recorder.ask(name, method, route, body === undefined ? {} : { body })
    const page = recorder.exchanges.get(name)?.answer.headers['content-encoding'] === 'zstd' ? unzstd(bytes, 1e8) : bytes
    const applied = replica.applyPage(page)
    if (applied.kind !== 'applied') throw new Error(`${name}: ${JSON.stringify(applied)}`)
    const read = replica.services().map((id) => [`${id.project}/${id.service}`, replica.read(id)] as const)
    digests[name] = Object.fromEntries(
      read.map(([key, found]) => [key, found.kind === 'complete' ? found.revision.row.digest : found.kind]),
    )
  }
  const cursor = () => {
    const at = replica.position()
    return at === null ? `${ROUTES.desired}?wait=0` : `${ROUTES.desired}?cursor=${cursorText(at)}&wait=0`
  }
  const many = (from: string) => Object.fromEntries(Array.from({ length: 70 }, (_, n) => [`object-${n}`, n === 3 ? from : `value ${n}`]))
  await server.publish(clusterId, WEB, { a: 'one' })
  await pull('page-bootstrap')
  await server.publish(clusterId, DB, { data: noise(3_000) })
  await server.publish(clusterId, WEB, null)
  await pull('page-delta')
  await recorder.ask('nothing-new', 'GET', cursor())
  await server.publish(clusterId, WEB, many('before'))
  await pull('page-many')
  await server.publish(clusterId, WEB, many('after'))
  await recorder.ask('must-refetch', 'GET', `${ROUTES.desired}?cursor=${'ab'.repeat(16)}.1.5.${'cd'.repeat(16)}&wait=0`)
  const head = () => Buffer.from(`${JSON.stringify({ proof: replica.proof() })}\n`)
  await pull('page-kept', 'POST', ROUTES.buckets, Buffer.concat([head(), replica.bucketSums()]))
  await pull('page-whole', 'POST', ROUTES.buckets, head())
  await server.publish(clusterId, DB, { data: noise(2 * SLICE_BYTES_MIN) })
  await recorder.ask('part-0', 'GET', `${cursor()}&${SLICE_PARAM}=${SLICE_BYTES_MIN}`)
  const [transfer, parts] = (recorder.exchanges.get('part-0')?.answer.headers['skerry-transfer'] ?? '').split('.')
  for (let part = 1; part < Number(parts); part++)
    await recorder.ask(`part-${part}`, 'GET', `${ROUTES.desired}?transfer=${transfer}&part=${part}`)
  await recorder.ask('transfer-gone', 'GET', `${ROUTES.desired}?transfer=${'A'.repeat(22)}&part=1`)
  replica.close()
  return digests
}

async function recordStatus(recorder: Recorder, incarnation: number): Promise<void> {
  const point = { commit: 'c0ffee', digest: 'd', atMs: 1 }
  const doc = {
    sync: 'Synced',
    health: 'Healthy',
    reason: 'Applied',
    message: '',
    sinceMs: 1,
    objectCount: 1,
    healthyCount: 1,
    received: point,
    applied: point,
  }
  const row = (rev: number, kind: string, key: string, value: unknown) => ({
    kind,
    key,
    rev: incarnation * REV_INCARNATION + rev,
    doc: value,
  })
  const object = { sync: 'Synced', health: 'Healthy', reason: 'Applied', message: '', sinceMs: 1 }
  const workload = 'shop/web/apps/Deployment/default/web'
  const rows = [
    row(1, 'service', 'shop/web', doc),
    row(2, 'object', workload, { ...object, images: ['registry.example/wait@sha256:0', 'registry.example/web:1'] }),
    row(3, 'cluster', 'cluster', { agentVersion: '1.0.0', kubernetesVersion: 'v1.33', clusterUid: 'uid', problems: [] }),
    row(4, 'event', '0000000000001-1', { atMs: 1, type: 'Normal', reason: 'Applied', message: 'applied', service: 'shop/web' }),
    row(5, 'drift', workload, { paths: ['.spec.replicas'], manager: 'kubectl', action: 'healed', detectedMs: 1, count: 1 }),
    row(6, 'object', 'shop/web//ConfigMap/default/b', null),
  ]
  await recorder.ask('compare', 'POST', ROUTES.status, { json: { incarnation, rows: [] } })
  await recorder.ask('push', 'POST', ROUTES.status, { json: { incarnation, rows } })
  await recorder.ask('push-refused', 'POST', ROUTES.status, { json: { incarnation, rows: [row(7, 'service', 'shop/db', { sync: 1 })] } })
  const kept = rows.filter(({ kind, doc: held }) => held !== null && kind !== 'event')
  await recorder.ask('inventory', 'POST', ROUTES.status, { json: { incarnation, rows: kept, complete: true } })
  const services = kept.filter(({ kind }) => kind === 'service')
  await recorder.ask('inventory-range', 'POST', ROUTES.status, {
    json: { incarnation, rows: services, complete: { after: 'object/~', upTo: null } },
  })
}

async function recordRefusals(recorder: Recorder, joined: { agentId: string }, keys: Pick<WireSetting, 'agent'>): Promise<void> {
  const { token, server } = recorder
  await recorder.ask('protocol-unsupported', 'GET', ROUTES.desired, { headers: { [PROTOCOL_HEADER]: '9' } })
  Object.assign(server.restoreGate, { pending: () => true })
  await recorder.ask('restore-pending', 'GET', `${ROUTES.desired}?wait=0`)
  Object.assign(server.restoreGate, { pending: () => false })
  recorder.token = ''
  await recorder.ask('no-session', 'GET', ROUTES.desired)
  await recorder.ask('cluster-unknown', 'POST', ROUTES.session, { json: { agentId: 'a-00000000000000ff', incarnation: 1 } })
  await recorder.ask('join-token-unknown', 'POST', ROUTES.join, {
    json: joinRequest(keys.agent, { joinToken: null, clusterName: 'other', clusterUid: '', agentVersion: '' }, 'a-secret-that-nobody-made'),
  })
  const asked = await recorder.ask('nonce', 'POST', ROUTES.session, { json: { agentId: joined.agentId, incarnation: null } })
  const nonce = String(JSON.parse(asked.toString()).nonce)
  const signature = signBytes(keys.agent.signing.privateKey, sessionProofBytes(joined.agentId, null, nonce))
  await recorder.ask('nonce', 'POST', ROUTES.session, { json: { agentId: joined.agentId, incarnation: null, nonce, signature } })
  recorder.exchanges.delete('nonce')
  recorder.token = token
  await recorder.ask('superseded', 'GET', ROUTES.desired)
}

const corpus = await record()
corpus.save()
process.stdout.write(`${corpus.names.join('\n')}\n`)
