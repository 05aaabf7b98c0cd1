// RC24: the commit annotation on an agent and a fake API server: which commit it names, and that it causes no write of
// its own.
import { afterEach, expect, test } from 'bun:test'
import type { ObjectRef } from '../../shared/kube/object.ts'
import { hook } from '../support/hook-fixtures.ts'
import { setup, stopAll, track, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'

afterEach(stopAll)

type Site = ReturnType<typeof setup>
const commitOf = ({ cluster }: Site, ref: ObjectRef) => cluster.object(ref)?.metadata.annotations?.['skerry.dev/commit']
const commits = (site: Site, names: readonly string[]) => names.map((name) => commitOf(site, configMapRef(name)))

async function twoCommits() {
  const site = setup()
  site.kit.desire([configMap('a'), configMap('b')], { commit: 'first' })
  await site.run()
  writes(site.cluster)
  site.kit.desire([configMap('a', { a: '2' }), configMap('b')], { commit: 'second' })
  await site.settle()
  return site
}

test('RC24 an object names the commit that last changed it, and a commit that leaves it as it is writes nothing to it', async () => {
  const site = await twoCommits()
  expect(writes(site.cluster)).toEqual(['apply ConfigMap a'])
  expect(commits(site, ['a', 'b'])).toEqual(['second', 'first'])
})

test('RC24 an object names the digest of the revision that brought its commit', async () => {
  const { cluster, kit } = await twoCommits()
  const revisionOf = (name: string) => cluster.object(configMapRef(name))?.metadata.annotations?.['skerry.dev/revision']
  const [entryA, entryB] = kit.state.inventory({ project: 'web', service: 'shop' })
  expect([revisionOf('a'), revisionOf('b')]).toEqual([entryA?.digest ?? '', entryB?.digest ?? ''])
  expect(revisionOf('a')).toBe(kit.service()?.applied?.digest ?? '')
  expect(revisionOf('b')).not.toBe(revisionOf('a'))
})

test('RC24 DR6 what is corrected or created again keeps the commit of its document', async () => {
  const site = await twoCommits()
  site.cluster.deleteAs('kubectl', configMapRef('b'))
  site.cluster.editAs('kubectl-edit', configMapRef('a'), (object) => Object.assign(object, { data: { a: 'x' } }))
  await site.settle()
  expect(commits(site, ['a', 'b'])).toEqual(['second', 'first'])
})

test('RC24 DR1 a changed or removed commit annotation is drift like any other mark', async () => {
  const site = await twoCommits()
  site.cluster.patchAs('kubectl', configMapRef('a'), { metadata: { annotations: { 'skerry.dev/commit': 'mine' } } })
  await site.settle()
  expect(commits(site, ['a'])).toEqual(['second'])
  expect(site.kit.drift(configMapKey('a'))).toMatchObject({ paths: ['.metadata.annotations["skerry.dev/commit"]'], manager: 'kubectl' })
})

test('RC24 RC7 a restart writes nothing, and the commits are known after it', async () => {
  const site = await twoCommits()
  await site.kit.stop()
  writes(site.cluster)
  site.kit.start()
  await site.settle()
  expect(writes(site.cluster)).toEqual([])
  site.cluster.deleteAs('kubectl', configMapRef('b'))
  await site.settle()
  expect(commits(site, ['b'])).toEqual(['first'])
})

test('RC24 what an older agent applied is not written again for its commit, and gets one with its next change', async () => {
  const site = await twoCommits()
  const { kit, cluster, clock, settle } = site
  await kit.stop()
  // As its file was: no commit is known of anything.
  const older = createReconcileKit({ cluster, clock })
  track(older)
  const [id] = kit.state.services()
  if (id === undefined) throw new Error('no service')
  const entries = kit.state.inventory(id).map((entry) => ({ ...entry, commit: null, revision: null }))
  older.state.widenInventory(id, entries)
  older.state.recordApplied(id, entries)
  older.desire([configMap('a', { a: '2' }), configMap('b')], { commit: 'second' })
  writes(cluster)
  older.start()
  await settle()
  expect(writes(cluster)).toEqual([])
  older.desire([configMap('a', { a: '2' }), configMap('b', { a: '3' })], { commit: 'third' })
  await settle()
  expect([writes(cluster), commits(site, ['a', 'b'])]).toEqual([['apply ConfigMap b'], ['second', 'third']])
})

test('RC24 HK2 the object of a hook names the commit of its run', async () => {
  const site = setup()
  site.kit.desire([hook('migrate', 'pre-sync')], { commit: 'first' })
  await site.run()
  const job = site.cluster.objects().find(({ kind }) => kind === 'Job')
  expect(job?.metadata.annotations?.['skerry.dev/commit']).toBe('first')
})
