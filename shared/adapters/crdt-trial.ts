// Tries cr-sqlite files in a child process: native code on a doubtful file can end the process that loads it.
import { join } from 'node:path'
import { TRIAL_VERB } from '../runtime/build-info.ts'
import { describeError } from '../runtime/loop.ts'
import { type CrdtDb, openCrdtDb } from './crdt-db.ts'
import { type Database, isDamage } from './sqlite.ts'

/** First argument of a program that is to try files and nothing else. */
const TRIAL_MS_MAX = 60_000
/** The kernel or an operator sends these, whatever the file holds. */
const OUTSIDE_SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']

/** Runs one child: the exit of the program on `paths`, and what it printed. Throws when there can be no child. */
export type RunTrial = (paths: readonly string[]) => { output: string; exitCode: number | null; signal: string | null; timedOut: boolean }

/** Why native code must not open a file, by path. A file that was not tried, because the child was killed from outside
 *  or could not start, is not in it. */
export function tryCrdtFiles(paths: readonly string[], run: RunTrial): ReadonlyMap<string, string> {
  const refused = new Map<string, string>()
  for (let rest = paths; rest.length > 0; ) {
    let ended: ReturnType<RunTrial>
    try {
      ended = run(rest)
    } catch {
      return refused
    }
    const answers = ended.output.split('\n').slice(0, -1)
    for (const [index, answer] of answers.entries()) {
      const path = rest[index]
      if (path !== undefined && answer !== OK) refused.set(path, answer)
    }
    const died = rest[answers.length]
    const why = deathOf(ended)
    if (died === undefined || why === null) return refused
    refused.set(died, why)
    rest = rest.slice(answers.length + 1)
  }
  return refused
}

/** The message about the tried file in the end of the child. Null if it has none. */
function deathOf({ exitCode, signal, timedOut }: ReturnType<RunTrial>): string | null {
  if (timedOut) return `native code did not open the file within ${TRIAL_MS_MAX / 1_000} s`
  if (signal !== null) return OUTSIDE_SIGNALS.includes(signal) ? null : `native code ended a process with ${signal}`
  return exitCode !== null && exitCode > 128 ? `native code ended a process with exit code ${exitCode}` : null
}

const OK = 'ok'

/** The child: prints one line for each file, in order. */
export function runTrial(libraryDir: string, paths: readonly string[], print: (line: string) => void): void {
  for (const path of paths) print(`${trial(path, libraryDir)}\n`)
}

function trial(path: string, libraryDir: string): string {
  let crdt: CrdtDb
  try {
    crdt = openCrdtDb(path, { synchronous: 'OFF', libraryDir })
  } catch {
    return OK // an error is no danger: the program meets it itself
  }
  try {
    useEverything(crdt.db, crdt.siteId)
    return OK
  } catch (error) {
    return isDamage(error) ? describeError(error).replaceAll('\n', ' ') : OK // a full disk is not the file's
  } finally {
    crdt.close()
  }
}

/** Uses every native function that the writers of these files use; keeps nothing. */
function useEverything(db: Database, siteId: string): void {
  db.run('BEGIN IMMEDIATE')
  try {
    db.run("INSERT INTO desired (cluster, id, doc) VALUES ('', 'trial', '1')")
    db.run("UPDATE desired SET doc = '2' WHERE cluster = '' AND id = 'trial'")
    db.run("UPDATE desired SET doc = doc || ' ' WHERE rowid = (SELECT min(rowid) FROM desired)")
    db.run("DELETE FROM desired WHERE cluster = '' AND id = 'trial'")
    db.query(
      `INSERT INTO crsql_changes ("table", pk, cid, val, col_version, db_version, site_id, cl, seq)
       VALUES ('desired', crsql_pack_columns('', 'trial'), 'doc', '3', 9, crsql_next_db_version(), ?, 9, 0)`,
    ).run(Buffer.from(siteId, 'hex'))
    db.query('SELECT * FROM crsql_changes WHERE db_version >= crsql_db_version()').all()
  } finally {
    if (db.inTransaction) db.run('ROLLBACK')
  }
}

/** The program runs itself. From source that is a file of its own, because a test is no program of ours. */
export function trialInChild(libraryDir: string): RunTrial {
  const program = import.meta.url.includes('$bunfs') ? [process.execPath] : [process.execPath, join(import.meta.dir, 'crdt-trial-main.ts')]
  return (paths) => {
    const ended = Bun.spawnSync([...program, TRIAL_VERB, libraryDir, ...paths], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
      timeout: TRIAL_MS_MAX,
      killSignal: 'SIGKILL',
    })
    return {
      output: ended.stdout.toString(),
      exitCode: ended.exitCode,
      signal: ended.signalCode === undefined || ended.signalCode === null ? null : String(ended.signalCode),
      timedOut: ended.exitedDueToTimeout === true,
    }
  }
}
