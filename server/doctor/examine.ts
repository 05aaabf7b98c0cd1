// DO1: checks all stored data of a server, in the order of dependence; it changes nothing.
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isFolderInUse } from '../../shared/adapters/data-folder.ts'
import { isDamage } from '../../shared/adapters/sqlite.ts'
import { VERSION } from '../../shared/runtime/build-info.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { STORE } from '../backup/manifest.ts'
import type { RenderPlace } from '../control/render-place.ts'
import { findLogLoss } from '../store/engines/log-loss.ts'
import { type ContentReference, SCHEMA_NEWEST } from '../store/engines/store-file.ts'
import type { PostgresPlace } from '../store/store-place.ts'
import {
  findBrokenRules,
  findStoreDamage,
  inspectStore,
  readContentReferences,
  readProjectsAsAgent,
  readRestoreProofs,
  type StoreReport,
} from '../store/upkeep/store-check.ts'
import { checkBackups } from './check-backups.ts'
import { checkContent } from './check-content.ts'
import { checkFolder, checkKeys } from './check-folder.ts'
import { checkRender } from './check-render.ts'
import { checkSecrets } from './check-secrets.ts'
import { checkShards } from './check-shards.ts'
import { createFindings, type DoctorReport, type Findings } from './findings.ts'

export interface ExamineOptions {
  dataDir: string
  /** Null for SQLite in the data folder. */
  store: PostgresPlace | null
}

export interface ExamineDeps {
  clock: Clock
  /** Absent means that the programs of renders are not checked. */
  render?: RenderPlace
  progress(what: string, done: number, of: number): void
}

export async function examine({ dataDir, store }: ExamineOptions, deps: ExamineDeps): Promise<DoctorReport> {
  const { clock } = deps
  const startedMs = clock.nowMs()
  if (!statSync(dataDir, { throwIfNoEntry: false })?.isDirectory()) throw noData(`${dataDir} is not a folder`)
  if (store === null && !existsSync(join(dataDir, STORE)) && !existsSync(join(dataDir, 'keys')))
    throw noData(`${dataDir} is not the data folder of a server`)
  const running = isFolderInUse(dataDir)
  const findings = createFindings()
  checkFolder(dataDir, findings)
  checkKeys(dataDir, findings)
  checkBackups(dataDir, findings, clock)
  const schema = await checkData(dataDir, store, running, findings, deps)
  if (deps.render !== undefined) await checkRender(deps.render, dataDir, findings, clock)
  const list = findings.list()
  return {
    version: VERSION,
    data: dataDir,
    server: running ? 'running' : 'stopped',
    store: store === null ? 'sqlite' : 'postgres',
    schema,
    fine: list.every(({ severity }) => severity === 'note'),
    tookMs: Math.max(0, Math.round(clock.nowMs() - startedMs)),
    facts: findings.facts,
    findings: list,
  }
}

const noData = (detail: string): AppError =>
  new AppError('bad_options', { doing: 'check the data folder', detail, remedy: 'Set --data to the data folder of the server.' })

/** The schema of the store, if known. */
async function checkData(
  dataDir: string,
  store: PostgresPlace | null,
  running: boolean,
  findings: Findings,
  deps: ExamineDeps,
): Promise<number | null> {
  const loss = store === null && !running ? findLogLoss(join(dataDir, `${STORE}-wal`)) : null
  if (loss !== null)
    findings.tell('store_damaged', `${STORE}-wal at byte ${loss.at}: SQLite would drop the ${loss.commits} commits after it`)
  const look = await openReport(dataDir, store, findings)
  if (look === null) {
    await checkContent({ dataDir, references: null, findings, ...deps })
    return null
  }
  try {
    const references = await checkStore(look, findings, deps)
    await checkContent({ dataDir, references, findings, ...deps })
    const clusters = references === null ? 0 : await checkShards({ look, dataDir, running, findings, ...deps })
    checkSecrets(dataDir, clusters, findings)
    return look.schema
  } finally {
    await look.close()
  }
}

async function openReport(dataDir: string, store: PostgresPlace | null, findings: Findings): Promise<StoreReport | null> {
  if (store !== null) return inspectStore(store)
  try {
    return await inspectStore({ file: join(dataDir, STORE) })
  } catch (error) {
    findings.tell('store_damaged', `${STORE}: ${describeError(error)}`)
    return null
  }
}

/** The first schema whose store holds the proofs that a restore waits for. */
const PROOFS_SCHEMA = 2

/** The references of the store. Null if it cannot be read through. */
async function checkStore(look: StoreReport, findings: Findings, { progress }: ExamineDeps): Promise<ContentReference[] | null> {
  const { schema } = look
  if (schema === null || schema > SCHEMA_NEWEST) {
    findings.tell(schema === null ? 'store_damaged' : 'store_newer', schema === null ? 'it has no schema' : `schema ${schema}`)
    return null
  }
  if (schema < SCHEMA_NEWEST) findings.tell('store_older', `schema ${schema}; this version has ${SCHEMA_NEWEST}`)
  try {
    progress('reading the fleet store', 0, 0)
    // Not in the one state of what follows: while it is held, a running server's log grows.
    const damage = look.engine === 'sqlite' ? await findStoreDamage(look.db) : null
    if (damage !== null) {
      findings.tell('store_damaged', `${STORE}: ${damage}`)
      return null
    }
    return await look.inOneState(async (db) => {
      const broken = await findBrokenRules(look, db, (done, of) => progress('checking the fleet store', done, of))
      for (const { code, at, more } of broken) {
        for (const place of at) findings.tell(code, place)
        if (more > 0) findings.tell(code, 'and more', more)
      }
      for (const project of await readProjectsAsAgent(db)) findings.tell('project_as_agent', project)
      if (schema >= PROOFS_SCHEMA) for (const cluster of await readRestoreProofs(db)) findings.tell('restore_waits', cluster)
      return readContentReferences(db, schema)
    })
  } catch (error) {
    if (!isDamage(error)) throw error
    findings.tell('store_damaged', `${STORE}: ${describeError(error)}`)
    return null
  }
}
