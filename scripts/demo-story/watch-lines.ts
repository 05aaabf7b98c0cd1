// `kubectl get -w` as an ear: tells when something became visible at the API server, without polling it.
import { clusterBinary } from '../local-cluster/binaries.ts'

export interface Ear {
  /** Resolves with the performance.now() at which a line that `matches` was heard, this one included if it was heard
   *  already. */
  heard(what: string, matches: (line: string) => boolean, timeoutMs?: number): Promise<number>
  /** Forgets what was heard so far. */
  forget(): void
  stop(): void
}

export interface KubeAccess {
  kubeconfigPath: string
  contextName: string
}

/**
 * `fields`: a jsonpath over {.type} and {.object}; one line an event. Resolves when the watch has listed the present
 * objects.
 */
export function listen(cluster: KubeAccess, args: readonly string[], fields: string): Ear {
  const output = ['-w', '--output-watch-events', '-o', `jsonpath=${fields}{"\\n"}`]
  const child = Bun.spawn(
    [clusterBinary('kubectl'), '--kubeconfig', cluster.kubeconfigPath, '--context', cluster.contextName, 'get', ...args, ...output],
    {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
      env: { HOME: '/nonexistent', PATH: process.env['PATH'] ?? '' },
    },
  )
  let lines: Array<{ line: string; at: number }> = []
  const waiting = new Set<() => void>()
  const read = async () => {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of child.stdout) {
      const at = performance.now()
      const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts.map((line) => ({ line, at })))
      for (const wake of waiting) wake()
    }
  }
  void read()
  return {
    heard: (what, matches, timeoutMs = 60_000) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`${what}: not seen within ${timeoutMs / 1_000} s; last seen: ${lines.at(-1)?.line ?? 'nothing'}`))
        }, timeoutMs)
        const look = () => {
          const hit = lines.find(({ line }) => matches(line))
          if (hit === undefined) return
          clearTimeout(timer)
          waiting.delete(look)
          resolve(hit.at)
        }
        waiting.add(look)
        look()
      }),
    forget: () => {
      lines = []
    },
    stop: () => child.kill('SIGKILL'),
  }
}
