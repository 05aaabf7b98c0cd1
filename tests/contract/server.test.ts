// The whole server over real sockets and a real folder: what only shows when its parts are put together, stopped, and
// started again.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentKeys } from '../../agent/link/agent-keys.ts'
import { joinRequest } from '../../agent/link/join.ts'
import { type RunningServer, startServer } from '../../server/server.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { type JoinAnswer, joinAnswerSchema, parseJoinToken } from '../../shared/protocol/join.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionAnswerSchema } from '../../shared/protocol/session.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { serviceDoc } from '../support/admin-app.ts'
import { newAgentKeys, sessionBody } from '../support/agent-api-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

let dataDir: string
let server: RunningServer
let admin: string
let logged: string[]

const note = (message: string, fields?: Record<string, unknown>) => void logged.push(`${message} ${JSON.stringify(fields ?? {})}`)
const log: Logger = { debug: note, info: note, warn: note, error: note, with: () => log }
const start = async () => {
  server = await startServer({ dataDir, hostname: '127.0.0.1', port: 0 }, { clock: systemClock, random: seededRandom(3), log })
  admin = server.firstAdminToken ?? admin
}
beforeEach(async () => {
  dataDir = tempDir()
  logged = []
  await start()
})
afterEach(() => server.stop())

async function ask(method: string, path: string, body?: unknown, token = admin) {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const json: Record<string, unknown> = /(^|[/+])json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : {}
  return { status: response.status, json, text }
}

async function joinToken(): Promise<string> {
  return String((await ask('POST', '/api/v1/join-tokens', { uses: 9, labels: { env: 'prod' } })).json['token'])
}

async function openSession(keys: AgentKeys, joined: JoinAnswer, incarnation: number | null): Promise<string> {
  const { json } = await ask('POST', ROUTES.session, { agentId: joined.agentId, incarnation: null })
  const signed = sessionBody(keys, joined.agentId, incarnation, String(json['nonce']))
  return sessionAnswerSchema.parse((await ask('POST', ROUTES.session, signed)).json).token
}

async function joinAgent(clusterName: string, token?: string) {
  const keys = newAgentKeys()
  const secret = parseJoinToken(token ?? (await joinToken()))?.secret ?? ''
  const request = joinRequest(keys, { joinToken: null, clusterName, clusterUid: 'uid', agentVersion: 'test' }, secret)
  const joined = joinAnswerSchema.parse((await ask('POST', ROUTES.join, request)).json)
  return { keys, joined, session: await openSession(keys, joined, joined.incarnation) }
}

/** Gives the poll a moment to begin to wait, then says how long its answer took after `act`. */
async function pollWhile(session: string, act: () => Promise<unknown>) {
  const first = await ask('GET', ROUTES.desired, undefined, session)
  const { to } = JSON.parse(first.text.split('\n')[0] ?? '{}')
  const cursor = `${to.dbId}.${to.term}.${to.dv}.${to.hash}`
  const poll = ask('GET', `${ROUTES.desired}?cursor=${cursor}&wait=30`, undefined, session)
  await Bun.sleep(100)
  const begun = performance.now()
  await act()
  const { status, json } = await poll
  return { answer: `${status} ${json['code'] ?? ''}`, soon: performance.now() - begun < 2_000 }
}

const cluster = (spec: unknown) => ({ apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'site' }, spec })

test('SE3 an agent that is revoked learns it at once, in the midst of its poll', async () => {
  const { session } = await joinAgent('site')
  const revoke = () => ask('PUT', '/api/v1/clusters/site', cluster({ revoked: true }))
  expect(await pollWhile(session, revoke)).toEqual({ answer: '403 revoked', soon: true })
  await ask('PUT', '/api/v1/clusters/site', cluster({ revoked: false }))
  const { items } = (await ask('GET', '/api/v1/events')).json as { items: Array<{ reason: string }> }
  expect(items.map((event) => event.reason)).toEqual(['ClusterJoined', 'ClusterRevoked', 'ClusterRelabelled', 'ClusterReadmitted'])
})

test('SE3 an agent whose cluster is deleted learns it at once', async () => {
  const { session } = await joinAgent('site')
  expect(await pollWhile(session, () => ask('DELETE', '/api/v1/clusters/site'))).toEqual({ answer: '401 cluster_unknown', soon: true })
})

test('SE4 an agent learns at once that a newer one took its place', async () => {
  const { keys, joined, session } = await joinAgent('site')
  expect(await pollWhile(session, () => openSession(keys, joined, null))).toEqual({ answer: '403 superseded', soon: true })
})

/** Epochs by name, as the next page would be signed with. */
const epoch = () => {
  const db = openSqlite(join(dataDir, 'fleet.sqlite'), { readonly: true })
  const row = db.query<{ epoch: number }, []>('SELECT epoch FROM clusters').get()
  db.close()
  return row?.epoch
}

test('CU5 CU2a shard files that were lost are made anew and the epoch is raised, once, also when a start died before it was', async () => {
  await joinAgent('site')
  await server.stop()
  await start()
  expect(epoch()).toBe(1)
  await server.stop()
  rmSync(join(dataDir, 'shards'), { recursive: true })
  await start()
  expect(epoch()).toBe(2)
  await server.stop()
  // As if the start before had been killed between making the file and raising the epoch.
  const db = openSqlite(join(dataDir, 'fleet.sqlite'))
  db.run("UPDATE meta SET value = 'the file before' WHERE key LIKE 'shard %'")
  db.close()
  await start()
  expect(epoch()).toBe(3)
  await server.stop()
  await start()
  expect(epoch()).toBe(3)
})

test('RP2 a server that was put back to a backup waits for a person, stays ready, and serves again with a yes', async () => {
  const { session } = await joinAgent('site')
  await server.stop()
  const backup = tempDir()
  cpSync(dataDir, backup, { recursive: true })
  rmSync(join(dataDir, 'shards'), { recursive: true }) // the time that will be lost: another epoch
  await start()
  const lines = (await ask('GET', ROUTES.desired, undefined, session)).text.trimEnd().split('\n')
  const proof = { hello: JSON.parse(lines[0] ?? ''), checkpoint: JSON.parse(lines.at(-1) ?? '') }
  await server.stop()
  rmSync(dataDir, { recursive: true })
  cpSync(backup, dataDir, { recursive: true })
  await start()
  const refetch = async () => {
    const body = `${JSON.stringify({ proof })}\n`
    const response = await fetch(server.url + ROUTES.buckets, { method: 'POST', headers: { authorization: `Bearer ${session}` }, body })
    return { status: response.status, text: await response.text() }
  }
  expect(await refetch()).toMatchObject({ status: 503 })
  expect((await ask('GET', '/readyz')).status).toBe(200)
  const { json } = await ask('GET', '/api/v1/clusters/site')
  expect((json['status'] as { reason: string }).reason).toBe('RestorePending')
  const plan = (await ask('GET', '/api/v1/restore')).json
  expect(plan['pending']).toBe(true)
  expect((await ask('POST', '/api/v1/restore/confirm', { token: 'of another plan' })).status).toBe(409)
  expect((await ask('POST', '/api/v1/restore/confirm', { token: plan['token'] })).status).toBe(200)
  const { status, text } = await refetch()
  expect(status).toBe(200)
  expect(JSON.parse(text.split('\n')[0] ?? '').epoch).toBeGreaterThan(proof.hello.epoch)
})

test('RP7 a rotation by the admin API ends sessions and survives a restart', async () => {
  const { keys, joined, session } = await joinAgent('site')
  const rotated = await ask('POST', '/api/v1/server-keys/rotate')
  expect(rotated.status).toBe(200)
  await server.stop()
  await start()
  expect((await ask('GET', ROUTES.desired, undefined, session)).json['code']).toBe('session_required')
  const again = await openSession(keys, joined, joined.incarnation)
  expect((await ask('GET', ROUTES.desired, undefined, again)).status).toBe(200)
  expect((await ask('GET', '/api/v1/server-keys')).json).toEqual(rotated.json)
})

test('JN3 AP7 keys and data are for this user alone, and no secret is in a log line, an event or a file beside the keys', async () => {
  const token = await joinToken()
  const { joined } = await joinAgent('site', token)
  await ask('POST', '/api/v1/apply', { resources: [serviceDoc('web')] })
  await ask('GET', '/api/v1/clusters', undefined, 'sk_wrong')
  const repository = {
    apiVersion: 'skerry.dev/v1',
    kind: 'Repository',
    metadata: { name: 'apps' },
    spec: { git: { url: 'http://127.0.0.1:9/x.git' } },
  }
  await ask('POST', '/api/v1/apply', { resources: [repository] })
  const hook = String((await ask('POST', '/api/v1/projects/default/repositories/apps/webhook')).json['secret'])
  const events = (await ask('GET', '/api/v1/events?limit=500')).text
  const lists = (await ask('GET', '/api/v1/join-tokens')).text + (await ask('GET', '/api/v1/repositories')).text
  await server.stop()
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const isSecret = ({ parentPath, name }: (typeof files)[number]) => parentPath.endsWith('keys') || name === 'admin-token'
  const outside = files.filter((file) => !isSecret(file)).map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
  const everywhere = [...logged, events, lists, ...outside].join('\n')
  for (const secret of [admin, parseJoinToken(token)?.secret ?? '?', hook, readFileSync(join(dataDir, 'keys', 'mac.key'), 'utf8').trim()])
    expect(everywhere.includes(secret)).toBe(false)
  expect(everywhere).toContain(joined.agentId)
  for (const { parentPath, name } of files.filter(isSecret))
    expect([name, statSync(join(parentPath, name)).mode & 0o777]).toEqual([name, 0o600])
  await start()
})

test('WK1 a worker checks the patches of a spec', async () => {
  const web = serviceDoc('web')
  const apply = (patch: string) =>
    ask('POST', '/api/v1/apply', { resources: [{ ...web, spec: { ...web.spec, render: { patches: [{ patch }] } } }] })
  const refused = await apply('kind: [')
  expect([refused.status, refused.json['problems']]).toMatchObject([422, [{ path: 'resources[0].spec.render.patches[0]' }]])
  expect((await apply('{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }')).status).toBe(200)
})

test('CU5 a start that found its port taken leaves its folder as a clean stop does', async () => {
  const other = tempDir()
  const port = Number(new URL(server.url).port)
  const second = startServer({ dataDir: other, hostname: '127.0.0.1', port }, { clock: systemClock, random: seededRandom(4), log })
  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' })
  expect(readdirSync(join(other, 'shards'))).not.toContain('in-use')
})

test('AP2 the first admin token is not lost when the first start finds its port in use: the next one tells it', async () => {
  const other = tempDir()
  const open = (port: number) =>
    startServer({ dataDir: other, hostname: '127.0.0.1', port }, { clock: systemClock, random: seededRandom(3), log })
  await expect(open(Number(new URL(server.url).port))).rejects.toMatchObject({ code: 'EADDRINUSE' })
  const next = await open(0)
  try {
    expect(next.firstAdminToken).toStartWith('sk_')
  } finally {
    await next.stop()
  }
})

test('AP2 AP12 CL19 the first admin token is in a file for its user alone, nothing that is printed has it, and the command line exchanges it', async () => {
  const dataDir = tempDir()
  const skerry = (...args: string[]) =>
    Bun.spawn([process.execPath, join(import.meta.dir, '../../server/main.ts'), ...args], { stdout: 'pipe', stderr: 'pipe', env: {} })
  const serving = skerry('server', '--data', dataDir, '--listen', '127.0.0.1:0')
  let printed = ''
  for await (const chunk of serving.stdout) {
    printed += Buffer.from(chunk).toString()
    if (printed.includes('token exchange')) break
  }
  const tokenFile = join(dataDir, 'admin-token')
  const first = readFileSync(tokenFile, 'utf8').trim()
  expect([first.slice(0, 3), statSync(tokenFile).mode & 0o777]).toEqual(['sk_', 0o600])
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? ''
  const exchange = skerry('token', 'exchange', '--server', url, '--token-file', tokenFile)
  const [token, said] = await Promise.all([new Response(exchange.stdout).text(), new Response(exchange.stderr).text()])
  expect([token, said.includes('sk_')]).toEqual([expect.stringMatching(/^sk_[A-Za-z0-9_-]{43}[0-9a-f]{8}\n$/), false])
  const status = async (bearer: string) => (await fetch(`${url}/api/v1/whoami`, { headers: { authorization: `Bearer ${bearer}` } })).status
  expect([await status(token.trim()), await status(first)]).toEqual([200, 401])
  serving.kill()
  await serving.exited
  expect([printed.includes(first), printed.includes(tokenFile)]).toEqual([false, true])
}, 20_000)

test('AP3 a request line or header that is too long, and one that makes no sense, are refused and nothing breaks', async () => {
  const status = async (init: RequestInit, path = '/api/v1/clusters') =>
    (await fetch(server.url + path, init).catch(() => ({ status: 0 }))).status
  expect(await status({ headers: { 'x-long': 'x'.repeat(100_000) } })).not.toBe(200)
  expect(await status({}, `/api/v1/${'y'.repeat(30_000)}`)).not.toBe(200)
  expect(await status({}, '/%ff%fe')).toBe(404)
  expect(await status({}, '/agent/v1/%00')).toBe(404)
  expect((await ask('GET', '/api/v1/clusters')).status).toBe(200)
})
