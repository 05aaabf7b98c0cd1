// The traffic of one new commit: a repository of some hundred files with one changed line. All bytes of the socket
// count in both directions, the heads of HTTP too.
import { join } from 'node:path'
import { createAddressGuard } from '../../server/sources/address/guard.ts'
import { parseRanges } from '../../server/sources/address/range.ts'
import { systemResolver } from '../../server/sources/address/resolve.ts'
import { findGitPrograms, openGitSource } from '../../server/sources/git/open.ts'
import { createGitTokens } from '../../server/sources/git/tokens.ts'
import type { Source } from '../../server/sources/source.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { createGitServer } from '../local-cluster/git-http-server.ts'
import type { Say } from './parts.ts'

const FOLDERS = 20
const FILES_EACH = 20
const COMMITS = 5

const manifest = (folder: number, file: number, value: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-${folder}-${file}\n  labels: {team: web}\ndata:\n  value: "${value}"\n`

export async function benchGitFetch(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-git-bytes')
  const server = await createGitServer({ dir: join(folder.path, 'remote') })
  const counter = countBytes(Number(new URL(server.url).port))
  try {
    const files: Record<string, string> = {}
    for (let one = 0; one < FOLDERS; one++)
      for (let file = 0; file < FILES_EACH; file++) files[`apps/app-${one}/file-${file}.yaml`] = manifest(one, file, 'first')
    await server.commit(files, 'all of it')
    const source = openBenchGit(`http://127.0.0.1:${counter.port}/fleet.git`, join(folder.path, 'clone'))
    await source.fetch()
    const first = counter.take()
    let most = 0
    for (let n = 0; n < COMMITS; n++) {
      const commit = await server.commit({ 'apps/app-3/file-7.yaml': manifest(3, 7, `change ${n}`) }, `change ${n}`)
      counter.take()
      if ((await source.fetch()) !== commit) throw new Error('another commit was fetched than the one that was made')
      most = Math.max(most, counter.take())
    }
    await source.head()
    say(
      `the first fetch of ${FOLDERS * FILES_EACH} files is ${first} bytes, one commit ${most}, a look that finds nothing ${counter.take()}`,
    )
    return { git_fetch_one_commit_bytes: most }
  } finally {
    counter.stop()
    await server.stop()
    await folder.remove()
  }
}

/** A Git repository of this machine as the server reads it. `dir`: where it keeps what it fetched. */
export function openBenchGit(url: string, dir: string): Source {
  const guard = createAddressGuard({
    allowed: parseRanges('127.0.0.0/8').ranges,
    resolve: systemResolver,
    fetcher: (to, init) => fetch(to, init),
    proxyFor: () => null,
  })
  const deps = {
    fetcher: guard.fetcher,
    allowedAddress: guard.allowedAddress,
    proxyOf: guard.proxyOf,
    clock: systemClock,
    stopping: null,
    raiseWatermark: async () => null,
    tokens: createGitTokens({ fetcher: guard.fetcher, clock: systemClock }),
    programs: findGitPrograms(),
  }
  return openGitSource({ url, ref: 'main', dir, secrets: null }, deps)
}

interface Counter {
  port: number
  /** Bytes since the last time, both directions together. */
  take(): number
  stop(): void
}

function countBytes(target: number): Counter {
  let bytes = 0
  type Pair = { to: Promise<Bun.Socket<undefined>> }
  const listener = Bun.listen<Pair>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(from) {
        const socket = {
          data: (_: unknown, chunk: Buffer) => {
            bytes += chunk.length
            from.write(chunk)
          },
          close: () => {
            from.end()
          },
        }
        from.data = { to: Bun.connect<undefined>({ hostname: '127.0.0.1', port: target, socket, data: undefined }) }
      },
      data(from, chunk) {
        bytes += chunk.length
        const copy = Buffer.from(chunk)
        void from.data.to.then((to) => to.write(copy))
      },
      close(from) {
        void from.data.to.then((to) => to.end())
      },
    },
  })
  return {
    port: listener.port,
    take: () => {
      const taken = bytes
      bytes = 0
      return taken
    },
    stop: () => listener.stop(true),
  }
}
