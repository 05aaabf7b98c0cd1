// SL9: what a fleet still has in clear that seals, or should: rows of shard files, kept renders, and archives from
// before.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { parseRowId } from '../../shared/model/desired.ts'
import { isSealed, isSecretRow } from '../../shared/model/sealed-object.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { readSealingFile, SEALING_FILE } from '../access/sealing.ts'
import { readBackupState } from '../backup/archive/state.ts'
import { SHARD_COUNT } from '../desired/shard-files.ts'
import { readPlainFile } from '../render/cache/files.ts'
import { renderFromBytes } from '../render/cache/results.ts'
import type { Findings } from './findings.ts'

/** `clusters`: how many the store knows. */
export function checkSecrets(dataDir: string, clusters: number, findings: Findings): void {
  const path = join(dataDir, 'keys', SEALING_FILE)
  const sealing = existsSync(path) ? readSealingFile(readFileSync(path, 'utf8')) : null
  if (sealing === null) {
    if (clusters > 0 && !existsSync(path)) findings.tell('sealing_off', `${clusters} clusters`)
    return
  }
  if (sealing.cleanMs === null && clusters > 0) findings.tell('sealing_unfinished', `keys/${SEALING_FILE}`)
  for (let index = 0; index < SHARD_COUNT; index++) checkShard(dataDir, `shard-${String(index).padStart(2, '0')}.db`, findings)
  checkRenders(dataDir, findings)
  checkArchives(dataDir, sealing.cleanMs, findings)
}

/** Rows of Secrets in the core group whose document does not begin as a sealed one. */
const CLEAR_ROWS = `SELECT cluster, id FROM desired WHERE id LIKE 'object/%//Secret/%' AND doc IS NOT NULL AND substr(doc, 1, 11) <> '{"$sealed":'`

function checkShard(dataDir: string, name: string, findings: Findings): void {
  const path = join(dataDir, 'shards', name)
  if (!existsSync(path)) return
  try {
    const db = openSqlite(path, { readonly: true })
    try {
      for (const { cluster, id } of db.query<{ cluster: string; id: string }, []>(CLEAR_ROWS).all()) {
        const row = parseRowId(id)
        if (row.kind === 'object' && isSecretRow(row.id, id))
          findings.tell('secret_clear', `shards/${name}: ${cluster}, service ${serviceKey(row.id)}`)
      }
    } finally {
      db.close()
    }
  } catch {} // checkShards tells what is wrong with the file
}

function checkRenders(dataDir: string, findings: Findings): void {
  const folder = join(dataDir, 'renders')
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const bytes = readPlainFile(join(folder, name))
    const kept = bytes === null ? null : renderFromBytes(bytes)
    if (kept?.result.kind !== 'rendered') continue
    for (const [id, doc] of kept.result.objects) {
      const row = parseRowId(id)
      if (row.kind !== 'object' || !isSecretRow(row.id, id) || isSealed(doc)) continue
      findings.tell('secret_clear', `renders/${name} of service ${serviceKey(row.id)}`)
      break
    }
  }
}

function checkArchives(dataDir: string, cleanMs: number | null, findings: Findings): void {
  const { keptMs, into } = readBackupState(dataDir)
  const before = (keptMs ?? []).filter((atMs) => cleanMs === null || atMs < cleanMs)
  const newest = before.at(-1)
  if (newest !== undefined)
    findings.tell('backup_clear', `${into ?? 'archives'}: the newest is of ${new Date(newest).toISOString()}`, before.length)
}
