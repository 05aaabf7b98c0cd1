// The cost of coming back: bytes at the socket, in both directions with all headers, counted by a TCP proxy between the
// server's process and the agent's real loop. Counting goes on until the line is quiet again, so that the poll that
// waits afterwards is included.
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startTcpProxy, type TcpProxy } from '../../tests/support/tcp-proxy.ts'
import { type CorpusServer, startCorpusServer, until } from './corpus-server.ts'
import { percentile, rounded } from './figures.ts'
import { dropReplica, type SiteAgent, startSiteAgent } from './site-agent.ts'
import { startTlsFront } from './tls-front.ts'

const OBJECTS = Number(process.env['SKERRY_BENCH_OBJECTS'] ?? 20_000)
const BOOTSTRAPS = 3
const QUIET_MS = 600

type Say = (text: string) => void

export async function benchBytes(say: Say): Promise<Record<string, number>> {
  const startMs = performance.now()
  const server = await startCorpusServer(OBJECTS)
  const port = Number(new URL(server.fleet.serverUrl).port)
  const proxy = startTcpProxy(port)
  const dir = join(server.dir, 'agent')
  try {
    const agent = startSiteAgent({ dir, serverUrl: proxy.url, joinToken: server.joinToken, name: 'site' })
    await until(() => agent.replica()?.rowCount() === server.rows, 'the corpus to arrive', 300_000)
    say(`${server.rows} rows published and received after ${rounded((performance.now() - startMs) / 1_000)} s`)
    const figures: Record<string, number> = {}
    for (const count of [0, 1, 100])
      figures[`reconnect_${count}_bytes`] = await reconnect(agent, proxy, () => (count === 0 ? Promise.resolve() : server.change(count)))
    figures['rebase_equal_bytes'] = await rebase(agent, proxy, server)
    await agent.stop()
    say(JSON.stringify(figures))
    Object.assign(figures, await bootstraps({ say, server, proxy, dir }))
    figures['reconnect_0_tls_bytes'] = await overTls(server, port, dir)
    return figures
  } finally {
    proxy.stop()
    await server.stop()
  }
}

/** A new TCP connection with the session that the agent holds. */
async function reconnect(agent: SiteAgent, proxy: TcpProxy, meanwhile: () => Promise<void>): Promise<number> {
  await until(agent.following, 'the agent to follow')
  await quiet(proxy)
  proxy.setRules({ refuse: true })
  proxy.cutAll()
  await until(() => !agent.following(), 'the agent to notice')
  await meanwhile()
  proxy.resetCounts()
  proxy.setRules({})
  await until(agent.following, 'the agent to follow again')
  return quiet(proxy)
}

/** The server's shard files are lost and rebuilt from the fleet store: another dbId, the same rows. */
async function rebase(agent: SiteAgent, proxy: TcpProxy, server: CorpusServer): Promise<number> {
  const before = agent.replica()?.position()?.dbId
  await quiet(proxy)
  await server.fleet.killServer()
  rmSync(join(server.fleet.dataDir, 'shards'), { recursive: true, force: true })
  proxy.resetCounts()
  await server.fleet.startServer()
  await until(() => agent.following() && agent.replica()?.position()?.dbId !== before, 'the agent to follow the new shard')
  return quiet(proxy)
}

interface BootstrapParts {
  say: Say
  server: CorpusServer
  proxy: TcpProxy
  dir: string
}

/** The replica is lost, the identity is not. Bytes through the proxy; time without it, from the start of the loop to
 *  the file in force. */
async function bootstraps({ say, server, proxy, dir }: BootstrapParts): Promise<Record<string, number>> {
  const takenMs: number[] = []
  let wireBytes = 0
  let documents: string[] = []
  for (let n = 0; n <= BOOTSTRAPS; n++) {
    dropReplica(dir)
    if (n === 0) proxy.resetCounts()
    const startMs = performance.now()
    const agent = startSiteAgent({
      dir,
      serverUrl: n === 0 ? proxy.url : server.fleet.serverUrl,
      joinToken: server.joinToken,
      name: 'site',
    })
    while (agent.replica()?.rowCount() !== server.rows) await Bun.sleep(2)
    if (n > 0) takenMs.push(performance.now() - startMs)
    else {
      wireBytes = await quiet(proxy)
      documents = (agent.replica()?.dump() ?? []).map(([, doc]) => doc)
    }
    await agent.stop()
  }
  const inOnePiece = Bun.zstdCompressSync(Buffer.from(documents.join('\n')), { level: 3 }).length
  const sizes = documents.map((doc) => Buffer.byteLength(doc))
  say(
    `bootstrap: ${wireBytes} bytes against ${inOnePiece}, median document ${percentile(sizes, 50)}, ${takenMs.map((ms) => Math.round(ms)).join(' ')} ms`,
  )
  return {
    bootstrap_20k_bytes: wireBytes,
    bootstrap_20k_ratio: rounded(wireBytes / inOnePiece, 3),
    bootstrap_20k_ms: rounded(percentile(takenMs, 50), 0),
    replica_file_bytes_per_object: rounded(statSync(join(dir, 'replica.sqlite')).size / OBJECTS, 0),
  }
}

/**
 * The same as reconnect_0 through a TLS front: every reconnect is a full handshake, no session is resumed. Counted
 * outside the TLS.
 */
async function overTls(server: CorpusServer, port: number, dir: string): Promise<number> {
  const front = await startTlsFront(server.dir, port)
  const proxy = startTcpProxy(front.port)
  const agent = startSiteAgent({
    dir,
    serverUrl: `https://localhost:${proxy.port}`,
    joinToken: server.joinToken,
    name: 'site',
    fetcher: (url, init) => fetch(url, { ...init, tls: { ca: front.caPem } }),
  })
  try {
    await until(agent.following, 'the agent to follow over TLS')
    return await reconnect(agent, proxy, () => Promise.resolve())
  } finally {
    await agent.stop()
    proxy.stop()
    front.stop()
  }
}

/** Bytes both ways once nothing has moved for a while. */
async function quiet(proxy: TcpProxy): Promise<number> {
  const bytes = () => proxy.counts().upBytes + proxy.counts().downBytes
  for (let before = -1, now = bytes(); before !== now; before = now, now = bytes()) await Bun.sleep(QUIET_MS)
  return bytes()
}
