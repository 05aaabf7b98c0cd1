// A service that is synced by hand, from Git to the rows of its clusters: what waits, what the plan says of it, and
// what a yes is for.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { SyncPlanView } from '../../shared/model/sync.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'
import { clusterId } from '../support/store-fixtures.ts'

setDefaultTimeout(30_000)

const [A, B] = [clusterId('a'), clusterId('b')]
const MANUAL = { sync: { mode: 'manual' } }
let kit: IngestKit
beforeEach(async () => {
  kit = await createIngestKit()
  await kit.join('a')
  await kit.join('b', { env: 'prod', ring: 'canary' })
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1'), 'shop/b.yaml': configMap('b', '1') }, 'first')
  await kit.repository()
})
afterEach(() => kit.close())

const plan = async (wanted: (cluster: { name: string; labels: Record<string, string> }) => boolean = () => true): Promise<SyncPlanView> => {
  const found = await kit.actions.planSync(SHOP, wanted)
  if (found === null) throw new Error('no plan')
  return found
}
const allow = (digest: string, clusters?: string[]) =>
  kit.actions.allowSync(SHOP, { digest, ...(clusters === undefined ? {} : { clusters }) }, 'ada')
const digestOf = async (id = A) => (await kit.row(id))?.digest ?? ''
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof AppError ? { code: error.code, message: error.message } : String(error)),
  )

describe('a first placement', () => {
  test('TG16 TG17 waits in each cluster until a person says yes to it there', async () => {
    await kit.service(MANUAL)
    const digest = await digestOf()
    expect([(await kit.row(A))?.synced, (await kit.row(B))?.synced]).toEqual([undefined, undefined])
    expect(await plan()).toMatchObject({
      mode: 'manual',
      prunes: true,
      clusters: [
        { cluster: 'cluster-a', waits: true, digest, change: 0 },
        { cluster: 'cluster-b', waits: true, digest, change: 0 },
      ],
      changes: [
        {
          digest,
          fromDigest: null,
          fromCommit: null,
          known: true,
          create: { count: 2, names: ['ConfigMap shop/a', 'ConfigMap shop/b'] },
          change: { count: 0, names: [] },
          prune: { count: 0, names: [] },
          same: 0,
        },
      ],
    })
    expect(await allow(digest, ['cluster-b'])).toMatchObject({ digest, clusters: ['cluster-b'], already: 0 })
    expect([(await kit.row(A))?.synced, (await kit.row(B))?.synced]).toEqual([undefined, digest])
    expect((await plan()).clusters.map(({ waits }) => waits)).toEqual([true, false])
    expect(await kit.events()).toEqual([
      expect.stringMatching(/^RevisionPublished: .*`skerry sync shop -p default`$/),
      expect.stringMatching(/^SyncAllowed: commit [0-9a-f]{12} .*cluster-b .*ada$/),
    ])
    expect(await kit.store.confirmationsOfService(SHOP)).toEqual([])
  })

  test('TG17 a yes that was given before is no second one, and one for all is for all that wait', async () => {
    await kit.service(MANUAL)
    const digest = await digestOf()
    await allow(digest, ['cluster-b'])
    expect(await allow(digest)).toMatchObject({ clusters: ['cluster-a'], already: 1 })
    expect(await allow(digest)).toMatchObject({ clusters: [], already: 2 })
    expect((await kit.events()).filter((line) => line.startsWith('SyncAllowed'))).toHaveLength(2)
  })

  test('TG16 the plan of some clusters is of those alone', async () => {
    await kit.service(MANUAL)
    expect((await plan(({ labels }) => labels['ring'] === 'canary')).clusters.map(({ cluster }) => cluster)).toEqual(['cluster-b'])
    expect(await kit.actions.planSync({ project: 'default', service: 'none' }, () => true)).toBeNull()
    expect(await kit.actions.allowSync({ project: 'default', service: 'none' }, { digest: 'd' }, 'ada')).toBeNull()
  })
})

describe('a next revision', () => {
  test('TG16 TG17 is compared with what was allowed, and waits anew; the old digest is refused with the new one', async () => {
    await kit.service(MANUAL)
    const first = await digestOf()
    await allow(first)
    const commit = await kit.push({ 'shop/a.yaml': configMap('a', '2'), 'shop/b.yaml': null, 'shop/c.yaml': configMap('c', '1') })
    const next = await digestOf()
    expect(await kit.row(A)).toMatchObject({ digest: next, synced: first })
    const shown = await plan()
    expect(shown.changes).toEqual([
      {
        digest: next,
        commit,
        fromDigest: first,
        fromCommit: expect.any(String),
        known: true,
        create: { count: 1, names: ['ConfigMap shop/c'] },
        change: { count: 1, names: ['ConfigMap shop/a'] },
        prune: { count: 1, names: ['ConfigMap shop/b'] },
        same: 0,
      },
    ])
    expect(JSON.stringify(shown)).not.toContain('"2"')
    expect(await refusal(allow(first, ['cluster-a']))).toEqual({
      code: 'conflict',
      message: naming('cluster-a', `revision ${next}`, `commit ${commit}`),
    })
    expect(await refusal(allow(first))).toMatchObject({ code: 'conflict' })
    expect(await refusal(allow(next, ['cluster-a', 'nowhere']))).toMatchObject({ message: expect.stringContaining('not in nowhere') })
    expect((await kit.row(A))?.synced).toBe(first)
    await allow(next)
    expect([await kit.row(A), await kit.row(B)].map((row) => row?.synced)).toEqual([next, next])
  })

  test('TG17 what Git takes back was allowed before', async () => {
    await kit.service(MANUAL)
    const first = await digestOf()
    await allow(first)
    await kit.push({ 'shop/a.yaml': configMap('a', '2') })
    await kit.push({ 'shop/a.yaml': configMap('a', '1') })
    expect(await kit.row(A)).toMatchObject({ digest: first, synced: first })
    expect((await plan()).clusters.map(({ waits }) => waits)).toEqual([false, false])
  })

  test('TG16 without what was there before it says so, and names nothing', async () => {
    await kit.service(MANUAL)
    await kit.report(A, { applied: { commit: 'x', digest: 'of an older life', atMs: 1 } })
    const { changes, clusters } = await plan()
    expect(changes[clusters[0]?.change ?? -1]).toMatchObject({ known: false, fromDigest: 'of an older life', create: { count: 0 } })
    expect(changes[clusters[1]?.change ?? -1]).toMatchObject({ known: true, fromDigest: null, create: { count: 2 } })
  })

  test('TG17 while the service does not render nothing is allowed, and the yes is not kept for later', async () => {
    await kit.service(MANUAL)
    const digest = await digestOf()
    await kit.push({ 'shop/broken.yaml': 'a: [' })
    expect(await refusal(allow(digest))).toMatchObject({ code: 'conflict', message: expect.stringContaining('does not render') })
    expect(await kit.store.confirmationsOfService(SHOP)).toEqual([])
    await kit.push({ 'shop/broken.yaml': null })
    expect((await kit.row(A))?.synced).toBeUndefined()
  })
})

describe('the mode', () => {
  test('TG17 what a cluster had under auto counts as allowed, and the row of auto names nothing', async () => {
    await kit.service()
    const first = await digestOf()
    expect(await kit.row(A)).not.toHaveProperty('synced')
    await kit.service(MANUAL)
    expect(await kit.row(A)).toMatchObject({ digest: first, synced: first })
    await kit.push({ 'shop/a.yaml': configMap('a', '2') })
    expect((await plan()).clusters.map(({ waits }) => waits)).toEqual([true, true])
    await kit.service()
    expect(await kit.row(A)).not.toHaveProperty('synced')
    expect((await plan()).clusters.map(({ waits }) => waits)).toEqual([false, false])
  })

  test('TG17 a cluster that comes back is a first placement again', async () => {
    await kit.service(MANUAL)
    await allow(await digestOf())
    await kit.relabel('cluster-a', { env: 'dev' })
    await kit.reportRemoved(A)
    await kit.relabel('cluster-a', { env: 'prod' })
    expect((await kit.row(A))?.synced).toBeUndefined()
  })

  test('RV4 TG17 looking at everything again writes nothing', async () => {
    await kit.service(MANUAL)
    await allow(await digestOf())
    const before = (await kit.store.desiredOfService(SHOP)).map(({ ordinal }) => ordinal)
    await kit.ingest.serviceChanged(SHOP)
    expect((await kit.store.desiredOfService(SHOP)).map(({ ordinal }) => ordinal)).toEqual(before)
  })
})
