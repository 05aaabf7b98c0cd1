// Random histories of one service in a fleet: specs, labels, renders, joins, reports and confirmations in any order,
// each followed by a carried-out plan.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { REMOVALS_PERCENT_MAX, REMOVALS_SMALL } from '../../server/fleet/guard.ts'
import { type PlanInput, planService } from '../../server/fleet/plan-service.ts'
import type { Confirmation } from '../../server/fleet/records.ts'
import { isTarget } from '../../server/fleet/targeting.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'

const id = { project: 'default', service: 'shop' }
const CLUSTERS = 24
const clusterId = (n: number): ClusterId => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)

const step = fc.oneof(
  fc.record({ kind: fc.constant('select' as const), env: fc.constantFrom('prod', 'test', 'nobody') }),
  fc.record({ kind: fc.constant('protect' as const), protect: fc.boolean() }),
  fc.record({
    kind: fc.constant('label' as const),
    from: fc.nat(CLUSTERS - 1),
    count: fc.constantFrom(1, 2, 9),
    env: fc.constantFrom('prod', 'test'),
  }),
  fc.record({ kind: fc.constant('render' as const), digest: fc.constantFrom('d1', 'd2', null) }),
  fc.record({ kind: fc.constant('report' as const) }),
  fc.record({ kind: fc.constant('confirm' as const) }),
  fc.record({ kind: fc.constant('delete' as const) }),
)

const everywhere = (digest: string) => ({ commit: digest, in: () => ({ digest, count: 1 }) })

test('TG3 TG4 TG5 TG6 in any history: no rash removal, nothing lost, and a plan carried out leaves nothing to do', () => {
  let [ordered, waited, finished] = [0, 0, 0]
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      let protect = false
      let env = 'prod'
      const input: PlanInput = {
        id,
        spec: serviceSpecSchema.parse({ source: { repository: 'apps', path: 'shop' }, targets: { selector: { matchLabels: { env } } } }),
        deleting: false,
        deletedBy: null,
        render: everywhere('d1'),
        clusters: Array.from({ length: CLUSTERS }, (_, n) => ({
          clusterId: clusterId(n),
          name: `site-${n}`,
          labels: { env: n < 20 ? 'prod' : 'test' },
        })),
        current: [],
        loses: () => false,
        removed: new Map(),
        confirmations: new Map(),
        nowMs: 1,
      }
      const confirmations = new Map<string, Confirmation>()
      const pass = (confirmed: boolean) => {
        const before = input.current.filter(({ doc }) => doc !== null && (doc.removal === undefined || doc.removal.by === 'skerry'))
        const plan = planService({ ...input, confirmations: new Map(confirmations) })
        const orders = plan.publishes.filter(({ what }) => what === 'removal_ordered')
        ordered += orders.length
        waited += plan.open.length
        const targeted = input.clusters.filter(({ labels }) => isTarget(labels, input.spec.targets)).map((one) => one.clusterId)
        const earlier = input.deleting
          ? []
          : before.filter(({ clusterId: held, doc }) => doc?.removal !== undefined && !targeted.includes(held))
        const all = orders.length + earlier.length
        const many = orders.length > 0 && all > REMOVALS_SMALL && all * 100 > before.length * REMOVALS_PERCENT_MAX
        if (!confirmed) {
          expect(many).toBe(false)
          if (input.spec.protect) expect(orders).toEqual([])
        }
        if (input.render === null && !input.deleting) expect(plan.publishes.filter(({ what }) => what !== 'removed')).toEqual([])
        for (const { clusterId: target, doc, placedBy } of plan.publishes)
          input.current = [
            ...input.current.filter((row) => row.clusterId !== target),
            { ...id, clusterId: target, doc, placedBy, ordinal: 1, setSha: null },
          ]
        for (const opened of plan.open)
          confirmations.set(opened.subject, { ...opened, id: 'x', createdMs: 1, confirmedMs: null, confirmedBy: null })
        for (const subject of plan.close) confirmations.delete(subject)
        return plan
      }
      pass(false)
      for (const next of steps) {
        let confirmed = false
        input.removed = new Map()
        if (next.kind === 'select') env = next.env
        else if (next.kind === 'protect') protect = next.protect
        else if (next.kind === 'label')
          input.clusters = input.clusters.map((cluster, n) =>
            n >= next.from && n < next.from + next.count ? { ...cluster, labels: { env: next.env } } : cluster,
          )
        else if (next.kind === 'render') input.render = next.digest === null ? null : everywhere(next.digest)
        else if (next.kind === 'report')
          input.removed = new Map(input.current.map(({ clusterId: held, doc }) => [held, doc?.removal?.atMs ?? 0]))
        else if (next.kind === 'delete') input.deleting = true
        else {
          confirmed = confirmations.size > 0
          for (const [subject, held] of confirmations) confirmations.set(subject, { ...held, confirmedMs: 2, confirmedBy: 'ada' })
        }
        const targets = { selector: { matchLabels: { env } } }
        input.spec = serviceSpecSchema.parse({ source: { repository: 'apps', path: 'shop' }, targets, protect })
        const plan = pass(confirmed || [...confirmations.values()].some(({ confirmedMs }) => confirmedMs !== null))
        if (plan.finished) {
          finished += 1
          expect(input.current.every(({ doc }) => doc === null)).toBe(true)
        }
        const again = pass(false)
        expect([again.publishes, again.open, again.close]).toEqual([[], [], []])
        if (input.render !== null && !input.deleting)
          for (const cluster of input.clusters.filter(({ labels }) => isTarget(labels, input.spec.targets)))
            expect(input.current.find((row) => row.clusterId === cluster.clusterId)?.doc).toMatchObject({
              digest: input.render.in(cluster.clusterId)?.digest ?? 'none',
            })
      }
    }),
    { numRuns: 300 },
  )
  // The histories did reach what they are about.
  expect(Math.min(ordered, waited, finished)).toBeGreaterThan(0)
})
