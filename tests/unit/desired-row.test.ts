// The row of a service as agents of this version read it, whatever the version of the server that wrote it.
import { describe, expect, test } from 'bun:test'
import { servicePart } from '../../agent/messages/service-messages.ts'
import { readService } from '../../agent/replica/revision-read.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { parseRowId, type RowId, serviceRowSchema } from '../../shared/model/desired.ts'
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
    ['a word for mode', { mode: 'window' }, { mode: 'manual' }],
    ['another form of waitForHealth', { waitForHealth: 'crds' }, { waitForHealth: true }],
    ['a word for driftAdditions', { driftAdditions: 'remove' }, { driftAdditions: 'ignore' }],
    ['another form of serviceAccount', { serviceAccount: { name: 'a' } }, { serviceAccount: 'skerry-unreadable/unreadable' }],
    ['a serviceAccount that is none', { serviceAccount: 'a/b/c' }, { serviceAccount: 'skerry-unreadable/unreadable' }],
    ['another form of namespaceLabels', { namespaceLabels: [{ a: 'b' }] }, { namespaceLabels: { 'skerry.dev/unreadable': '' } }],
    ['another form of namespaceAnnotations', { namespaceAnnotations: 'a=b' }, { namespaceAnnotations: { 'skerry.dev/unreadable': '' } }],
    ['another form of deleteNamespace', { deleteNamespace: 'empty' }, { deleteNamespace: false }],
    ['another form of enforceNamespace', { enforceNamespace: ['a'] }, { enforceNamespace: true }],
    ['another form of waitForAddress', { waitForAddress: '5m' }, { waitForAddress: true }],
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
  test('RL5 RV5 what a newer server means by `factsOnly` prunes nothing', () => {
    expect([read({}), read({}, { factsOnly: true }), read({}, { factsOnly: 'api' })].map(({ data }) => data?.factsOnly)).toEqual([
      undefined,
      true,
      true,
    ])
  })
  test('RV5 a removal order of an unknown policy is not read: nothing goes by guess', () => {
    expect(read({}, { removal: { policy: 'archive', by: 'b', atMs: 0, why: '' } }).success).toBe(false)
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['a rule of ignore in another form', { ignore: [{ kind: 'Deployment', jq: '.spec' }] }, 'ignore'],
    ['a rule of health that it does not know', { health: [{ apiVersion: 'a/v1', kind: 'A', current: 'true', lua: 'x' }] }, 'health'],
    ['a dependency with more to it', { dependsOn: [{ name: 'dns', version: '>=2' }] }, 'dependsOn'],
    ['a handover in another form', { handover: [{ object: '/ConfigMap/a/b', to: 'web/shop' }] }, 'handover'],
    ['several of them', { ignore: {}, dependsOn: 'dns' }, 'dependsOn, ignore'],
  ])('RV5 RV1 %s: the revision is not complete, and says what cannot be read', (_, more, named) => {
    const id = { project: 'web', service: 'shop' }
    const doc = JSON.stringify({ ...row, count: 0, digest: setDigest([]), sync: {}, ...more })
    expect(readService({ doc: () => doc, rows: () => [] }, id)).toEqual({
      kind: 'incomplete',
      why: servicePart('fields_unreadable', { fields: named }),
    })
  })
  test('RV5 rules that it can read are there as they were written', () => {
    const more = {
      ignore: [{ kind: 'Deployment', jsonPointers: ['/spec/replicas'] }],
      health: [{ apiVersion: 'a/v1', kind: 'A', current: 'true' }],
      dependsOn: [{ name: 'dns', project: 'net' }],
      synced: 'digest',
      handover: [{ object: '/ConfigMap/a/b', project: 'web', service: 'other' }],
    }
    expect(read({}, more).data).toMatchObject(more)
  })
  test('RV5 a row of an older server, which names none of the new options, is the same bytes when it is written again', () => {
    const older =
      '{"commit":"c","count":1,"digest":"d","namespace":"web","protect":false,"sync":{"createNamespace":true,"drift":"correct","force":true,' +
      '"healthDeadline":"10m","maxPrunePercent":50,"prune":true,"pruneWhen":"healthy","takeover":false}}'
    expect(canonicalJson(serviceRowSchema.parse(JSON.parse(older)))).toBe(older)
  })
})

test.each([
  ['healthrule//thing', { kind: 'healthrule', project: '', name: 'thing' }],
  ['healthrule/web/thing', { kind: 'healthrule', project: 'web', name: 'thing' }],
  ['healthrule/web/', { kind: 'other' }],
  ['healthrule/web/thing/more', { kind: 'other' }],
  ['later/web/thing', { kind: 'other' }],
  ['suspension/services/web/shop', { kind: 'other' }],
  ['service/web/thing/more', { kind: 'other' }],
  ['agent', { kind: 'other' }],
])('HR4 the row %s is read for what it is; of a kind that this version does not know it is left alone', (id, row) => {
  expect(parseRowId(id)).toEqual(row as RowId)
})
