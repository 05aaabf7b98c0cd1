// PL11: what was recorded of version 1 is still understood: its answers by today's agent, its requests by today's
// server; and what a newer other side adds does no harm.
import { afterEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Fetcher } from '../../agent/link/server-client.ts'
import { addHash, hashText, parseHash, rowHash } from '../../shared/crdt/row-hash.ts'
import { checkpointBytes, checkpointSchema, helloSchema, rowLine } from '../../shared/protocol/frames.ts'
import { joinTokenHash, parseJoinToken } from '../../shared/protocol/join.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionProofBytes } from '../../shared/protocol/session.ts'
import { agentIdSchema, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { unzstd } from '../../shared/runtime/zstd.ts'
import { SyncAgent, SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { jsonOf, WireCorpus } from '../support/wire-corpus.ts'

const corpus = WireCorpus.load()
const { setting } = corpus
const stops: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

type Playback = (method: string, url: URL, body: string) => Response | null | 'recorded'

/** Today's agent, answered from the files; what `instead` answers comes first. */
function agentOfToday(instead: Playback = () => 'recorded') {
  const clock = createVirtualClock()
  const world = { dir: tempDir(), clock, random: seededRandom(3) }
  const folder = join(world.dir, 'agent-ship')
  mkdirSync(folder)
  writeFileSync(join(folder, 'agent-keys.json'), JSON.stringify(setting.agent))
  const asked: string[] = []
  const fetcher: Fetcher = async (address, init) => {
    const url = new URL(address)
    const method = init.method ?? 'GET'
    const body = Buffer.from((init.body ?? []) as Uint8Array)
    const text = (
      new Headers(init.headers as Record<string, string>).get('content-encoding') === 'zstd' ? Buffer.from(unzstd(body, 1e7)) : body
    ).toString()
    asked.push(`${method} ${url.pathname}`)
    const answer = instead(method, url, text)
    const found = answer === 'recorded' ? recorded(method, url, text) : answer
    if (found !== null) return found
    const cut = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    cut.catch(() => {})
    await Promise.race([cut, clock.sleep(Number(url.searchParams.get('wait') ?? 0) * 1_000)])
    return corpus.answer('nothing-new')
  }
  const agent = new SyncAgent(world, { joinToken: setting.joinToken } as SyncServer, 'ship', fetcher)
  agent.start()
  stops.push(() => agent.kill())
  const digests = () => {
    const replica = agent.loop?.replica()
    const read = (replica?.services() ?? []).map((id) => [`${id.project}/${id.service}`, replica?.read(id)] as const)
    return Object.fromEntries(read.map(([key, found]) => [key, found?.kind === 'complete' ? found.revision.row.digest : found?.kind]))
  }
  return { agent, clock, asked, digests }
}

const cursorOf = (path: string) => new URL(path, 'http://x').searchParams.get('cursor')
const pages = corpus.names.filter((name) => name.startsWith('page-') || name === 'part-0')
const byCursor = new Map(
  pages.filter((name) => corpus.get(name).request.method === 'GET').map((name) => [cursorOf(corpus.get(name).request.path), name]),
)

function recorded(method: string, url: URL, body: string): Response | null {
  switch (url.pathname) {
    case ROUTES.join:
      return corpus.answer('join')
    case ROUTES.session:
      return corpus.answer(body.includes('"signature"') ? 'session' : 'session-required')
    case ROUTES.status: {
      const rows = (JSON.parse(body) as { rows: Array<{ rev: number }> }).rows
      return corpus.answer(rows.length === 0 ? 'compare' : 'push', (bytes) => {
        const ack = rows.reduce((max, { rev }) => Math.max(max, rev), Number(JSON.parse(bytes.toString()).ack))
        return Buffer.from(JSON.stringify({ ...JSON.parse(bytes.toString()), ack }))
      })
    }
    case ROUTES.buckets:
      if (isFirstContact(body)) return corpus.answer('page-bootstrap')
      return corpus.answer(body.indexOf('\n') === body.length - 1 ? 'page-whole' : 'page-kept')
    default: {
      if (url.searchParams.has('transfer')) return corpus.answer(`part-${url.searchParams.get('part')}`)
      const name = byCursor.get(url.searchParams.get('cursor'))
      if (name !== undefined) return corpus.answer(name)
      return method === 'GET' && asksAfterMany(url) ? corpus.answer('must-refetch') : null
    }
  }
}

/** The head of a refetch: its sums follow the first line. */
function jsonOrNull(body: string): Record<string, unknown> | null {
  const [line = ''] = Buffer.from(body, 'base64').toString().split('\n')
  return line.startsWith('{') ? JSON.parse(line) : null
}

const isFirstContact = (body: string) => !body.includes('"proof"')
const afterMany = textOf('page-many').split('\n')[0] ?? ''
const asksAfterMany = (url: URL) => url.searchParams.get('cursor')?.split('.')[2] === String(helloSchema.parse(JSON.parse(afterMany)).to.dv)

function textOf(name: string): string {
  const { headers, body } = corpus.get(name).answer
  const bytes = Buffer.from(body, 'base64')
  return Buffer.from(headers['content-encoding'] === 'zstd' ? unzstd(bytes, 1e8) : bytes).toString()
}

describe('today’s agent and the answers of version 1', () => {
  test('PL11 it joins, bootstraps, follows, refetches with kept buckets, fetches parts and reports', async () => {
    const { agent, clock, asked, digests } = agentOfToday()
    await clock.advance(120_000)
    expect(agent.loop?.status().failure).toBeNull()
    expect(agent.clusterId).toBe(clusterIdSchema.parse(setting.clusterId))
    expect(Object.keys(digests()).sort()).toEqual(['shop/db', 'shop/web'])
    expect(digests()['shop/web']).toBe(setting.digests['page-kept']?.['shop/web'])
    expect(digests()['shop/db']).not.toBe(setting.digests['page-kept']?.['shop/db']) // what came in parts
    expect(asked).toContain(`POST ${ROUTES.buckets}`)
    expect(agent.state?.outboxDepth()).toBe(0)
  })

  test.each(['page-bootstrap', 'page-delta', 'page-many'])('PL11 %s is what it was', async (last) => {
    const { clock, digests } = agentOfToday((method, url) => {
      if (method !== 'GET') return 'recorded'
      const name = byCursor.get(url.searchParams.get('cursor'))
      return name !== undefined && order(name) <= order(last) ? 'recorded' : null
    })
    await clock.advance(60_000)
    expect(digests()).toEqual(setting.digests[last] ?? {})
  })

  test('PL11 a page with nothing kept is what it was', async () => {
    const { clock, digests } = agentOfToday((method, url) => {
      if (url.pathname === ROUTES.buckets) return corpus.answer('page-whole')
      return method === 'GET' ? null : 'recorded'
    })
    await clock.advance(60_000)
    expect(digests()).toEqual(setting.digests['page-whole'] ?? {})
  })

  test.each(['restore-pending', 'protocol-unsupported', 'cluster-unknown', 'superseded', 'transfer-gone', 'no-session', 'must-refetch'])(
    'PL11 the refusal %s is known by its code, and enforced is what was',
    async (name) => {
      let refuse = false
      const { agent, clock, digests } = agentOfToday((method, url) => {
        if (method !== 'GET') return 'recorded'
        if (refuse) return corpus.answer(name)
        return url.searchParams.has('cursor') ? new Response(null, { status: 204 }) : 'recorded'
      })
      await clock.advance(10_000)
      refuse = true
      await clock.advance(30_000)
      const code = String(jsonOf(corpus.get(name).answer)['code'])
      // A session is opened anew, a refetch and a lost transfer mend themselves: no failure that a person sees.
      const silent = ['session_required', 'must_refetch', 'transfer_gone'].includes(code)
      if (!silent) expect(agent.loop?.status().failure?.code ?? 'none').toBe(code)
      expect(digests()['shop/web']).toBeDefined()
    },
  )
})

const ORDER = ['page-bootstrap', 'page-delta', 'page-many']
const order = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)

/** The bootstrap as a newer server may send it: members and a kind of rows that nobody here knows, signed anew. */
function pageOfTomorrow(): Response {
  const lines = textOf('page-bootstrap').split('\n').slice(0, -1)
  const { t: _, ...hello } = helloSchema.parse(JSON.parse(lines[0] ?? ''))
  const added = { id: 'forecast/shop/web', doc: '{"sun":true}', colVersion: 1, cl: 1 }
  const rows = Buffer.from(`${lines.slice(1, -1).join('\n')}\n${rowLine(added)}`)
  const to = { ...hello.to, hash: hashText(addHash(parseHash(hello.to.hash) ?? 0n, rowHash(added.id, added.doc))) }
  const { count } = checkpointSchema.parse(JSON.parse(lines.at(-1) ?? ''))
  const covered = { count: count + 1, rows: createHash('sha256').update(rows).digest('hex') }
  const signature = signBytes(setting.server.privateKey, checkpointBytes(setting.clusterId, { ...hello, to }, covered))
  const first = `${JSON.stringify({ t: 'hello', ...hello, to, tomorrow: { deep: [1] } })}\n`
  return new Response(`${first}${rows}${JSON.stringify({ t: 'checkpoint', ...covered, signature, tomorrow: 2 })}\n`)
}

describe('today’s agent and a newer server', () => {
  const richer = (name: string) =>
    corpus.answer(name, (body) => Buffer.from(JSON.stringify({ tomorrow: { a: [1] }, ...JSON.parse(body.toString()) })))

  test('PL11 unknown members of every answer and a kind of rows of tomorrow do no harm', async () => {
    const { agent, clock, digests } = agentOfToday((_, url, body) => {
      if (url.pathname === ROUTES.join) return richer('join')
      if (url.pathname === ROUTES.session) return richer(body.includes('"signature"') ? 'session' : 'session-required')
      if (url.pathname === ROUTES.status) {
        const rows = (JSON.parse(body) as { rows: Array<{ rev: number; key: string }> }).rows
        const ack = Math.max(0, ...rows.map(({ rev }) => rev))
        return Response.json({ ack, reject: rows.map(({ key }) => ({ key, code: 'of_tomorrow', why: 1 })), tomorrow: 1 })
      }
      return url.pathname === ROUTES.buckets ? pageOfTomorrow() : null
    })
    await clock.advance(60_000)
    expect(agent.loop?.status().failure).toBeNull()
    expect(digests()).toEqual(setting.digests['page-bootstrap'] ?? {})
    expect(
      agent.loop
        ?.replica()
        ?.dump()
        .map(([id]) => id),
    ).toContain('forecast/shop/web')
    expect(agent.state?.outboxDepth()).toBe(0)
  })

  test.each([
    [503, { code: 'of_tomorrow' }],
    [400, { code: 'of_tomorrow', detail: 'x', tomorrow: [] }],
    [409, { code: 'must_refetch', reason: 'of_tomorrow' }],
    [418, {}],
    [299, {}],
  ])('PL11 a refusal %i %j of tomorrow is tried again, and then all is well', async (status, body) => {
    let refusals = 2
    const { agent, clock, digests } = agentOfToday((method) => {
      if (method !== 'GET' || refusals === 0) return 'recorded'
      refusals -= 1
      return Response.json({ type: 'x', title: 'x', status, ...body }, { status })
    })
    await clock.advance(600_000)
    expect(refusals).toBe(0)
    expect(digests()['shop/db']).toBeDefined()
    expect(agent.loop?.status().failure).toBeNull()
  })
})

describe('today’s server and the requests of version 1', () => {
  async function serverOfToday() {
    const dir = tempDir()
    mkdirSync(join(dir, 'keys'))
    writeFileSync(join(dir, 'keys', 'signing.json'), JSON.stringify(setting.server))
    const clock = createVirtualClock()
    const server = new SyncServer({ dir, clock, random: seededRandom(9) })
    await server.open()
    await server.createJoinToken(2)
    stops.push(() => server.kill())
    const { signing, recipient } = setting.agent
    await server.store.join({
      tokenHash: joinTokenHash(parseJoinToken(setting.joinToken)?.secret ?? ''),
      clusterName: 'ship',
      publicKey: signing.publicKey,
      recipient: recipient.publicKey,
      clusterUid: 'uid',
      nowMs: clock.nowMs(),
      clusterId: clusterIdSchema.parse(setting.clusterId),
      agentId: agentIdSchema.parse(setting.agentId),
    })
    await server.agents.refresh()
    const send = async (method: string, path: string, headers: Record<string, string>, body: Uint8Array) => {
      const init = { method, headers, ...(method === 'GET' ? {} : { body: body as Uint8Array<ArrayBuffer> }) }
      const response = await server.handle(new Request(`http://localhost${path}`, init))
      if (response === null) throw new Error('down')
      return { status: response.status, body: Buffer.from(await response.arrayBuffer()).toString() }
    }
    const openSession = async (name: string) => {
      const { headers, body, path } = corpus.get(name).request
      const { agentId, incarnation } = jsonOf({ body }) as { agentId: string; incarnation: number | null }
      const { nonce } = JSON.parse((await send('POST', path, headers, Buffer.from(JSON.stringify({ agentId, incarnation })))).body)
      const signature = signBytes(signing.privateKey, sessionProofBytes(agentId, incarnation, nonce))
      return send('POST', path, headers, Buffer.from(JSON.stringify({ ...jsonOf({ body }), nonce, signature })))
    }
    return { server, send, openSession }
  }

  /** Every member of the old answer is in the new one, of the same type: what an old agent reads is there. */
  const expectReadable = (old: Record<string, unknown>, today: string) => {
    const found = JSON.parse(today) as Record<string, unknown>
    for (const [key, value] of Object.entries(old)) expect([key, typeof found[key]]).toEqual([key, typeof value])
  }

  test.each(corpus.names)('PL11 %s is understood as it was', async (name) => {
    const { send, openSession } = await serverOfToday()
    const { request, answer } = corpus.get(name)
    const session = await openSession('session')
    expect(session.status).toBe(200)
    const { token } = JSON.parse(session.body)
    if (name === 'session') return expectReadable(jsonOf(answer), session.body)
    const headers = { ...request.headers, ...(request.headers['authorization'] === undefined ? {} : { authorization: `Bearer ${token}` }) }
    const today = await send(request.method, request.path, headers, Buffer.from(request.body, 'base64'))
    // Cursors, transfers and states of the recorded server are unknown here; that they are understood is what counts.
    const alsoFine = request.method === 'GET' || request.path.startsWith(ROUTES.buckets) ? [200, 204, 409, 410] : []
    // RP2: the recorded proof is this server's own word, and says more than this one knows.
    if (jsonOrNull(request.body)?.['proof'] !== undefined) alsoFine.push(503)
    expect([answer.status, ...alsoFine]).toContain(today.status)
    if (today.status === answer.status && (answer.headers['content-type'] ?? '').includes('json;'))
      expectReadable(jsonOf(answer), today.body)
    if (name === 'push-refused') expect(JSON.parse(today.body).reject).toEqual(jsonOf(answer)['reject'] as never)
    if (name === 'join') expect(JSON.parse(today.body)).toMatchObject({ clusterId: setting.clusterId, agentId: setting.agentId })
  })

  test('PL11 members, status kinds and headers of a newer agent do no harm', async () => {
    const { send, openSession, server } = await serverOfToday()
    const { token } = JSON.parse((await openSession('session')).body)
    const headers = { authorization: `Bearer ${token}`, 'skerry-tomorrow': '1' }
    const push = jsonOf(corpus.get('push').request) as { rows: Array<Record<string, unknown>> }
    const extra = { kind: 'forecast', key: 'k', rev: Number(push.rows[0]?.['rev']) + 50, doc: { sun: 1 } }
    const rows = [...push.rows.map((row) => ({ ...row, tomorrow: 1 })), extra]
    const taken = await send('POST', ROUTES.status, headers, Buffer.from(JSON.stringify({ ...push, rows, tomorrow: { a: 1 } })))
    expect([taken.status, JSON.parse(taken.body).reject]).toEqual([200, [{ key: 'k', code: 'unknown_kind' }]])
    expect(await server.store.listStatus({ clusterId: clusterIdSchema.parse(setting.clusterId), kind: 'service' })).toHaveLength(1)
    const poll = await send('GET', `${ROUTES.desired}?wait=0&tomorrow=1`, headers, Buffer.alloc(0))
    expect(poll.status).toBe(200)
    const join = { ...jsonOf(corpus.get('join').request), protocol: { min: 1, max: 3, best: 2 }, tomorrow: 1 }
    expect((await send('POST', ROUTES.join, {}, Buffer.from(JSON.stringify(join)))).status).toBe(200)
  })
})
