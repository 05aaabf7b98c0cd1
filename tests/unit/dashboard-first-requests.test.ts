// The requests that are sent before the page is there: by whom, which, and that each is taken once by the same person.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { columnsOf } from '../../server/store/queries/fleet-chart.ts'
import type { ChartCluster } from '../../shared/model/chart.ts'
import { standInForBrowser } from '../support/browser-page.ts'

const BASE = 'http://localhost/skerry/'
const fetchBefore = globalThis.fetch
const asked: string[] = []
let first: typeof import('../../server/dashboard/ui/state/first-requests.ts')
let credential: typeof import('../../server/dashboard/ui/state/credential.ts')

beforeAll(async () => {
  standInForBrowser()
  globalThis.fetch = (async (url: string) => {
    asked.push(url.replace(BASE, ''))
    return new Response(url)
  }) as typeof fetch
  first = await import('../../server/dashboard/ui/state/first-requests.ts')
  credential = await import('../../server/dashboard/ui/state/credential.ts')
})
beforeEach(() => {
  asked.length = 0
  credential.forgetToken()
  location.hash = ''
  delete document.documentElement.dataset['cookie']
  delete (globalThis as { skerrySent?: unknown }).skerrySent
})
afterAll(() => {
  globalThis.fetch = fetchBefore
})

const WHOAMI = 'api/v1/whoami'
const CHART = 'api/v1/chart?columns=true&by=*'
const init = (token: string | null, method = 'GET') => ({ method, headers: token === null ? {} : { authorization: `Bearer ${token}` } })

test.each([
  ['nobody', () => {}, []],
  ['a token', () => credential.keepToken('t'), [WHOAMI, CHART]],
  ['the cookie of a session', () => Object.assign(document.documentElement.dataset, { cookie: '' }), [WHOAMI, CHART]],
  [
    'a link that brings another credential',
    () => {
      credential.keepToken('t')
      location.hash = '#sign-in=abc'
    },
    [],
  ],
])('with %s, what is sent', (_, prepare, expected) => {
  prepare()
  first.sendFirst()
  expect(asked).toEqual(expected)
})

test('the answer is taken once, and only by a read of the person who asked', async () => {
  credential.keepToken('ada')
  first.sendFirst()
  expect(first.takeSent(BASE + WHOAMI, init('bob'))).toBeNull()
  expect(await (await first.takeSent(BASE + CHART, init('ada')))?.text()).toBe(BASE + CHART)
  expect(first.takeSent(BASE + CHART, init('ada'))).toBeNull()
  expect(first.takeSent(`${BASE}api/v1/services`, init('ada'))).toBeNull()
})

test('nothing is sent when the page was there first', () => {
  credential.keepToken('ada')
  expect(first.takeSent(BASE + WHOAMI, init('ada'))).toBeNull()
  first.sendFirst()
  expect(asked).toEqual([])
})

test('rows of a chart are the same by field, and of a server that does not know fields', async () => {
  const { rowsOf } = await import('../../server/dashboard/ui/state/cluster-list.ts')
  const one = { id: 'c-1', name: 'oslo', group: 'eu', liveness: { word: 'Online', lastSeenMs: 7 }, sync: 'Synced', health: 'Healthy' }
  const two = { id: 'c-2', name: 'riga', group: null, liveness: { word: 'NeverSeen', lastSeenMs: null }, sync: null, health: null }
  const counts = { services: 3, bad: 1, drifts: 2, suspended: true, held: true }
  const rows = [
    { ...one, ...counts },
    { ...two, services: 0, bad: 0, drifts: 0, suspended: false, held: false },
  ] as ChartCluster[]
  expect(rowsOf({ items: [], columns: columnsOf(rows) })).toEqual(rows)
  expect(rowsOf({ items: rows })).toEqual(rows)
})
