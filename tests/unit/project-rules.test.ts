// Which addresses, objects and ServiceAccounts a Project covers: tables, with the ways in which a tenant would try to
// get around them.
import { expect, test } from 'bun:test'
import { type Bounds, boundsIn, boundsSchema, refuseAccount, refuseNamespaceMarks, refuseObject } from '../../shared/model/bounds.ts'
import { projectSpecSchema } from '../../shared/model/projects.ts'
import { coversHost, coversSource, isSourcePattern, matchesGlob } from '../../shared/model/source-patterns.ts'

const WEB = 'https://git.example.com/web/*'

test.each<[pattern: string, url: string, covered: boolean]>([
  ['*', 'https://anything.example.com/a%2Fb', true],
  [WEB, 'https://git.example.com/web/app.git', true],
  [WEB, 'https://git.example.com/web/deep/app', true],
  [WEB, 'https://GIT.Example.COM/web/app', true],
  [WEB, 'https://git.example.com:443/web/app', true],
  [WEB, 'https://git.example.com/web/', false],
  [WEB, 'https://git.example.com/web', false],
  [WEB, 'https://git.example.com/WEB/app', false],
  [WEB, 'https://git.example.com/web-evil/app', false],
  [WEB, 'http://git.example.com/web/app', false],
  [WEB, 'https://git.example.com:8443/web/app', false],
  [WEB, 'https://git.example.com.evil.com/web/app', false],
  [WEB, 'https://evil.com/git.example.com/web/app', false],
  [WEB, 'https://git.example.com@evil.com/web/app', false],
  [WEB, 'https://git.example.com%2F@evil.com/web/app', false],
  [WEB, 'https://evil.com#@git.example.com/web/app', false],
  [WEB, 'https://evil.com\\@git.example.com/web/app', false],
  [WEB, 'https://git.example.com/web/../secret/app', false],
  [WEB, 'https://git.example.com/web/%2e%2e/secret/app', false],
  [WEB, 'https://git.example.com/web/..%2fsecret', false],
  [WEB, 'https://git.example.com/web%2fapp', false],
  [WEB, 'https://git.example.com/web/app%252f', false],
  [WEB, 'https://git.example.com//web/app', false],
  [WEB, 'https://git.example.com/web//app', false],
  [WEB, 'https://git.example.com/web/./app', false],
  [WEB, 'https://git.example.com/web/app?x=1', false],
  [WEB, 'https://git.example.com/web/app#x', false],
  [WEB, 'https://git.example.com./web/app', false],
  [WEB, 'https://git.example.com/web/\u2024\u2024/app', false],
  ['https://git.example.com/web/app', 'https://git.example.com/web/app.git', true],
  ['https://git.example.com/web/app', 'https://git.example.com/web/app/', true],
  ['https://git.example.com/web/app', 'https://git.example.com/web/app2', false],
  ['ssh://git@git.example.com/web/*', 'git@git.example.com:web/app.git', true],
  ['git@git.example.com:web/*', 'ssh://other@git.example.com:22/web/app', true],
  ['git@git.example.com:web/*', 'git@git.example.com:web/../secret', false],
  ['git@git.example.com:web/*', 'git@git.example.com:other/app', false],
  ['oci://registry.example.com/web/*', 'oci://registry.example.com/web/chart', true],
  ['oci://registry.example.com/web/*', 'oci://registry.example.com:5000/web/chart', false],
  ['https://*.example.com/*', 'https://git.example.com/a', true],
  ['https://*.example.com/*', 'https://example.com/a', false],
  ['https://*.example.com/*', 'https://evilexample.com/a', false],
])('PJ2 pattern %s and address %s: %p', (pattern, url, covered) => {
  expect(coversSource(pattern, url)).toBe(covered)
})

test.each(['https://a@b/c', 'ftp://a/b', 'https://a/../b', 'https://a/%2e', 'a*', 'https://a*b/c', '**', 'https://'])(
  'PJ2 %s is no pattern of sources',
  (text) => expect(isSourcePattern(text)).toBe(false),
)

test('PJ2 hosts of a Config are those of the patterns, with their ports', () => {
  expect(coversHost(WEB, 'git.example.com')).toBe(true)
  expect(coversHost(WEB, 'git.example.com:8443')).toBe(false)
  expect(coversHost(WEB, 'evil.com')).toBe(false)
  expect(coversHost('https://*.example.com/*', 'a.example.com')).toBe(true)
})

test('a glob takes linear time, and its parts do not overlap', () => {
  expect([matchesGlob('a*a', 'a'), matchesGlob('a*a', 'aa'), matchesGlob('*ab*ab*', 'xabab'), matchesGlob('*ab*ab*', 'xab')]).toEqual([
    ...[false, true, true, false],
  ])
  const began = performance.now()
  expect(matchesGlob(`${'a*'.repeat(30)}b`, 'a'.repeat(60))).toBe(false)
  expect(performance.now() - began).toBeLessThan(200)
})

const BOUNDS: Bounds = {
  namespaces: ['web-*', 'shop'],
  kinds: { allow: ['apps/*', 'v1/ConfigMap', 'Secret', '*/Ingress'], deny: ['apps/DaemonSet'] },
  clusterScopedKinds: ['example.com/Tenant', 'v1/Namespace'],
}
const ref = (group: string, kind: string, namespace: string, name = 'x') => ({ group, kind, namespace, name })

test.each<[group: string, kind: string, namespace: string, name: string, rule: string | null]>([
  ['apps', 'Deployment', 'web-1', 'x', null],
  ['apps', 'Deployment', 'shop', 'x', null],
  ['apps', 'Deployment', 'shop2', 'x', 'namespaces'],
  ['apps', 'Deployment', 'kube-system', 'x', 'namespaces'],
  ['apps', 'DaemonSet', 'web-1', 'x', 'kinds'],
  ['', 'ConfigMap', 'web-1', 'x', null],
  ['', 'Secret', 'web-1', 'x', null],
  ['', 'ServiceAccount', 'web-1', 'x', 'kinds'],
  ['networking.k8s.io', 'Ingress', 'web-1', 'x', null],
  ['rbac.authorization.k8s.io', 'RoleBinding', 'web-1', 'x', 'kinds'],
  ['rbac.authorization.k8s.io', 'ClusterRole', '', 'x', 'clusterScopedKinds'],
  ['example.com', 'Tenant', '', 'x', null],
  ['evil.com', 'Tenant', '', 'x', 'clusterScopedKinds'],
  ['', 'Namespace', '', 'web-9', null],
  ['', 'Namespace', '', 'kube-system', 'namespaces'],
  ['apps', 'Deployment', '', 'x', 'clusterScopedKinds'],
])('PJ4 %s/%s in %p named %s: rule %p', (group, kind, namespace, name, rule) => {
  expect(refuseObject(BOUNDS, ref(group, kind, namespace, name))?.rule ?? null).toBe(rule as never)
})

test('PJ4 rules that are left out allow everything', () => {
  expect(refuseObject({}, ref('', 'Namespace', ''))).toBeNull()
  expect(refuseObject({}, ref('apps', 'Deployment', 'kube-system'))).toBeNull()
})

test.each<[rule: Bounds['serviceAccounts'], account: string | undefined, refused: boolean]>([
  [undefined, undefined, false],
  [undefined, 'deployer', false],
  [undefined, 'kube-system/admin', true],
  ['required', undefined, true],
  ['required', 'deployer', false],
  ['required', 'kube-system/admin', true],
  [{ default: 'deployer' }, 'deployer', false],
  [{ default: 'skerry/web' }, 'skerry/web', false],
  [{ default: 'deployer' }, 'other', true],
  [{ allowed: ['deploy-*'] }, 'deploy-a', false],
  [{ allowed: ['deploy-*'] }, 'web-2/deploy-a', false],
  [{ allowed: ['web-1/deploy-*'] }, 'deploy-a', false],
  [{ allowed: ['web-1/deploy-*'] }, 'web-2/deploy-a', true],
  [{ allowed: ['deploy-*'] }, 'kube-system/deploy-a', true],
  [{ allowed: ['deploy-*'] }, undefined, true],
])('PJ5 rule %p, account %p: refused %p', (serviceAccounts, account, refused) => {
  expect(refuseAccount({ ...BOUNDS, serviceAccounts }, account, 'web-1') !== null).toBe(refused)
})

test('PJ6 marks of the namespace need v1/Namespace', () => {
  const sync = { namespaceLabels: { 'pod-security.kubernetes.io/enforce': 'privileged' } }
  expect(refuseNamespaceMarks({ ...BOUNDS, clusterScopedKinds: [] }, sync)?.rule).toBe('clusterScopedKinds')
  expect(refuseNamespaceMarks(BOUNDS, sync)).toBeNull()
  expect(refuseNamespaceMarks({ ...BOUNDS, clusterScopedKinds: [] }, {})).toBeNull()
})

test('PJ3 a cluster has the namespaces of all destinations that select it, and none outside of them', () => {
  const spec = projectSpecSchema.parse({
    sources: [],
    destinations: [
      { clusters: { matchLabels: { tenant: 'web' } }, namespaces: ['web-*'] },
      { clusters: { matchLabels: { env: 'test' } }, namespaces: ['test'] },
    ],
  })
  expect(boundsIn(spec, { tenant: 'web', env: 'test' })).toEqual({ namespaces: ['test', 'web-*'], clusterScopedKinds: [] })
  expect(boundsIn(spec, { tenant: 'web' })?.namespaces).toEqual(['web-*'])
  expect(boundsIn(spec, {})).toBeNull()
})

test('PJ9 an agent that cannot read a rule allows nothing', () => {
  for (const wrong of [{ namespaces: 'web' }, { namespaces: ['web-*'], laterRule: true }, null, 'x'])
    expect(refuseObject(boundsSchema.parse(wrong), ref('', 'ConfigMap', 'web-1'))?.rule).toBe('namespaces')
})

test('PJ1 sources and destinations are written, and kinds outside namespaces are none by default', () => {
  expect(projectSpecSchema.safeParse({}).success).toBe(false)
  expect(projectSpecSchema.parse({ sources: ['*'], destinations: [] }).clusterScopedKinds).toEqual([])
  for (const serviceAccounts of ['any', {}, { default: 'a/b/c' }])
    expect(projectSpecSchema.safeParse({ sources: [], destinations: [], serviceAccounts }).success).toBe(false)
})
