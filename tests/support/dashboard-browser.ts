// A browser that people could have, and what must not happen in it: an error on the console, a refused request, a
// violation of the content policy, a finding of axe, a line that runs out of the window.
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const CHROMIUM = process.env['SKERRY_CHROMIUM'] ?? '/usr/bin/chromium'

export interface WatchedBrowser {
  /** Everything that was wrong in any page of any context, but for what the context expects. */
  readonly wrong: string[]
  /** `expected`: what a test causes on purpose in this context. A request that is cut fails at any time after, so a
   *  context has it as a whole. */
  context(options?: BrowserContextOptions & { token?: string; expected?: RegExp }): Promise<BrowserContext>
  stop(): Promise<void>
}

export async function startWatchedBrowser(): Promise<WatchedBrowser> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: apt-get install chromium, or set SKERRY_CHROMIUM`)
  // /dev/shm has 64 MB in a container, and a page that finds it full is gone.
  const browser: Browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  const wrong: string[] = []
  return {
    wrong,
    context: async ({ token, expected, ...options } = {}) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
      const note = (what: string) => {
        if (expected?.test(what) !== true) wrong.push(what)
      }
      context.on('console', (message) => {
        if (message.type() === 'error') note(`console: ${message.text()} ${message.location().url} (${message.page()?.url()})`)
      })
      context.on('weberror', (error) => note(`error: ${error.error().message}`))
      context.on('response', (response) => {
        if (response.status() >= 400) note(`HTTP ${response.status()} ${response.request().method()} ${response.url()}`)
      })
      if (token !== undefined)
        await context.addInitScript((of) => {
          if (location.protocol === 'http:') sessionStorage.setItem('skerry-token', of)
        }, token)
      return context
    },
    stop: () => browser.close(),
  }
}

/** When the page has what it reads. */
export async function settledPage(page: Page): Promise<void> {
  await page.waitForSelector('h1')
  await page.waitForFunction(() => document.querySelector('main .waiting, dialog .waiting') === null)
}

/** Findings of axe on what is to be seen: all rules in the light theme, and the contrast in the dark one. */
export async function findings(page: Page): Promise<string[]> {
  const found: string[] = []
  await page.evaluate(axe.source)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    // A colour that fades is none yet.
    await page.evaluate(() => Promise.all(document.getAnimations().map((one) => one.finished.catch(() => undefined))).then(() => undefined))
    const { violations } = await page.evaluate(
      (only) =>
        (window as never as { axe: typeof axe }).axe.run({
          resultTypes: ['violations'],
          ...(only === null ? {} : { runOnly: { type: 'rule', values: only } }),
        }),
      colorScheme === 'light' ? null : ['color-contrast'],
    )
    found.push(
      ...violations.flatMap(({ id, nodes }) =>
        nodes.slice(0, 3).map(({ target, failureSummary }) => `${colorScheme} ${id} ${target}: ${failureSummary}`),
      ),
    )
  }
  return found
}

/** How many pixels of the page lie beside its window, and the innermost element without which it would fit. */
export const overflow = (page: Page): Promise<string | null> =>
  page.evaluate(() => {
    const beside = () => document.documentElement.scrollWidth - document.documentElement.clientWidth
    const pixels = beside()
    if (pixels <= 0) return null
    const causes = [...document.querySelectorAll<HTMLElement>('body *')].filter((one) => {
      const before = one.style.display
      one.style.display = 'none'
      const fits = beside() <= 0
      one.style.display = before
      return fits
    })
    const cause = causes.at(-1)
    return `${pixels} px: ${cause?.tagName}.${cause?.className} ${cause?.textContent?.slice(0, 80)}`
  })

export interface Focused {
  name: string
  isVisible: boolean
  /** Where it is, and how it is outlined. */
  look: string
}

/** What has the focus: its name as a screen reader says it, roughly, and whether its ring is drawn. */
export const focused = (page: Page): Promise<Focused> =>
  page.evaluate(() => {
    const at = document.activeElement
    if (at === null || at === document.body) return { name: '', isVisible: false, look: '' }
    const label = at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement ? at.labels : null
    const name = at.getAttribute('aria-label') ?? label?.[0]?.textContent ?? at.getAttribute('placeholder') ?? at.textContent ?? ''
    // The ring of a row is around all of it.
    const rings = [getComputedStyle(at), getComputedStyle(at, '::after')].map((one) => `${one.outlineStyle} ${one.outlineWidth}`)
    const hasRing = rings.some((ring) => !ring.startsWith('none') && !ring.endsWith(' 0px'))
    const { width, top, bottom } = at.getBoundingClientRect()
    return {
      name: name.trim().replace(/\s+/g, ' '),
      isVisible: width > 0 && bottom > 0 && top < innerHeight && at.matches(':focus-visible') && hasRing,
      look: `${Math.round(top)}–${Math.round(bottom)} of ${innerHeight} px, outline ${rings.join(', ')}`,
    }
  })

const TABS_MAX = 120
/** Presses Tab until the focus is on what is called so. Each stop on the way must be seen. */
export async function tabTo(page: Page, wanted: string | RegExp): Promise<void> {
  const passed: string[] = []
  for (let step = 0; step < TABS_MAX; step++) {
    const { name, isVisible, look } = await focused(page)
    const isThere = typeof wanted === 'string' ? name === wanted : wanted.test(name)
    if (!isVisible && (isThere || (step > 0 && name !== ''))) throw new Error(`the focus on ${name} cannot be seen: ${look}`)
    if (isThere) return
    passed.push(name)
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${wanted}: ${passed.join(' | ')}`)
}
