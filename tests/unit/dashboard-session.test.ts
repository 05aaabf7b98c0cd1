// A session of the dashboard that ends, however it ends, takes with it what was read for its person; the next one in
// the same tab gets a stream and a fleet of its own.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { settled, standInForBrowser } from '../support/browser-page.ts'

const asked: string[] = []
const streams: Array<ReadableStreamDefaultController<Uint8Array>> = []
/** Refuses everything of the former person. */
let isEnded = false
let cluster = 'of-ada'

const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
const chart = (name: string) => ({
  ...{ position: 7, by: null, labels: [], continue: null },
  items: [{ id: `c-${name}`, name, group: null, liveness: { word: 'Online', lastSeenMs: 1 } }],
})

async function answer(url: string): Promise<Response> {
  const path = new URL(url).pathname.replace('/skerry/', '/')
  asked.push(path)
  if (isEnded) return json({ code: 'unauthorized', detail: 'no' }, 401)
  if (path === '/api/v1/whoami') return json({ name: 'ada', roles: [] })
  if (path === '/api/v1/chart') return json(chart(cluster))
  if (path !== '/api/v1/changes') return json({ items: [] })
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void streams.push(controller) })
  streams.at(-1)?.enqueue(new TextEncoder().encode('id: 7\nevent: ready\ndata: {"position":7}\n\n'))
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

const fetchBefore = globalThis.fetch
let account: typeof import('../../server/dashboard/ui/state/account.ts')
let fleet: typeof import('../../server/dashboard/ui/state/fleet.ts')
let live: typeof import('../../server/dashboard/ui/state/live.ts')
let resources: typeof import('../../server/dashboard/ui/state/resource.ts')
let session: typeof import('../../server/dashboard/ui/state/session.ts')
beforeAll(async () => {
  standInForBrowser()
  globalThis.fetch = ((url: string) => answer(url)) as typeof fetch
  session = await import('../../server/dashboard/ui/state/session.ts')
  account = await import('../../server/dashboard/ui/state/account.ts')
  fleet = await import('../../server/dashboard/ui/state/fleet.ts')
  live = await import('../../server/dashboard/ui/state/live.ts')
  resources = await import('../../server/dashboard/ui/state/resource.ts')
})
afterAll(() => {
  live.stopLive()
  globalThis.fetch = fetchBefore
})

const names = () => [...(fleet.fleet.state.value.value?.clusters.values() ?? [])].map((one) => one.name)
const streamsOpened = () => asked.filter((path) => path === '/api/v1/changes').length
const until = async (what: () => boolean) => {
  for (let tries = 0; !what() && tries < 200; tries++) await new Promise(setImmediate) // the stream and the chart take turns of the loop
  expect(what()).toBe(true)
}

test('after a stream that was refused, the next sign-in in the same tab is live again and shows nothing of the former person', async () => {
  await account.signInWith('ada-token', 'refused')
  const leave = fleet.fleet.use()
  const held = resources.resourceOf(
    'notes',
    async () => 'of ada',
    () => false,
  )
  const leaveHeld = held.use()
  await until(() => names()[0] === 'of-ada' && streams.length === 1)
  expect(held.state.value.value).toBe('of ada')
  isEnded = true
  streams[0]?.close()
  live.hurryLive()
  await until(() => {
    live.hurryLive()
    return session.session.value.state === 'out'
  })
  await settled()
  expect(names()).toEqual([])
  expect(
    resources.resourceOf(
      'notes',
      async () => 'of bob',
      () => false,
    ),
  ).not.toBe(held)
  leave()
  leaveHeld()
  isEnded = false
  cluster = 'of-bob'
  const before = streamsOpened()
  await account.signInWith('bob-token', 'refused')
  const leaveAgain = fleet.fleet.use()
  await until(() => streamsOpened() > before && names()[0] === 'of-bob')
  leaveAgain()
})
