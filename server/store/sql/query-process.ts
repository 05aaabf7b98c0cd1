// The process that answers fleet queries from the file of the store: `skerry query-worker`. It reads one statement a
// line and writes one answer a line. A statement cannot be interrupted, so the server ends the process.
import { endWithParent } from '../../../shared/adapters/parent-death.ts'
import { openSqlite } from '../../../shared/adapters/sqlite.ts'
import { fitting } from '../../../shared/model/fleet-sql.ts'
import type { SqlStatement } from './fleet-sql.ts'

export interface ProcessQuestion extends Pick<SqlStatement, 'sql' | 'rowsMax'> {
  path: string
}
export type ProcessAnswer = { rows: Array<Array<string | number | null>>; truncated: boolean } | { failed: true }

/** Pages of the file that stay in memory between queries. */
const CACHE_KIB = 65_536

/** Resolves with the exit code when the server closes the pipe. */
export async function runQueryProcess(): Promise<number> {
  if (!endWithParent()) return 1
  const answer = createAnswers()
  const sink = Bun.stdout.writer()
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of Bun.stdin.stream()) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end)
      text = text.slice(end + 1)
      sink.write(`${JSON.stringify(answer(JSON.parse(line) as ProcessQuestion))}\n`)
      await sink.flush()
    }
  }
  return 0
}

/** Opens each file once. */
export function createAnswers(): (question: ProcessQuestion) => ProcessAnswer {
  const files = new Map<string, ReturnType<typeof openSqlite>>()
  return ({ path, sql, rowsMax }) => {
    try {
      const db = files.get(path) ?? openSqlite(path, { readonly: true, cacheKiB: CACHE_KIB })
      files.set(path, db)
      db.run('PRAGMA query_only=ON')
      const statement = db.prepare(sql)
      try {
        return fitting(statement.values(), rowsMax)
      } finally {
        statement.finalize()
      }
    } catch {
      return { failed: true }
    }
  }
}
