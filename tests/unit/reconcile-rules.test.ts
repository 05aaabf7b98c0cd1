// HealthRules that come with an agent's rows: whom they judge, and what a change of them costs.
import { afterEach, beforeAll, expect, test } from 'bun:test'
import { loadCel } from '../../shared/adapters/cel.ts'
import type { HealthRuleSpec } from '../../shared/model/health-rules.ts'
import { requests, setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'

beforeAll(async () => void (await loadCel()))
afterEach(stopAll)

const rule = (parts: Partial<HealthRuleSpec>, kind = 'ConfigMap'): HealthRuleSpec => ({ group: '', kind, ...parts })
const READY = rule({ healthy: { when: "data.state == 'ready'" } })
const OTHER = { project: 'other', service: 'shop' }
const at = (state: string, name = 'a') => configMap(name, { state })

function site() {
  const parts = setup()
  const { kit, cluster } = parts
  return {
    ...parts,
    health: (name = 'a', id?: typeof OTHER) => kit.object(configMapKey(name), id)?.health,
    reads: () => requests(cluster).filter((line) => line.includes('ConfigMap') && !line.startsWith('apply')),
  }
}

test('HR2 HR6 a rule of the fleet judges objects of all services, one of a project those of its own', async () => {
  const { kit, run, settle, health } = site()
  kit.rules({ '/ready': READY })
  kit.desire([at('new')])
  kit.desire([at('new', 'b')], {}, OTHER)
  await run()
  expect([health(), health('b', OTHER)]).toEqual(['Progressing', 'Progressing'])
  kit.rules({ 'other/ready': READY })
  await settle()
  expect([health(), health('b', OTHER)]).toEqual(['Healthy', 'Progressing'])
})

test('HR2 the rule of a project comes before one of the fleet, and that of a service before both', async () => {
  const { kit, run, settle, health } = site()
  kit.rules({ '/a': rule({ degraded: { when: 'true' } }), 'web/z': rule({ healthy: { when: 'true' } }) })
  kit.desire([at('new')])
  await run()
  expect(health()).toBe('Healthy')
  const own = { apiVersion: 'v1', kind: 'ConfigMap', current: 'true', inProgress: 'true' }
  kit.desire([at('new')], { health: [own], commit: 'second' })
  await settle()
  expect(health()).toBe('Progressing')
})

test('HR6 a rule that comes, changes or goes reads each object of its kind once, and no other', async () => {
  const { kit, run, settle, health, reads } = site()
  kit.desire([at('new'), at('ready', 'b')])
  await run()
  expect([health(), health('b')]).toEqual(['Healthy', 'Healthy'])
  reads()
  kit.rules({ '/ready': READY, '/pods': rule({ healthy: { when: 'false' } }, 'Pod') })
  await settle()
  expect([reads(), health(), health('b')]).toEqual([['get ConfigMap a', 'get ConfigMap b'], 'Progressing', 'Healthy'])
  kit.rules({ '/ready': READY })
  await settle()
  expect(reads()).toEqual([])
  kit.rules({})
  await settle()
  expect([reads().length, health()]).toEqual([2, 'Healthy'])
})

test('HR6 many objects of a kind are listed once', async () => {
  const { kit, run, settle, health, reads } = site()
  kit.desire(Array.from({ length: 30 }, (_, index) => at(index === 7 ? 'new' : 'ready', `m${index}`)))
  await run()
  reads()
  kit.rules({ '/ready': READY })
  await settle()
  expect([reads(), health('m7'), health('m8')]).toEqual([['watch ConfigMap'], 'Progressing', 'Healthy'])
})

test('HR6 a revision waits for the rules that came with it: its objects are judged by them from the first moment', async () => {
  const { kit, run, settle, cluster } = site()
  await run()
  kit.rules({ '/ready': READY })
  const wave = at('late', 'b')
  kit.desire([at('new'), { ...wave, metadata: { ...wave.metadata, annotations: { 'skerry.dev/wave': '1' } } }])
  await settle()
  expect([cluster.object(configMapRef('a')) !== null, cluster.object(configMapRef('b'))]).toEqual([true, null])
})

test('HR6 a restart reads nothing and reports nothing', async () => {
  const { kit, run, clock, reads } = site()
  kit.rules({ '/ready': READY })
  kit.desire([at('new')])
  await run()
  await kit.stop()
  const [before, rev] = [kit.object(configMapKey('a')), kit.state.lastRev()]
  await clock.advance(5_000)
  reads()
  await run()
  expect([kit.object(configMapKey('a')), kit.state.lastRev()]).toEqual([before, rev])
  expect(reads()).not.toContain('get ConfigMap a')
})

test('HR6 a rule that this agent cannot read makes nothing healthy, and one that it cannot even place changes nothing', async () => {
  const { kit, run, settle, health } = site()
  kit.rules({ '/new': rule({ healthy: { when: 'fromTheFuture(data)' } }) })
  kit.desire([at('ready')])
  await run()
  expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Progressing', reason: 'HealthRuleError' })
  kit.rules({ '/newer': { form: 'unknown' } as unknown as HealthRuleSpec })
  await settle()
  expect(health()).toBe('Healthy')
})
