// AZ2, AZ6: the pure decision, held against a naive one over random grants.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Ask, type Grant, grantFor, missingToGrant, type Place, scopeOf, serviceInScope } from '../../server/fleet/rights.ts'
import type { AccessRule } from '../../shared/model/access.ts'

const VERBS = ['read', 'write', 'sync', 'confirm', '*'] as const
const KINDS = ['Service', 'Config', 'Cluster', '*'] as const
const PROJECTS = ['a', 'ab', 'b']
const NAMES = ['web', 'web-1', 'api']
const SELECTORS = [{ matchLabels: { env: 'prod' } }, { matchLabels: { env: 'dev' } }]

const some = <T>(...of: readonly T[]) => fc.uniqueArray(fc.constantFrom(...of), { minLength: 1 })
const place: fc.Arbitrary<Place> = fc.record({
  projects: fc.option(some(...PROJECTS)),
  services: fc.option(some(...NAMES, 'web*', 'w*'), { freq: 2 }),
  clusters: fc.option(fc.constantFrom(...SELECTORS), { freq: 2 }),
})
const rule: fc.Arbitrary<AccessRule> = fc.record({ verbs: some(...VERBS), kinds: some(...KINDS) })
const grant: fc.Arbitrary<Grant> = fc.tuple(rule, place).map(([of, at]) => ({ rule: of, by: { role: 'r', binding: null }, ...at }))
const grants = fc.array(grant, { maxLength: 4 })
const cluster = fc.constantFrom({ name: 'p', labels: { env: 'prod' } }, { name: 'd', labels: { env: 'dev' } })
const ask: fc.Arbitrary<Ask> = fc
  .record({
    verb: fc.constantFrom('read', 'write', 'sync', 'confirm') as fc.Arbitrary<Ask['verb']>,
    kind: fc.constantFrom('Service', 'Config') as fc.Arbitrary<Ask['kind']>,
    project: fc.constantFrom(...PROJECTS),
    name: fc.constantFrom(...NAMES),
    cluster: fc.option(cluster, { nil: undefined }),
  })
  .map(({ cluster: at, ...of }) => (at === undefined ? of : { ...of, cluster: at }))

const naive = (all: readonly Grant[], { verb, kind, project = '', name = '', cluster: at }: Ask): boolean =>
  all.some(({ rule: { verbs, kinds }, projects, services, clusters }) => {
    const isRight = (verbs.includes('*') || verbs.includes(verb)) && (kinds.includes('*') || kinds.includes(kind))
    const isPlace = projects === null || projects.includes(project)
    const isName = services === null || (kind === 'Service' && services.some((one) => new RegExp(`^${one.replace('*', '.*')}$`).test(name)))
    const env = clusters?.matchLabels?.['env']
    const isCluster =
      clusters === null || (kind === 'Service' && (at === undefined ? verb === 'read' : verb !== 'write' && at.labels['env'] === env))
    return isRight && isPlace && isName && isCluster
  })

test('AZ2 a right is given exactly where a naive reading of the grants gives it', () => {
  fc.assert(
    fc.property(grants, ask, (all, one) => expect(grantFor(all, one) !== null).toBe(naive(all, one))),
    { numRuns: 2_000 },
  )
})

test('AZ4 the scope of a list holds exactly what single questions allow', () => {
  const inList = fc.record({ project: fc.constantFrom(...PROJECTS), name: fc.constantFrom(...NAMES), cluster })
  fc.assert(
    fc.property(grants, inList, (all, { project, name, cluster: at }) => {
      const asked = grantFor(all, { verb: 'read', kind: 'Service', project, name, cluster: at }) !== null
      expect(serviceInScope(scopeOf(all, 'read', 'Service'), { project, service: name }, at.labels)).toBe(asked)
    }),
    { numRuns: 2_000 },
  )
})

test('AZ6 what somebody may hand on allows nothing that they may not do themselves', () => {
  fc.assert(
    fc.property(grants, rule, place, ask, (all, given, at, one) => {
      if (missingToGrant(all, given, at) !== null) return
      const handedOn: Grant = { rule: given, by: { role: 'new', binding: null }, ...at }
      if (grantFor([handedOn], one) !== null) expect(grantFor(all, one)).not.toBeNull()
    }),
    { numRuns: 5_000 },
  )
})

test('AZ2 AZ6 a right on a Cluster comes from a grant in the whole fleet only, and is not handed on by anybody else', () => {
  const onCluster = fc.record({
    verb: fc.constantFrom('read', 'suspend', 'write') as fc.Arbitrary<Ask['verb']>,
    kind: fc.constant('Cluster' as const),
    cluster,
  })
  fc.assert(
    fc.property(grants, rule, place, onCluster, (all, given, at, asked) => {
      const one: Ask = { ...asked, name: asked.cluster.name }
      const inProjects = all.filter(({ projects }) => projects !== null)
      expect(grantFor(inProjects, one)).toBeNull()
      expect(scopeOf(inProjects, one.verb, 'Cluster')).toEqual([])
      if (missingToGrant(all, given, at) !== null) return
      const handedOn: Grant = { rule: given, by: { role: 'new', binding: null }, ...at }
      if (grantFor([handedOn], one) !== null) expect(grantFor(all, one)).not.toBeNull()
    }),
    { numRuns: 2_000 },
  )
})
