// `version -o json` of both programs. It loads cr-sqlite for real: a binary that cannot says so here first.
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../protocol/version.ts'
import { COMMIT, VERSION } from '../runtime/build-info.ts'
import { CRSQLITE_VERSION, openCrdtDb } from './crdt-db.ts'

export interface VersionInfo {
  version: string
  commit: string
  bun: string
  sqlite: string
  crSqlite: string
  protocol: { min: number; max: number }
}

export function versionInfo(): VersionInfo {
  const crdt = openCrdtDb(':memory:')
  const sqlite = crdt.db.query<{ v: string }, []>('SELECT sqlite_version() AS v').get()?.v ?? 'unknown'
  crdt.close()
  return {
    version: VERSION,
    commit: COMMIT,
    bun: Bun.version,
    sqlite,
    crSqlite: CRSQLITE_VERSION,
    protocol: { min: MIN_SUPPORTED_PROTOCOL_VERSION, max: PROTOCOL_VERSION },
  }
}

export function versionText(program: string, info: VersionInfo): string {
  const { version, commit, bun, sqlite, crSqlite, protocol } = info
  return `${program} ${version} (commit ${commit}, Bun ${bun}, SQLite ${sqlite}, cr-sqlite ${crSqlite}, protocol ${protocol.min}-${protocol.max})`
}
