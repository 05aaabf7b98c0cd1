import { describe, expect, test } from 'bun:test'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { type SyncOptions, syncOptionsSchema } from '../../shared/model/resources.ts'

const row = { commit: 'c', digest: 'd', count: 1 }
const defaults = syncOptionsSchema.parse({})
const read = (sync: unknown, more = {}) => serviceRowSchema.safeParse({ ...row, ...more, sync })

describe('a service row of a newer server', () => {
  test('RV5 what it does not say is as it is by default', () => {
    expect(read({}).data?.sync).toEqual(defaults)
  })
  test.each<[string, Record<string, unknown>, Partial<SyncOptions>]>([
    ['an option that this version does not know', { waves: true }, {}],
    ['a word for drift', { drift: 'ask' }, { drift: 'report' }],
    ['a word for pruneWhen', { pruneWhen: 'approved' }, { pruneWhen: 'healthy' }],
    ['another form of prune', { prune: { after: '1h' } }, { prune: false }],
    ['another form of maxPrunePercent', { maxPrunePercent: '10 %' }, { maxPrunePercent: 0 }],
    ['another form of force', { force: 'ask' }, { force: false }],
    ['another form of takeover', { takeover: ['helm'] }, { takeover: false }],
    ['another form of createNamespace', { createNamespace: { labels: {} } }, { createNamespace: false }],
    ['another form of healthDeadline', { healthDeadline: 'P1D' }, { healthDeadline: '10m' }],
  ])('RV5 %s: the row is read, and the careful value holds', (_, sync, expected) => {
    expect(read(sync).data?.sync).toEqual({ ...defaults, ...expected })
  })
  test('RV5 a member that this version does not know changes nothing', () => {
    expect(read({}, { wave: 3 }).data).toEqual(read({}).data)
  })
  test('RP2 RV5 what a newer server means by `restored` prunes nothing', () => {
    expect([read({}), read({}, { restored: true }), read({}, { restored: { since: 1 } })].map(({ data }) => data?.restored)).toEqual([
      undefined,
      true,
      true,
    ])
  })
  test('RV5 a removal order of an unknown policy is not read: nothing goes by guess', () => {
    expect(read({}, { removal: { policy: 'archive', by: 'b', atMs: 0, why: '' } }).success).toBe(false)
  })
})
