// What is in force is put back at once, whatever of its revision waits: an earlier stage, a hook, or the health of a
// wave.
import { afterEach, expect, test } from 'bun:test'
import { deployment, hook, ready, waved } from '../support/hook-fixtures.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const HOUR_MS = 3_600_000
const edited = { data: { v: 'edited' } }
const webRef = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' }

test('OR6 a stage that is not answered keeps no object of a later stage from being healed', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([configMap('a'), deployment('web')])
  await run()
  cluster.lagAnswers(({ verb, ref }) => (verb === 'apply' && ref?.name === 'new' ? 60_000 : 0))
  kit.desire([configMap('a'), configMap('new'), deployment('web')])
  cluster.deleteAs('kubectl', webRef)
  await settle()
  expect(cluster.object(webRef)).not.toBeNull()
  cluster.lagAnswers(() => 0)
})

test('OR6 a hook that is not answered keeps no object from being healed', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([configMap('a', { v: '1' })])
  await run()
  cluster.lagAnswers(({ verb, ref }) => (verb === 'apply' && ref?.kind === 'Job' ? 60_000 : 0))
  kit.desire([configMap('a', { v: '1' }), hook('before', 'pre-sync')])
  cluster.editAs('kubectl-edit', configMapRef('a'), (object) => Object.assign(object, edited))
  await settle()
  expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '1' })
  cluster.lagAnswers(() => 0)
})

test('OR6 a wave that is Progressing for an hour keeps no object from being healed', async () => {
  const { cluster, kit, clock, run, settle } = setup()
  const objects = (image: string) => [deployment('web', image), waved(configMap('last', { v: '1' }), 1)]
  kit.desire(objects('a:1'), { sync: { healthDeadline: '2h' } })
  await run()
  ready(cluster, 'web')
  await settle()
  kit.desire(objects('a:2'), { sync: { healthDeadline: '2h' } })
  await clock.advance(HOUR_MS)
  cluster.editAs('kubectl-edit', configMapRef('last'), (object) => Object.assign(object, edited))
  await settle()
  expect(cluster.object(configMapRef('last'))?.['data']).toEqual({ v: '1' })
})

const THROTTLED = { kind: 'throttled', status: 429, reason: 'TooManyRequests', message: 'slow down', retryAfterMs: 30_000 } as const
const LEAVING = { project: 'web', service: 'leaving' }

test('RC9 the search for marked objects waits for its place, as every other request does', async () => {
  const { cluster, kit, clock, run, settle } = setup()
  kit.desire([configMap('a')])
  kit.desire([configMap('b')], {}, LEAVING)
  await run()
  cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'a' ? THROTTLED : null))
  kit.desire([configMap('a', { v: '2' })])
  await settle()
  cluster.fail(() => null)
  cluster.requests.length = 0
  kit.remove('delete', LEAVING)
  await settle()
  const lists = () => cluster.requests.filter(({ verb, metadataOnly }) => verb === 'watch' && metadataOnly === true).length
  expect(lists()).toBe(0)
  await clock.advance(31_000)
  expect(lists()).toBeGreaterThan(5)
})
