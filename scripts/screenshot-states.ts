// States for pictures besides pages: dialogs, and states that no healthy server shows: nothing there, everything
// refused or failed, thousands of clusters, names of the greatest length. The answers are put in the place of the
// server's own.
import type { Page, Route } from 'playwright-core'

interface UglyState {
  /** Name of the page, in place of a path. */
  of?: string
  /** Path of the page. */
  path: string
  /** Before the page is opened. */
  before?(page: Page): Promise<unknown>
  /** When it has been shown. */
  after?(page: Page): Promise<unknown>
}

const API = /\/api\/v1\/(?!auth\/|changes|whoami)/
const MANY = 10_000
const LONG = 'a-cluster-whose-name-has-the-greatest-length-that-a-name-may-have'.slice(0, 63)
/** Longer than the page keeps quiet about it. */
const LOST_MS = 15_000

const json = (route: Route, status: number, body: object) =>
  route.fulfill({ status, contentType: status < 400 ? 'application/json' : 'application/problem+json', body: JSON.stringify(body) })

const problem = (status: number, code: string, detail: string, remedy: string) => (page: Page) =>
  page.route(API, (route) => json(route, status, { status, code, title: code, detail, remedy }))

/** Steps that open something on a page. */
export const OPENED: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  placement: (page) => page.locator('.objects .fold').first().click({ timeout: 2_000 }),
}

interface Acted {
  /** Name of the page. */
  of: string
  act(page: Page): Promise<unknown>
}

/** Dialogs, menus and the palette. */
export const ACTED: Readonly<Record<string, Acted>> = {
  palette: {
    of: 'fleet',
    async act(page) {
      await page.keyboard.press('/')
      await page.keyboard.type('pay')
    },
  },
  'palette-command': {
    of: 'fleet',
    async act(page) {
      await page.keyboard.press('/')
      await page.keyboard.type('suspend oslo')
    },
  },
  legend: { of: 'services', act: (page) => page.keyboard.press('l') },
  'view-menu': { of: 'clusters', act: (page) => page.click('.menu > summary') },
  'chart-card': { of: 'fleet', act: (page) => page.locator('.m-offline').first().hover() },
  'dialog-suspend': { of: 'service', act: (page) => page.click('main button:text-is("Suspend")') },
  'dialog-sync': { of: 'needs', act: (page) => page.locator('main button:text-is("Sync now")').first().click() },
  'dialog-confirm': { of: 'confirmation', act: (page) => page.click('main button.primary') },
  'dialog-keep': { of: 'confirmation', act: (page) => page.click('main button:text-is("Keep the objects")') },
  'dialog-restart': { of: 'placement', act: (page) => page.click('main button:text-is("Restart")') },
  'dialog-revoke': { of: 'cluster', act: (page) => page.click('main button:text-is("Revoke")') },
  'dialog-labels': {
    of: 'cluster',
    async act(page) {
      await page.click('main button:text-is("Edit labels")')
      await page.fill('dialog textarea', 'env=lab\nring=9')
      await page.click('dialog button:text-is("Preview")')
    },
  },
  'join-command': {
    of: 'join',
    async act(page) {
      await page.fill('input[name=name]', 'lofoten-1')
      await page.fill('textarea[name=labels]', 'region=nordics, env=prod')
      await page.click('main form button[type=submit]')
      await page.fill('dialog input[name=reason]', 'new site')
      await page.click('dialog button[type=submit]')
      await page.waitForSelector('.copy-box')
    },
  },
}

const nothing = (page: Page) =>
  page.route(API, (route) => {
    const url = route.request().url()
    const more = url.includes('/chart')
      ? { by: null, labels: [], columns: undefined }
      : url.includes('/attention')
        ? { counts: {}, total: 0 }
        : {}
    return json(route, 200, { items: [], continue: null, rows: [], columns: [], ...more })
  })

const WORDS = [
  { sync: 'Synced', health: 'Healthy', bad: 0 },
  { sync: 'Synced', health: 'Degraded', bad: 2 },
  { sync: 'OutOfSync', health: 'Progressing', bad: 1 },
] as const

const clusters = (count: number, nameOf: (index: number) => string, groupOf: (index: number) => string) => async (page: Page) => {
  const items = Array.from({ length: count }, (_, index) => ({
    ...{
      id: `c-${index}`,
      name: nameOf(index),
      group: groupOf(index),
      services: 40,
      drifts: index % 211 === 7 ? 1 : 0,
      suspended: false,
      held: false,
    },
    ...(WORDS[index % 97 === 5 ? 1 : index % 53 === 9 ? 2 : 0] ?? WORDS[0]),
    liveness: {
      word: index % 41 === 3 ? 'Offline' : 'Online',
      lastSeenMs: Date.now() - 3 * 3_600_000,
      sinceMs: Date.now() - 3 * 3_600_000,
    },
  }))
  const labels = [{ key: 'region', clusters: count, values: 20 }]
  await page.route(/\/api\/v1\/chart/, (route) => json(route, 200, { by: 'region', labels, items, continue: null }))
}

/** Everything needs somebody: 500 entries, of which the first are shown. */
const swamped = (page: Page) =>
  page.route(/\/api\/v1\/attention/, (route) => {
    const items = Array.from({ length: 200 }, (_, index) => {
      const of = { id: `render shop/service-${index}`, sinceMs: Date.now() - index * 60_000, project: 'shop', service: `service-${index}` }
      const problems = [{ path: `shop/service-${index}/app.yaml:12:7`, message: `expected a mapping, found ${LONG}` }]
      return { kind: 'render', ...of, message: 'the manifest does not parse', problems }
    })
    return json(route, 200, { items, counts: { render: 500 }, total: 500, continue: 'x' })
  })

/** A service whose objects all failed. */
const degraded = (page: Page) =>
  page.route(/\/api\/v1\/objects\?/, (route) => {
    const items = Array.from({ length: 500 }, (_, index) => ({
      ...{ project: 'shop', service: 'web', cluster: 'x', liveness: { word: 'Online', lastSeenMs: Date.now() } },
      ...{ group: 'apps', kind: 'Deployment', namespace: 'shop', name: `worker-${index}`, sync: 'Synced', health: 'Degraded' },
      ...{ reason: 'CrashLoopBackOff', message: `container main of pod worker-${index}-${LONG} exits with code 137` },
      ...{ next: 'Look at its logs.', sinceMs: Date.now() - 60_000, drift: null },
    }))
    return json(route, 200, { items, continue: 'x' })
  })

const failed = problem(500, 'internal', 'an internal error occurred', 'Look for the request id in the log of the server.')
const denied = problem(403, 'forbidden', 'alice@example.com may not read Cluster', 'An admin can add a role binding that gives this right.')

export const UGLY_STATES: Readonly<Record<string, UglyState>> = {
  'ugly-empty-fleet': { path: '', before: nothing },
  'ugly-empty-services': { path: 'services', before: nothing },
  'ugly-empty-needs': { path: 'needs-you', before: nothing },
  'ugly-swamped-needs': { path: 'needs-you', before: swamped },
  'ugly-swamped-fleet': { path: '', before: swamped },
  'ugly-swamped-objects': { of: 'placement', path: '', before: degraded },
  'ugly-failed-fleet': { path: '', before: failed },
  'ugly-failed-start': {
    path: '',
    before: (page) =>
      page.route(/\/api\/v1\/whoami/, (route) =>
        json(route, 503, { code: 'unavailable', detail: 'the server is starting', remedy: 'Try again in a minute.' }),
      ),
  },
  'ugly-failed-service': { path: 'services/shop/web', before: failed },
  'ugly-failed-later': {
    path: 'services',
    async after(page) {
      await failed(page)
      await page.locator('.filters input').first().fill('pay')
      await page.waitForTimeout(1_500)
    },
  },
  'ugly-denied-clusters': { path: 'clusters', before: denied },
  'ugly-denied-service': { path: 'services/shop/web', before: denied },
  'ugly-many-fleet': {
    path: '',
    before: clusters(
      MANY,
      (index) => `store-${index}`,
      (index) => `region-${index % 20}`,
    ),
  },
  'ugly-many-clusters': {
    path: 'clusters',
    before: clusters(
      MANY,
      (index) => `store-${index}`,
      (index) => `region-${index % 20}`,
    ),
  },
  'ugly-long-clusters': {
    path: 'clusters',
    before: clusters(
      200,
      (index) => `${LONG.slice(0, 59)}-${index}`,
      () => `${LONG}`,
    ),
  },
  'ugly-long-fleet': {
    path: '',
    before: clusters(
      200,
      (index) => `${LONG.slice(0, 59)}-${index}`,
      (index) => `${LONG.slice(0, 60)}-${index % 4}`,
    ),
  },
  'ugly-lost': {
    path: '',
    async after(page) {
      await page.context().setOffline(true)
      await page.waitForTimeout(LOST_MS)
    },
  },
}
