// RP2 in planService: how long a service row says that it is of a backup.
import { expect, test } from 'bun:test'
import { type PlanInput, planService, pruneSubject } from '../../server/fleet/plan-service.ts'
import type { Confirmation, DesiredService } from '../../server/fleet/records.ts'
import { placedByText } from '../../server/fleet/targeting.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { naming } from '../support/naming.ts'
import { CLUSTER, WEB } from '../support/sync-kit.ts'

const spec = serviceSpecSchema.parse({
  source: { repository: 'apps', path: 'web' },
  targets: { selector: { matchLabels: { env: 'prod' } } },
})
const cluster = { clusterId: CLUSTER, name: 'ship', labels: { env: 'prod' } }
const BACKUP = { commit: 'c1', digest: 'd1', count: 2 }
const everywhere = ({ commit, digest, count }: typeof BACKUP) => ({ commit, in: () => ({ digest, count }) })
const doc: ServiceRow = { ...BACKUP, sync: spec.sync, protect: false }
const removal = { policy: 'prune', by: 'ann', atMs: 3, why: 'deleted' } as const
const held = (change: Partial<ServiceRow>): DesiredService => ({
  clusterId: CLUSTER,
  ...WEB,
  ordinal: 1,
  doc: { ...doc, ...change },
  setSha: null,
  placedBy: placedByText(spec.targets),
})
const yes = (token: string, confirmedMs: number | null = 5): PlanInput['confirmations'] => {
  const subject = pruneSubject(CLUSTER, WEB)
  const asked = { id: 'abc', kind: 'prune', subject, ...WEB, cluster: 'ship', token, names: [], why: '', createdMs: 1 } as const
  return new Map([[subject, { ...asked, names: [], confirmedMs, confirmedBy: confirmedMs === null ? null : 'ann' } satisfies Confirmation]])
}
const plan = (row: DesiredService, change: Partial<PlanInput> = {}) =>
  planService({
    id: WEB,
    spec,
    deleting: false,
    deletedBy: null,
    render: everywhere(BACKUP),
    clusters: [cluster],
    current: [row],
    loses: () => false,
    removed: new Map(),
    confirmations: new Map(),
    nowMs: 9,
    ...change,
  })
const docs = (...args: Parameters<typeof plan>) => plan(...args).publishes.map((publish) => publish.doc)
const restored = { restored: true }

test('RP2 a row of the backup stays marked while its digest does: planning it again writes nothing', () => {
  expect(plan(held(restored)).publishes).toEqual([])
  expect(docs(held(restored), { spec: { ...spec, protect: true } })).toEqual([{ ...doc, protect: true, ...restored }])
})

test('RP2 the next digest, or a yes to this one, ends the mark', () => {
  expect(docs(held(restored), { render: everywhere({ ...BACKUP, commit: 'c2', digest: 'd2' }) })).toEqual([
    { ...doc, commit: 'c2', digest: 'd2' },
  ])
  expect(docs(held(restored), { confirmations: yes('d1') })).toEqual([{ ...doc, pruneConfirmed: 'd1', confirmed: [] }])
  expect(docs(held(restored), { confirmations: yes('d1', null) })).toEqual([])
  expect(docs(held(restored), { confirmations: yes('d0') })).toEqual([])
})

test('RP2 a removal order of the backup waits for a yes to its digest; placing the service again keeps the mark', () => {
  const order = held({ ...restored, removal })
  expect(docs(order, { clusters: [{ ...cluster, labels: {} }] })).toEqual([])
  const agreed = plan(order, { clusters: [{ ...cluster, labels: {} }], confirmations: yes('d1') })
  expect(agreed.publishes.map((publish) => publish.doc)).toEqual([{ ...doc, removal, pruneConfirmed: 'd1', confirmed: [] }])
  expect(agreed.close).toEqual([pruneSubject(CLUSTER, WEB)])
  expect(docs(order)).toEqual([{ ...doc, ...restored }])
})

test('RP2 a person’s order after the restore carries no mark; one that follows from labels or a deletion of the backup keeps it', () => {
  const order = { policy: 'delete', atMs: 9 } as const
  expect(docs(held(restored), { deleting: true, deletedBy: 'ann' })).toEqual([
    { ...doc, removal: { ...order, by: 'ann', why: naming('service', 'deleted') } },
  ])
  expect(docs(held(restored), { deleting: true })).toEqual([
    { ...doc, removal: { ...order, by: 'skerry', why: naming('service', 'deleted') }, ...restored },
  ])
  expect(docs(held(restored), { clusters: [{ ...cluster, labels: {} }] })).toEqual([
    { ...doc, removal: { ...order, by: 'skerry', why: naming('cluster', 'targets') }, ...restored },
  ])
})
