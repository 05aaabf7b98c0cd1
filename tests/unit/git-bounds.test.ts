// Bounds of Git sources that hold for many of them together: submodules of one repository, and large answers.
import { beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { collect, LargeTurn, Patience, partsOf } from '../../server/sources/git/answer.ts'
import { HELD_BYTES_MAX, HELD_FOR_MS, HeldPacks } from '../../server/sources/git/held-packs.ts'
import { KeptFiles } from '../../server/sources/git/kept-files.ts'
import { Modules } from '../../server/sources/git/modules.ts'
import { openGitSource } from '../../server/sources/git/open.ts'
import { createGitTokens } from '../../server/sources/git/tokens.ts'
import type { Source } from '../../server/sources/source.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { failureOf, gitDeps } from '../support/git-source-kit.ts'
import { naming } from '../support/naming.ts'
import { residentGrowth } from '../support/resident-growth.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const COMMIT = 'a'.repeat(40)
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('submodules', () => {
  const BOUNDS = { count: 3, bytes: 1_000, ms: 60_000 }
  let root = ''
  /** Whoever sleeps lets time pass. */
  let nowMs = 0
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms
    },
  }
  let modules: Modules
  let fetched: string[] = []
  let removed: string[] = []
  beforeEach(() => {
    root = join(tempDir(), 'top.modules')
    nowMs = 0
    removed = []
    modules = new Modules(root, clock, (dir) => removed.push(dir), BOUNDS)
    fetched = []
  })

  const sourceIn = (address: string, bytes: number, takesMs: number) => (dir: string) =>
    ({
      head: async () => COMMIT,
      open: () => Promise.reject(new Error('nobody reads')),
      has: async () => existsSync(dir),
      fetch: async () => {
        fetched.push(address)
        await clock.sleep(takesMs)
        mkdirSync(join(dir, 'objects', 'pack'), { recursive: true })
        writeFileSync(join(dir, 'objects', 'pack', 'a.pack'), new Uint8Array(bytes))
        utimesSync(join(dir, 'objects', 'pack'), fetched.length, fetched.length)
        return COMMIT
      },
    }) satisfies Source
  const use = (address: string, bytes = 10, takesMs = 0) => modules.source(address, COMMIT, sourceIn(address, bytes, takesMs))
  const held = () => readdirSync(root).length

  test('SO34 more repositories than the bound, all levels together, are refused; one that is there is read', async () => {
    for (const address of ['a', 'b', 'c']) await use(address)
    expect(await failureOf(use('d'))).toEqual(['source_refused', expect.stringContaining('more than 3 submodules')])
    await use('a')
    expect([fetched, held()]).toEqual([['a', 'b', 'c'], 3])
  })

  test('SO34 folders of addresses that the newest commit does not name go when there is no room, the oldest first', async () => {
    for (let at = 0; at < 20; at++) {
      modules.newCommit()
      await use(`address ${at}`)
    }
    expect([held(), removed.length, new Set(removed).size]).toEqual([3, 17, 17])
    fetched = []
    await use('address 18')
    expect(fetched).toEqual([])
  })

  test('SO34 past the bytes for all of them what is not needed goes, and then nothing more comes', async () => {
    await use('old', 600)
    modules.newCommit()
    await use('a', 600)
    await use('b', 600)
    expect(held()).toBe(2)
    expect(await failureOf(use('c'))).toEqual(['source_refused', naming('MiB', 'disk')])
  })

  test('SO34 past the time for all of them nothing more is fetched before a rest', async () => {
    await use('a', 10, BOUNDS.ms)
    expect(await failureOf(use('b'))).toEqual(['git_unreachable', naming('60 s')])
    await clock.sleep(BOUNDS.ms)
    await use('b')
    expect(fetched).toEqual(['a', 'b'])
  })

  test('SO34 a rest lasts as long as it says, also when the clock is set back meanwhile', async () => {
    nowMs = 100 * BOUNDS.ms
    await use('a', 10, BOUNDS.ms)
    nowMs -= 50 * BOUNDS.ms
    await use('b')
    expect(fetched).toEqual(['a', 'b'])
  })

  test('SO34 fetching now and then is never too much: time without any makes up for it; as much without a pause is', async () => {
    for (let at = 0; at < 200; at++) {
      modules.newCommit()
      await use(`bump ${at}`, 10, 3_000)
      await clock.sleep(BOUNDS.ms / 2) // less than a rest
    }
    expect(fetched).toHaveLength(200)
    for (let at = 0; at < 20; at++) {
      modules.newCommit()
      await use(`at once ${at}`, 10, BOUNDS.ms / 20)
    }
    modules.newCommit()
    expect(await failureOf(use('one more'))).toEqual(['git_unreachable', naming('60 s')])
    await clock.sleep(BOUNDS.ms - 1)
    expect((await failureOf(use('one more')))[0]).toBe('git_unreachable')
    await clock.sleep(1)
    await use('one more')
  })

  test('SO34 a commit that is here does not wait while another one of its repository is fetched', async () => {
    const { promise: fetching, resolve } = Promise.withResolvers<void>()
    const slow = (dir: string): Source => ({
      ...sourceIn('a', 1, 0)(dir),
      has: async () => false,
      fetch: () => fetching.then(() => COMMIT),
    })
    const here = (dir: string): Source => ({ ...sourceIn('a', 1, 0)(dir), has: async () => true })
    const other = modules.source('a', 'other', slow)
    await modules.source('a', 'here', here)
    resolve()
    await other
  })

  test('SO34 two commits of one address are fetched one after the other', async () => {
    let [now, most] = [0, 0]
    const counted = (dir: string): Source => ({
      ...sourceIn('a', 1, 0)(dir),
      has: async () => false,
      fetch: async () => {
        most = Math.max(most, ++now)
        await settled()
        now--
        return COMMIT
      },
    })
    await Promise.all(['1', '2'].map((commit) => modules.source('a', commit, counted)))
    expect(most).toBe(1)
  })
})

test('SO39 large answers have their turn one at a time, also after one that ended before its turn came', async () => {
  const [one, two, three] = [new LargeTurn(), new LargeTurn(), new LargeTurn()]
  const came: string[] = []
  await one.take()
  void two.take().then(() => came.push('two'))
  void three.take().then(() => came.push('three'))
  two.end()
  await settled()
  expect(came).toEqual([])
  one.end()
  await settled()
  expect(came.sort()).toEqual(['three', 'two'])
  three.end()
  const last = new LargeTurn()
  await last.take()
  last.end()
})

test('SO39 who waits for a large turn gives up after its time, and blocks nobody behind it', async () => {
  const clock = createVirtualClock()
  const [one, two, three] = [new LargeTurn(), new LargeTurn(), new LargeTurn()]
  await one.take()
  const given = two.takeWithin(clock, 60_000)
  await clock.advance(60_000)
  expect(await given).toBe(false)
  const last = three.takeWithin(clock, 60_000)
  two.end()
  one.end()
  expect(await last).toBe(true)
  three.end()
})

describe('SO39 large answers', () => {
  const MIB = 1024 * 1024
  /** Only the wait for a turn comes to its end. */
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    sleep: (ms) => (ms === 10 * 60_000 ? settled().then(() => {}) : new Promise(() => {})),
  }
  const still: Clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: () => new Promise(() => {}) }
  const parts = (turn: LargeTurn, body: ReadableStream<Uint8Array>, dir: string, waits = still) => {
    const patience = new Patience(still, new AbortController().signal)
    return partsOf(new Response(body), { host: 'x', patience, turn, clock: waits, bytesMax: 32 * MIB, beside: join(dir, 'clone') })
  }
  const filled = (count: number) => Array.from({ length: count }, (_, at) => new Uint8Array(MIB).fill(at))

  test('one that drips does not hold up another one; each comes whole and in order, and leaves no file', async () => {
    const dir = tempDir()
    const { promise: dripped, resolve: drip } = Promise.withResolvers<void>()
    const { promise: waiting, resolve: waits } = Promise.withResolvers<void>()
    const pieces = filled(10)
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const piece = pieces.shift()
      if (piece !== undefined) return controller.enqueue(piece)
      waits()
      await dripped
      controller.enqueue(new Uint8Array([1, 2, 3]))
      controller.close()
    }
    const [slow, quick] = [new LargeTurn(), new LargeTurn()]
    const slowly = collect(parts(slow, new ReadableStream({ pull }, { highWaterMark: 0 }), dir))
    await waiting
    const whole = await collect(parts(quick, new Blob(filled(20)).stream(), dir))
    expect(Buffer.compare(whole, Buffer.concat(filled(20)))).toBe(0)
    quick.end()
    drip()
    expect(Buffer.compare(await slowly, Buffer.concat([...filled(10), new Uint8Array([1, 2, 3])]))).toBe(0)
    slow.end()
    expect(readdirSync(dir)).toEqual([])
  })

  test('a turn that does not come in 10 minutes is git_unreachable, with what to do', async () => {
    const [holder, waiter] = [new LargeTurn(), new LargeTurn()]
    await holder.take()
    const failed = await failureOf(collect(parts(waiter, new Blob(filled(9)).stream(), tempDir(), clock)))
    expect(failed).toEqual(['git_unreachable', expect.stringContaining('waited 10 minutes')])
    waiter.end()
    holder.end()
  })
})

test('SO51 waiting counts up to 10 minutes in all, and the time between two waits does not', async () => {
  const clock = createVirtualClock()
  const patience = new Patience(clock, new AbortController().signal)
  const step = async (waitMs: number) => {
    const done = patience.wait(() => clock.sleep(waitMs))
    await clock.advance(waitMs)
    await done
    patience.came(1024 * 1024)
    await clock.advance(3_600_000)
  }
  for (let at = 0; at < 11; at++) await step(50_000)
  expect(patience.whyOver()).toBeNull()
  await step(50_000)
  expect(patience.whyOver()).toMatchObject({
    why: naming('10 minutes', '12.0 MiB'),
    remedy: expect.stringContaining('spec.git.client: cli'),
  })
})

test.each([
  ['EAI_AGAIN', 'name server'],
  ['ENOTFOUND', 'unknown name'],
  ['EACCES', 'reached'],
])('IN5 a resolver that answers %s to the git program and to the API of an App is told as what it is', async (code, text) => {
  const down = () => Promise.reject(Object.assign(new Error('resolver'), { code }))
  const options = {
    url: 'https://git.example.com/a.git',
    ref: 'main',
    dir: join(tempDir(), 'clone'),
    secrets: null,
    client: 'cli',
  } as const
  const program = openGitSource({ ...options, ref: COMMIT }, { ...gitDeps(), allowedAddress: down, proxyOf: () => null })
  expect(await failureOf(program.fetch())).toEqual(['git_unreachable', naming('git.example.com', text)])
  const tokens = createGitTokens({ fetcher: down, clock: createVirtualClock() })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const document = { appId: 1, installationId: 2, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
  expect(await failureOf(tokens.token(JSON.stringify(document), options.url, null))).toEqual([
    'git_unreachable',
    naming('git.example.com', 'GitHub App', text),
  ])
})

describe('packs in memory', () => {
  function withPack(bytes: number): string {
    const dir = tempDir()
    mkdirSync(join(dir, 'objects', 'pack'), { recursive: true })
    const pack = join(dir, 'objects', 'pack', 'pack-1.pack')
    writeFileSync(pack, '')
    truncateSync(pack, bytes)
    return dir
  }
  const half = HELD_BYTES_MAX / 2

  test.each([
    ['as many as there is room for', half, true],
    ['one byte more', half + 1, false],
  ] as const)('SO53 %s: the one that was read least lately goes', (_, bytes, stays) => {
    const clock = createVirtualClock()
    const [first, second] = [new HeldPacks(clock), new HeldPacks(clock)]
    const [dir, other] = [withPack(half), withPack(bytes)]
    const held = first.in(dir)
    const heldToo = second.in(other)
    expect(second.in(other)).toBe(heldToo)
    expect(first.in(dir) === held).toBe(stays)
    first.release()
    second.release()
  })

  test('SO53 one that is larger than all the room is held while it is read, and a second longer', async () => {
    const clock = createVirtualClock()
    const packs = new HeldPacks(clock)
    const dir = withPack(HELD_BYTES_MAX * 2)
    const held = packs.in(dir)
    await clock.advance(HELD_FOR_MS - 1)
    expect(packs.in(dir)).toBe(held)
    await clock.advance(HELD_FOR_MS - 1)
    expect(packs.in(dir)).toBe(held)
    await clock.advance(HELD_FOR_MS)
    expect(packs.in(dir)).not.toBe(held)
    packs.release()
  })

  test('SO53 a clock that is set back meanwhile makes that two seconds at most', async () => {
    const clock = createVirtualClock()
    const own = clock.process(0)
    const packs = new HeldPacks(own)
    const dir = withPack(10)
    const held = packs.in(dir)
    own.setBy(-86_400_000)
    await clock.advance(2 * HELD_FOR_MS)
    const asked = clock.asked.length
    await clock.advance(60 * HELD_FOR_MS)
    expect(clock.asked.length).toBe(asked)
    expect(packs.in(dir)).not.toBe(held)
    packs.release()
  })
})

test('SO53 files that were read stay in memory within one bound for all repositories, those read least lately go, and each has its own', () => {
  const mib = 1024 * 1024
  const growth = residentGrowth()
  const kept = Array.from({ length: 20 }, () => new KeptFiles())
  for (const [at, files] of kept.entries()) for (let n = 0; n < 16; n++) files.set(`${n}`, new Uint8Array(mib).fill(at))
  expect(growth() / mib).toBeLessThan(100)
  expect(kept.map((files) => files.get('0')?.[0])).toEqual([...Array.from({ length: 17 }, () => undefined), 17, 18, 19])
})
