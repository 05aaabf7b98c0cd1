// A browser that people could have, and what must not happen in it: an error on the console, a refused request, a violation
// of the content policy, a finding of axe, a line that runs out of the window.
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const CHROMIUM = process.env['SKERRY_CHROMIUM'] ?? '/usr/bin/chromium'

export interface WatchedBrowser {
  /** What was wrong in any page of any context, but for what a test expects. */
  readonly wrong: string[]
  /** A test cuts a connection or asks for something that is refused. */
  isExpected: boolean
  context(options?: BrowserContextOptions & { token?: string }): Promise<BrowserContext>
  stop(): Promise<void>
}

export async function startWatchedBrowser(): Promise<WatchedBrowser> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: apt-get install chromium, or set SKERRY_CHROMIUM`)
  const browser: Browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  const wrong: string[] = []
  const watched: WatchedBrowser = {
    wrong,
    isExpected: false,
    context: async ({ token, ...options } = {}) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
      const note = (what: string) => {
        if (!watched.isExpected) wrong.push(what)
      }
      context.on('console', (message) => {
        if (message.type() === 'error') note(`console: ${message.text()} (${message.page()?.url()})`)
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
  return watched
}

/** When the page has what it reads. */
export async function settledPage(page: Page): Promise<void> {
  await page.waitForSelector('h1')
  await page.waitForFunction(() => document.querySelector('main .waiting, dialog .waiting') === null)
}

/** Findings of axe on what is to be seen: all rules in the light theme, and the contrast in the dark one. */
export async function findings(page: Page): Promise<string[]> {
  const found: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    // A colour that fades is none yet.
    await page.evaluate(() => Promise.all(document.getAnimations().map((one) => one.finished.catch(() => undefined))).then(() => undefined))
    await page.evaluate(axe.source)
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

/** How many pixels of the page lie beside its window, and the widest of the elements that do. */
export const overflow = (page: Page): Promise<string | null> =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement
    if (scrollWidth <= clientWidth) return null
    const widest = [...document.querySelectorAll('body *')].toSorted(
      (a, b) => b.getBoundingClientRect().right - a.getBoundingClientRect().right,
    )[0]
    return `${scrollWidth - clientWidth} px: ${widest?.tagName}.${widest?.className}`
  })

export interface Focused {
  name: string
  isVisible: boolean
}

/** What has the focus: its name as a screen reader says it, roughly, and whether its ring is drawn. */
export const focused = (page: Page): Promise<Focused> =>
  page.evaluate(() => {
    const at = document.activeElement
    if (at === null || at === document.body) return { name: '', isVisible: false }
    const label = at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement ? at.labels : null
    const name = at.getAttribute('aria-label') ?? label?.[0]?.textContent ?? at.getAttribute('placeholder') ?? at.textContent ?? ''
    const { outlineStyle, outlineWidth } = getComputedStyle(at)
    const box = at.getBoundingClientRect()
    const isSeen = box.width > 0 && box.bottom > 0 && box.top < innerHeight
    return {
      name: name.trim().replace(/\s+/g, ' '),
      isVisible: isSeen && at.matches(':focus-visible') && outlineStyle !== 'none' && outlineWidth !== '0px',
    }
  })

const TABS_MAX = 120
/** Presses Tab until the focus is on what is called so. Each stop on the way must be seen. */
export async function tabTo(page: Page, wanted: string | RegExp): Promise<void> {
  const passed: string[] = []
  for (let step = 0; step < TABS_MAX; step++) {
    const { name, isVisible } = await focused(page)
    const isThere = typeof wanted === 'string' ? name === wanted : wanted.test(name)
    if (isThere && !isVisible) throw new Error(`the focus on ${name} cannot be seen`)
    if (isThere) return
    if (step > 0 && name !== '' && !isVisible) throw new Error(`the focus on ${name} cannot be seen`)
    passed.push(name)
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${wanted}: ${passed.join(' | ')}`)
}
