// Entry point of the Worker that answers fleet queries from the store's file, over a connection that can only read. One
// question at a time.
import { Kysely } from 'kysely'
import { systemClock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { sqliteDialect } from '../engines/sqlite-dialect.ts'
import type { Tables } from '../tables.ts'
import { FleetQueryEngine } from './fleet-query-engine.ts'
import type { QueryAnswer, QueryRequest } from './worker-queries.ts'

/** Pages of the file that are kept: what a fleet of two million rows is asked for again and again. */
const CACHE_KIB = 65_536

let engine: FleetQueryEngine | null = null

self.onmessage = async ({ data }: MessageEvent<QueryRequest>) => {
  try {
    engine ??= new FleetQueryEngine(
      new Kysely<Tables>({ dialect: sqliteDialect(data.path, { readonly: true, cacheKiB: CACHE_KIB }) }),
      'sqlite',
      systemClock,
    )
    self.postMessage({ kind: 'answered', page: await engine.answer(data.question) } satisfies QueryAnswer)
  } catch (error) {
    const refusal = error instanceof AppError ? { code: error.code, detail: error.data.detail } : undefined
    self.postMessage({ kind: 'failed', error: describeError(error), refusal } satisfies QueryAnswer)
  }
}
