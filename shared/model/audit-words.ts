// Words of the audit log that the command line needs before it loads anything else.

/** `started`: recorded before a change outside of the store; an entry `failed` follows if it did not happen. */
export const AUDIT_RESULTS = ['done', 'denied', 'started', 'failed'] as const
export type AuditResult = (typeof AUDIT_RESULTS)[number]

/** Header with the request id, which the answer and the audit entries repeat. */
export const REQUEST_ID_HEADER = 'x-request-id'
/** Reason for the audit log, as percent-encoded UTF-8: header values are Latin-1. */
export const REASON_HEADER = 'x-skerry-reason'
export const REASON_CHARS_MAX = 500
