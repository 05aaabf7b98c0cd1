// The handle to one `sync-agent.ts` process: start, kill, freeze, ask, and what it wrote to its journal.
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type ChildProcess, startChild } from '../../scripts/local-cluster/child-process.ts'

export interface SyncAgentOptions {
  dataDir: string
  serverUrl: string
  /** Of the cluster; services `all-…` and `only-<name>` are meant for it, no other. */
  name: string
  joinToken: string
  waitSeconds?: number
  /** Its clock's sleeps, patience included, are so many times shorter. */
  timeScale?: number
  /** Where a server is restored, an older round is no mistake. */
  mayGoBack?: boolean
}

export const syncAgentFiles = (dataDir: string) => ({
  state: join(dataDir, 'agent.sqlite'),
  replica: join(dataDir, 'replica.sqlite'),
  journal: join(dataDir, 'journal.ndjson'),
  socket: join(dataDir, 'sync.sock'),
})

export type JournalLine =
  | { kind: 'page'; atMs: number; services: string[] }
  | { kind: 'event'; message: string }
  | { kind: 'violation'; what: string }

export interface SyncReport {
  state: string
  position: { dbId: string; dv: number; hash: string } | null
  epoch: number
  failure: { code: string; message: string } | null
  outboxDepth: number
  pid: number
  /** Applied in this life. */
  pages: number
  clusterId: string | null
  verified: boolean
  /** By service name. */
  rounds: Record<string, number>
}

export interface SyncDump {
  rows: Array<[id: string, doc: string]>
  statuses: Array<{ kind: string; key: string; doc: unknown }>
}

/** Every object of a revision carries the number of the commit that it is from. */
export const roundOf = (doc: string): number => Number(/"round":"(\d+)"/.exec(doc)?.[1] ?? -1)

export interface SyncSite {
  readonly name: string
  readonly dataDir: string
  readonly files: ReturnType<typeof syncAgentFiles>
  start(change?: Partial<SyncAgentOptions>): void
  kill(): Promise<void>
  pause(): void
  resume(): void
  alive(): boolean
  pid(): number
  /** Null while it cannot be asked. */
  report(): Promise<SyncReport | null>
  dump(): Promise<SyncDump>
  journal(): JournalLine[]
  log(): string
}

export function createSyncSite(options: SyncAgentOptions): SyncSite {
  const files = syncAgentFiles(options.dataDir)
  const logPath = `${options.dataDir}.log`
  let child: ChildProcess | undefined
  const ask = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`http://site${path}`, { unix: files.socket, signal: AbortSignal.timeout(5_000), keepalive: false })
    return (await answer.json()) as T
  }
  return {
    name: options.name,
    dataDir: options.dataDir,
    files,
    start: (change = {}) => {
      Object.assign(options, change)
      child = startChild([process.execPath, resolve(import.meta.dir, 'sync-agent.ts'), JSON.stringify(options)], logPath)
    },
    kill: async () => {
      await child?.kill()
      child = undefined
    },
    pause: () => child?.pause(),
    resume: () => child?.resume(),
    alive: () => child !== undefined && child.exitCode() === null,
    pid: () => child?.pid ?? 0,
    report: () => ask<SyncReport>('/report').catch(() => null),
    dump: () => ask<SyncDump>('/dump'),
    journal: () => (existsSync(files.journal) ? readFileSync(files.journal, 'utf8').split('\n').flatMap(journalLine) : []),
    log: () => (existsSync(logPath) ? readFileSync(logPath, 'utf8') : ''),
  }
}

/** The entry of one line. A kill can tear a line at the edge of a page of the file: such a line counts only if it was a
 *  violation. */
function journalLine(line: string): JournalLine[] {
  try {
    return line === '' ? [] : [JSON.parse(line) as JournalLine]
  } catch {
    return line.includes('"violation"') ? [{ kind: 'violation', what: `torn line: ${line}` }] : []
  }
}
