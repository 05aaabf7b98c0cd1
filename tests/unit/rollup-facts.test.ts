// Under which keys each kind of row is counted, and the two words of a service in a cluster.
import { describe, expect, test } from 'bun:test'
import { clusterFacts, driftFacts, hourText, objectFacts, placementFacts, versionFacts } from '../../server/store/counts/rollup-facts.ts'
import { type PlacementWords, placementWords, type ReportedService } from '../../shared/model/placement-words.ts'

const at = (digest: string) => ({ commit: 'c', digest, atMs: 1 })
const said = (extra: Partial<ReportedService> = {}): ReportedService => ({
  sync: 'Synced',
  health: 'Healthy',
  received: at('new'),
  applied: at('new'),
  ...extra,
})
const refusal = { digest: 'new', names: ['ConfigMap a'], count: 1, ownedCount: 2, why: 'too many' }

describe('RU2 the words of a service in a cluster', () => {
  const NEW = { digest: 'new' }
  const cases: Array<[string, { digest: string | null } | null, ReportedService | null, PlacementWords | null]> = [
    ['nothing left there', null, said(), null],
    ['being removed', { digest: null }, said(), { sync: 'OutOfSync', health: 'Healthy' }],
    ['being removed, never reported', { digest: null }, null, { sync: 'OutOfSync', health: 'Unknown' }],
    ['not reported', NEW, null, { sync: 'Unknown', health: 'Unknown' }],
    ['received and applied', NEW, said(), { sync: 'Synced', health: 'Healthy' }],
    ['its own words', NEW, said({ sync: 'OutOfSync', health: 'Degraded' }), { sync: 'OutOfSync', health: 'Degraded' }],
    ['an older one received', NEW, said({ received: at('old') }), { sync: 'OutOfSync', health: 'Healthy' }],
    ['none received', NEW, { sync: 'Synced', health: 'Missing' }, { sync: 'OutOfSync', health: 'Missing' }],
    ['an older one applied', NEW, said({ applied: at('old') }), { sync: 'OutOfSync', health: 'Healthy' }],
    ['an older one applied, in its own words', NEW, said({ applied: at('old'), sync: 'Unknown' }), { sync: 'Unknown', health: 'Healthy' }],
    ['a prune refused, whatever it has', NEW, said({ refusal, received: at('old') }), { sync: 'Synced', health: 'Healthy' }],
  ]
  test.each(cases)('RU2 %s', (_name, desired, status, words) => {
    expect(placementWords(desired, status)).toEqual(words)
  })
})

describe('RU1 facts', () => {
  const service = { project: 'shop', service: 'web' }

  test('RU1 an object is counted in the fleet, in its service and under each image', () => {
    const state = { sync: 'Synced', health: 'Degraded', images: JSON.stringify(['nginx:1', 'redis@sha256:ab']) } as const
    expect(objectFacts(service, state)).toEqual([
      ['object', '', 'Synced/Degraded'],
      ['service_object', 'shop/web', 'Synced/Degraded'],
      ['image', 'nginx:1', ''],
      ['image', 'redis@sha256:ab', ''],
    ])
    expect(objectFacts(service, { ...state, images: null })).toHaveLength(2)
  })

  test('RU1 a service in a cluster is counted in the fleet, as the service and under each label of the cluster', () => {
    const labels = { env: 'prod', 'example.com/tier': '' }
    expect(placementFacts({ ...service, labels, words: { sync: 'OutOfSync', health: 'Healthy' } })).toEqual([
      ['placement', '', 'OutOfSync/Healthy'],
      ['service', 'shop/web', 'OutOfSync/Healthy'],
      ['label', 'env=prod', 'OutOfSync/Healthy'],
      ['label', 'example.com/tier=', 'OutOfSync/Healthy'],
    ])
    expect(placementFacts({ ...service, labels, words: null })).toEqual([])
  })

  test('RU1 a cluster is counted with its labels and its versions', () => {
    expect(clusterFacts({ env: 'prod' })).toEqual([
      ['cluster', '', 'clusters'],
      ['label', 'env=prod', 'clusters'],
    ])
    expect(versionFacts({ agentVersion: '0.5.0', kubernetesVersion: 'v1.31.2' })).toEqual([
      ['version', 'agent', '0.5.0'],
      ['version', 'kubernetes', 'v1.31.2'],
    ])
  })

  test.each([
    [0, '000000000'],
    [3_599_999, '000000000'],
    [3_600_000, '000000001'],
    [1_795_000_000_000, '000498611'],
  ])('RU1 a drift at %d is of hour %s, and hours as text are in the order of time', (sinceMs, hour) => {
    expect(driftFacts(sinceMs, { reason: 'reported' })).toEqual([['drift_hour', hour, 'reported']])
    expect(hourText(sinceMs + 3_600_000) > hour).toBe(true)
  })
})
