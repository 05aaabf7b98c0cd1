// Entries of the audit log, read page by page. Entries never change; new ones appear at the front.
import { useEffect, useMemo } from 'preact/hooks'
import type { AuditRecord } from '../../../../shared/model/audit.ts'
import { call, type Page, type Query } from './api.ts'
import { onChanges } from './live.ts'
import { PagedList, type PagedState } from './paged-list.ts'

export type { AuditRecord }
export const AUDIT_FILTERS = ['actor', 'verb', 'kind', 'project', 'name', 'cluster', 'result'] as const
export const AUDIT_PAGE = 50
/** Changes that people cause. Refusals bring none; they are seen with the next one. */
const CAUSES = ['resource', 'token', 'confirmation']
const PAUSE_MS = 1_000

/** `shown`: entries that the page has room for. */
export function useAudit(query: Query, shown: number): PagedState<AuditRecord> {
  const key = JSON.stringify(query)
  const list = useMemo(
    () =>
      new PagedList<AuditRecord>(
        (start, signal) => call<Page<AuditRecord>>('GET', '/audit', { query: { ...query, limit: AUDIT_PAGE, continue: start }, signal }),
        ({ seq }) => String(seq),
      ),
    [key],
  )
  useEffect(() => list.want(0, shown - 1), [list, shown])
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = onChanges((changes) => {
      if (timer !== undefined || (changes !== 'all' && !changes.some(({ topic }) => CAUSES.includes(topic)))) return
      timer = setTimeout(() => {
        timer = undefined
        list.changed()
      }, PAUSE_MS)
    })
    return () => {
      clearTimeout(timer)
      stop()
      list.stop()
    }
  }, [list])
  return list.state.value
}
