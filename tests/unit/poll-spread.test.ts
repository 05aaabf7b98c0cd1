// Many repositories on one server: when each is asked, on a virtual clock, with the real loop and a store and sources
// that answer at once.
import { expect, setDefaultTimeout, test } from 'bun:test'
import type { RepositoryState } from '../../server/fleet/records.ts'
import { createIngest, type IngestDeps } from '../../server/ingest/ingest-loop.ts'
import { firstLookMs } from '../../server/ingest/poll-times.ts'
import type { Source } from '../../server/sources/source.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

setDefaultTimeout(20_000)

const REPOSITORIES = 500
const SECOND = 1_000

interface Options {
  hasContent: boolean
  isDown?: (name: string) => boolean
  hostOf?: (name: string) => string
  askMs?: (name: string) => number
  /** There is none at the start. */
  areNew?: boolean
}

function world({ hasContent, isDown = () => false, hostOf = () => 'git.example', askMs = () => 50, areNew = false }: Options) {
  const clock = createVirtualClock()
  const startMs = clock.nowMs()
  const names = Array.from({ length: REPOSITORIES }, (_, n) => `r-${String(n).padStart(3, '0')}`)
  const states = new Map<string, RepositoryState>(
    hasContent ? names.map((name) => [name, { commit: 'c1', fetchedMs: 1, tag: null, error: null }]) : [],
  )
  const stop = new AbortController()
  const looks: Array<{ name: string; atMs: number }> = []
  const written: string[] = []
  const gone = new Set<string>()
  let [reading, most] = [0, 0]
  const ask = async (name: string) => {
    looks.push({ name, atMs: clock.nowMs() - startMs })
    most = Math.max(most, ++reading)
    await clock.sleep(askMs(name), stop.signal)
    reading -= 1
    if (isDown(name)) throw new AppError('git_unreachable', { detail: 'no answer' })
    return 'c1'
  }
  const source = (name: string): Source => ({
    head: () => ask(name),
    fetch: () => ask(name),
    has: async () => hasContent,
    open: () => Promise.reject(new Error('nothing is rendered here')),
  })
  const resource = (name: string) => ({
    kind: 'Repository',
    project: 'default',
    name,
    uid: name,
    spec: JSON.stringify({ git: { url: `https://${hostOf(name)}/${name}.git`, ref: 'main' } }),
  })
  const store = {
    listResources: async (kind: string, { after }: { after?: string }) => {
      const from = after === undefined ? 0 : Number(after)
      const items = kind === 'Repository' && !areNew ? names.slice(from, from + 500).map(resource) : []
      return { items, next: from + items.length < names.length && items.length > 0 ? String(from + items.length) : null }
    },
    getResource: async ({ kind, name }: { kind: string; name: string }) => (kind === 'Project' || gone.has(name) ? null : resource(name)),
    repositoryState: async (_: string, name: string) => states.get(name) ?? { commit: null, fetchedMs: null, tag: null, error: null },
    setRepositoryState: async (_: string, name: string, state: RepositoryState) => {
      written.push(name)
      states.set(name, state)
    },
    appendEvents: async () => {},
    confirmedData: async () => new Map(),
    listClusters: async () => [],
    listStatus: async () => [],
  }
  const sources = {
    open: ({ uid }: { uid: string }) => source(uid),
    forget: async () => {},
    removeOthers: async () => {},
    removeUnknown: async () => {},
  }
  const rest = { clock, random: seededRandom(7), log: silentLogger, stopping: stop.signal, rendering: {} }
  const ingest = createIngest({ store, sources, ...rest } as unknown as IngestDeps)
  const running = ingest.run()
  const end = async () => {
    stop.abort()
    clock.jump(60 * 60 * SECOND)
    await running
  }
  return { clock, startMs, looks, states, written, gone, ingest, most: () => most, end }
}

function mostInASecond(looks: ReadonlyArray<{ atMs: number }>): number {
  const seconds = new Map<number, number>()
  for (const { atMs } of looks) seconds.set(Math.floor(atMs / SECOND), (seconds.get(Math.floor(atMs / SECOND)) ?? 0) + 1)
  return Math.max(...seconds.values())
}

test('IN9 IN9a 500 repositories with content are spread over their interval after a start, and stay spread', async () => {
  const { clock, looks, end } = world({ hasContent: true })
  await clock.advance(5 * 60 * SECOND)
  // 8.3 a second in the mean.
  expect(mostInASecond(looks)).toBeLessThanOrEqual(24)
  expect(new Set(looks.filter(({ atMs }) => atMs <= 61 * SECOND).map(({ name }) => name)).size).toBe(REPOSITORIES)
  expect(looks.length).toBeGreaterThan(4 * REPOSITORIES)
  expect(looks.length).toBeLessThan(6 * REPOSITORIES)
  await end()
})

test('IN9a a few repositories are looked at within a moment of a start, many within their interval', () => {
  expect([0, 1, 3].map((index) => firstLookMs(true, 60_000, index, 4))).toEqual([0, 100, 300])
  expect([0, 250, 499].map((index) => firstLookMs(true, 5_000, index, 500))).toEqual([0, 2_500, 4_990])
  expect(firstLookMs(false, 60_000, 3, 4)).toBe(0)
})

test('IN9a those without content are read at once, four at a time', async () => {
  const { clock, looks, most, end } = world({ hasContent: false })
  await clock.advance(10 * SECOND)
  expect([looks.length, most()]).toEqual([REPOSITORIES, 4])
  await end()
})

test.each([1, 3, 12])('IN9a hosts that answer nothing keep nobody waiting for long: %i of them', async (count) => {
  const isDead = (name: string) => name < 'r-250'
  const { clock, looks, most, end } = world({
    hasContent: false,
    hostOf: (name) => (isDead(name) ? `dead-${Number(name.slice(2)) % count}.example` : 'git.example'),
    askMs: (name) => (isDead(name) ? 60 * SECOND : 50),
    isDown: isDead,
  })
  // One hand each, as for every host that was not heard from yet: at first they may have all of them.
  await clock.advance(50 * SECOND)
  expect(looks.filter(({ name }) => isDead(name)).length).toBe(Math.min(count, 8))
  await clock.advance((count > 8 ? 90 : 20) * SECOND)
  expect(looks.filter(({ name }) => !isDead(name)).length).toBeGreaterThanOrEqual(250)
  const { length } = looks
  await clock.advance(70 * SECOND)
  const later = looks.slice(length)
  expect(later.filter(({ name }) => isDead(name)).length).toBeLessThanOrEqual(8)
  expect(new Set(later.filter(({ name }) => !isDead(name)).map(({ name }) => name)).size).toBeGreaterThan(240)
  expect(most()).toBeLessThanOrEqual(8)
  await end()
})

test('IN9a a hundred new repositories of a host that does not answer take one hand, and one that moves away from it waits no longer', async () => {
  let isMoved = false
  const isDead = (name: string) => name < 'r-100' && !(isMoved && name === 'r-050')
  const { clock, looks, ingest, end } = world({
    ...{ hasContent: false, areNew: true, isDown: isDead },
    hostOf: (name) => (isDead(name) ? 'dead.example' : 'git.example'),
    askMs: (name) => (isDead(name) ? 60 * SECOND : 50),
  })
  await clock.advance(0)
  const tell = (from: number, to: number) => {
    for (let n = from; n < to; n++) ingest.repositoryChanged('default', `r-${String(n).padStart(3, '0')}`).catch(() => {})
  }
  tell(0, 101)
  await clock.advance(SECOND)
  expect(looks.map(({ name }) => name).sort()).toEqual(['r-000', 'r-100'])
  isMoved = true
  tell(50, 51)
  tell(100, 101) // somebody whose look ends, after which the next one begins
  await clock.advance(SECOND)
  expect(looks.map(({ name }) => name).sort()).toEqual(['r-000', 'r-050', 'r-100', 'r-100'])
  await end()
})

test('IN9 what somebody says has news is asked at once, also among many', async () => {
  const { clock, looks, ingest, end } = world({ hasContent: true })
  await clock.advance(SECOND)
  const before = looks.length
  const told = ingest.repositoryChanged('default', 'r-499')
  await clock.advance(200)
  await told
  expect(looks.slice(before).some(({ name }) => name === 'r-499')).toBe(true)
  await end()
})

test('IN9b repositories that are down keep their content and are asked no more often than the others', async () => {
  const { clock, looks, states, end } = world({ hasContent: true, isDown: (name) => name < 'r-250' })
  await clock.advance(8 * 60 * SECOND)
  const late = looks.filter(({ atMs }) => atMs > 4 * 60 * SECOND)
  const down = late.filter(({ name }) => name < 'r-250').length
  expect(down).toBeLessThan(2.5 * (late.length - down)) // full jitter: half of the interval in the mean
  expect(mostInASecond(late)).toBeLessThanOrEqual(32)
  expect(states.get('r-000')).toMatchObject({ commit: 'c1', error: { code: 'git_unreachable' } })
  await end()
})

test('SO52 when each was looked at last, also in vain, and when it will be next is known from the start on, and nothing is written for it', async () => {
  const { clock, startMs, looks, written, gone, ingest, end } = world({ hasContent: true, isDown: (name) => name === 'r-001' })
  const look = (name: string) => ingest.readTimesOf('default', name)
  const lastOf = (name: string) => looks.findLast((one) => one.name === name)?.atMs ?? 0
  await clock.advance(SECOND)
  expect(look('r-499')).toEqual({ lastReadMs: null, nextReadMs: startMs + 499 * 100 })
  expect(look('other')).toBeNull()
  await clock.advance(5 * 60 * SECOND)
  for (const name of ['r-000', 'r-001', 'r-499']) {
    const { lastReadMs, nextReadMs = 0 } = look(name) ?? {}
    expect([name, lastReadMs]).toEqual([name, startMs + lastOf(name) + 50])
    await clock.advance(nextReadMs + 1 - clock.nowMs())
    expect(startMs + lastOf(name) - nextReadMs).toBeWithin(-1, 2)
    expect(look(name)).toEqual({ lastReadMs: lastReadMs ?? 0, nextReadMs }) // it is on its way
    await clock.advance(50)
    expect(look(name)?.lastReadMs).toBe(startMs + lastOf(name) + 50)
    expect(Number.isInteger(look(name)?.nextReadMs)).toBe(true)
  }
  expect(written).toEqual(['r-001'])
  const told = ingest.repositoryChanged('default', 'r-499')
  expect(look('r-499')?.nextReadMs).toBe(clock.nowMs())
  await clock.advance(200)
  await told
  expect(look('r-499')?.nextReadMs).toBeGreaterThan(clock.nowMs())
  gone.add('r-499')
  const removed = ingest.repositoryChanged('default', 'r-499')
  await clock.advance(200)
  await removed
  expect(look('r-499')).toBeNull()
  await end()
})
