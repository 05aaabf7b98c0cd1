// The floor under the fan-out: a bare Bun.serve that holds every poll and answers all of them with one page made
// beforehand. A line on its input lets it begin; it answers with the time. Whatever Skerry's server needs above this is
// its own doing.
import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { Position } from '../../shared/crdt/position.ts'
import { checkpointBytes, type Hello, rowLine } from '../../shared/protocol/frames.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { zstd } from '../../shared/runtime/zstd.ts'
import { machineMs } from './polling-agent.ts'

export interface BareServerHead {
  url: string
  clusterId: string
  serverKeys: string[]
}

const clusterId = 'c-0000000000000001'
const key = generateKey('ed25519')
const ID = '0123456789abcdef0123456789abcdef'
const position = (dv: number): Position => ({ dbId: ID, term: 1, dv, hash: ID })
/** About as large as what the fan-out's commit changes: a service's row and one object. */
const DOC = JSON.stringify({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c0', labels: { app: 'x'.repeat(300) } },
  data: { value: 'commit 1' },
})

function page(from: Position | null, to: Position): Uint8Array {
  const rows = ['service/default/app', 'object/default/app//ConfigMap/app/c0'].map((id) => rowLine({ id, doc: DOC, colVersion: 1, cl: 1 }))
  const hello: Hello = { t: 'hello', epoch: 1, schema: 1, ordinal: to.dv, from, to, siteId: ID }
  const covered = { count: 2, rows: createHash('sha256').update(rows.join('')).digest('hex') }
  const signature = signBytes(key.privateKey, checkpointBytes(clusterId, hello, covered))
  return zstd(Buffer.from(`${JSON.stringify(hello)}\n${rows.join('')}${JSON.stringify({ t: 'checkpoint', ...covered, signature })}\n`))
}

const [first, second] = [page(null, position(1)), page(position(1), position(2))]
let answerAll = () => {}
const news = new Promise<void>((resolve) => {
  answerAll = resolve
})
let told = false
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const body = (bytes: Uint8Array) => new Response(bytes as Uint8Array<ArrayBuffer>)
    if (!request.url.includes('cursor=')) return body(first)
    if (told) return new Promise<Response>(() => {}) // the poll after the news waits for ever
    await news
    return body(second)
  },
})

const head: BareServerHead = { url: `http://127.0.0.1:${server.port}`, clusterId, serverKeys: [key.publicKey] }
process.stdout.write(`${JSON.stringify(head)}\n`)
for await (const _ of createInterface({ input: process.stdin })) {
  process.stdout.write(`${machineMs()}\n`)
  told = true
  answerAll()
}
process.exit(0)
