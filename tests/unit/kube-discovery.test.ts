import { describe, expect, test } from 'bun:test'
import { collectionPath, objectPath, parseDiscovery } from '../../agent/cluster/discovery.ts'

const entry = (resource: string, kind: string | null, scope = 'Namespaced') => ({
  resource,
  responseKind: kind === null ? null : { group: '', version: '', kind },
  scope,
  verbs: ['get'],
  subresources: [{ subresource: 'status', responseKind: { kind }, verbs: ['get'] }],
})
const group = (name: string, ...versions: unknown[]) => ({ metadata: name === '' ? {} : { name }, versions })
const document = (...items: unknown[]) => ({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items })

describe('aggregated discovery', () => {
  test('KA10 plurals, scopes and order are the server’s; subresources and nameless kinds are left out', () => {
    const apis = document(
      group('autoscaling', { version: 'v2', resources: [entry('hpas', 'HPA')] }, { version: 'v1', resources: [entry('hpas', 'HPA')] }),
      group('a.example', { version: 'v1', resources: [entry('mice', 'Mouse', 'Cluster'), entry('odd', null)] }),
    )
    const core = document(group('', { version: 'v1', resources: [entry('pods', 'Pod')], freshness: 'Current' }))
    const discovery = parseDiscovery([core, apis])
    expect(discovery?.resources.map(({ group: name, version, plural, namespaced }) => [name, version, plural, namespaced])).toEqual([
      ['', 'v1', 'pods', true],
      ['autoscaling', 'v2', 'hpas', true],
      ['autoscaling', 'v1', 'hpas', true],
      ['a.example', 'v1', 'mice', false],
    ])
    expect(discovery?.staleGroups).toEqual([])
    expect(discovery?.versions).toEqual(['/v1', 'autoscaling/v2', 'autoscaling/v1', 'a.example/v1'])
  })

  test('KA11 a group with a stale version is stale once, whatever its other versions say', () => {
    const stale = group(
      'b.example',
      { version: 'v2', freshness: 'Stale' },
      { version: 'v1', freshness: 'Stale', resources: [entry('x', 'X')] },
    )
    expect(parseDiscovery([document(stale, group('a.example', { version: 'v1', freshness: 'Stale' }))])).toMatchObject({
      staleGroups: ['a.example', 'b.example'],
      resources: [{ kind: 'X' }],
    })
  })

  test.each([
    ['an old server', { kind: 'APIGroupList', groups: [] }],
    ['a page of a proxy', undefined],
    ['something else', { kind: 'APIGroupDiscoveryList', items: [{ versions: [{ resources: [] }] }] }],
  ])('KA10 %s is no discovery, not an empty cluster', (_, answer) => expect(parseDiscovery([document(), answer])).toBeNull())

  test('KA10 names in paths are encoded', () => {
    const role = {
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      kind: 'ClusterRole',
      plural: 'clusterroles',
      namespaced: false,
      verbs: [],
    }
    expect(objectPath(role, 'ignored', 'system:node/../x')).toBe('/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode%2F..%2Fx')
    const pod = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true, verbs: [] }
    expect(collectionPath(pod, '')).toBe('/api/v1/pods')
    expect(objectPath(pod, 'web', 'a')).toBe('/api/v1/namespaces/web/pods/a')
  })
})
