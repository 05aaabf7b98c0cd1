// etcd for local clusters: several API servers share one by their key prefixes. No fsync, because the data never
// outlives the process.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { clusterBinary, etcdTool } from './binaries.ts'
import { type ChildProcess, createDataFolder, freePort, startChild, waitUntil } from './child-process.ts'

export interface Etcd {
  readonly url: string
  /** It stays and does not answer, as on a disk that hangs. */
  pause(): void
  resume(): void
  /** Forgets every revision before now, so that watches from there get 410. */
  compact(): Promise<void>
  /** Saves what etcd holds now; a later snapshot replaces it. */
  saveSnapshot(): Promise<void>
  /** Stops etcd and starts it again with the data of the snapshot. `bump`: with a much higher revision and all earlier
   *  ones compacted, as Kubernetes recommends. */
  restoreSnapshot(options: { bump: boolean }): Promise<void>
  stop(): Promise<void>
}

export async function startEtcd(): Promise<Etcd> {
  const folder = createDataFolder('skerry-etcd')
  const url = `http://127.0.0.1:${freePort()}`
  const peerUrl = `http://127.0.0.1:${freePort()}`
  const data = join(folder.path, 'data')
  const snapshot = join(folder.path, 'snapshot.db')
  const member = ['--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `default=${peerUrl}`]
  let child: ChildProcess
  const start = async () => {
    child = startChild(
      [
        clusterBinary('etcd'),
        ...['--data-dir', data, '--listen-client-urls', url, '--advertise-client-urls', url, '--listen-peer-urls', peerUrl, ...member],
        ...['--unsafe-no-fsync', '--log-level', 'warn', '--auto-compaction-retention', '1h'],
      ],
      join(folder.path, 'etcd.log'),
    )
    await waitUntil('etcd', async () => (await fetch(`${url}/health`)).ok, { child })
  }
  const stop = async () => {
    await child.kill()
    await folder.remove()
  }
  try {
    await start()
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
  const saveSnapshot = async () => {
    rmSync(snapshot, { force: true })
    await runTool([etcdTool('etcdctl'), '--endpoints', url, 'snapshot', 'save', snapshot])
  }
  const restoreSnapshot = async ({ bump }: { bump: boolean }) => {
    await child.kill()
    rmSync(data, { recursive: true })
    const bumped = bump ? ['--bump-revision', '1000000', '--mark-compacted'] : []
    await runTool([etcdTool('etcdutl'), 'snapshot', 'restore', snapshot, '--data-dir', data, ...member, ...bumped])
    await start()
  }
  return { url, pause: () => child.pause(), resume: () => child.resume(), compact, saveSnapshot, restoreSnapshot, stop }
}

async function runTool(command: string[]): Promise<void> {
  const tool = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const [errors, code] = await Promise.all([Bun.readableStreamToText(tool.stderr), tool.exited])
  if (code !== 0) throw new Error(`${command.join(' ')}: exit code ${code}\n${errors}`)
}
