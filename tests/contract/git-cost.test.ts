// What the library's fetches and looks cost: bytes on the wire, memory and time, and what is said when it is too much.
import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import fs, { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Source } from '../../server/sources/source.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createGitKit, failureOf, type GitKit, gitDeps, gitIn, textsOf } from '../support/git-source-kit.ts'
import { naming } from '../support/naming.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

setDefaultTimeout(60_000)
const OLD_COMMITS = 10
const OLD_BYTES = 200_000
let kit: GitKit
let bytes = 0
const work = (path: string) => join(kit.root, 'remote', 'work', path)

beforeAll(async () => {
  kit = await createGitKit('library over http')
  // History: a file that each commit replaces.
  for (let at = 0; at < OLD_COMMITS; at++) {
    writeFileSync(work('blob'), randomBytes(OLD_BYTES))
    commitAll(`old ${at}`)
  }
})
afterAll(() => kit.close())

function commitAll(message: string): string {
  kit.git('add', '.')
  kit.git('commit', '-qm', message)
  kit.git('push', '-qf', 'origin', 'HEAD:main')
  return kit.git('rev-parse', 'HEAD')
}

const { fetcher } = gitDeps()
const counting: typeof fetcher = async (url, init) => {
  const answer = await fetcher(url, init)
  const body = await answer.arrayBuffer()
  bytes += body.byteLength + (init.body instanceof Uint8Array ? init.body.byteLength : 0)
  return new Response(body, { status: answer.status, headers: answer.headers })
}
const open = (options: Parameters<GitKit['open']>[0] = {}) => kit.open({ client: 'library', ...options }, { fetcher: counting })
async function cost(act: () => Promise<unknown>): Promise<number> {
  bytes = 0
  await act()
  return bytes
}

test('IN3 SO50 a commit costs what is new in it: one after another, a merge of an older branch, a rewritten branch', async () => {
  const source = open()
  const first = kit.git('rev-parse', 'HEAD')
  expect(await cost(() => source.fetch())).toBeLessThan(2 * OLD_BYTES)
  const branch = kit.git('rev-parse', '--abbrev-ref', 'HEAD')
  const steps: Record<string, () => string> = {
    linear: () => {
      writeFileSync(work('a'), 'x')
      return commitAll('linear')
    },
    merge: () => {
      kit.git('checkout', '-q', '-b', 'older', `${first}~1`)
      writeFileSync(work('older'), 'y')
      kit.git('add', '.')
      kit.git('commit', '-qm', 'older')
      kit.git('checkout', '-q', branch)
      kit.git('merge', '-q', '--no-ff', '-m', 'merge', 'older')
      kit.git('push', '-q', 'origin', 'HEAD:main')
      return kit.git('rev-parse', 'HEAD')
    },
    rewritten: () => {
      kit.git('reset', '-q', '--hard', first)
      writeFileSync(work('z'), 'z')
      return commitAll('rewritten')
    },
  }
  for (const [step, make] of Object.entries(steps)) {
    const commit = make()
    const took = await cost(() => source.fetch())
    expect([step, took < 2_500, took]).toEqual([step, true, took])
    expect([step, Object.keys(await textsOf(source, commit))]).toEqual([step, kit.git('ls-files').split('\n')])
  }
  expect(Object.keys(await textsOf(source, kit.git('rev-parse', 'HEAD')))).toEqual(['blob', 'z'])
  const costs: number[] = []
  for (let at = 0; at < 8; at++) {
    writeFileSync(work('many'), `${at}`)
    commitAll(`many ${at}`)
    costs.push(await cost(() => source.fetch()))
  }
  // Nothing piles up in the request either.
  expect(Math.max(...costs) - Math.min(...costs)).toBeLessThan(100)
})

test('SO50 a commit that is asked for by its id comes alone where the server gives it, and with its branches where it does not', async () => {
  const bare = join(kit.root, 'remote', 'fleet.git')
  const pinned = kit.git('rev-parse', 'HEAD~1')
  for (const [allowed, most] of [
    ['false', (OLD_COMMITS + 2) * OLD_BYTES],
    ['true', 2 * OLD_BYTES],
  ] as const) {
    gitIn(bare, 'config', 'uploadpack.allowAnySHA1InWant', allowed)
    const source = open({ ref: pinned })
    const took = await cost(async () => expect(await source.fetch()).toBe(pinned))
    expect([allowed, took < most, took > OLD_BYTES]).toEqual([allowed, true, true])
    expect(Object.keys(await textsOf(source, pinned))).toEqual(kit.git('ls-tree', '--name-only', pinned).split('\n'))
  }
  gitIn(bare, 'config', '--unset', 'uploadpack.allowAnySHA1InWant')
})

test('SO10 whether a commit is here is known without its packs, after a restart as well; a pack that is gone or torn is seen', async () => {
  const dir = kit.newDir()
  const commit = await open({ dir }).fetch()
  const packs = join(dir, 'objects', 'pack')
  const [pack = ''] = readdirSync(packs).filter((name) => name.endsWith('.pack'))
  const whole = await Bun.file(join(packs, pack)).bytes()
  const again = open({ dir })
  // As many bytes, and no pack: whoever looked into it would say no.
  rmSync(join(packs, pack))
  writeFileSync(join(packs, pack), new Uint8Array(whole.byteLength))
  expect(await again.has(commit)).toBe(true)
  expect(await again.has('0'.repeat(40))).toBe(false)
  writeFileSync(join(packs, pack), 'torn')
  expect(await again.has(commit)).toBe(false)
  rmSync(join(packs, pack))
  expect(await again.has(commit)).toBe(false)
})

test('SO53 however many services read a repository, its packs are loaded once, and let go of a second after the last one', async () => {
  const clock = createVirtualClock()
  const dir = kit.newDir()
  for (let at = 0; at < 6; at++) writeFileSync(work(`service-${at}`), `of ${at}`)
  commitAll('services')
  const commit = await open({ dir }).fetch()
  const source = kit.open({ dir }, { ...gitDeps(), clock })
  const reads = spyOn(fs.promises, 'readFile')
  try {
    const loads = () => reads.mock.calls.filter(([path]) => String(path).endsWith('.pack')).length
    const { tree } = await source.open(commit, { path: '.' })
    for (let at = 0; at < 5; at++) {
      expect(await tree.files('', (path) => path === `service-${at}`)).toHaveLength(1)
      await clock.advance(900)
    }
    expect(loads()).toBe(1)
    await clock.advance(200)
    expect(await tree.files('', (path) => path === 'service-5')).toHaveLength(1)
    expect(loads()).toBe(2)
  } finally {
    reads.mockRestore()
  }
})

test.each(['gone', 'torn'] as const)(
  'IN8 an older pack that is %s makes the folder be fetched afresh, whichever commit is asked for',
  async (how) => {
    const dir = kit.newDir()
    const packs = () => readdirSync(join(dir, 'objects', 'pack')).filter((name) => name.endsWith('.pack'))
    const first = await open({ dir }).fetch()
    const [older = ''] = packs()
    writeFileSync(work('thin'), how)
    const second = commitAll(`thin ${how}`)
    await open({ dir }).fetch()
    expect(packs()).toHaveLength(2)
    if (how === 'gone') rmSync(join(dir, 'objects', 'pack', older))
    else writeFileSync(join(dir, 'objects', 'pack', older), 'torn')
    const again = open({ dir })
    expect([await again.has(first), await again.has(second)]).toEqual([false, false])
    expect(await again.fetch()).toBe(second)
    expect([packs().length, await again.has(second)]).toEqual([1, true])
    expect(Object.keys(await textsOf(again, second))).toEqual(kit.git('ls-files').split('\n'))
  },
)

test('SO50 what ends history is replaced whole: a process that ended between two writes leaves one of the two', async () => {
  const dir = kit.newDir()
  const source = open({ dir })
  const before = await source.fetch()
  writeFileSync(work('ended'), 'x')
  const commit = commitAll('ended')
  writeFileSync(join(dir, 'shallow.new'), 'half-writ')
  expect(await source.fetch()).toBe(commit)
  expect(await Bun.file(join(dir, 'shallow')).text()).toBe(`${commit}\n${before}\n`)
  expect(readdirSync(dir)).not.toContain('shallow.new')
})

test('SO51 an answer may take its time as long as bytes come; one that stops coming says how much came, and what to do', async () => {
  let paused: 'between' | 'for ever' = 'between'
  const slow: typeof fetcher = async (url, init) => {
    const answer = await fetcher(url, init)
    if (init.method !== 'POST' || !url.endsWith('/git-upload-pack')) return answer
    const body = new Uint8Array(await answer.arrayBuffer())
    const pieces = 8
    let at = 0
    const stream = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await systemClock.sleep(100)
        if (paused === 'for ever' && at === 4)
          return new Promise<void>((_, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
        const size = Math.ceil(body.byteLength / pieces)
        controller.enqueue(body.subarray(at * size, (at + 1) * size))
        if (++at === pieces) controller.close()
      },
    })
    return new Response(stream, { status: answer.status, headers: answer.headers })
  }
  const fetched = () => kit.open({ client: 'library', stallMs: 400 }, { fetcher: slow }).fetch()
  expect(await fetched()).toMatch(/^[0-9a-f]{40}$/)
  paused = 'for ever'
  const error = await fetched().catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: 'git_unreachable',
    message: expect.stringMatching(/\b127\.0\.0\.1:\d+ .*\b0\.4 s\b.*\b0\.\d MiB\b/),
    data: { remedy: expect.stringContaining('spec.git.client: cli') },
  })
})

test('SO39 what is too large for the library is read by the program, from then on and after a restart; without it, or where only the library may, it is said what to do', async () => {
  const dir = kit.newDir()
  const small = { answerBytesMax: 100_000, client: 'auto' } as const
  const first = await open({ dir, client: 'auto' }).fetch() // by the library, when it was smaller
  writeFileSync(work('large'), randomBytes(150_000))
  const large = commitAll('large')
  const source = open({ ...small, dir })
  expect(await source.has(first)).toBe(true)
  expect(await source.fetch()).toBe(large)
  expect(Object.keys(await textsOf(source, large))).toContain('large')
  writeFileSync(work('later'), 'x')
  const later = commitAll('later')
  const again = open({ ...small, dir })
  expect(await again.has(large)).toBe(true)
  expect(await again.fetch()).toBe(later)
  expect(Object.keys(await textsOf(again, later))).toContain('later')
  const without = kit.open(small, { programs: { git: null, ssh: null } })
  for (const refusing of [without, open({ ...small, client: 'library' })]) await refuses(refusing)
  // It is asked for once, and again when there is another commit.
  for (const [programs, client] of [
    [{ git: null, ssh: null }, 'auto'],
    [gitDeps().programs, 'library'],
  ] as const) {
    const looking = kit.open({ ...small, client }, { programs, fetcher: counting })
    const look = () =>
      cost(async () => {
        await looking.head()
        expect(await failureOf(looking.fetch())).toEqual(['git_failed', naming('MiB')])
      })
    const costs = [await look(), await look(), await look()]
    writeFileSync(work('another'), client)
    commitAll('another')
    costs.push(await look(), await look())
    expect(costs.map((took) => took > 100_000)).toEqual([true, false, false, true, false])
  }
})

async function refuses(small: Source) {
  expect(await failureOf(small.fetch())).toEqual(['git_failed', naming('MiB')])
  await expect(small.fetch()).rejects.toMatchObject({ data: { remedy: expect.stringContaining('spec.git.client: cli') } })
}
