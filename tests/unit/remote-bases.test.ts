// SO57 KU15: at which revision a remote base is read, who is woken, and when its host is asked again.
import { expect, test } from 'bun:test'
import type { ContentSource } from '../../server/ingest/content-port.ts'
import { BASES_OF_SERVICE_MAX, RemoteBases } from '../../server/ingest/remote-bases.ts'
import { baseName, type RemoteBase, shownBase } from '../../server/render/kustomize/remote.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'

const ID = { project: 'default', service: 'shop' } as ServiceId
const MOVING: RemoteBase = { kind: 'git', url: 'https://h/o/r', ref: 'main', submodules: false }
const PINNED: RemoteBase = { ...MOVING, ref: 'a'.repeat(40) }
const SPEC = serviceSpecSchema.parse({
  source: { repository: 'apps', path: 'shop' },
  targets: { selector: {} },
  render: { kustomize: { remoteBases: true, remoteBaseSecretRefs: ['forge'] } },
})

function world(published: Readonly<Record<string, string>> = {}) {
  const asked: string[] = []
  const woken: string[] = []
  const forgotten: string[] = []
  const removed: Array<readonly string[]> = []
  const here = new Set<string>()
  const state = { nowMs: 1_000_000, head: 'one', error: null as AppError | null, config: null as string | null }
  const answer = async (what: string, key: { place: { spec: { auth?: { secretRef: string } | undefined } } }) => {
    asked.push(`${what} ${key.place.spec.auth?.secretRef ?? ''}`.trim())
    if (state.error !== null) throw state.error
    return state.head
  }
  const bases = new RemoteBases({
    sources: {
      open: (key): ContentSource => ({
        head: () => answer('head', key),
        fetch: async () => {
          const revision = await answer('fetch', key)
          here.add(revision)
          return revision
        },
        has: async (revision) => here.has(revision),
        open: () => Promise.reject(new Error('control reads no content')),
      }),
      put: async () => '',
      removeOthers: async () => {},
      removeUnknown: async () => {},
      removeUnusedBases: async (kept) => void removed.push([...kept]),
      forget: async (uid) => void forgotten.push(uid),
    },
    store: { getResource: async () => null, renderState: async () => ({ release: { revisions: published } }) as never },
    configOf: async () => state.config,
    clock: { nowMs: () => state.nowMs, monotonicMs: () => state.nowMs },
    ...{ random: seededRandom(1), log: silentLogger, stopping: new AbortController().signal },
    wake: ({ service }) => woken.push(service),
  })
  const pass = () => bases.forPass(ID, SPEC, null)
  const follow = async (afterMs: number, repository = 'apps') => {
    state.nowMs += afterMs
    bases.follow('default', repository, 60_000)
    await bases.idle()
  }
  const done = async (base: RemoteBase) => {
    const one = pass()
    const found = await one.state(base, null)
    one.end([baseName(base)])
    return found
  }
  return { bases, pass, follow, done, state, asked, woken, forgotten, removed, here }
}

test('SO57 the first revision is fetched beside the reconciliation, which is done again', async () => {
  const { pass, state, asked, woken } = world()
  state.config = 'forge'
  const first = pass()
  expect([await first.state(MOVING, null), first.isPending()]).toEqual([{ kind: 'pending' }, true])
  await first.settled()
  expect([asked, woken]).toEqual([['fetch forge'], ['shop']])
  const second = pass()
  expect(await second.state(MOVING, null)).toMatchObject({ kind: 'ready', revision: 'one', key: { project: 'default' } })
  expect([second.isPending(), await second.valueOf(baseName(MOVING))]).toEqual([false, 'one'])
  expect(second.revisions([baseName(MOVING), 'other'])).toEqual({ [shownBase(MOVING)]: 'one' })
})

test('KU15 one reconciliation reads a base at one revision; the next one has the newer', async () => {
  const { pass, follow, state, woken, here } = world({ [shownBase(MOVING)]: 'one' })
  here.add('one')
  const first = pass()
  expect(await first.state(MOVING, null)).toMatchObject({ revision: 'one' })
  state.head = 'two'
  await follow(60_000)
  expect([woken, await first.valueOf(baseName(MOVING)), await pass().valueOf(baseName(MOVING))]).toEqual([['shop'], 'one', 'two'])
})

test('SO10 after a restart the published revision counts without a request', async () => {
  const { done, asked } = world({ [shownBase(MOVING)]: 'one' })
  expect([await done(MOVING), asked]).toEqual([expect.objectContaining({ kind: 'ready', revision: 'one' }), []])
})

test('a revision that is not on the disk any more is fetched, and counts in the next reconciliation only', async () => {
  const { pass, asked, woken } = world({ [shownBase(MOVING)]: 'one' })
  const first = pass()
  await first.state(MOVING, null)
  expect([await first.state(MOVING, 'one'), first.isPending()]).toEqual([{ kind: 'pending' }, true])
  await first.settled()
  expect([asked, woken]).toEqual([['fetch'], ['shop']])
})

test('SO57 what may move is asked for with its repository, once in a poll interval; what is pinned is not', async () => {
  const { pass, follow, asked } = world({ [shownBase(MOVING)]: 'one', [shownBase(PINNED)]: PINNED.kind === 'git' ? PINNED.ref : '' })
  const one = pass()
  for (const base of [MOVING, PINNED]) await one.state(base, null)
  one.end([MOVING, PINNED].map(baseName))
  await follow(0, 'other')
  expect(asked).toEqual([])
  await follow(0)
  await follow(47_000)
  expect(asked).toEqual(['fetch'])
  await follow(2_000)
  expect(asked).toEqual(['fetch', 'head'])
})

test('SO57 one that cannot be read keeps its revision; without one it is an error, tried again after a while', async () => {
  const { pass, done, follow, state, asked, woken } = world()
  state.error = new AppError('git_unreachable', { detail: 'h is away' })
  const first = pass()
  await first.state(MOVING, null)
  await first.settled()
  expect(woken).toEqual(['shop'])
  expect(await done(MOVING)).toMatchObject({ kind: 'failed', error: { code: 'git_unreachable' } })
  expect(asked).toHaveLength(1)
  state.nowMs += 2_001
  state.error = null
  expect(await done(MOVING)).toMatchObject({ kind: 'failed' })
  await follow(0)
  expect([asked.length, await done(MOVING)]).toEqual([2, expect.objectContaining({ kind: 'ready', revision: 'one' })])
  state.error = new AppError('git_unreachable')
  await follow(60_000)
  expect(await done(MOVING)).toMatchObject({ kind: 'ready', revision: 'one' })
})

test('SO57 a base that no service uses any more is removed, one of an earlier server after an hour', async () => {
  const { bases, done, follow, forgotten, removed } = world({ [shownBase(MOVING)]: 'one' })
  await done(MOVING)
  expect(forgotten).toEqual([])
  await follow(3_599_999)
  expect(removed).toEqual([])
  await follow(1)
  expect(removed).toEqual([[expect.stringMatching(/^remote-base-[0-9a-f]{24}$/)]])
  bases.forget(ID)
  expect(forgotten).toHaveLength(1)
})

test('KU14 200 of them in one service, and no more', async () => {
  const { pass } = world()
  const one = pass()
  const states = []
  for (let index = 0; index <= BASES_OF_SERVICE_MAX; index++) states.push((await one.state({ ...MOVING, ref: `r${index}` }, null)).kind)
  expect([states.filter((kind) => kind === 'pending').length, states.at(-1)]).toEqual([200, 'failed'])
  await one.settled()
})

test('a release that waits is rendered at its own revisions, which are not followed', async () => {
  const { bases, asked } = world()
  const at = bases.forPass(ID, SPEC, { [shownBase(MOVING)]: 'zero' })
  expect(await at.state(MOVING, null)).toMatchObject({ kind: 'ready', revision: 'zero' })
  expect(await at.state(MOVING, 'zero')).toMatchObject({ kind: 'failed', error: { code: 'git_failed' } })
  expect([asked, at.isPending()]).toEqual([[], false])
})
