// Several who write and several who follow, who leave and come back at any moment, while old changes are let go: each
// sees each committed change once, in order, and nothing of what was undone. On PostgreSQL the writers are processes of
// their own, and one is killed in the middle; on SQLite the file is closed and opened again.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createChangeStore } from '../../server/store/feed/store-changes.ts'
import type { Store } from '../../server/store/store.ts'
import { createStoreDb, type StoreDb } from '../../server/store/store-db.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { POSTGRES, SQLITE, type StorePlace } from '../support/stores.ts'
import { writeSome } from '../support/write-changes.ts'

interface Site extends Pick<Store, 'changes'> {
  db: StoreDb
  close(): Promise<void>
}
/** As one process has it: connections, and a tail of its own. */
async function openSite(place: StorePlace): Promise<Site> {
  const db = createStoreDb(await place.connect(), systemClock)
  const { endFollowing, changes } = createChangeStore(db, systemClock)
  const close = () => {
    endFollowing()
    return db.destroy()
  }
  return { changes, db, close }
}

const seed = Math.floor(Math.random() * 1e9)

/** Follows, reads pages, leaves and comes back, until it has seen `end`. */
class Follower {
  position = 0
  readonly names: string[] = []
  readonly #random: Random
  readonly #site: () => Site
  constructor(random: Random, site: () => Site) {
    this.#random = random
    this.#site = site
  }

  async run(end: () => number): Promise<void> {
    while (this.position < end()) {
      if (this.#random() < 0.3) await this.#readPage()
      else await this.#followFor(Math.floor(this.#random() * 40))
      if (this.#random() < 0.2) await Bun.sleep(this.#random() * 30)
    }
  }

  async #readPage(): Promise<void> {
    this.#take(await this.#site().changes.read(this.position, { limit: 1 + Math.floor(this.#random() * 50) }))
  }

  async #followFor(steps: number): Promise<void> {
    let left = steps
    const leaving = new AbortController()
    const timer = setTimeout(() => leaving.abort(), this.#random() * 150)
    for await (const step of this.#site().changes.follow(this.position, { signal: leaving.signal, idleMs: 60_000 })) {
      if (step.kind !== 'idle') this.#take(step)
      if (left-- <= 0) break
    }
    clearTimeout(timer)
  }

  #take(step: Awaited<ReturnType<Store['changes']['read']>>): void {
    if (step.kind === 'gone') throw new Error(`seed ${seed}: a change is missing after ${this.position}: ${JSON.stringify(step)}`)
    for (const { id, name } of step.items) {
      if (id !== this.position + 1) throw new Error(`seed ${seed}: ${id} came after ${this.position}`)
      this.position = id
      this.names.push(name ?? '')
    }
  }
}

/** As old changes go, but only what everybody has seen. */
async function prune(site: () => Site, followers: readonly Follower[], ended: () => boolean): Promise<number> {
  let pruned = 0
  while (!ended()) {
    const slowest = Math.min(...followers.map(({ position }) => position))
    const gone = await site().db.write(({ sql }) => sql.deleteFrom('changes').where('id', '<=', slowest).executeTakeFirstOrThrow())
    pruned += Number(gone.numDeletedRows)
    await Bun.sleep(5)
  }
  return pruned
}

/** Transactions of each part, however slow the machine is. */
const WRITES_MIN = 50

async function expectAllSeen(place: StorePlace, followers: readonly Follower[]): Promise<void> {
  const looking = await place.connect()
  const rows = await looking.reader.selectFrom('api_tokens').select('id').execute()
  await looking.close()
  const [first, ...others] = followers
  expect(first?.names.length).toBeGreaterThan(100)
  expect([...(first?.names ?? [])].sort()).toEqual(rows.map(({ id }) => id).sort())
  for (const { names } of others) expect(names).toEqual(first?.names ?? [])
}

test('CF9 PostgreSQL: writers of three processes, one killed in the middle, and followers of two: everything once and in order', async () => {
  const place = await POSTGRES.place()
  const [one, two] = [await openSite(place), await openSite(place)]
  const spawn = (name: string, n: number) =>
    Bun.spawn([process.execPath, join(import.meta.dir, '../support/write-changes.ts'), place.at, name, String(seed + n)], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
  let end = Number.POSITIVE_INFINITY
  const followers = [one, two].flatMap((site, s) => [1, 2, 3].map((n) => new Follower(seededRandom(seed + s * 10 + n), () => site)))
  const running = Promise.all(followers.map((follower) => follower.run(() => end)))
  const pruning = prune(
    () => one,
    followers,
    () => end !== Number.POSITIVE_INFINITY,
  )

  const writers = [spawn('a', 1), spawn('b', 2)]
  for (const { stdout } of writers) await stdout.getReader().read() // it has begun
  const random = seededRandom(seed)
  const writeFor = async (ms: number, name: string) => {
    const until = Date.now() + ms
    for (let n = 0; Date.now() < until || n < WRITES_MIN; n++) await writeSome(one.db, `${name}-${n}`, random)
  }
  await writeFor(600, 'x')
  writers[0]?.kill('SIGKILL')
  writers.push(spawn('c', 3))
  await writeFor(900, 'y')
  for (const writer of writers) writer.kill('SIGKILL')
  await Promise.all(writers.map(({ exited }) => exited))
  await writeSome(one.db, 'last', () => 0.9) // after whatever the killed ones had under way
  end = await one.changes.position()
  await running
  expect(await pruning).toBeGreaterThan(0)
  await expectAllSeen(place, followers)
  await Promise.all([one.close(), two.close()])
}, 60_000)

test('CF9 SQLite: many who write at once, followers, and a file that is opened again: everything once and in order', async () => {
  const place = await SQLITE.place()
  let site = await openSite(place)
  const followers = [1, 2, 3, 4, 5].map((n) => new Follower(seededRandom(seed + n), () => site))
  let pruned = 0
  for (const phase of ['one', 'two', 'three']) {
    let end = Number.POSITIVE_INFINITY
    const running = Promise.all(followers.map((follower) => follower.run(() => end)))
    const pruning = prune(
      () => site,
      followers,
      () => end !== Number.POSITIVE_INFINITY,
    )
    const writers = Array.from({ length: 20 }, async (_, w) => {
      const random = seededRandom(seed + w)
      for (let n = 0; n < 15; n++) await writeSome(site.db, `${phase}-${w}-${n}`, random)
    })
    await Promise.all(writers)
    end = await site.changes.position()
    await running
    pruned += await pruning
    await site.close()
    site = await openSite(place)
  }
  expect(pruned).toBeGreaterThan(0)
  await expectAllSeen(place, followers)
  await site.close()
}, 60_000)
