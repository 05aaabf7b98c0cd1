// ST12 as a property: random interleavings of who puts, refers, lets go, collects (two servers), reads, dies and backs
// up, step by step of the file system.
import { expect, test } from 'bun:test'
import { ASIDE_MS, collectContent, YOUNG_MS } from '../../server/store/content/content-collect.ts'
import { asidePath, contentPath } from '../../server/store/content/content-names.ts'
import { contentStoreOn } from '../../server/store/content/file-content-store.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createMemoryFolder } from '../support/memory-content-files.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const bytesOf = (n: number) => new TextEncoder().encode(`set ${n}`)
const SETS = [0, 1, 2]
const shaOf = (n: number) => sha256Hex(bytesOf(n))

interface Actor {
  name: string
  /** Lets its next step happen. Null means that it is between two steps, or done. */
  next: (() => void) | null
  /** Stopped by its machine until then, unless nobody else runs. */
  untilTurn: number
}

function createWorld(seed: number) {
  const random = seededRandom(seed)
  const folder = createMemoryFolder()
  const references = new Map<string, number>()
  /** Until when a set counts as young: from the beginning of the last put or refresh that went well. */
  const youngUntilMs = new Map<string, number>()
  const actors = new Set<Actor>()
  /** Until when somebody is done at the latest: with referring to what was made of now, within the hour; with a backup,
   *  within the day. */
  const windows = new Map<Actor, number>()
  const counts = { removed: 0, aside: 0, back: 0, killed: 0, frozen: 0, committed: 0, reads: 0, missed: 0 }
  let nowMs = 1_000 * HOUR
  let turns = 0

  const start = (name: string, work: (step: () => Promise<void>, self: Actor) => Promise<void>) => {
    const self: Actor = { name, next: null, untilTurn: 0 }
    const step = () =>
      new Promise<void>((resolve) => {
        self.next = () => {
          self.next = null
          resolve()
        }
      })
    actors.add(self)
    void work(step, self).finally(() => {
      actors.delete(self)
      windows.delete(self)
    })
    return self
  }
  const contentOf = (step: () => Promise<void>) => contentStoreOn(folder.files(() => nowMs, step))
  const young = (sha: string, sinceMs: number) => youngUntilMs.set(sha, Math.max(youngUntilMs.get(sha) ?? 0, sinceMs + YOUNG_MS))

  const publish = (n: number, waits: number) =>
    start('publisher', async (step, self) => {
      const content = contentOf(step)
      const sha = shaOf(n)
      let sinceMs = nowMs
      await content.put(bytesOf(n))
      young(sha, sinceMs)
      for (let wait = 0; wait < waits; wait++) await step() // other services first: hours, if it has to be
      await step()
      sinceMs = nowMs
      windows.set(self, sinceMs + YOUNG_MS)
      if (!(await content.refresh(sha))) await content.put(bytesOf(n))
      young(sha, sinceMs)
      await step()
      references.set(sha, (references.get(sha) ?? 0) + 1)
      counts.committed++
    })
  const letGo = (n: number) => {
    const held = references.get(shaOf(n)) ?? 0
    if (held <= 1) references.delete(shaOf(n))
    else references.set(shaOf(n), held - 1)
  }
  const collect = () =>
    start('collector', async (step) => {
      const done = await collectContent({
        files: folder.files(() => nowMs, step),
        referenced: async (shas) => {
          await step()
          return new Set(shas.filter((sha) => references.has(sha)))
        },
        clock: { nowMs: () => nowMs },
      })
      counts.removed += done.removed
      counts.aside += done.aside
      counts.back += done.back
    })
  /** Takes its snapshot of the references, and within a day reads what they name. */
  const backUp = () =>
    start('backup', async (step, self) => {
      await step()
      windows.set(self, nowMs + ASIDE_MS)
      for (const sha of [...references.keys()]) {
        counts.reads++
        for (let other = 0; other < 30; other++) await step() // it has more to read
        if ((await contentOf(step).get(sha)) === null) counts.missed++
      }
    })

  const has = (sha: string) => [contentPath(sha), asidePath(sha)].some((path) => folder.names.has(path))
  const check = () => {
    for (const n of SETS) {
      const sha = shaOf(n)
      const why = references.has(sha) ? 'referred to' : (youngUntilMs.get(sha) ?? 0) > nowMs ? 'young' : null
      if (why !== null && !has(sha)) throw new Error(`seed ${seed}: set ${n} is gone, and is ${why}`)
    }
    if (counts.missed > 0) throw new Error(`seed ${seed}: a backup missed what its snapshot names`)
  }
  /** One step of somebody, and all that follows from it without another. */
  const turn = async () => {
    const awake = [...actors].filter(({ next, untilTurn }) => next !== null && untilTurn <= turns)
    const ready = awake.length > 0 ? awake : [...actors].filter(({ next }) => next !== null)
    turns++
    ready[Math.floor(random() * ready.length)]?.next?.()
    for (let n = 0; n < 12; n++) await Promise.resolve()
    check()
  }
  const pass = (ms: number) => {
    const limit = Math.min(...[...windows.values()].map((untilMs) => untilMs - 5 * MINUTE - nowMs))
    nowMs += Math.max(0, Math.min(ms, limit))
    check()
  }
  const kill = () => {
    const [victim] = actors
    if (victim === undefined) return
    victim.next = null
    actors.delete(victim)
    windows.delete(victim)
    counts.killed++
  }
  const freeze = () => {
    const [actor] = [...actors].sort(() => random() - 0.5)
    if (actor === undefined || windows.has(actor)) return
    actor.untilTurn = turns + 50 + Math.floor(random() * 200)
    counts.frozen++
  }
  return { freeze, random, folder, references, actors, counts, publish, letGo, collect, backUp, turn, pass, kill }
}

async function live(seed: number) {
  const world = createWorld(seed)
  const { random, actors, counts } = world
  const pick = () => Math.floor(random() * SETS.length)
  for (let step = 0; step < 600; step++) {
    const dice = random()
    const busy = (name: string) => [...actors].filter((actor) => actor.name === name).length
    if (dice < 0.03 && busy('publisher') < 3) world.publish(pick(), random() < 0.2 ? 30 : 0)
    else if (dice < 0.07) world.letGo(pick())
    else if (dice < 0.12 && busy('collector') < 2) world.collect()
    else if (dice < 0.13 && busy('backup') < 1) world.backUp()
    else if (dice < 0.16) world.pass(random() * 2 * MINUTE)
    else if (dice < 0.19) world.pass(random() * 30 * HOUR)
    else if (dice < 0.193) world.kill()
    else if (dice < 0.2) world.freeze()
    else await world.turn()
  }
  // Everybody ends, days pass, and only what is referred to is left, under its own name.
  for (let turns = 0; actors.size > 0 && turns < 10_000; turns++) await world.turn()
  expect(actors.size).toBe(0)
  for (let round = 0; round < 4; round++) {
    world.pass(2 * ASIDE_MS)
    world.collect()
    while (actors.size > 0) await world.turn()
  }
  expect([...world.folder.names.keys()].sort()).toEqual([...world.references.keys()].map(contentPath).sort())
  return counts
}

test('ST12 whatever the order of steps, nothing that is referred to or young is ever gone, and what is neither goes', async () => {
  const sums: Record<string, number> = {}
  for (let seed = 1; seed <= 400; seed++) for (const [name, n] of Object.entries(await live(seed))) sums[name] = (sums[name] ?? 0) + n
  const [removed, killed, committed, reads] = [sums['removed'], sums['killed'], sums['committed'], sums['reads']]
  for (const count of [removed, killed, committed, reads]) expect(count).toBeGreaterThan(100)
}, 120_000)

const nobody = async () => new Set<string>()

/** A folder with set 0, an hour old, and who works on it: each at once. */
async function oldSet() {
  const folder = createMemoryFolder()
  const clock = { ms: 1_000 * HOUR }
  const files = folder.files(
    () => clock.ms,
    async () => {},
  )
  const content = contentStoreOn(files)
  await content.put(bytesOf(0))
  clock.ms += YOUNG_MS
  const collect = (referenced: (shas: readonly string[]) => Promise<Set<string>> = nobody, on = files) =>
    collectContent({ files: on, referenced, clock: { nowMs: () => clock.ms } })
  return { folder, files, content, clock, collect, names: () => [...folder.names.keys()] }
}
const [OWN, ASIDE] = [contentPath(shaOf(0)), asidePath(shaOf(0))]

test('ST12 an hour after it was put, not before, it is set aside; a day after that, not before, it is gone', async () => {
  const { clock, collect, names, content } = await oldSet()
  clock.ms -= 1
  expect([(await collect()).aside, names()]).toEqual([0, [OWN]])
  clock.ms += 1
  expect([(await collect()).aside, names()]).toEqual([1, [ASIDE]])
  clock.ms += ASIDE_MS - 1
  expect([(await collect()).removed, names()]).toEqual([0, [ASIDE]])
  expect(await content.get(shaOf(0))).toEqual(bytesOf(0))
  clock.ms += 1
  expect([(await collect()).removed, names()]).toEqual([1, []])
})

test('ST12 putting it again, and refreshing it, begins its hour anew', async () => {
  for (const again of ['put', 'refresh'] as const) {
    const { content, collect, names } = await oldSet()
    await (again === 'put' ? content.put(bytesOf(0)) : content.refresh(shaOf(0)))
    await collect()
    expect(names()).toEqual([OWN])
  }
})

test('ST12 what is made of now while the references are read is not set aside', async () => {
  const { content, collect, names } = await oldSet()
  await collect(async () => {
    await content.refresh(shaOf(0))
    return new Set()
  })
  expect(names()).toEqual([OWN])
})

test('ST12 what was set aside and is referred to gets its name back; set aside, it cannot be refreshed and is put anew', async () => {
  const { content, collect, names } = await oldSet()
  await collect()
  expect(await content.refresh(shaOf(0))).toBe(false)
  expect((await collect(async (shas) => new Set(shas))).back).toBe(1)
  expect(names()).toEqual([OWN])
})

test('ST12 of two servers that collect, the slower one does not remove what was set aside after it looked', async () => {
  const { files, content, clock, collect, names } = await oldSet()
  await collect()
  clock.ms += ASIDE_MS
  const slow = { ...files }
  slow.rename = async (from, to) => {
    slow.rename = files.rename
    await collect() // the other one removes it; it is put again, and set aside an hour later
    await content.put(bytesOf(0))
    clock.ms += YOUNG_MS
    await collect()
    expect(names()).toEqual([ASIDE])
    return files.rename(from, to)
  }
  await collect(nobody, slow)
  expect(names()).toEqual([OWN])
})

test('ST12 a damaged copy never takes the place of a whole one, and goes when there is one', async () => {
  const { folder, content, collect, names } = await oldSet()
  await collect()
  const aside = folder.names.get(ASIDE)
  if (aside !== undefined) aside.bytes = bytesOf(9)
  await content.put(bytesOf(0))
  await collect(async (shas) => new Set(shas))
  expect(names()).toEqual([OWN])
  expect(await content.get(shaOf(0))).toEqual(bytesOf(0))
})

test('ST12 a damaged file is not set aside over a whole one', async () => {
  const { folder, content, clock, collect } = await oldSet()
  await collect()
  await content.put(bytesOf(0))
  const own = folder.names.get(OWN)
  if (own !== undefined) own.bytes = bytesOf(9)
  clock.ms += YOUNG_MS
  await collect()
  expect(await content.get(shaOf(0))).toEqual(bytesOf(0))
})

test('ST12 files that are not of the store stay as they are, and a clock that was set back removes nothing', async () => {
  const { folder, files, clock, collect, names } = await oldSet()
  for (const foreign of ['README', 'ab/notes.txt', 'lost+found/x']) await files.writeNew(foreign, bytesOf(1))
  await collect()
  clock.ms -= 400 * HOUR
  await collect()
  clock.ms += 400 * HOUR + ASIDE_MS
  await collect()
  expect(names().sort()).toEqual(['README', 'ab/notes.txt', 'lost+found/x'])
  expect(folder.names.size).toBe(3)
})
