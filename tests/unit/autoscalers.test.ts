import { expect, test } from 'bun:test'
import type { ApiResource, WatchEvent } from '../../agent/cluster/cluster.ts'
import type { OtherFields } from '../../agent/reconcile/snapshot/fields/other-fields.ts'
import { Autoscalers } from '../../agent/reconcile/snapshot/watch/autoscalers.ts'
import type { KindLookup } from '../../agent/reconcile/snapshot/watch/served-kinds.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const WEB = 'apps/Deployment/shop/web'
const HPA: ApiResource = {
  group: 'autoscaling',
  version: 'v2',
  kind: 'HorizontalPodAutoscaler',
  plural: 'horizontalpodautoscalers',
  namespaced: true,
  verbs: [],
}
const autoscaler = (name: string, target: Record<string, unknown>): K8sObject => ({
  apiVersion: 'autoscaling/v2',
  kind: HPA.kind,
  metadata: { name, namespace: 'shop' },
  spec: { scaleTargetRef: target },
})
const toWeb = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
const scaledBy = (manager: string): OtherFields[] => [
  { manager, operation: 'Update', subresource: 'scale', fields: '{"f:spec":{"f:replicas":{}}}' },
]

/** The stream throws in place of an event. */
const BUG = 'bug'

function setup() {
  const queue: Array<WatchEvent | typeof BUG> = []
  const told: Array<readonly string[] | null> = []
  let wake = () => {}
  let streams = 0
  const clock = createVirtualClock()
  const end = new AbortController()
  async function* watch(_: ApiResource, { signal }: { signal: AbortSignal }): AsyncGenerator<WatchEvent> {
    streams += 1
    while (!signal.aborted) {
      const event = queue.shift()
      if (event === BUG) throw new Error('a bug')
      if (event !== undefined) yield event
      else
        await new Promise<void>((resolve) => {
          wake = resolve
          signal.addEventListener('abort', () => resolve())
        })
    }
  }
  const find = (group: string): KindLookup => (group === HPA.group ? { kind: 'served', resource: HPA } : { kind: 'unserved', versions: [] })
  const autoscalers = new Autoscalers({
    cluster: { watch },
    clock,
    find,
    log: silentLogger,
    signal: end.signal,
    changed: (targets) => void told.push(targets),
  })
  const say = async (...events: Array<WatchEvent | typeof BUG>) => {
    queue.push(...events)
    wake()
    for (let turn = 0; turn < 30; turn += 1) await Promise.resolve()
  }
  const names = (others: OtherFields[] | null = null) => autoscalers.of(WEB, others).map(({ name }) => name)
  return { autoscalers, say, told, names, streams: () => streams, end, clock }
}
const present = (name: string, target: Record<string, unknown> = toWeb) => ({ kind: 'present', object: autoscaler(name, target) }) as const

test('DR10 who scales what is known by their targets, and told when that moves', async () => {
  const { autoscalers, say, told, names, end } = setup()
  autoscalers.follow(new Set(['replicas']))
  await say({ kind: 'reset' }, present('b'), present('a'), present('none', {}), present('other', { kind: 'Deployment', name: 'web' }))
  expect([names(), told]).toEqual([['HorizontalPodAutoscaler a, HorizontalPodAutoscaler b'], []])
  await say({ kind: 'synced' })
  expect(told).toEqual([null])
  await say({ ...present('a'), kind: 'changed' })
  expect(told).toHaveLength(1)
  await say({ kind: 'changed', object: autoscaler('a', { ...toWeb, name: 'else' }) })
  expect([names(), told.at(-1)]).toEqual([['HorizontalPodAutoscaler b'], [WEB, 'apps/Deployment/shop/else']])
  await say({ kind: 'reset' }, present('a'), { kind: 'synced' })
  expect(names()).toEqual(['HorizontalPodAutoscaler a'])
  expect(told.slice(2)).toEqual([['apps/Deployment/shop/else', WEB], [WEB], ['/Deployment/shop/web']])
  await say({ kind: 'removed', object: autoscaler('a', toWeb) })
  expect([names(), told.at(-1)]).toEqual([[], [WEB]])
  end.abort()
})

test('DR10 until they are known, an autoscaler’s entry of the scale subresource speaks, and nobody else’s', async () => {
  const { autoscalers, say, names, end } = setup()
  const both = () => [names(scaledBy('kube-controller-manager')), names(scaledBy('kubectl')), names(null)]
  expect(both()).toEqual([[], [], []])
  autoscalers.follow(new Set(['replicas']))
  expect(both()).toEqual([['an autoscaler'], [], []])
  await say({ kind: 'reset' }, { kind: 'synced' })
  expect(both()).toEqual([[], [], []])
  await say({ kind: 'failed', failure: { kind: 'forbidden', status: 403, reason: 'Forbidden', message: '' } })
  expect(both()).toEqual([['an autoscaler'], [], []])
  end.abort()
})

test('DR10 one stream while a manifest asks for it, none before and none after', async () => {
  const { autoscalers, say, streams, names, end } = setup()
  autoscalers.follow(new Set())
  autoscalers.follow(new Set(['replicas']))
  autoscalers.follow(new Set(['replicas']))
  await say({ kind: 'reset' }, present('a'), { kind: 'synced' })
  expect([streams(), names()]).toEqual([1, ['HorizontalPodAutoscaler a']])
  autoscalers.follow(new Set())
  expect(names()).toEqual([])
  autoscalers.follow(new Set(['replicas']))
  await say({ kind: 'reset' }, { kind: 'synced' })
  expect([streams(), names()]).toEqual([2, []])
  end.abort()
})

test('LS5 a stream that throws starts again after half a minute, and until then its last list is uncertain', async () => {
  const { autoscalers, say, streams, names, end, clock } = setup()
  autoscalers.follow(new Set(['replicas']))
  await say({ kind: 'reset' }, present('a'), { kind: 'synced' })
  await say(BUG)
  expect([streams(), names()]).toEqual([1, ['HorizontalPodAutoscaler a']])
  await say({ kind: 'reset' }, present('b'), { kind: 'synced' })
  await clock.advance(30_000)
  expect([streams(), names()]).toEqual([2, ['HorizontalPodAutoscaler b']])
  await say({ kind: 'removed', object: autoscaler('b', toWeb) })
  expect(names(scaledBy('kube-controller-manager'))).toEqual([])
  end.abort()
})
