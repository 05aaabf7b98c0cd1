// The credential of the person at the screen, in one file: an API token kept for this tab, or the cookie session of a
// sign-in. Everything else asks `authorization()`. Imports nothing, because begin.ts runs before the rest is there.
const KEY = 'skerry-token'
const CODE = /^#sign-in=([\w-]+)$/

/** Headers of every request: empty with a cookie session. */
export function authorization(): Record<string, string> {
  const token = sessionStorage.getItem(KEY)
  return token === null ? {} : { authorization: `Bearer ${token}` }
}

export const keepToken = (token: string): void => sessionStorage.setItem(KEY, token)
export const forgetToken = (): void => sessionStorage.removeItem(KEY)

/** The server saw the cookie of a session when it answered with this page. Without any credential, a question for its
 *  person would be a refusal in the audit log for every visit. */
export const hasCredential = (): boolean => 'authorization' in authorization() || document.documentElement.dataset['cookie'] !== undefined

/** Code of a one-time link in the address. */
export const codeInAddress = (): string | null => CODE.exec(location.hash)?.[1] ?? null

/** Takes the code out of the address at once: nobody copies it with the address. */
export function takeCode(): string | null {
  const code = codeInAddress()
  if (code !== null) history.replaceState(history.state, '', location.pathname + location.search)
  return code
}
