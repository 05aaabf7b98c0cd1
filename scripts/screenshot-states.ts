// States that no healthy server shows: nothing there, everything refused or failed, thousands of clusters, names of the greatest length. The answers are put in the place of
// the server's own.
import type { Page, Route } from 'playwright-core'

interface UglyState {
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

const nothing = (page: Page) =>
  page.route(API, (route) => {
    const isChart = route.request().url().includes('/chart')
    return json(route, 200, { items: [], continue: null, ...(isChart ? { by: null, labels: [] } : {}) })
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

const failed = problem(500, 'internal', 'an internal error occurred', 'Look for the request id in the log of the server.')
const denied = problem(403, 'forbidden', 'alice@example.com may not read Cluster', 'An admin can add a role binding that gives this right.')

export const UGLY_STATES: Readonly<Record<string, UglyState>> = {
  'ugly-empty-fleet': { path: '', before: nothing },
  'ugly-empty-services': { path: 'services', before: nothing },
  'ugly-empty-needs': { path: 'needs-you', before: nothing },
  'ugly-failed-fleet': { path: '', before: failed },
  'ugly-failed-start': {
    path: '',
    before: (page) =>
      page.route(/\/api\/v1\/whoami/, (route) =>
        json(route, 503, { code: 'unavailable', detail: 'the server is starting', remedy: 'Try again in a minute.' }),
      ),
  },
  'ugly-failed-service': { path: 'services/shop/web', before: failed },
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
