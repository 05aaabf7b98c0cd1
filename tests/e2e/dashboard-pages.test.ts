// Properties of every page of the dashboard: axe finds nothing in either theme, no page is wider than its window from a
// telephone to a wall, at 200 percent and below a path of a proxy, the keyboard reaches everything, and nothing moves
// for a person who asks for less motion.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { demoSites } from '../../server/dev/demo-content.ts'
import { findings, overflow, settledPage, startWatchedBrowser, tabTo, type WatchedBrowser } from '../support/dashboard-browser.ts'
import { type DemoFleet, startDemoFleet } from '../support/demo-fleet.ts'

setDefaultTimeout(60_000)

let demo: DemoFleet
let browser: WatchedBrowser
let page: Page
let confirmation = ''

const SITES = 8
const [good = '', bad = '', drifted = '', , filtered = ''] = demoSites(SITES).map(({ name }) => name)
const open = (path: string, of = page) => of.goto(`${demo.fleet.serverUrl}/dashboard/${path}`)

beforeAll(async () => {
  demo = await startDemoFleet(SITES)
  browser = await startWatchedBrowser()
  page = await (await browser.context({ token: demo.fleet.token })).newPage()
  await demo.site(1).degrade('shop/web')
  await demo.site(2).drift('shop/web', false)
  await demo.site(3).refusePrune('shop/web')
  const { items } = await demo.api<{ items: Array<{ id: string }> }>('GET', '/confirmations')
  confirmation = items[0]?.id ?? ''
}, 180_000)
afterAll(async () => {
  await browser?.stop()
  await demo?.stop()
})

const OBJECT = 'object=apps/Deployment/web/web'
const CONFIRMATION = 'needs-you/ID'
const PAGES = [
  '',
  'clusters',
  `clusters?cluster=${bad}&group=env`,
  `clusters/${bad}`,
  `clusters/${bad}/history`,
  `clusters/${bad}/shop/web`,
  `clusters/${drifted}/shop/web?${OBJECT}&tab=diff`,
  ...['state', 'events', 'logs', 'yaml'].map((tab) => `clusters/${good}/shop/web?${OBJECT}&tab=${tab}`),
  `clusters/${good}/shop/web/history`,
  'services',
  'services/shop/web',
  'services/shop/web/render',
  `services/shop/web/render?cluster=${good}`,
  'services/shop/broken',
  'repositories',
  'repositories/shop/apps',
  'needs-you',
  CONFIRMATION,
  'query?sql=SELECT%20name%20FROM%20clusters',
  'activity',
  'activity?view=audit',
  'notifications',
  'access',
  'join',
  'settings',
  'nowhere',
]
/** 640 px are 1280 px at 200 percent. */
const WIDTHS = [360, 640, 1024, 2560]

// Each page is a test of its own: a test that runs into its time limit takes the browser and the server with it.
test.each(PAGES)('axe finds nothing in either theme, and no width is exceeded: /%s', async (path) => {
  await page.setViewportSize({ width: 1280, height: 900 })
  await open(path === CONFIRMATION ? `needs-you/${confirmation}` : path)
  await settledPage(page)
  expect(await findings(page)).toEqual([])
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 })
    expect([width, await overflow(page)]).toEqual([width, null])
  }
  await page.setViewportSize({ width: 1280, height: 900 })
})

test('axe finds nothing in dialogs, menus and the palette in either theme, and they fit a telephone', async () => {
  const wrong: string[] = []
  const looksRight = async (what: string, opened: string) => {
    await page.waitForSelector(opened)
    await settledPage(page)
    wrong.push(...(await findings(page)).map((found) => `${what}: ${found}`))
    await page.setViewportSize({ width: 360, height: 700 })
    const beside = await overflow(page)
    if (beside !== null) wrong.push(`${what}: ${beside}`)
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.keyboard.press('Escape')
  }
  await open('services/shop/web')
  await settledPage(page)
  await page.keyboard.press('l')
  await looksRight('legend', 'dialog[open] .legend')
  await page.keyboard.press('/')
  await page.keyboard.type('suspend we')
  await looksRight('palette', '[role=option]')
  await page.click('main button:text-is("Suspend")')
  await looksRight('suspend', 'dialog[open] input[name=reason]')
  await open(`needs-you/${confirmation}`)
  await page.click('main button:text-is("Keep the objects")')
  await looksRight('keep', 'dialog[open] input[name=reason]')
  await page.click('main button.primary')
  await looksRight('confirm', 'dialog[open] input[name=reason]')
  await open(`clusters/${good}`)
  await page.click('button:text-is("Edit labels")')
  await looksRight('labels', 'dialog[open] textarea')
  await open('clusters')
  await page.click('summary:has-text("View")')
  await looksRight('view', '.menu[open] .menu-body')
  await open('join')
  await page.fill('input[name=name]', 'oslo-9')
  await page.click('button:text-is("Create the command")')
  await page.fill('dialog input[name=reason]', 'to look at the command')
  await page.click('dialog button[type=submit]')
  await looksRight('command', '.copy-box pre')
  expect(wrong).toEqual([])
})

test('the keyboard alone is enough to sign in, filter, open, suspend with a reason, resume, read a log and sign out', async () => {
  const context = await browser.context()
  const other = await context.newPage()
  const press = (key: string) => other.keyboard.press(key)
  const suspended = async () =>
    (await demo.api<{ items: Array<{ cluster: string; reason: string }> }>('GET', '/suspensions')).items.map((one) => [
      one.cluster,
      one.reason,
    ])
  await open('', other)
  await tabTo(other, /API token/)
  await other.keyboard.type(demo.fleet.token)
  await press('Enter')
  await other.waitForSelector('.chart a[data-id]')
  await press('Tab')
  await tabTo(other, 'Skip to content')
  await press('Enter')
  await tabTo(other, /^[a-z-]+-\d+, /)
  await press('ArrowRight')
  await other.waitForFunction(() => document.activeElement?.matches('.chart a[data-id]'))
  await tabTo(other, /^All activity/)
  await press('/')
  await other.keyboard.type('clusters')
  await other.waitForSelector('[role=option]')
  await press('Enter')
  await other.waitForSelector('h1:text-is("Clusters")')
  await tabTo(other, 'Filter by name')
  await other.keyboard.type(filtered)
  await other.waitForFunction(() => document.querySelectorAll('.rows-body [data-row]').length === 1)
  await tabTo(other, new RegExp(`^${filtered}`))
  await press('Enter')
  await other.waitForFunction((name) => document.querySelector('h1')?.textContent === name, filtered)
  await tabTo(other, 'Suspend')
  await press('Enter')
  await other.waitForSelector('dialog input[name=reason]')
  await tabTo(other, /^Reason/)
  await other.keyboard.type('maintenance')
  await press('Enter')
  await other.waitForSelector('main button:text-is("Resume")')
  expect(await suspended()).toEqual([[filtered, 'maintenance']])
  await tabTo(other, 'Resume')
  await press('Enter')
  await other.waitForSelector('dialog input[name=reason]')
  await press('Escape')
  await other.waitForSelector('dialog', { state: 'detached' })
  await tabTo(other, /web/)
  await press('Enter')
  await other.waitForSelector('.object-row')
  await tabTo(other, /^Deployment ?web/)
  await press('j')
  await press('k')
  await press('Enter')
  await tabTo(other, 'State')
  await press('ArrowRight')
  await press('ArrowRight')
  await press('ArrowRight')
  await other.waitForSelector('[data-tab=logs][aria-selected=true]')
  await other.waitForSelector('.log >> text=level=info')
  await press('l')
  await other.waitForSelector('dialog[open] .legend')
  await press('Escape')
  await tabTo(other, 'Sign out')
  await press('Enter')
  await other.waitForSelector('input[name=token]')
  await context.close()
})

test.each([
  ['clusters', 360],
  ['clusters', 1280],
  ['services', 360],
  ['services', 640],
])('the menu of the list %s is whole in a window of %d px', async (path, width) => {
  await page.setViewportSize({ width, height: 800 })
  await open(path)
  await page.waitForSelector('.rows-body [data-row="0"]')
  await page.click('summary:has-text("View")')
  const whole = () => {
    const box = document.querySelector('.menu[open] .menu-body')?.getBoundingClientRect()
    return box !== undefined && box.left >= 0 && box.right <= window.innerWidth
  }
  await page.waitForFunction(whole, null, { timeout: 5_000 })
  await page.setViewportSize({ width: 1280, height: 900 })
})

test('a text that is cut off is shown in full beside the row that has the keyboard', async () => {
  await page.setViewportSize({ width: 700, height: 900 })
  await open('services?state=failing')
  await page.waitForSelector('.rows-body [data-row="0"]')
  await tabTo(page, /broken/)
  const whole = await page.locator('.rows-body [data-row="0"] .clip span[title]').last().getAttribute('title')
  expect(await page.locator('.full-text').textContent()).toContain(whole ?? 'no message')
  await page.keyboard.press('Escape')
  await page.waitForSelector('.full-text', { state: 'detached' })
  await page.setViewportSize({ width: 1280, height: 900 })
})

test('in a dialog, the whole text of the option that has the keyboard lies above the dialog', async () => {
  await page.setViewportSize({ width: 200, height: 800 })
  await open('')
  await page.waitForSelector('.chart a[data-id]')
  await page.keyboard.press('/')
  await page.keyboard.type('web')
  await page.waitForSelector('dialog[open] [role=option] small')
  const shown = page.locator('.full-text:popover-open')
  for (let tries = 0; tries < 20 && (await shown.count()) === 0; tries++) {
    await page.keyboard.press('ArrowDown')
    await page.waitForTimeout(50)
  }
  const texts = await page.locator('[role=option][aria-selected=true] .clip').allTextContents()
  const whole = (await shown.textContent()) ?? ''
  expect(texts.some((text) => whole.includes(text))).toBe(true)
  await page.keyboard.press('Escape')
  await shown.waitFor({ state: 'detached' })
  await page.setViewportSize({ width: 1280, height: 900 })
})

test('below a path of a proxy every page has its files, links and live changes', async () => {
  const prefix = '/ops/skerry'
  const proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: (request) => {
      const { pathname, search } = new URL(request.url)
      if (!pathname.startsWith(`${prefix}/`)) return new Response('elsewhere', { status: 418 })
      const { method, headers, body } = request
      return fetch(`${demo.fleet.serverUrl}${pathname.slice(prefix.length)}${search}`, {
        method,
        headers,
        body,
        redirect: 'manual',
        decompress: false,
      })
    },
  })
  const context = await browser.context({ token: demo.fleet.token })
  const other = await context.newPage()
  await other.goto(`http://127.0.0.1:${proxy.port}${prefix}/`)
  await other.waitForSelector('.chart a[data-id]')
  await other.click(`.chart a[aria-label^="${good},"]`)
  await other.click(`main a[href$="/${good}/shop/web"]`)
  await other.waitForSelector('.object-row')
  expect(new URL(other.url()).pathname).toBe(`${prefix}/dashboard/clusters/${good}/shop/web`)
  await other.reload()
  await other.waitForSelector('.live.is-live')
  await demo.site(0).degrade('shop/web')
  await other.waitForSelector('.object-row .m-bad')
  await demo.site(0).heal('shop/web')
  await context.close()
  await proxy.stop(true)
})

test('times are those of the zone of the reader, and the absolute one is in the title', async () => {
  const context = await browser.context({ token: demo.fleet.token, timezoneId: 'Asia/Kathmandu' })
  const other = await context.newPage()
  await open(`clusters/${good}/shop/web`, other)
  await other.locator('main time').first().hover()
  await other.waitForSelector('main time[title*="GMT+5:45"]')
  await context.close()
})

test('nothing moves for a person who asks for less motion', async () => {
  const moving = async (reducedMotion: 'reduce' | 'no-preference') => {
    await page.emulateMedia({ reducedMotion })
    await open('')
    await page.waitForSelector('.chart a[data-id]')
    return page.evaluate(
      () =>
        [...document.querySelectorAll('*')].filter((one) =>
          getComputedStyle(one)
            .transitionDuration.split(', ')
            .some((time) => time !== '0s'),
        ).length,
    )
  }
  expect(await moving('no-preference')).toBeGreaterThan(0)
  expect(await moving('reduce')).toBe(0)
  expect(await page.evaluate(() => document.getAnimations().length)).toBe(0)
})

test('nothing was wrong on the console, no request was refused, and nothing broke the content policy', () => {
  expect(browser.wrong).toEqual([])
})
