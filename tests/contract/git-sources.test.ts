// Git repositories as resources name them: the Config's secrets reach the server over ssh, and a repository that says
// something else starts afresh.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { removeUnusedBases } from '../../server/sources/folders.ts'
import { createSources } from '../../server/sources/sources.ts'
import { placeOf, repositorySpecSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { createGitKit, failureOf, type GitKit, sshIsThere, textsOf } from '../support/git-source-kit.ts'
import { naming } from '../support/naming.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
let kit: GitKit
beforeAll(async () => {
  if (sshIsThere) kit = await createGitKit('git over ssh')
})
afterAll(() => kit?.close())

const place = (git: Record<string, unknown>) => placeOf(repositorySpecSchema.parse({ git }))

test.skipIf(!sshIsThere)(
  'SO29 SO24 a repository over ssh is read with the secrets of its Config, which are asked for at each request',
  async () => {
    const commit = await kit.server.commit({ 'shop/a.yaml': 'a: 1\n' }, 'first')
    const asked: string[] = []
    let isThere = false
    const root = join(kit.root, 'sources')
    const sources = createSources({
      root,
      addresses: loopbackGuard(),
      credentials: async (project, secretRef) => {
        asked.push(`${project}/${secretRef}`)
        if (!isThere) throw new AppError('credential_missing', { detail: `there is no Config ${secretRef}` })
        return kit.ssh?.secrets ?? {}
      },
      clock: systemClock,
      stopping: new AbortController().signal,
      raiseWatermark: async () => null,
    })
    const key = { uid: 'a1', project: 'web', place: place({ url: kit.url, auth: { secretRef: 'deploy' } }) }
    expect(await failureOf(sources.open(key).fetch())).toEqual(['credential_missing', naming('Config deploy')])
    isThere = true
    expect(await sources.open(key).fetch()).toBe(commit)
    expect(new Set(asked)).toEqual(new Set(['web/deploy']))
    expect(await textsOf(sources.open(key), commit)).toEqual({ 'shop/a.yaml': 'a: 1\n' })
    // The same text again is the same source; another ref is another, and the folder of the old one goes when the one
    // who works on it says so.
    expect(sources.open({ ...key })).toBe(sources.open(key))
    const other = { ...key, place: place({ url: kit.url, ref: commit, auth: { secretRef: 'deploy' } }) }
    const pinned = sources.open(other)
    expect(await pinned.fetch()).toBe(commit)
    expect(await textsOf(sources.open(key), commit)).toEqual({ 'shop/a.yaml': 'a: 1\n' })
    await sources.removeOthers(other)
    expect([readdirSync(root).length, sources.open(other) === pinned]).toEqual([1, true])
    await sources.forget('a1')
    expect(readdirSync(root)).toEqual([])
  },
)

test('IN8a after a start what belongs to no repository goes; what is open, and what is no source, stays', async () => {
  const root = join(tempDir(), 'git')
  const folder = (uid: string) => `${uid}-0123456789ab`
  const [used, unused] = [folder('remote-base-1'), folder('remote-base-2')]
  for (const name of [folder('gone'), `${folder('gone')}.modules`, folder('there'), 'notes', used, unused, `${unused}.modules`])
    mkdirSync(join(root, name), { recursive: true })
  const sources = createSources({
    ...{ root, addresses: loopbackGuard(), credentials: async () => ({}), clock: systemClock },
    stopping: new AbortController().signal,
    raiseWatermark: async () => null,
  })
  sources.open({ uid: 'new', project: 'web', place: place({ url: 'https://git.example/x.git' }) })
  mkdirSync(join(root, folder('new')))
  await sources.removeUnknown(new Set(['there']))
  expect(readdirSync(root).sort()).toEqual([folder('new'), 'notes', used, unused, `${unused}.modules`, folder('there')])
  await removeUnusedBases(root, new Set(['remote-base-1']))
  expect(readdirSync(root).sort()).toEqual([folder('new'), 'notes', used, folder('there')])
})

test('SO36 the library cannot speak ssh, and says so to whoever wants something of it', async () => {
  const sources = createSources({
    root: '/nowhere',
    addresses: loopbackGuard(),
    credentials: async () => ({}),
    clock: systemClock,
    stopping: new AbortController().signal,
    raiseWatermark: async () => null,
  })
  const source = sources.open({ uid: 'b1', project: 'web', place: place({ url: 'git@example.com:a.git', client: 'library' }) })
  expect(await failureOf(source.fetch())).toEqual(['source_refused', naming('git program')])
  expect(await source.has('a'.repeat(40))).toBe(false)
})
