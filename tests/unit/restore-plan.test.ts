import { expect, test } from 'bun:test'
import { planRestore, type RestoreInput, restoredDoc, restoreToken } from '../../server/fleet/restore-plan.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { type ServiceStatus, serviceStatusSchema } from '../../shared/model/status.ts'
import { CLUSTER } from '../support/sync-kit.ts'

const removal = { policy: 'prune', by: 'ann', atMs: 7, why: 'deleted' } as const
const row = (service: string, doc: Partial<ServiceRow> | null): RestoreInput['desired'][number] => ({
  clusterId: CLUSTER,
  project: 'p',
  service,
  ordinal: 1,
  doc: doc === null ? null : { commit: 'c-old', digest: 'd-old', count: 1, sync: syncOptionsSchema.parse({}), protect: false, ...doc },
  setSha: null,
  placedBy: '{}',
})
const status = (digest: string | null, extra: Partial<ServiceStatus> = {}): ServiceStatus =>
  serviceStatusSchema.parse({
    sync: 'Synced',
    health: 'Healthy',
    reason: '',
    message: '',
    sinceMs: 1,
    objectCount: 1,
    healthyCount: 1,
    ...(digest === null ? {} : { received: { commit: `c-${digest.slice(2)}`, digest, atMs: 1 } }),
    ...extra,
  })

test('RP2 a yes to a prune that the backup remembers is none after the restore', () => {
  const { doc } = row('web', { pruneConfirmed: 'd-old' })
  if (doc === null) throw new Error('it has a row')
  expect(restoredDoc(doc)).toMatchObject({ digest: 'd-old', restored: true })
  expect('pruneConfirmed' in restoredDoc(doc)).toBe(false)
})

test.each([
  ['the same: the agent’s disk may have lost the same revisions', {}, status('d-old'), 'same', true],
  ['another revision', {}, status('d-new'), 'change c-new→c-old', true],
  ['no report', {}, null, 'place null→c-old', true],
  ['a report, but nothing received', {}, status(null), 'place null→c-old', true],
  ['removed there', {}, status('d-new', { removed: true }), 'place null→c-old', true],
  ['a removal order that is not carried out', { removal }, status('d-old'), 'remove c-old→null', true],
  [
    'a removal order after another one was answered',
    { removal },
    status(null, { removed: true, removedOrderMs: 6 }),
    'remove null→null',
    true,
  ],
  ['a removal order that was carried out', { removal }, status(null, { removed: true, removedOrderMs: 7 }), 'same', true],
  ['an order to release', { removal: { ...removal, policy: 'orphan' } }, status('d-old'), 'let go c-old→null', true],
  ['marked already', { restored: true }, status('d-new'), 'change c-new→c-old', false],
  ['a tombstone, and the agent has it', null, status('d-new'), 'unclaimed c-new→null', false],
  ['a tombstone, and the agent had it', null, status('d-new', { removed: true }), '', false],
  ['a tombstone', null, null, '', false],
] as const)('RP2 %s', (_, doc, report, shown, marked) => {
  const reports = new Map(report === null ? [] : [['p/s', report]])
  const planned = planRestore({
    cluster: 'a',
    lastSeenMs: 1,
    heard: true,
    ahead: null,
    desired: [row('s', doc)],
    isSuspended: () => false,
    reports,
  })
  const lines = planned.view.services.map(({ what, from, to }) => `${what} ${from}→${to}`)
  expect([...lines, ...Array.from({ length: planned.view.same }, () => 'same')].join()).toBe(shown)
  expect(planned.marked.length === 1).toBe(marked)
})

test('SU10 what was suspended after the backup is named, unless it is suspended again', () => {
  const reports = new Map([['p/s', status('d-old', { reason: 'Suspended' })]])
  const planOf = (isSuspended: boolean) =>
    planRestore({ cluster: 'a', lastSeenMs: 1, heard: true, ahead: null, desired: [row('s', {})], isSuspended: () => isSuspended, reports })
  expect(planOf(false).view.services).toEqual([{ project: 'p', service: 's', what: 'resume', from: null, to: 'c-old' }])
  expect(planOf(true).view.services).toEqual([])
})

test('RP2 the token is of what would change: not of who was heard of last, nor of what stays the same', () => {
  const input: RestoreInput = {
    cluster: 'a',
    lastSeenMs: 1,
    heard: true,
    ahead: null,
    desired: [row('s', {})],
    isSuspended: () => false,
    reports: new Map(),
  }
  const token = (changes: Partial<RestoreInput>) => restoreToken([planRestore({ ...input, ...changes }).view])
  const base = token({})
  expect(token({ lastSeenMs: 99, heard: false })).toBe(base)
  const more = [row('s', {}), row('t', {})]
  const same = new Map([['p/t', status('d-old')]])
  expect(token({ desired: more, reports: same })).toBe(base)
  expect(token({ desired: more })).not.toBe(base)
  expect(token({ desired: [row('s', { commit: 'c-next' })] })).not.toBe(base)
  expect(token({ ahead: { proof: { epoch: 3, ordinal: 4 }, epoch: 1, ordinal: 2 } })).not.toBe(base)
  expect(token({ cluster: 'b' })).not.toBe(base)
})
