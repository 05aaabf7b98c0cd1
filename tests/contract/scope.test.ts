// AZ4: scopes as conditions of SQL hold the same rows on both databases.
import { expect, test } from 'bun:test'
import type { Scope } from '../../server/fleet/rights.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

const place = (over: Partial<Scope[number]>): Scope[number] => ({ projects: null, services: null, clusters: null, ...over })
const SCOPES: ReadonlyArray<readonly [Scope, string[]]> = [
  [[], []],
  [[place({})], ['shop/api', 'shop/web', 'shopping/web']],
  [[place({ projects: ['shop'] })], ['shop/api', 'shop/web']],
  [[place({ services: ['w*'] })], ['shop/web', 'shopping/web']],
  [
    [place({ projects: ['shop'], services: ['a*'] }), place({ projects: ['shopping'] })],
    ['shop/api', 'shopping/web'],
  ],
  [[place({ projects: ['shop'], clusters: { matchLabels: { env: 'dev' } } })], []],
]

test.each(STORES)('AZ4 lists of $name hold what is in scope', async (kind) => {
  const store = await openIn(kind)
  try {
    const clusterId = await joinCluster(store, 'a', { env: 'prod' })
    const doc = { commit: 'c', digest: 'd', count: 0, sync: syncOptionsSchema.parse({}), protect: false }
    const at = { atMs: 1, type: 'Normal', reason: 'R', message: '', cluster: null, object: null } as const
    for (const [project, service] of [
      ['shop', 'web'],
      ['shop', 'api'],
      ['shopping', 'web'],
    ] as const) {
      await store.applyResource({ kind: 'Service', project, name: service }, { labels: {}, spec: '{}', nowMs: 1 })
      await publishOne(store, { clusterId, project, service, doc, setSha: null, placedBy: '' })
      await store.appendEvents([{ ...at, project, service }])
    }
    for (const [scope, expected] of SCOPES) {
      const placements = await store.queries.answer({ kind: 'placements', query: { scope, sort: 'cluster', limit: 9, after: undefined } })
      expect(placements.items.flatMap((one) => ('desired' in one ? [`${one.desired.project}/${one.desired.service}`] : []))).toEqual(
        expected,
      )
      if (scope.some(({ clusters }) => clusters !== null)) continue
      const { items } = await store.listResources('Service', { limit: 9, scope })
      expect(items.map(({ project, name }) => `${project}/${name}`)).toEqual(expected)
      const events = await store.listEvents({ limit: 9, scope })
      expect(events.map(({ project, service }) => `${project}/${service}`).sort()).toEqual(expected)
      expect(await store.listConfirmations({ limit: 9, scope })).toEqual([])
    }
    await store.appendEvents([
      { ...at, project: 'shop', service: 'web', cluster: 'c1' },
      { ...at, project: 'shop', service: 'web', cluster: 'c2' },
      { ...at, project: null, service: null, cluster: 'c1' },
    ])
    const within = [
      { place: place({}), clusters: ['c1'] },
      { place: place({ projects: ['shopping'] }), clusters: [] },
    ]
    expect((await store.listEvents({ limit: 9, scope: [], within })).map(({ cluster, service }) => `${cluster} ${service}`)).toEqual([
      'c1 web',
    ])
    await store.appendEvents([{ ...at, project: 'shop', service: 'web', cluster: 'c1', object: 'apps/Deployment/shop/web' }])
    const ofObject = async (query: object) =>
      (await store.listObjectEvents({ cluster: 'c1', object: 'Deployment/shop/web', limit: 9, ...query })).items.length
    expect([await ofObject({}), await ofObject({ scope: [], within }), await ofObject({ scope: [place({ projects: ['sho'] })] })]).toEqual([
      ...[1, 1, 0],
    ])
  } finally {
    await store.close()
  }
})
