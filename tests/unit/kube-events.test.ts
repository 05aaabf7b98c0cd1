import { afterEach, describe, expect, test } from 'bun:test'
import { countIn, eventName, isWritten, kubeEvent, type Subject } from '../../agent/reconcile/report/kube-event.ts'
import { KubeEventWriter, TokenBucket } from '../../agent/reconcile/report/kube-events.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { denied, requests, setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef, configMaps } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(stopAll)

const subject = (name: string, others: Partial<Subject> = {}): Subject => ({
  ref: configMapRef(name),
  apiVersion: 'v1',
  uid: 'u-1',
  ...others,
})
const FAILED = { type: 'Warning', reason: 'Failed', message: 'no' } as const
const FOR = { service: 'web/shop', commit: '0123456789abcdef' }

describe('what is written', () => {
  test.each([
    ['none', 'Warning', 'Failed', false],
    ['problems', 'Warning', 'Failed', true],
    ['problems', 'Warning', 'PruneBlocked', true],
    ['problems', 'Normal', 'DriftHealed', true],
    ['problems', 'Normal', 'Applied', false],
    ['problems', 'Normal', 'Pruned', false],
    ['all', 'Normal', 'Applied', true],
    ['all', 'Normal', 'Pruned', true],
  ] as const)('KE2 %s: %s %s is %p', (mode, type, reason, written) => {
    expect(isWritten(mode, { type, reason }, subject('a'))).toBe(written)
  })

  test('KE2 nothing is written about an Event', () => {
    expect(isWritten('all', FAILED, subject('a', { ref: { ...configMapRef('a'), kind: 'Event' } }))).toBe(false)
  })

  test('KE3 the name is one for the same object, reason and message, and a name that Kubernetes takes', () => {
    expect(eventName(subject('a'), FAILED)).toBe(eventName(subject('a'), { ...FAILED }))
    const others = [subject('b'), subject('a', { uid: 'u-2' }), subject('a', { ref: { ...configMapRef('a'), namespace: 'x' } })]
    const names = [eventName(subject('a'), { ...FAILED, message: 'x' }), ...others.map((other) => eventName(other, FAILED))]
    expect(new Set([eventName(subject('a'), FAILED), ...names]).size).toBe(5)
    for (const name of ['system:node-proxier', 'x'.repeat(253), ':', 'a..b']) {
      const made = eventName(subject('a', { ref: { ...configMapRef(name), kind: 'ClusterRole', namespace: '' } }), FAILED)
      expect(made).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
      expect(made.length).toBeLessThanOrEqual(253)
    }
  })

  test('KE3 what it holds is what client-go writes, with the commit', () => {
    const times = { count: 2, firstMs: Date.parse('2026-01-01T00:00:00.900Z'), lastMs: Date.parse('2026-01-01T00:01:00Z') }
    const event = kubeEvent(subject('a'), { ...FAILED, message: 'm'.repeat(2_000) }, { ...FOR, agent: 'a-1', times })
    expect(event).toMatchObject({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: 'default', annotations: { 'skerry.dev/service': 'web/shop', 'skerry.dev/commit': FOR.commit } },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'a', uid: 'u-1' },
      type: 'Warning',
      reason: 'Failed',
      count: 2,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:01:00Z',
      source: { component: 'skerry-agent' },
      reportingComponent: 'skerry.dev/agent',
      reportingInstance: 'a-1',
    })
    const message = String(event['message'])
    expect([message.length, message.endsWith(' (commit 0123456789ab)')]).toEqual([1_024, true])
    expect(countIn(event)).toEqual({ count: 2, firstMs: Date.parse('2026-01-01T00:00:00Z'), lastMs: times.lastMs })
    expect(countIn({ ...event, count: 'x' } as K8sObject)).toBeNull()
  })

  test('KE3 events of what has no namespace are in default', () => {
    const event = kubeEvent(subject('a', { ref: { group: '', kind: 'Namespace', namespace: '', name: 'shop' }, uid: null }), FAILED, {
      ...FOR,
      agent: 'a-1',
      times: { count: 1, firstMs: 0, lastMs: 0 },
    })
    expect(event.metadata.namespace).toBe('default')
    expect(event['involvedObject']).toEqual({ apiVersion: 'v1', kind: 'Namespace', name: 'shop' })
  })
})

test('KE1 the budget is a burst, then one for each interval', () => {
  const bucket = new TokenBucket({ burst: 2, everyMs: 1_000, nowMs: 0 })
  expect([bucket.take(0), bucket.take(0), bucket.take(0), bucket.take(999)]).toEqual([true, true, false, false])
  expect([bucket.take(1_000), bucket.take(1_500), bucket.take(2_000)]).toEqual([true, false, true])
  expect([bucket.take(1e9), bucket.take(1e9), bucket.take(1e9)]).toEqual([true, true, false])
})

describe('writing', () => {
  const writer = (mode: 'problems' | 'all' = 'problems', isStrained = () => false) => {
    const clock = createVirtualClock()
    const own = clock.process(0)
    const cluster = createFakeCluster({ clock })
    const make = () =>
      new KubeEventWriter({ mode, cluster, clock: own, log: silentLogger, signal: new AbortController().signal, agent: 'a-1', isStrained })
    return { clock, own, cluster, make, events: () => cluster.objects().filter(({ kind }) => kind === 'Event') }
  }

  test('KE3 the same again is the same Event, whose count grows, also for an agent that was started again', async () => {
    const { cluster, make, events, clock } = writer()
    const first = make()
    first.write(FAILED, subject('a'), FOR)
    await first.idle()
    await clock.advance(60_000)
    first.write(FAILED, subject('a'), FOR)
    await first.idle()
    expect(requests(cluster).map((line) => line.split(' ')[0])).toEqual(['get', 'apply', 'apply'])
    const second = make()
    second.write(FAILED, subject('a'), FOR)
    await second.idle()
    expect(requests(cluster).map((line) => line.split(' ')[0])).toEqual(['get', 'apply'])
    expect(events()).toHaveLength(1)
    expect(events()[0]).toMatchObject({ count: 3 })
    expect(events()[0]?.['lastTimestamp']).not.toBe(events()[0]?.['firstTimestamp'])
  })

  test('KE1 a flood is 25 Events and then one in 5 s, whatever the date says; the rest is counted', async () => {
    const { make, events, clock, own } = writer()
    const one = make()
    const flood = () => {
      for (let n = 0; n < 100; n += 1) one.write({ ...FAILED, message: `${clock.nowMs()} ${n}` }, subject('a'), FOR)
    }
    flood()
    await one.idle()
    expect([events().length, one.dropped()]).toEqual([25, 75])
    own.setBy(86_400_000)
    await clock.advance(15_000)
    flood()
    await one.idle()
    expect([events().length, one.dropped()]).toEqual([28, 172])
  })

  test('KE1 nothing is written to a server that is overloaded, and what failed is not tried again', async () => {
    const busy = writer('problems', () => true)
    const strained = busy.make()
    strained.write(FAILED, subject('a'), FOR)
    await strained.idle()
    expect([busy.cluster.requests.length, strained.dropped()]).toEqual([0, 1])
    const broken = writer()
    const one = broken.make()
    broken.cluster.fail(() => ({ kind: 'server_error', status: 500, reason: '', message: 'no' }))
    one.write(FAILED, subject('a'), FOR)
    await one.idle()
    await broken.clock.advance(600_000)
    expect(broken.cluster.requests).toHaveLength(1)
    broken.cluster.fail(() => null)
    one.write(FAILED, subject('a'), FOR)
    await one.idle()
    expect(broken.events()).toHaveLength(1)
  })

  test('KE1 a refusal ends them', async () => {
    const { cluster, make } = writer()
    const one = make()
    cluster.fail(({ verb }) => (verb === 'apply' ? denied : null))
    one.write(FAILED, subject('a'), FOR)
    one.write(FAILED, subject('b'), FOR)
    await one.idle()
    one.write(FAILED, subject('c'), FOR)
    await one.idle()
    expect(requests(cluster).map((line) => line.split(' ')[0])).toEqual(['get', 'apply'])
    expect(one.wants(FAILED, subject('d'))).toBe(false)
  })
})

describe('out of the loop', () => {
  const told = (kubeEvents: 'problems' | 'all') => setup({ told: { kubeEvents } })
  const eventsIn = ({ cluster }: ReturnType<typeof setup>) =>
    cluster
      .objects()
      .filter(({ kind }) => kind === 'Event')
      .map((event) => `${event['type']} ${event['reason']} ${(event['involvedObject'] as { name: string }).name}`)
      .sort()

  test('KE2 a healed drift is an Event of its object, with the uid that kubectl describe asks for; idle writes none', async () => {
    const parts = told('problems')
    const { cluster, kit, settle, clock } = parts
    kit.desire(configMaps(3))
    await parts.run()
    expect(eventsIn(parts)).toEqual([])
    cluster.editAs('kubectl-edit', configMapRef('m0001'), (object) => Object.assign(object, { data: { n: 'x' } }))
    await settle()
    expect(eventsIn(parts)).toEqual(['Normal DriftHealed m0001'])
    const event = cluster.objects().find(({ kind }) => kind === 'Event')
    expect(event?.['involvedObject']).toMatchObject({ uid: cluster.object(configMapRef('m0001'))?.metadata.uid ?? '' })
    expect(event?.['message']).toContain('.data.n')
    expect(event?.['message']).not.toContain('"x"')
    requests(cluster)
    await clock.advance(3_600_000)
    expect(requests(cluster)).toEqual([])
  })

  test('KE2 a failure is an Event, and so is what is not pruned without a person', async () => {
    const parts = told('problems')
    const { cluster, kit, settle } = parts
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'm0000' ? denied : null))
    kit.desire(configMaps(10))
    await parts.run()
    expect(eventsIn(parts)).toEqual(['Warning Failed m0000'])
    cluster.fail(() => null)
    await parts.clock.advance(600_000)
    kit.desire([configMap('m0000', { n: '0' })])
    await settle()
    expect(eventsIn(parts).filter((line) => line.includes('PruneBlocked'))).toHaveLength(1)
  })

  test('KE2 all: what was applied and pruned, too', async () => {
    const parts = told('all')
    parts.kit.desire(configMaps(2))
    await parts.run()
    expect(eventsIn(parts)).toEqual(['Normal Applied m0000', 'Normal Applied m0001'])
    parts.kit.desire(configMaps(1))
    await parts.settle()
    expect(eventsIn(parts)).toContain('Normal Pruned m0001')
  })
})
