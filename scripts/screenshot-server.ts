// A server with a still demo fleet for pictures: `skerry dev` from the source, on a free port, in a folder of its own.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

export interface OwnServer {
  url: string
  token: string
  stop(): Promise<void>
}

const READY_MS = 300_000
const ROOT = join(import.meta.dir, '..')

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })

/** Resolves when all its clusters have joined. */
export async function startOwnServer(clusters: number): Promise<OwnServer> {
  const url = `http://127.0.0.1:${await freePort()}`
  const flags = ['dev', '--demo-data', '--still', '--clusters', String(clusters), '--listen', url.slice('http://'.length)]
  const child = Bun.spawn(['bun', 'server/main.ts', ...flags], { cwd: ROOT, stdout: 'pipe', stderr: 'inherit' })
  const until = Date.now() + READY_MS
  let said = ''
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  while (!said.includes('simulated clusters joined')) {
    const { done, value } = await reader.read()
    said += value ?? ''
    if (done || Date.now() > until) throw new Error(`the demo did not start: ${said}`)
  }
  const [, file = ''] = /SKERRY_TOKEN=\$\(cat ([^)]+)\)/.exec(said) ?? []
  const stop = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  return { url, token: readFileSync(file, 'utf8').trim(), stop }
}
