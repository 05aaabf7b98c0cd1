// etcd for local clusters: several API servers share one by their key prefixes. No fsync, because the data never outlives the process.
import { join } from 'node:path'
import { clusterBinary } from './binaries.ts'
import { createDataFolder, freePort, startChild, waitUntil } from './child-process.ts'

export interface Etcd {
  readonly url: string
  /** It stays there and answers nobody, as on a disk that hangs. */
  pause(): void
  resume(): void
  /** Forgets every revision before now, so that watches from there get 410. */
  compact(): Promise<void>
  stop(): Promise<void>
}

export async function startEtcd(): Promise<Etcd> {
  const folder = createDataFolder('skerry-etcd')
  const url = `http://127.0.0.1:${freePort()}`
  const peerUrl = `http://127.0.0.1:${freePort()}`
  const child = startChild(
    [
      clusterBinary('etcd'),
      ...['--data-dir', join(folder.path, 'data'), '--listen-client-urls', url, '--advertise-client-urls', url],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `default=${peerUrl}`],
      ...['--unsafe-no-fsync', '--log-level', 'warn', '--auto-compaction-retention', '1h'],
    ],
    join(folder.path, 'etcd.log'),
  )
  const stop = async () => {
    await child.kill()
    await folder.remove()
  }
  try {
    await waitUntil('etcd', async () => (await fetch(`${url}/health`)).ok, { child })
  } catch (error) {
    await stop()
    throw error
  }
  const ask = async (path: string, body: unknown) => {
    const answer = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`etcd ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as { header: { revision: string } }
  }
  const compact = async () => {
    const { header } = await ask('/v3/kv/range', { key: btoa('nothing') })
    await ask('/v3/kv/compaction', { revision: header.revision, physical: true })
  }
  return { url, pause: child.pause, resume: child.resume, compact, stop }
}
