// Entries of the audit log, read page by page. Entries never change; new ones appear at the front.
import type { AuditRecord } from '../../../../shared/model/audit.ts'
import { call, type Query } from './api.ts'
import { type Paged, usePaged } from './paged-list.ts'

export type { AuditRecord }
export const AUDIT_FILTERS = ['actor', 'verb', 'kind', 'project', 'name', 'cluster', 'result'] as const
export const AUDIT_PAGE = 50
/** Changes that people cause. Refusals bring none; they are seen with the next one. */
const CAUSES = ['resource', 'token', 'confirmation']

/** `shown`: entries that the page has room for. */
export const useAudit = (query: Query, shown: number): Paged<AuditRecord> =>
  usePaged<AuditRecord>(
    `audit ${JSON.stringify(query)}`,
    (start, signal) => call('GET /audit', { query: { ...query, limit: AUDIT_PAGE, continue: start }, signal }),
    { keyOf: ({ seq }) => String(seq), concerns: ({ topic }) => CAUSES.includes(topic), shown },
  )
