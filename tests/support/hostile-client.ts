// An agent that speaks garbage: raw bytes over TCP, and what a key that the server knows can send. Attacks are data, so
// that a test runs each in turn and watches what becomes of the server and of everybody else meanwhile.
import { randomBytes } from 'node:crypto'
import { zstdCompressSync } from 'node:zlib'
import type { Socket } from 'bun'
import { type AgentKeys, loadAgentKeys } from '../../agent/link/agent-keys.ts'
import { joinRequest } from '../../agent/link/join.ts'
import { type JoinAnswer, joinAnswerSchema, parseJoinToken } from '../../shared/protocol/join.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionProofBytes } from '../../shared/protocol/session.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { tempDir } from './temp-dir.ts'

export interface HostileAgent {
  url: string
  port: number
  keys: AgentKeys
  joined: JoinAnswer
  /** Of a valid session. */
  token: string
}

const post = (url: string, path: string, body: unknown) =>
  fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

/** Joins as any agent does, and has a session. */
export async function joinHostile(url: string, joinToken: string, name: string): Promise<HostileAgent> {
  const keys = loadAgentKeys(tempDir())
  const secret = parseJoinToken(joinToken)?.secret ?? ''
  const request = joinRequest(keys, { joinToken: null, clusterName: name, clusterUid: 'uid', agentVersion: 'hostile' }, secret)
  const joined = joinAnswerSchema.parse(await (await post(url, ROUTES.join, request)).json())
  const { agentId, incarnation } = joined
  const { nonce } = (await (await post(url, ROUTES.session, { agentId, incarnation })).json()) as { nonce: string }
  const signature = signBytes(keys.signing.privateKey, sessionProofBytes(agentId, incarnation, nonce))
  const session = await (await post(url, ROUTES.session, { agentId, incarnation, nonce, signature })).json()
  return { url, port: Number(new URL(url).port), keys, joined, token: (session as { token: string }).token }
}

export interface RawConnection {
  send(bytes: Uint8Array | string): void
  /** So far. */
  answer(): string
  closed: Promise<void>
  end(): void
}

/** `reads: false`: takes nothing from the socket. */
export async function connectRaw(port: number, { reads = true }: { reads?: boolean } = {}): Promise<RawConnection> {
  let answer = ''
  let close = () => {}
  let waiting: Uint8Array[] = []
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })
  const flush = (socket: Socket<undefined>) => {
    for (let chunk = waiting[0]; chunk !== undefined; chunk = waiting[0]) {
      const written = Math.max(0, socket.write(chunk))
      if (written < chunk.length) {
        waiting[0] = chunk.subarray(written)
        return
      }
      waiting.shift()
    }
  }
  const socket = await Bun.connect<undefined>({
    hostname: '127.0.0.1',
    port,
    socket: {
      data: (_, chunk) => {
        if (answer.length < 100_000) answer += chunk.toString('latin1')
      },
      drain: flush,
      close: () => {
        waiting = []
        close()
      },
      error: () => close(),
    },
  })
  if (!reads) socket.pause()
  return {
    send: (bytes) => {
      waiting.push(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
      flush(socket)
    },
    answer: () => answer,
    closed,
    end: () => socket.terminate(),
  }
}

export interface Attack {
  name: string
  /** For about as long as told; whatever it opened it closes. */
  run(agent: HostileAgent, forMs: number): Promise<void>
}

const ALL_PATHS = [...Object.values(ROUTES), '/webhooks/v1/default/apps', '/api/v1/clusters', '/healthz', '/', '/agent/v1/../../etc']
const head = (method: string, path: string, headers: Record<string, string | number> = {}) =>
  `${method} ${path} HTTP/1.1\r\n${Object.entries({ host: 'x', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
const auth = (agent: HostileAgent) => ({ authorization: `Bearer ${agent.token}` })

async function until(forMs: number, act: () => Promise<unknown>): Promise<void> {
  const endMs = performance.now() + forMs
  while (performance.now() < endMs) await act()
}

/** Each on a connection of its own, that is closed at the end. */
async function spray(agent: HostileAgent, forMs: number, texts: readonly (string | Uint8Array)[]): Promise<void> {
  await until(forMs, async () => {
    const opened = await Promise.all(texts.map(() => connectRaw(agent.port)))
    for (const [index, connection] of opened.entries()) connection.send(texts[index] ?? '')
    await Bun.sleep(100)
    for (const connection of opened) connection.end()
  })
}

const GARBAGE: readonly (string | Uint8Array)[] = [
  randomBytes(4_096),
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', // a TLS hello
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET\r\n\r\n',
  'GET / HTTP/9.9\r\n\r\n',
  'GET / HTTP/1.1\r\n\r\n',
  'G\0T / HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET /agent/v1/desired HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \x00\xff\x01\r\n\r\n',
  'GET /%00%ff%c0%af HTTP/1.1\r\nhost: x\r\n\r\n',
  'GET http://[::1%25]:99999/agent/v1/desired HTTP/1.1\r\nhost: [\r\n\r\n',
  'GET /agent/v1/desired?cursor=%E0%A4%A&wait=-1 HTTP/1.1\r\nhost: x\r\n\r\n',
  `GET /${'a'.repeat(200_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  `GET / HTTP/1.1\r\nhost: x\r\n${'x: y\r\n'.repeat(5_000)}\r\n`,
  `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(2_000_000)}\r\n\r\n`,
  head('POST', ROUTES.join, { 'content-length': -1 }),
  head('POST', ROUTES.join, { 'content-length': '99999999999999999999' }),
  head('POST', ROUTES.join, { 'content-length': '5, 6' }),
  `${head('POST', ROUTES.join, { 'content-length': 5, 'transfer-encoding': 'chunked' })}ffffffffffffffff\r\nabc`,
  `${head('POST', ROUTES.join, { 'transfer-encoding': 'chunked' })}zz\r\n\r\n`,
  `${head('POST', ROUTES.status, { 'transfer-encoding': 'chunked' })}7fffffff\r\n${'x'.repeat(100_000)}`,
  `${head('POST', ROUTES.join, { 'content-length': 4, expect: '100-continue' })}null`,
]

/** JSON texts that look at the edges of whoever parses them. */
const DOCUMENTS: Record<string, string> = {
  nothing: '',
  null: 'null',
  number: '1e999',
  text: '"x"',
  list: '[]',
  'deep lists': '['.repeat(200_000),
  'deep lists, closed': '['.repeat(30_000) + ']'.repeat(30_000),
  'deep objects': `${'{"a":'.repeat(30_000)}1${'}'.repeat(30_000)}`,
  'prototype keys': '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"rows":[],"incarnation":1}',
  'prototype rows':
    '{"incarnation":1,"rows":[{"kind":"__proto__","key":"toString","rev":4294967297,"doc":{}},{"kind":"constructor","key":"x","rev":4294967298,"doc":{}}]}',
  'half of a surrogate': '{"token":"\\ud800","cluster":"\\udfff"}',
  'bytes that are no text': '{"token":"\xff\xfe"}',
  'endless number': `{"incarnation":${'9'.repeat(10_000)},"rows":[]}`,
  fractions: '{"incarnation":1.5,"rows":[{"kind":"object","key":"a","rev":1e308,"doc":null}]}',
  'wrong types': '{"token":[],"cluster":{},"publicKey":1,"agentId":true,"incarnation":"1","rows":"x","proof":{}}',
}
const millionKeys = () => `{${Array.from({ length: 1_000_000 }, (_, n) => `"k${n}":0`).join(',')}}`
/** A few kilobytes that are `megabytes` when inflated; zstd takes frames one after the other. */
const bomb = (megabytes: number): Uint8Array => {
  const frame = zstdCompressSync(Buffer.alloc(16 * 1024 * 1024, 0x20))
  return Buffer.concat(Array.from({ length: Math.ceil(megabytes / 16) }, () => frame))
}
const BODY_PATHS = [ROUTES.join, ROUTES.session, ROUTES.status, ROUTES.buckets, '/webhooks/v1/default/apps', '/api/v1/apply']

async function ask(agent: HostileAgent, path: string, body: Uint8Array | string, headers: Record<string, string> = {}): Promise<void> {
  const answer = await fetch(agent.url + path, {
    method: 'POST',
    headers: { ...auth(agent), 'content-type': 'application/json', ...headers },
    body: body as Uint8Array<ArrayBuffer>,
    signal: AbortSignal.timeout(20_000),
    keepalive: false,
  }).catch(() => null)
  await answer?.bytes().catch(() => {})
}

const row = (agent: HostileAgent, n: number, over: Record<string, unknown> = {}) => ({
  kind: 'object',
  key: `default/all-small//ConfigMap/chaos/o${n}`,
  rev: agent.joined.incarnation * REV_INCARNATION + n + 1,
  doc: { sync: 'Synced', health: 'Healthy', reason: 'Hostile', message: 'x'.repeat(400), sinceMs: 1 },
  ...over,
})
const push = (agent: HostileAgent, rows: unknown[], complete?: unknown) =>
  ask(agent, ROUTES.status, zstdCompressSync(JSON.stringify({ incarnation: agent.joined.incarnation, rows, complete })), {
    'content-encoding': 'zstd',
  })

/** Opens `count` connections, each begun by `begin`, keeps them for the time, and closes them. */
async function crowd(
  agent: HostileAgent,
  count: number,
  forMs: number,
  begin: (connection: RawConnection, n: number) => void,
): Promise<void> {
  const opened: RawConnection[] = []
  for (let left = count; left > 0; left -= 100)
    opened.push(...(await Promise.all(Array.from({ length: Math.min(left, 100) }, () => connectRaw(agent.port)))))
  for (const [n, connection] of opened.entries()) begin(connection, n)
  await Bun.sleep(forMs)
  for (const connection of opened) connection.end()
}

function drip(connection: RawConnection, start: string): void {
  connection.send(start)
  const timer = setInterval(() => connection.send('x'), 200)
  void connection.closed.then(() => clearInterval(timer))
}

export const ATTACKS: readonly Attack[] = [
  { name: 'raw bytes', run: (agent, forMs) => spray(agent, forMs, GARBAGE) },
  {
    name: 'every method at every path',
    run: (agent, forMs) =>
      spray(
        agent,
        forMs,
        ALL_PATHS.flatMap((path) => ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'].map((method) => head(method, path))),
      ),
  },
  {
    name: 'odd documents at every endpoint',
    run: (agent, forMs) =>
      until(forMs, () =>
        Promise.all(BODY_PATHS.flatMap((path) => Object.values(DOCUMENTS).map((text) => ask(agent, path, Buffer.from(text, 'latin1'))))),
      ),
  },
  {
    name: 'a million keys',
    run: async (agent, forMs) => {
      const plain = millionKeys()
      const packed = zstdCompressSync(plain)
      await until(forMs, () =>
        Promise.all(BODY_PATHS.flatMap((path) => [ask(agent, path, plain), ask(agent, path, packed, { 'content-encoding': 'zstd' })])),
      )
    },
  },
  {
    name: 'compressed bombs',
    run: async (agent, forMs) => {
      const bytes = bomb(1_024)
      await until(forMs, () => Promise.all(BODY_PATHS.map((path) => ask(agent, path, bytes, { 'content-encoding': 'zstd' }))))
    },
  },
  {
    name: 'bodies that are too large',
    run: async (agent, forMs) => {
      const bytes = Buffer.alloc(15 * 1024 * 1024, 0x20)
      await until(forMs, () => Promise.all(BODY_PATHS.map((path) => ask(agent, path, bytes))))
    },
  },
  {
    name: 'bodies that never come',
    run: (agent, forMs) =>
      crowd(agent, 500, forMs, (connection, n) =>
        connection.send(head('POST', BODY_PATHS[n % BODY_PATHS.length] ?? '/', { ...auth(agent), 'content-length': 3_000_000 })),
      ),
  },
  { name: 'connections that say nothing', run: (agent, forMs) => crowd(agent, 3_000, forMs, () => {}) },
  {
    name: 'slow senders of headers',
    run: (agent, forMs) => crowd(agent, 300, forMs, (connection) => drip(connection, `GET ${ROUTES.desired} HTTP/1.1\r\nx: `)),
  },
  {
    name: 'slow senders of bodies',
    run: (agent, forMs) =>
      crowd(agent, 300, forMs, (connection) =>
        drip(connection, `${head('POST', ROUTES.status, { ...auth(agent), 'content-length': 1_000_000 })}{"rows":"`),
      ),
  },
  {
    name: 'readers that do not read',
    run: async (agent, forMs) => {
      const opened: RawConnection[] = []
      await until(forMs, async () => {
        const connection = await connectRaw(agent.port, { reads: false })
        opened.push(connection)
        connection.send(head('GET', ROUTES.desired, auth(agent)))
        await Bun.sleep(4) // else the next one would end it
      })
      for (const connection of opened) connection.end()
    },
  },
  {
    // With sums of its own each time, so that no page is like the last one.
    name: 'refetches of pages that it never fetches',
    run: (agent, forMs) =>
      until(forMs, () => {
        const sums = [0, 16, 256, 4_096].map((size) => Buffer.concat([Buffer.from('{}\n'), randomBytes(size)]))
        return Promise.all(sums.map((body) => ask(agent, ROUTES.buckets, body)))
      }),
  },
  {
    // Bun cuts a connection that sends the next request before the answer to the last.
    name: 'hundreds of requests in one go',
    run: (agent, forMs) =>
      crowd(agent, 20, forMs, (connection) =>
        connection.send(head('GET', `${ROUTES.desired}?wait=0`, { authorization: 'Bearer x' }).repeat(200)),
      ),
  },
  {
    name: 'thousands of polls by one agent',
    run: (agent, forMs) => {
      const zero = '0'.repeat(32)
      return crowd(agent, 2_000, forMs, (connection) =>
        connection.send(head('GET', `${ROUTES.desired}?cursor=${zero}.1.0.${zero}&wait=900`, auth(agent))),
      )
    },
  },
  {
    name: 'pushes of everything that is not ours',
    run: (agent, forMs) =>
      until(forMs, () =>
        push(agent, [
          ...['__proto__', 'desired', 'agent', '', 'x'.repeat(32)].map((kind) => row(agent, 1, { kind })),
          row(agent, 2, { rev: 2 ** 53 - 1 }),
          row(agent, 3, { rev: 1 }),
          row(agent, 4, { rev: Number.MAX_VALUE }),
          row(agent, 5, { key: '../../etc/passwd\0' }),
          row(agent, 6, { key: 'k'.repeat(1_024) }),
          row(agent, 7, { doc: { ...row(agent, 0).doc, message: 'x'.repeat(100_000) } }),
          row(agent, 8, { doc: JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) }),
          row(agent, 9, { kind: 'service', key: 'default/only-ada', doc: { sync: 'Synced' } }),
          row(agent, 10, { kind: 'event', key: 'x', doc: { atMs: -1, message: 1 } }),
        ]),
      ),
  },
  {
    name: 'pushes as large as they may be',
    run: (agent, forMs) => {
      let n = 1_000
      return until(forMs, () =>
        push(
          agent,
          Array.from({ length: 5_000 }, () => row(agent, n++ % 20_000)),
          n % 2 === 0,
        ),
      )
    },
  },
  {
    name: 'bodies that stop short of their end',
    run: (agent, forMs) => {
      const most = Buffer.alloc(3_900_000, 0x20)
      return crowd(agent, 100, forMs, (connection) => {
        connection.send(head('POST', ROUTES.status, { ...auth(agent), 'content-length': 4_000_000 }))
        connection.send(most)
      })
    },
  },
  {
    name: 'large pushes all at once',
    run: async (agent, forMs) => {
      const rows = Array.from({ length: 5_000 }, (_, n) => row(agent, 50_000 + n))
      await until(forMs, () => Promise.all(Array.from({ length: 40 }, () => push(agent, rows))))
    },
  },
]
