// A browser as far as a sign-in needs one: cookies by host, redirects, links and forms. It runs no script.

/** Cookies are separated by port, too: on loopback each server is a site of its own. */
export class Browser {
  readonly cookies = new Map<string, Map<string, string>>()
  /** Every address that was visited, the newest last. */
  readonly visited: string[] = []

  async go(url: string, init: RequestInit = {}): Promise<Response> {
    this.visited.push(url)
    const { origin } = new URL(url)
    const jar = this.cookies.get(origin) ?? new Map<string, string>()
    this.cookies.set(origin, jar)
    const headers = new Headers(init.headers)
    if (!headers.has('accept')) headers.set('accept', 'text/html')
    if (jar.size > 0) headers.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '))
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';')
      const at = pair.indexOf('=')
      const isGone = attributes.some((attribute) => /^\s*max-age=0\s*$/i.test(attribute))
      if (isGone) jar.delete(pair.slice(0, at))
      else jar.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return response
  }

  /** Follows redirects until a page comes, or until `stopAt` says that the next address is not to be visited. */
  async follow(
    url: string,
    init: RequestInit = {},
    stopAt: (url: string) => boolean = () => false,
  ): Promise<{ response: Response; url: string }> {
    let response = await this.go(url, init)
    let at = url
    for (let hops = 0; hops < 20; hops++) {
      const location = response.headers.get('location')
      if (location === null) break
      at = new URL(location, at).href
      if (stopAt(at)) break
      response = await this.go(at)
    }
    return { response, url: at }
  }

  cookie(origin: string, name: string): string | undefined {
    return this.cookies.get(new URL(origin).origin)?.get(name)
  }
}

const fromHtml = (text: string): string => text.replaceAll('&amp;', '&').replaceAll('&#43;', '+').replaceAll('&#34;', '"')

export type Who = { kind: 'forge' } | { kind: 'password'; login: string; password: string }

/** Signs in at Dex: from an address of Dex to the first one that `stopAt` names, which is not visited. */
export async function signInAtDex(browser: Browser, url: string, who: Who, stopAt: (url: string) => boolean): Promise<string> {
  const choice = await browser.follow(url, {}, stopAt)
  const links = [...(await choice.response.text()).matchAll(/href="([^"]+)"/g)].map(
    ([, href = '']) => new URL(fromHtml(href), choice.url).href,
  )
  const link = links.find((one) => one.includes(who.kind === 'forge' ? '/auth/forge' : '/auth/local'))
  if (link === undefined) throw new Error(`no way to sign in on ${choice.url}: ${links.join(' ')}`)
  const page = await browser.follow(link, {}, stopAt)
  if (who.kind === 'forge') return page.url
  const action = /<form[^>]*action="([^"]+)"/.exec(await page.response.text())?.[1] ?? ''
  const body = new URLSearchParams({ login: who.login, password: who.password })
  const done = await browser.follow(new URL(fromHtml(action), page.url).href, { method: 'POST', body }, stopAt)
  return done.url
}
