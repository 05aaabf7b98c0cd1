// Facts of a request for the audit log: its id and its reason.
import { randomUUID } from 'node:crypto'
import { REASON_CHARS_MAX, REASON_HEADER, REQUEST_ID_HEADER } from '../../shared/model/audit-words.ts'
import { AppError } from '../../shared/runtime/error.ts'

/** Letters that do no harm in a log; another id is replaced by one of the server's own. */
const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** Marks the ids of the server: no caller can choose one that looks like the id of another request. */
const OWN = 'req_'

export function requestIdOf(request: Request): string {
  const given = request.headers.get(REQUEST_ID_HEADER)
  return given !== null && REQUEST_ID.test(given) && !given.startsWith(OWN) ? given : `${OWN}${randomUUID()}`
}

/** The reason header, or null. Throws `bad_request` for a header that cannot be decoded. */
export function reasonOf(request: Request): string | null {
  const given = request.headers.get(REASON_HEADER)
  if (given === null || given === '') return null
  const reason = decoded(given)
  if (reason !== null && reason.length <= REASON_CHARS_MAX) return reason
  throw new AppError('bad_request', {
    detail: `invalid header ${REASON_HEADER}`,
    remedy: `Send at most ${REASON_CHARS_MAX} characters of percent-encoded UTF-8.`,
  })
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Answers of some handlers have headers that cannot be changed. */
export function withRequestId(response: Response, requestId: string): Response {
  try {
    response.headers.set(REQUEST_ID_HEADER, requestId)
    return response
  } catch {
    const headers = new Headers(response.headers)
    headers.set(REQUEST_ID_HEADER, requestId)
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers })
  }
}
