// A server process that got the corpus by the front door (Git, webhook, render), and commits that change as many of its
// objects as are wanted.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer } from '../local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalFleet } from '../local-cluster/local-fleet.ts'
import { type CorpusService, corpusServices } from './corpus.ts'
import { benchPrograms } from './server-process.ts'

export interface CorpusServer {
  fleet: LocalFleet
  /** A folder that goes with the server. */
  dir: string
  joinToken: string
  /** Objects and service rows of a cluster that has everything. */
  rows: number
  /** Changes so many objects in one commit, and waits until the server has published it to the one cluster that there
   *  is. */
  change(objects: number): Promise<void>
  stop(): Promise<void>
}

const SEED = 4

export async function startCorpusServer(objects: number): Promise<CorpusServer> {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-bench-'))
  const git = await createGitServer({ dir: join(dir, 'git') })
  const fleet = await createLocalFleet({ programs: benchPrograms() })
  const stop = async () => {
    await fleet.stop()
    await git.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    const services = corpusServices(objects, SEED)
    await git.commit(filesOf(services), 'corpus')
    await fleet.startServer()
    const repository = `apiVersion: skerry.dev/v1\nkind: Repository\nmetadata: {name: apps}\nspec: {git: {url: "${git.url}"}, poll: 1h}\n`
    for (const text of [repository, ...inSlices(services, 100).map((slice) => slice.map(serviceYaml).join(''))])
      await fleet.run(['apply', '-f', '-'], { stdin: text })
    const { token } = JSON.parse(await fleet.run(['join-token', 'create', '-o', 'json'])) as { token: string }
    let changes = 0
    return {
      fleet,
      dir,
      joinToken: token,
      rows: objects + services.length,
      async change(count) {
        const touched = touch(services, count, `change ${++changes}`)
        const commit = await git.commit(filesOf(touched), `change ${changes}`)
        await fleet.webhook('apps')
        await until(() => publications(fleet.serverLog(), commit) >= touched.length, `${count} changed objects to be published`)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** One: the object whose document is of the median size. More: neighbours of it, so that few services change. Answers
 *  the services. */
function touch(services: readonly CorpusService[], count: number, mark: string): CorpusService[] {
  const all = services.flatMap((service) => [...service.objects].map(([id, doc]) => ({ service, id, doc })))
  const bySize = [...all].sort((a, b) => a.doc.length - b.doc.length)
  const median = bySize[Math.floor(bySize.length / 2)]
  const start = all.findIndex(({ id }) => id === median?.id)
  const chosen = all.slice(Math.min(start, all.length - count)).slice(0, count)
  for (const { service, id, doc } of chosen) {
    const object = JSON.parse(doc) as { metadata: { annotations?: Record<string, string> } }
    const digest = new Bun.CryptoHasher('sha256').update(mark).update(id).digest('hex')
    object.metadata.annotations = { ...object.metadata.annotations, 'checksum/config': digest }
    service.objects.set(id, JSON.stringify(object))
  }
  return [...new Set(chosen.map(({ service }) => service))]
}

const publications = (log: string, commit: string): number =>
  log.split('\n').filter((line) => line.includes('revision published') && line.includes(commit)).length

const filesOf = (services: readonly CorpusService[]): Record<string, string> =>
  Object.fromEntries(services.map(({ id, objects }) => [`${id.service}/all.yaml`, [...objects.values()].join('\n---\n')]))

const serviceYaml = ({ id: { service } }: CorpusService): string =>
  `---\napiVersion: skerry.dev/v1\nkind: Service\nmetadata: {name: ${service}}\nspec:\n  source: {repository: apps, path: ${service}}\n  targets: {selector: {}}\n  namespace: ${service}\n`

const inSlices = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size))

export async function until(check: () => boolean | Promise<boolean>, what: string, timeoutMs = 120_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs / 1_000} s`)
    await Bun.sleep(20)
  }
}
