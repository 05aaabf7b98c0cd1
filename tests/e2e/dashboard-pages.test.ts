// What holds on every page of the dashboard: it is free of findings of axe in both themes, stays within its window from a telephone to a wall, at 200 percent and below
// a path of a proxy, works by keyboard alone, and moves nothing for who asks for less motion.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { findings, overflow, settledPage, startWatchedBrowser, tabTo, type WatchedBrowser } from '../support/dashboard-browser.ts'
import { type DemoFleet, startDemoFleet } from '../support/demo-fleet.ts'

setDefaultTimeout(180_000)

let demo: DemoFleet
let browser: WatchedBrowser
let page: Page
let confirmation = ''

const open = (path: string, of = page) => of.goto(`${demo.fleet.serverUrl}/dashboard/${path}`)
const nameOf = (index: number) => demo.site(index).choice.name

beforeAll(async () => {
  demo = await startDemoFleet(8)
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

const pagesOf = (): string[] => {
  const [good, bad, drifted] = [0, 1, 2].map(nameOf)
  const object = 'object=apps/Deployment/web/web'
  return [
    '',
    'clusters',
    `clusters?cluster=${bad}&group=env`,
    `clusters/${bad}`,
    `clusters/${bad}/history`,
    `clusters/${bad}/shop/web`,
    `clusters/${drifted}/shop/web?${object}&tab=diff`,
    ...['state', 'events', 'logs', 'yaml'].map((tab) => `clusters/${good}/shop/web?${object}&tab=${tab}`),
    `clusters/${good}/shop/web/history`,
    'services',
    'services/shop/web',
    'services/shop/web/render',
    `services/shop/web/render?cluster=${good}`,
    'services/shop/broken',
    'repositories',
    'repositories/shop/apps',
    'needs-you',
    `needs-you/${confirmation}`,
    'query?sql=SELECT%20name%20FROM%20clusters',
    'activity',
    'activity?view=audit',
    'notifications',
    'access',
    'join',
    'settings',
    'nowhere',
  ]
}

test('every page is free of findings in both themes, and no page is wider than a telephone, 200 percent or a wall', async () => {
  const wrong: string[] = []
  for (const path of pagesOf()) {
    await page.setViewportSize({ width: 1280, height: 900 })
    await open(path)
    await settledPage(page)
    wrong.push(...(await findings(page)).map((found) => `${path}: ${found}`))
    // 640 px are 1280 px at 200 percent.
    for (const width of [360, 640, 1024, 2560]) {
      await page.setViewportSize({ width, height: 900 })
      const beside = await overflow(page)
      if (beside !== null) wrong.push(`${path} at ${width} px: ${beside}`)
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 })
  expect(wrong).toEqual([])
})

test('dialogs, menus and what they are opened from are free of findings in both themes', async () => {
  const wrong: string[] = []
  const look = async (what: string, opened: string) => {
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
  await look('legend', 'dialog[open] .legend')
  await page.keyboard.press('/')
  await page.keyboard.type('suspend we')
  await look('palette', '[role=option]')
  await page.click('main button:text-is("Suspend")')
  await look('suspend', 'dialog[open] input[name=reason]')
  await open(`needs-you/${confirmation}`)
  await page.click('main button:text-is("Keep the objects")')
  await look('keep', 'dialog[open] input[name=reason]')
  await page.click('main button.primary')
  await look('confirm', 'dialog[open] input[name=reason]')
  await open(`clusters/${nameOf(0)}`)
  await page.click('button:text-is("Edit labels")')
  await look('labels', 'dialog[open] textarea')
  await open('clusters')
  await page.click('summary:has-text("View")')
  await look('view', '.view-menu')
  await open('join')
  await page.fill('input[name=name]', 'oslo-9')
  await page.click('button:text-is("Create the command")')
  await page.fill('dialog input[name=reason]', 'to look at the command')
  await page.click('dialog button[type=submit]')
  await look('command', '.copy-box pre')
  expect(wrong).toEqual([])
})

test('by keyboard alone: sign in, filter, open, suspend with a reason, resume, read a log, sign out', async () => {
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
  await tabTo(other, /^oslo-01, /)
  await press('ArrowRight')
  await other.waitForFunction(() => document.activeElement?.matches('.chart a[data-id]'))
  await tabTo(other, /^All activity/)
  await press('/')
  await other.keyboard.type('clusters')
  await other.waitForSelector('[role=option]')
  await press('Enter')
  await other.waitForSelector('h1:text-is("Clusters")')
  await tabTo(other, 'Filter by name')
  await other.keyboard.type(nameOf(4))
  await other.waitForFunction(() => document.querySelectorAll('.rows-body [data-row]').length === 1)
  await tabTo(other, new RegExp(`^${nameOf(4)}`))
  await press('Enter')
  await other.waitForFunction((name) => document.querySelector('h1')?.textContent === name, nameOf(4))
  await tabTo(other, 'Suspend')
  await press('Enter')
  await other.waitForSelector('dialog input[name=reason]')
  await tabTo(other, /^Reason/)
  await other.keyboard.type('maintenance')
  await press('Enter')
  await other.waitForSelector('main button:text-is("Resume")')
  expect(await suspended()).toEqual([[nameOf(4), 'maintenance']])
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
  await other.click(`.chart a[aria-label^="${nameOf(0)},"]`)
  await other.waitForSelector('main a[href$="/shop/web"]')
  await other.click('main a[href$="/shop/web"]')
  await other.waitForSelector('.object-row')
  expect(new URL(other.url()).pathname).toBe(`${prefix}/dashboard/clusters/${nameOf(0)}/shop/web`)
  await other.reload()
  await other.waitForSelector('.live.is-live')
  await demo.site(0).degrade('shop/web')
  await other.waitForSelector('.object-row .m-bad')
  await demo.site(0).heal('shop/web')
  await context.close()
  await proxy.stop(true)
})

test('nothing moves for who asks for less motion', async () => {
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
