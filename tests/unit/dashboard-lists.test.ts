// Lists of the dashboard that are read from the server: pages as one scrolls, and values that are read again when
// something changed, but not too often.
import { beforeAll, expect, test } from 'bun:test'
import type { Timer } from '../../server/dashboard/ui/state/resource.ts'
import { settled, standInForBrowser } from '../support/browser-page.ts'

let lists: typeof import('../../server/dashboard/ui/state/paged-list.ts')
let resources: typeof import('../../server/dashboard/ui/state/resource.ts')
let api: typeof import('../../server/dashboard/ui/state/api.ts')
let place: typeof import('../../server/dashboard/ui/state/place.ts')
beforeAll(async () => {
  standInForBrowser()
  lists = await import('../../server/dashboard/ui/state/paged-list.ts')
  resources = await import('../../server/dashboard/ui/state/resource.ts')
  api = await import('../../server/dashboard/ui/state/api.ts')
  place = await import('../../server/dashboard/ui/state/place.ts')
})

/** Rows by name, in pages of ten; a token is the name before the page. */
function server(rows: string[]) {
  const asked: Array<string | null> = []
  const load = async (start: string | null) => {
    asked.push(start)
    const rest = rows.filter((row) => start === null || row > start)
    const items = rest.slice(0, 10)
    return { items, continue: rest.length > 10 ? (items.at(-1) ?? null) : null }
  }
  return { asked, load }
}
const names = (count: number) => Array.from({ length: count }, (_, index) => `r${String(index).padStart(3, '0')}`)

test('pages are read as far as somebody looks, each once', async () => {
  const { asked, load } = server(names(45))
  const list = new lists.PagedList<string>(load, (row) => row)
  list.want(0, 15)
  await settled()
  expect(asked).toEqual([null, 'r009'])
  list.want(5, 44)
  await settled()
  expect([list.state.value.items.length, list.state.value.hasMore]).toEqual([45, false])
  list.want(0, 44)
  await settled()
  expect(asked.length).toBe(5)
})

test('after a change only the pages in view are read again, and rows that came or went leave no gap and no double', async () => {
  const rows = names(45)
  const { asked, load } = server(rows)
  const list = new lists.PagedList<string>(load, (row) => row)
  list.want(0, 44)
  await settled()
  asked.length = 0
  rows.splice(3, 1)
  rows.push('r0035')
  rows.sort()
  list.want(0, 8)
  list.changed()
  await settled()
  expect(asked).toEqual([null])
  list.want(0, 44)
  await settled()
  expect(list.state.value.items).toEqual(rows)
})

test('what cannot be read keeps what was read, with the refusal', async () => {
  let fails = false
  const { load } = server(names(5))
  const list = new lists.PagedList<string>(
    async (start) => {
      if (fails) throw new Error('the server does not answer')
      return load(start)
    },
    (row) => row,
  )
  list.want(0, 5)
  await settled()
  fails = true
  list.changed()
  await settled()
  expect([list.state.value.items.length, list.state.value.refusal?.detail]).toEqual([5, 'the server does not answer'])
})

function virtualTimer(): Timer & { pass(ms: number): Promise<void> } {
  let now = 0
  let waiting: Array<{ atMs: number; run(): void }> = []
  return {
    nowMs: () => now,
    after(ms, run) {
      const entry = { atMs: now + ms, run }
      waiting.push(entry)
      return () => {
        waiting = waiting.filter((one) => one !== entry)
      }
    },
    async pass(ms) {
      now += ms
      const due = waiting.filter(({ atMs }) => atMs <= now)
      waiting = waiting.filter(({ atMs }) => atMs > now)
      for (const { run } of due) run()
      await settled()
    },
  }
}

test('however much changes, a value is read at most once a second, and the last change is never lost', async () => {
  const timer = virtualTimer()
  let reads = 0
  const resource = new resources.LiveResource(async () => ++reads, timer)
  const leave = resource.use()
  await settled()
  for (let change = 0; change < 1_000; change++) resource.changed()
  await settled()
  expect(reads).toBe(1)
  await timer.pass(1_000)
  expect([reads, resource.state.value.value]).toEqual([2, 2])
  await timer.pass(60_000)
  expect(reads).toBe(2)
  leave()
  resource.changed()
  await timer.pass(5_000)
  expect(reads).toBe(2)
  resource.use()
  await settled()
  expect(reads).toBe(3)
})

const refused = (status: number) => {
  const refusal = { status, code: '', detail: `HTTP ${status}`, remedy: '', problems: [] }
  return new api.ApiError(refusal)
}

test('a read that failed is repeated by itself, less and less often, and at once when the connection is back', async () => {
  const timer = virtualTimer()
  let reads = 0
  let isDown = true
  const resource = new resources.LiveResource(async () => {
    reads += 1
    if (isDown) throw refused(503)
    return 'fine'
  }, timer)
  resource.use()
  await settled()
  expect([reads, resource.state.value.refusal?.status]).toEqual([1, 503])
  await timer.pass(1_999)
  expect(reads).toBe(1)
  await timer.pass(1)
  expect(reads).toBe(2)
  await timer.pass(2_000)
  expect(reads).toBe(2)
  await timer.pass(2_000)
  expect(reads).toBe(3)
  isDown = false
  resource.returned()
  await settled()
  expect([reads, resource.state.value.value, resource.state.value.refusal]).toEqual([4, 'fine', null])
  await timer.pass(600_000)
  expect(reads).toBe(4)
})

test('a list whose page failed reads it again by itself', async () => {
  const timer = virtualTimer()
  const { asked, load } = server(names(5))
  let isDown = true
  const list = new lists.PagedList<string>(
    async (start) => {
      if (isDown) throw refused(0)
      return load(start)
    },
    (row) => row,
    timer,
  )
  list.want(0, 5)
  await settled()
  expect([list.state.value.refusal?.status, asked]).toEqual([0, []])
  isDown = false
  await timer.pass(2_000)
  expect([list.state.value.items.length, list.state.value.refusal]).toEqual([5, null])
})

test.each([401, 403])('HTTP %d takes away what was read; it is asked for again only when something changes', async (status) => {
  const timer = virtualTimer()
  let reads = 0
  const resource = new resources.LiveResource(async () => {
    reads += 1
    if (reads > 1) throw refused(status)
    return 'secret'
  }, timer)
  resource.use()
  await settled()
  resource.refresh()
  await settled()
  expect([resource.state.value.value, resource.state.value.refusal?.status]).toEqual([null, status])
  await timer.pass(600_000)
  expect(reads).toBe(2)
})

test('addresses are below the path that a proxy put in front', () => {
  expect(place.ROOT).toBe('/skerry/dashboard/')
  expect(place.serverUrl('api/v1/chart')).toBe('http://localhost/skerry/api/v1/chart')
  expect(place.pages.placement('oslo', 'shop', 'web')).toBe('/skerry/dashboard/clusters/oslo/shop/web')
})
