// The requests that every page begins with. begin.ts sends them before the code of the page is there; the page takes
// each of them once, in place of a request of its own.
import type { ANY_LABEL as ANY } from '../../../../shared/model/chart.ts'
import { authorization, codeInAddress, hasCredential } from './credential.ts'
import { serverUrl } from './place.ts'

const GROUP_KEY = 'skerry-group-by'
/** As long as the person has not chosen a label, the server does. */
export const ANY_LABEL: typeof ANY = '*'

/** Label by which the person groups the clusters. Null means that nothing was chosen. */
export const chosenGroup = (): string | null => localStorage.getItem(GROUP_KEY)
export const keepGroup = (key: string): void => localStorage.setItem(GROUP_KEY, key)

interface Sent {
  /** The credential that it was sent with. */
  authorization: string | undefined
  answer: Promise<Response>
}
/** Shared by begin.ts and the page, which are two programs. */
const here = globalThis as { skerrySent?: Map<string, Sent> }

/** Does nothing if the page was faster. A link that signs in brings a credential that is not there yet. */
export function sendFirst(): void {
  if (here.skerrySent !== undefined || !hasCredential() || codeInAddress() !== null) return
  const own = authorization()
  const sent = new Map<string, Sent>()
  for (const path of ['whoami', `chart?${new URLSearchParams({ columns: 'true', by: chosenGroup() ?? ANY_LABEL })}`]) {
    const url = serverUrl(`api/v1/${path}`)
    const answer = fetch(url, { headers: { accept: 'application/json', ...own }, cache: 'no-store' })
    answer.catch(() => {}) // whoever takes it is told
    sent.set(url, { authorization: own['authorization'], answer })
  }
  here.skerrySent = sent
}

/** The answer to the same request of the same person. Null means that none was sent, or that it was taken. */
export function takeSent(url: string, { method, headers }: RequestInit): Promise<Response> | null {
  here.skerrySent ??= new Map()
  const one = here.skerrySent.get(url)
  if (one === undefined || method !== 'GET') return null
  here.skerrySent.delete(url)
  return (one.authorization ?? null) === new Headers(headers).get('authorization') ? one.answer : null
}
