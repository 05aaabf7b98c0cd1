// Who owns, names and has what in force, among a thousand services: asked without a look at those whom it does not
// concern.
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { recallService } from '../../agent/reconcile/apply/remember.ts'
import { ServiceModel } from '../../agent/reconcile/snapshot/service-model.ts'
import type { Wanted } from '../../agent/reconcile/snapshot/wanted.ts'
import { Owners } from '../../agent/reconcile/snapshot/watch/object-index.ts'
import { ServiceRegistry } from '../../agent/reconcile/snapshot/watch/service-registry.ts'
import { entryOnPaper } from '../../agent/state/agent-state.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { configMapKey, configMapRef } from '../support/reconcile-kit.ts'

const SERVICES = 1_000
const id = (i: number): ServiceId => ({ project: 'web', service: `s${i}` })
const wanted = (name: string, onlyIfAbsent = false): Wanted => ({
  key: configMapKey(name),
  ref: configMapRef(name),
  apiVersion: 'v1',
  sent: '{}',
  stage: 0,
  onlyIfAbsent,
})

const state = openAgentState(':memory:')
afterAll(() => state.close())

let looks = 0
let woken: string[] = []
const leaving = new Set<string>()
let registry: ServiceRegistry
let models: ServiceModel[]
beforeEach(() => {
  woken = []
  registry = new ServiceRegistry({
    recall: (service) => watched(recallService(service, state)),
    inventory: (service) => state.inventory(service),
    wake: (key) => void woken.push(key),
    isLeaving: ({ service }) => leaving.has(service),
    release: () => {},
  })
  models = Array.from({ length: SERVICES }, (_, i) => registry.model(id(i)))
  for (const [i, model] of models.entries()) {
    model.objects.want(configMapKey(`o${i}`), wanted(`o${i}`))
    model.objects.want(configMapKey('shared'), wanted('shared', i !== 7))
  }
  looks = 0
})

/** Counts who is looked at. */
function watched(model: ServiceModel): ServiceModel {
  for (const name of ['reading', 'revisionPending'] as const) {
    const { get } = Object.getOwnPropertyDescriptor(ServiceModel.prototype, name) ?? {}
    Object.defineProperty(model, name, {
      get: () => {
        looks += 1
        return get?.call(model) as unknown
      },
    })
  }
  return model
}
const nth = (i: number): ServiceModel => models[i] as ServiceModel

test('RC31 who else wants an object is found without a look at a thousand services', () => {
  expect(registry.othersWanting(nth(1), configMapKey('o5'))).toEqual([nth(5)])
  expect(registry.othersWanting(nth(5), configMapKey('o5'))).toEqual([])
  expect(registry.othersWanting(nth(5), configMapKey('nobody'))).toEqual([])
  expect(looks).toBeLessThan(5)
  expect(registry.othersNeeding(nth(1), configMapKey('shared'))).toHaveLength(SERVICES - 2)
})

test('RC31 an object that a revision names no more is named by nobody', () => {
  nth(5).objects.name(new Map(), new Map([[configMapKey('o6'), unread]]))
  expect(registry.othersWanting(nth(1), configMapKey('o5'))).toEqual([])
  expect(registry.othersWanting(nth(1), configMapKey('o6'))).toEqual([nth(6), nth(5)])
  const things = ['example.com/Thing/shop/a', 'example.com/Thing/web/a', 'example.com/Thing//a']
  for (const key of things.slice(0, 2)) nth(8).objects.setUnread(key, unread)
  // Its kind may have no namespaces.
  const [inShop = '', , anywhere = ''] = things
  expect(registry.othersWanting(nth(1), anywhere)).toEqual([nth(8)])
  nth(8).objects.setUnread(inShop, null)
  expect(registry.othersWanting(nth(1), anywhere)).toEqual([nth(8)])
  expect(registry.othersWanting(nth(1), inShop)).toEqual([])
  registry.drop(nth(6))
  expect(registry.othersWanting(nth(1), configMapKey('o6'))).toEqual([nth(5)])
})

const unread = { ref: configMapRef('o6'), apiVersion: 'v1', doc: '', problem: { kind: 'unreadable', message: '' }, wave: 0 } as const

test('RC31, RC3 whether rows of others are unread is known without a look at them', () => {
  expect(registry.waitsForOthers(nth(0))).toBe(true)
  for (const model of models.slice(1)) registry.revisionRead(model)
  expect(woken).toEqual([])
  expect(registry.waitsForOthers(nth(0))).toBe(false)
  expect(registry.waitsForOthers(nth(1))).toBe(true)
  registry.revisionRead(nth(0))
  expect(woken.sort()).toEqual([nth(0).key, nth(1).key])
  registry.revisionsChanged([id(3)])
  expect([registry.waitsForOthers(nth(3)), registry.waitsForOthers(nth(4))]).toEqual([false, true])
  registry.drop(nth(3))
  expect(registry.waitsForOthers(nth(4))).toBe(false)
  expect(looks).toBeLessThan(5)
})

test('RC34 removal orders that are not read yet hold no prune back', () => {
  for (const model of models) registry.revisionRead(model)
  leaving.add('s3')
  const seen = [registry.revisionsSeen(), registry.takersSeen()]
  registry.revisionsChanged([id(3)])
  expect([registry.revisionsSeen(), registry.takersSeen()]).toEqual([(seen[0] ?? 0) + 1, seen[1] ?? 0])
  expect([nth(3).revisionPending, registry.waitsForOthers(nth(4))]).toEqual([true, false])
  // It was made again.
  leaving.delete('s3')
  registry.revisionsChanged([id(3)])
  expect([registry.takersSeen() - (seen[1] ?? 0), registry.waitsForOthers(nth(4))]).toEqual([1, true])
})

test('RC31, PR10 a UID is in force while some service wants the object that has it', () => {
  const uid = 'uid-5'
  nth(5).objects.own({ ...entryOnPaper({ ref: configMapRef('o5'), apiVersion: 'v1' }), uid })
  nth(6).objects.own({ ...entryOnPaper({ ref: configMapRef('o6'), apiVersion: 'v1' }), uid })
  nth(7).objects.own({ ...entryOnPaper({ ref: configMapRef('left'), apiVersion: 'v1' }), uid: 'uid-left' })
  expect([registry.isUidInForce(uid), registry.isUidInForce('uid-left')]).toEqual([true, false])
  nth(5).objects.name(new Map(), new Map())
  expect(registry.isUidInForce(uid)).toBe(true)
  nth(6).objects.forget(configMapKey('o6'))
  expect(registry.isUidInForce(uid)).toBe(false)
})

test('RC31, NS2 whether another service has an object in a namespace is counted', () => {
  const owners = new Owners(() => {})
  const at = (name: string) => configMapKey(name, 'shop')
  owners.set(at('a'), id(1))
  owners.set(at('b'), id(1))
  expect([owners.hasOthersIn('shop', 'web/s1'), owners.hasOthersIn('shop', 'web/s2')]).toEqual([false, true])
  owners.set(at('b'), id(2))
  expect([owners.hasOthersIn('shop', 'web/s1'), owners.hasOthersIn('shop', 'web/s2')]).toEqual([true, true])
  owners.delete(at('a'))
  owners.delete(at('b'))
  owners.delete(at('b'))
  expect(owners.hasOthersIn('shop', 'web/s3')).toBe(false)
})
