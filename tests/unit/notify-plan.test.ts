// Notifications, the decisions: routes, grouping, recovery, quiet hours. Tables without a store.
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FleetEvent } from '../../server/fleet/records.ts'
import { Groups, OPEN_MAX } from '../../server/notify/groups.ts'
import { afterQuietHours } from '../../server/notify/quiet-hours.ts'
import { createRouting, type Route } from '../../server/notify/routing.ts'
import { CRITICAL, ENDS, severityOf } from '../../server/notify/severity.ts'
import { textOf, titleOf } from '../../server/notify/texts.ts'
import { notificationRouteSpecSchema, quietHoursSchema } from '../../shared/model/notifications.ts'
import { ROOT } from '../support/source-files.ts'

let nextId = 1
const event = (change: Partial<FleetEvent>): FleetEvent => ({
  ...{ id: nextId++, atMs: 1_000, type: 'Warning', reason: 'Degraded', message: 'web has 0 of 3 replicas' },
  ...{ cluster: 'oslo', project: 'shop', service: 'web', object: null },
  ...change,
})
const route = (spec: object = {}, project = ''): Route => ({
  project,
  name: 'all',
  spec: notificationRouteSpecSchema.parse({ sinks: ['chat'], ...spec }),
})
const NO_FACTS = { labels: null, after: 'apps@4be19d0', commit: 'fix the port (Ana)' }

describe('NR routing', () => {
  const takes = (one: Route, what: Partial<FleetEvent>, labels: Record<string, string> | null = null) =>
    createRouting([one]).routesOf(event(what), labels).length === 1
  test.each([
    ['NR1 a severity below that of the route', route({ severity: 'critical' }), { reason: 'RenderFailed' }, null, false],
    ['NR1 a severity of the route or above', route({ severity: 'warning' }), {}, null, true],
    ['NR1 a reason that is named', route({ events: ['Degraded'] }), {}, null, true],
    ['NR1 a prefix of reasons', route({ events: ['Prune*'] }), { reason: 'PruneBlocked' }, null, true],
    ['NR1 another reason', route({ events: ['Prune*'] }), {}, null, false],
    ['NR2 a service by prefix', route({ services: ['we*'] }), {}, null, true],
    ['NR2 no service, when services are named', route({ services: ['we*'] }), { service: null }, null, false],
    ['NR2 a cluster by its labels', route({ clusters: { matchLabels: { env: 'prod' } } }), {}, { env: 'prod' }, true],
    ['NR2 a cluster with other labels', route({ clusters: { matchLabels: { env: 'prod' } } }), {}, { env: 'test' }, false],
    ['NR2 no cluster, when labels are asked for', route({ clusters: {} }), { cluster: null }, null, false],
    ['NR3 an event of the own project', route({}, 'shop'), {}, null, true],
    ['NR3 an event of another project', route({}, 'bank'), {}, null, false],
    ['NR3 an event of no project', route({}, 'shop'), { project: null, service: null, reason: 'ClusterOffline' }, null, false],
  ] as const)('%s', (_, one, what, labels, expected) => {
    expect(takes(one, what, labels)).toBe(expected)
  })

  test('NR1 severities: critical reasons, other warnings, all else', () => {
    expect([severityOf('Warning', 'Degraded'), severityOf('Warning', 'RenderFailed'), severityOf('Normal', 'Healthy')]).toEqual([
      'critical',
      'warning',
      'info',
    ])
  })
})

test('NR1 NT4 each reason of the tables is a documented event', () => {
  const text = readFileSync(join(ROOT, 'docs/reference/reasons.md'), 'utf8')
  const events = text.slice(text.indexOf('## Events of the server'))
  const known = new Set([...events.matchAll(/^\| `(\w+)` \|/gm)].map(([, reason]) => reason))
  const used = [...CRITICAL, ...Object.entries(ENDS).flatMap(([end, reasons]) => [end, ...reasons])]
  expect([...new Set(used)].filter((reason) => !known.has(reason))).toEqual([])
})

describe('NT grouping', () => {
  const planOf = (one: Route, updates = true) => {
    const groups = new Groups([], () => updates)
    const routing = createRouting([one])
    const routes = new Map([[`${one.project}/${one.name}`, one]])
    let id = 1
    return {
      groups,
      take(events: readonly FleetEvent[], nowMs = 10_000) {
        for (const each of events) groups.take(each, NO_FACTS, routing, nowMs)
        const { created, changed } = groups.planned(routes, nowMs)
        for (const record of created) record.id = id++
        return { created, changed }
      },
      sweep: (nowMs: number) => groups.sweep(routes, nowMs),
    }
  }
  const clusters = (count: number, change: Partial<FleetEvent> = {}) =>
    Array.from({ length: count }, (_, index) => event({ cluster: `c${index}`, ...change }))

  test('NT2 clusters that fail after the same commit are one message that counts them', () => {
    const { created } = planOf(route()).take(clusters(14))
    const [record] = created
    expect(created).toHaveLength(1)
    expect(record?.doc.type === 'events' && titleOf(record.doc)).toBe('shop/web: 14 clusters Degraded after apps@4be19d0')
    expect(record?.doc.type === 'events' && textOf(record.doc).split('\n').at(-1)).toBe('apps@4be19d0: fix the port (Ana)')
    expect(record?.nextMs).toBe(10_000 + 30_000)
  })

  test('NT2 one cluster is named, and a repeated event counts once', () => {
    const { created } = planOf(route()).take([event({}), event({ message: 'again' })])
    expect(created.map(({ doc }) => titleOf(doc))).toEqual(['shop/web: Degraded in oslo after apps@4be19d0'])
    expect(created[0]?.doc).toMatchObject({ total: 1 })
  })

  test('NT2 a route can make a message of each cluster, and one of everything', () => {
    expect(planOf(route({ group: { by: ['cluster'] } })).take(clusters(3)).created).toHaveLength(3)
    const other = event({ cluster: 'x', service: 'api', reason: 'Failed' })
    expect(planOf(route({ group: { by: [] } })).take([...clusters(3), other]).created).toHaveLength(1)
  })

  test('NT3 more clusters change the message; a sink that cannot change one gets the next after the interval', () => {
    for (const [updates, expected] of [
      [true, 20_000 + 30_000],
      [false, 20_000 + 900_000],
    ] as const) {
      const plan = planOf(route(), updates)
      const [record] = plan.take(clusters(3)).created
      if (record === undefined) throw new Error('nothing was planned')
      Object.assign(record, { sentVersion: 1, sentMs: 20_000, nextMs: null })
      const { created, changed } = plan.take(clusters(5), 21_000)
      expect(created).toEqual([])
      expect(changed).toEqual([record])
      expect(record.version).toBe(2)
      expect(record.nextMs).toBe(expected)
      expect(record.doc).toMatchObject({ total: 5 })
    }
  })

  test('NO4 the next version of a dead message is tried as often as others', () => {
    const plan = planOf(route())
    const [record] = plan.take(clusters(1)).created
    if (record === undefined) throw new Error('nothing was planned')
    Object.assign(record, { state: 'dead', attempts: 12, triedMs: 5_000, nextMs: null })
    plan.take(clusters(2), 60_000)
    expect(record).toMatchObject({ state: 'open', attempts: 0, triedMs: 0, version: 2 })
    expect(record.nextMs).not.toBeNull()
  })

  test('NT4 the last recovery resolves the message, whatever commit brought it', () => {
    const plan = planOf(route())
    const [record] = plan.take(clusters(2)).created
    if (record === undefined) throw new Error('nothing was planned')
    Object.assign(record, { sentVersion: 1, sentMs: 20_000, nextMs: null })
    const healthy = { type: 'Normal', reason: 'Healthy' } as const
    plan.take([event({ cluster: 'c0', ...healthy })], 60_000)
    expect(record.doc).toMatchObject({ resolved: false, members: ['c1'] })
    plan.take([event({ cluster: 'c1', ...healthy })], 70_000)
    expect(record.doc).toMatchObject({ resolved: true, total: 2 })
    expect(record.version).toBe(3)
    expect(titleOf(record.doc)).toBe('Resolved: shop/web: 2 clusters Degraded after apps@4be19d0')
  })

  test('NT4 a recovery of another service or cluster resolves nothing', () => {
    const plan = planOf(route())
    const [record] = plan.take([event({})]).created
    plan.take([event({ service: 'api', type: 'Normal', reason: 'Healthy' }), event({ cluster: 'x', type: 'Normal', reason: 'Healthy' })])
    expect(record?.doc).toMatchObject({ resolved: false })
  })

  test('NT6 what is over before it is sent is never sent', () => {
    const plan = planOf(route())
    const [record] = plan.take([event({})]).created
    plan.take([event({ type: 'Normal', reason: 'Healthy' })])
    expect(record).toMatchObject({ state: 'closed', nextMs: null })
    expect(planOf(route()).take([event({}), event({ type: 'Normal', reason: 'Healthy' })]).created).toEqual([])
  })

  test('NT6 what may have been sent is resolved', () => {
    const plan = planOf(route())
    const [record] = plan.take([event({})]).created
    if (record === undefined) throw new Error('nothing was planned')
    record.inFlight = true
    plan.take([event({ type: 'Normal', reason: 'Healthy' })])
    expect(record).toMatchObject({ state: 'open', version: 2 })
  })

  test('NT5 a storm of groups is eight messages and one digest', () => {
    const plan = planOf(route())
    const events = Array.from({ length: 500 }, (_, index) => event({ service: `s${index % 50}`, cluster: `c${index}` }))
    const { created } = plan.take(events)
    expect(created).toHaveLength(9)
    const digest = created.find(({ groupKey }) => groupKey === 'digest')
    expect(digest?.doc).toMatchObject({ total: 420 })
    expect(digest?.doc.type === 'events' && titleOf(digest.doc)).toBe('420 events in 42 groups')
    expect(digest?.doc.type === 'events' && textOf(digest.doc).split('\n').at(-1)).toBe('and 22 more')
  })

  test('NT5 later events of a storm stay in the digest, until an interval is over', () => {
    const plan = planOf(route({ group: { max: 1 } }))
    const storm = (from: number) => Array.from({ length: 5 }, (_, index) => event({ service: `s${from + index}` }))
    expect(plan.take(storm(0)).created.map(({ groupKey }) => groupKey === 'digest')).toEqual([false, true])
    expect(plan.take(storm(5), 20_000).created).toEqual([])
    expect(plan.take(storm(10), 1_000_000).created).toHaveLength(1)
  })

  test('NT5 a route has two hundred open messages at most, and one digest', () => {
    const plan = planOf(route({ group: { max: 100, interval: '10s' } }))
    for (let interval = 0; interval < 4; interval++) {
      const events = Array.from({ length: 90 }, (_, index) => event({ service: `s${interval}-${index}` }))
      plan.take(events, 10_000 + interval * 11_000)
    }
    expect(plan.groups.records).toHaveLength(OPEN_MAX + 1)
  })

  test('NT7 an event that nothing ends is told, and the next one after the interval is news', () => {
    const plan = planOf(route({ events: ['Contested'] }))
    const contested = event({ reason: 'Contested' })
    const [record] = plan.take([contested]).created
    if (record === undefined) throw new Error('nothing was planned')
    Object.assign(record, { sentVersion: 1, sentMs: 40_000, nextMs: null })
    expect(plan.take([contested], 50_000).created).toEqual([])
    expect(plan.sweep(40_000 + 900_001)).toEqual([record])
    expect(plan.take([contested], 1_000_000).created).toHaveLength(1)
  })

  test('ten thousand events of one service are planned in far less than a second', () => {
    const plan = planOf(route())
    const startMs = performance.now()
    const { created } = plan.take(clusters(10_000))
    expect(created).toHaveLength(1)
    expect(performance.now() - startMs).toBeLessThan(1_000)
  })
})

describe('NQ quiet hours', () => {
  const oslo = (change: object = {}) => [quietHoursSchema.parse({ from: '22:00', to: '07:00', timeZone: 'Europe/Oslo', ...change })]
  test.each([
    ['before them', oslo(), 'warning', '2026-11-23T20:59:00Z', '2026-11-23T20:59:00Z'],
    ['at night: until the morning', oslo(), 'warning', '2026-11-23T21:00:30Z', '2026-11-24T06:00:00Z'],
    ['after midnight', oslo(), 'warning', '2026-11-24T02:30:00Z', '2026-11-24T06:00:00Z'],
    ['critical goes through', oslo(), 'critical', '2026-11-24T02:30:00Z', '2026-11-24T02:30:00Z'],
    ['nights that begin on other days', oslo({ days: ['Sat'] }), 'warning', '2026-11-24T02:30:00Z', '2026-11-24T02:30:00Z'],
    ['the night that began on Saturday', oslo({ days: ['Sat'] }), 'warning', '2026-11-29T02:30:00Z', '2026-11-29T06:00:00Z'],
    ['the clock goes forward that night', oslo(), 'warning', '2026-03-28T22:30:00Z', '2026-03-29T05:00:00Z'],
    ['the clock goes back that night', oslo(), 'warning', '2026-10-24T21:30:00Z', '2026-10-25T06:00:00Z'],
    ['within a day', oslo({ from: '12:00', to: '13:00' }), 'info', '2026-11-24T11:30:00Z', '2026-11-24T12:00:00Z'],
  ] as const)('NQ1 %s', (_, quiet, severity, due, expected) => {
    expect(new Date(afterQuietHours(quiet, severity, Date.parse(due))).toISOString()).toBe(new Date(expected).toISOString())
  })

  test('NQ2 hours that never end hold a message for a week at most', () => {
    const always = oslo({ from: '00:00', to: '00:00', except: 'critical' })
    expect(afterQuietHours(always, 'info', 0)).toBeLessThanOrEqual(7 * 24 * 3_600_000 + 60_000)
  })
})
