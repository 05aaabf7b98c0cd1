// A server that lies to its agents: a real HTTP server that stands before a true one, holds its keys, and answers some
// requests with what it likes better. Lies are data. Without a lie it passes on everything as it is.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { type Checkpoint, checkpointBytes, checkpointSchema, type Hello, helloSchema } from '../../shared/protocol/frames.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { TRANSFER_HEADER } from '../../shared/protocol/transfer.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'

/** One request of an agent. */
export interface Asked {
  path: string
  query: URLSearchParams
  body: string
  /** The true server's answer; `plain`: neither compressed nor in parts, if it can be. */
  truth(options?: { plain?: boolean }): Promise<Response>
  /** The true page with some of it changed, signed by the server's own key again; another answer than a page is left as
   *  it is. */
  bent(change: (page: PageText) => Partial<PageText>, sign?: (bytes: Uint8Array) => string): Promise<Response>
}

interface PageText {
  hello: Hello
  lines: string[]
  checkpoint: Checkpoint
}

export interface Lie {
  name: string
  /** It holds an agent for minutes (a bad link is borne, a Retry-After kept to): one that is started again asks at
   *  once. */
  restart?: boolean
  /** Null means that this one is answered with the truth. */
  tell(asked: Asked): Promise<Response | null> | Response | null
}

export interface LyingServer {
  readonly url: string
  tell(lie: Lie | null): void
  /** Requests that were answered with a lie, since it is told. */
  told(): number
  /** Requests since the lie is told. */
  asked(): number
  stop(): Promise<void>
}

const PASSED_ON = ['authorization', 'content-encoding', 'content-type', 'skerry-protocol']

export function startLyingServer(options: { trueUrl: string; dataDir: string; clusterId: () => string }): LyingServer {
  const { trueUrl, dataDir, clusterId } = options
  const keys = loadServerKeys(join(dataDir, 'keys'))
  let lie: Lie | null = null
  let [told, asked] = [0, 0]
  /** A poll that already waits at the true server would still hear the truth. */
  let honest = new AbortController()
  const forward = async (request: Request, body: ArrayBuffer, plain: boolean): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    const headers = new Headers(PASSED_ON.flatMap((name) => (request.headers.has(name) ? [[name, request.headers.get(name) ?? '']] : [])))
    headers.set('accept-encoding', plain ? 'identity' : (request.headers.get('accept-encoding') ?? 'identity'))
    const answer = await fetch(trueUrl + pathname + search, {
      method: request.method,
      headers,
      ...(request.method === 'GET' ? {} : { body }),
      decompress: false,
      signal: AbortSignal.any([request.signal, honest.signal]),
      timeout: false,
    } as BunFetchRequestInit)
    return answer
  }
  const bent = async (answer: Response, change: (page: PageText) => Partial<PageText>, sign: (bytes: Uint8Array) => string) => {
    const page = answer.status === 200 ? parsePage(await answer.text()) : null
    if (page === null) return answer
    const wanted = change(page)
    const [hello, lines] = [wanted.hello ?? page.hello, wanted.lines ?? page.lines]
    const text = lines.map((line) => `${line}\n`).join('')
    const rows = createHash('sha256').update(text).digest('hex')
    const covered = { ...page.checkpoint, rows, ...wanted.checkpoint }
    const signature = sign(checkpointBytes(clusterId(), hello, covered))
    return new Response(`${JSON.stringify(hello)}\n${text}${JSON.stringify({ ...covered, signature })}\n`)
  }
  const http = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const body = await request.arrayBuffer()
      asked++
      const current = lie
      const answer = await current?.tell({
        path: pathname,
        query: searchParams,
        body: Buffer.from(body).toString('latin1'),
        truth: ({ plain = false } = {}) => forward(request, body, plain),
        bent: async (change, sign = keys.sign) => bent(await forward(request, body, true), change, sign),
      })
      if (answer) {
        told++
        return answer
      }
      const { status, headers, body: stream } = await forward(request, body, false)
      return new Response(stream, { status, headers })
    },
    error: () => new Response('gone', { status: 502 }),
  })
  return {
    url: `http://127.0.0.1:${http.port}`,
    tell: (next) => {
      lie = next
      honest.abort()
      honest = new AbortController()
      told = 0
      asked = 0
    },
    told: () => told,
    asked: () => asked,
    stop: () => http.stop(true),
  }
}

function parsePage(text: string): PageText | null {
  const [first = '', ...rest] = text.split('\n').slice(0, -1)
  const last = rest.pop()
  if (last === undefined) return null
  return { hello: helloSchema.parse(JSON.parse(first)), lines: rest, checkpoint: checkpointSchema.parse(JSON.parse(last)) }
}

const isPull = ({ path, query }: Asked): boolean => (path === ROUTES.desired && !query.has('transfer')) || path === ROUTES.buckets
const pulls = (tell: (asked: Asked) => Promise<Response> | Response) => (asked: Asked) => (isPull(asked) ? tell(asked) : null)
const at = (route: string, tell: (asked: Asked) => Promise<Response | null> | Response | null) => (asked: Asked) =>
  asked.path === route ? tell(asked) : null
const OTHER_SERVER = generateKey('ed25519')
const MAX = Number.MAX_SAFE_INTEGER

/** Ends every session, and bends the answer to the proof. */
const session = (change: (answer: Record<string, unknown>) => Record<string, unknown>) => async (asked: Asked) => {
  if (isPull(asked)) return problem(401, 'session_required', { nonce: 'A'.repeat(43) })
  if (asked.path !== ROUTES.session || !asked.body.includes('"signature"')) return null
  const answer = await asked.truth()
  return answer.ok ? Response.json(change((await answer.json()) as Record<string, unknown>)) : answer
}

/** Without end, until whoever reads it has enough. */
function endless(chunk: () => Uint8Array, everyMs = 1): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(everyMs)
      controller.enqueue(chunk())
    },
  })
}

const row = (id: string, doc = '{}', colVersion: number | string = 1, cl: number | string = 1) => `${id}\t${colVersion}\t${cl}\t${doc}`
const withMore =
  (...lines: string[]) =>
  (page: PageText) => ({ lines: [...page.lines, ...lines] })

/** Of pages that are signed by the true key: only what they say is wrong. */
const BENT: Record<string, (page: PageText) => Partial<PageText>> = {
  'a wrong hash': ({ hello }) => ({ hello: { ...hello, to: { ...hello.to, hash: 'ab'.repeat(16) } } }),
  'a wrong count': ({ checkpoint }) => ({ checkpoint: { ...checkpoint, count: checkpoint.count + 1 } }),
  'a schema of the future': ({ hello }) => ({ hello: { ...hello, schema: 2 } }),
  'versions without bound': ({ lines }) => ({ lines: lines.map((line) => line.replace(/\t\d+\t/, `\t${MAX}\t`)) }),
  'versions past the bound': ({ lines }) => ({ lines: lines.map((line) => line.replace(/\t\d+\t/, '\t9007199254740993\t')) }),
  'a causal length that does not fit': ({ lines }) => ({ lines: lines.map((line) => line.replace(/^([^\t]*\t\d+)\t\d+/, '$1\t2')) }),
  'a row that nobody counted': withMore(row('service/default/all-evil', '{"remove":{"policy":"prune"}}')),
  'an id with a NUL': withMore(row('service/default/a\0b')),
  'an endless id': withMore(row('x'.repeat(2_000_000))),
  'a document that is no JSON': withMore(row('service/default/all-small', '{{{')),
  'prototype keys': withMore(row('__proto__', '{"__proto__":{"polluted":1}}')),
  'half of its rows': ({ lines }) => ({ lines: lines.slice(0, lines.length / 2) }),
  'every row twice': ({ lines }) => ({ lines: [...lines, ...lines] }),
  'a start that is not ours': ({ hello }) => ({ hello: { ...hello, from: { ...hello.to, dv: 1, hash: '1'.repeat(32) } } }),
  'buckets that nobody asked for': ({ hello }) => ({ hello: { ...hello, from: null, keep: '1'.repeat(256) } }),
}

const frame = zstdCompressSync(Buffer.alloc(16 * 1024 * 1024, 0x61))
/** A few hundred kilobytes that are 4 GiB. */
const BOMB = Buffer.concat(Array.from({ length: 256 }, () => frame))
const transfer = (text: string) => pulls(() => new Response('part', { headers: { [TRANSFER_HEADER]: text } }))
const ID = 'A'.repeat(22)

/** All but an epoch, an ordinal or a version that is ahead of the server's: with the true signature they are its own
 *  word that it was set back (RP2). */
export const LIES: readonly Lie[] = [
  ...Object.entries(BENT).map(([name, change]) => ({ name: `a page with ${name}`, tell: pulls((asked) => asked.bent(change)) })),
  {
    name: 'a page signed by another key',
    tell: pulls((asked) =>
      asked.bent(
        () => ({}),
        (bytes) => signBytes(OTHER_SERVER.privateKey, bytes),
      ),
    ),
  },
  {
    name: 'a page signed for another cluster',
    tell: pulls((asked) =>
      asked.bent(
        () => ({}),
        () => 'A'.repeat(86),
      ),
    ),
  },
  {
    name: 'a page of rows without end',
    tell: pulls(() => new Response(endless(() => Buffer.from(`${row('x'.repeat(500))}\n`.repeat(200))))),
  },
  { name: 'a page of one line without end', tell: pulls(() => new Response(endless(() => Buffer.alloc(65_536, 0x61)))) },
  { name: 'a page that drips', restart: true, tell: pulls(() => new Response(endless(() => Buffer.from('{'), 300))) },
  { name: 'a page that is a bomb', tell: pulls(() => new Response(BOMB, { headers: { 'content-encoding': 'zstd' } })) },
  { name: 'a page that is cut', tell: pulls(async (asked) => new Response((await (await asked.truth()).bytes()).slice(0, 40))) },
  {
    name: 'a page in another encoding than it says',
    tell: pulls(() => new Response('no gzip', { headers: { 'content-encoding': 'gzip' } })),
  },
  {
    name: 'a page in an encoding that nobody knows',
    tell: pulls(() => new Response('?', { headers: { 'content-encoding': 'br, zstd, x' } })),
  },
  { name: 'an empty page', tell: pulls(() => new Response('')) },
  { name: 'a log-in page', tell: () => new Response('<html><p>Please log in</p></html>', { headers: { 'content-type': 'text/html' } }) },
  { name: 'a way to somewhere else', tell: () => new Response(null, { status: 307, headers: { location: 'http://127.0.0.1:1/' } }) },
  { name: 'headers that are too large', tell: () => new Response('', { headers: { 'x-large': 'y'.repeat(1_000_000) } }) },
  {
    name: 'thousands of headers',
    tell: () => new Response('', { headers: Array.from({ length: 5_000 }, (_, n) => [`x-${n}`, 'y']) as [string, string][] }),
  },
  { name: 'nothing new, at once, for ever', tell: pulls(() => new Response(null, { status: 204 })) },
  { name: 'refetch, for ever', tell: pulls(() => problem(409, 'must_refetch', { reason: 'diverged' })) },
  { name: 'come back in a thousand years', restart: true, tell: pulls(() => problem(503, 'unavailable', { retryAfterMs: 3e13 })) },
  { name: 'an error that is none', tell: () => new Response('['.repeat(60_000), { status: 500 }) },
  {
    name: 'an error without end',
    tell: () =>
      new Response(
        endless(() => Buffer.alloc(65_536, 0x61)),
        { status: 503 },
      ),
  },
  { name: 'no session, for ever', tell: () => problem(401, 'session_required', { nonce: 'A'.repeat(43) }) },
  {
    name: 'a session that is not signed',
    tell: session((answer) => ({ ...answer, signature: 'A'.repeat(86) })),
  },
  { name: 'a session of an incarnation far ahead', tell: session((answer) => ({ ...answer, incarnation: 2_000_000 })) },
  { name: 'a session of another cluster', tell: session((answer) => ({ ...answer, clusterId: `c-${'0'.repeat(16)}` })) },
  { name: 'a session with a token that is none', tell: session((answer) => ({ ...answer, token: 'x\r\ny: z' })) },
  { name: 'that it was revoked', tell: () => problem(403, 'revoked', {}) },
  { name: 'a transfer of a million parts', tell: transfer(`${ID}.999999.262144000000`) },
  { name: 'a transfer without a size', tell: transfer(`${ID}.2.0`) },
  { name: 'a transfer that is no transfer', tell: transfer('../../etc/passwd') },
  { name: 'a transfer larger than a page may be', tell: transfer(`${ID}.900.${300 * 1024 * 1024}`) },
  {
    name: 'a transfer whose parts are not what they should be',
    tell: (asked) =>
      asked.query.has('transfer')
        ? new Response('x'.repeat(7))
        : isPull(asked)
          ? new Response('x'.repeat(100), { headers: { [TRANSFER_HEADER]: `${ID}.3.300` } })
          : null,
  },
  {
    name: 'a transfer of rubbish',
    tell: (asked) =>
      asked.query.has('transfer') || isPull(asked)
        ? new Response('x'.repeat(100), { headers: { [TRANSFER_HEADER]: `${ID}.3.300` } })
        : null,
  },
  { name: 'an ack of nothing', tell: at(ROUTES.status, () => Response.json({ ack: 0, reject: [] })) },
  {
    name: 'a refusal of every row',
    tell: at(ROUTES.status, () => Response.json({ ack: 0, reject: [{ key: '__proto__', code: 'x'.repeat(50_000) }] })),
  },
  { name: 'an ack that is no number', tell: at(ROUTES.status, () => new Response('{"ack":1e999,"reject":[]}')) },
]

const problem = (status: number, code: string, extra: Record<string, unknown>): Response =>
  Response.json({ type: 'x', title: 'x', status, code, ...extra }, { status })
