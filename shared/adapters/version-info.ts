// `version -o json` of both programs. Server and agent load cr-sqlite for real: one that cannot says so here first.
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../protocol/version.ts'
import { COMMIT, VERSION } from '../runtime/build-info.ts'
import { CRSQLITE_VERSION, openCrdtDb } from './crdt-db.ts'
import { openSqlite } from './sqlite.ts'

export interface VersionInfo {
  version: string
  commit: string
  bun: string
  sqlite: string
  crSqlite: string
  protocol: { min: number; max: number }
}

/** `loads`: whether cr-sqlite is loaded, which takes 30 ms. */
export function versionInfo({ loads } = { loads: true }): VersionInfo {
  const opened = loads ? openCrdtDb(':memory:') : null
  const db = opened?.db ?? openSqlite(':memory:')
  const sqlite = db.query<{ v: string }, []>('SELECT sqlite_version() AS v').get()?.v ?? 'unknown'
  if (opened === null) db.close()
  else opened.close()
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
