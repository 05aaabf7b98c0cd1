// Why a service is not as it should be: gathers the facts that are known on the server and lets server/fleet/why
// decide.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { dependencyKeys } from '../../shared/model/dependencies.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import type { PlacementView } from '../../shared/model/views.ts'
import { type WhyView, whyViewSchema } from '../../shared/model/why.ts'
import { nameSchema, parseServiceKey, type ServiceId } from '../../shared/runtime/ids.ts'
import { isEverywhere, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import { explain, type WhyFacts } from '../fleet/why/explain.ts'
import type { AdminDeps } from './deps.ts'
import { requirePlace } from './sight.ts'
import { elsewhereOf } from './why-elsewhere.ts'
import { type Asked, changesOf, isBad, OBJECTS_READ, objectsOf, PLACEMENTS_READ, placementsOf, toWhyPlacement } from './why-facts.ts'
import { logOfCause } from './why-log.ts'
import { keyNotFound } from './write-resource.ts'

/** Dependencies of dependencies. */
const DEPTH_MAX = 3
/** Dependencies that one answer looks at: a tenant chooses how many there are. */
export const DEPENDENCIES_READ = 50

type Deps = Pick<AdminDeps, 'store' | 'views' | 'clock' | 'authorizer' | 'principal' | 'asks' | 'onQuestion' | 'trail'>

export function whyRoutes(deps: Deps) {
  const { authorizer, principal } = deps
  return new Elysia({ tags: ['fleet'] }).get(
    '/projects/:project/services/:name/why',
    async ({ params: { project, name }, query: { cluster, log }, request }) => {
      const by = principal(request)
      const scope = authorizer.scope(by, 'read', 'Service')
      const id = { project, service: name }
      if (cluster !== undefined) await requirePlace(deps, by, id, cluster)
      const view = await whyOf(deps, id, { cluster, scope, signal: request.signal, above: [], read: new Map() })
      const [first] = view.causes
      if (log !== 'true' || first === undefined) return view
      const { evidence, unknown } = await logOfCause(deps, by, id, first, cluster)
      first.evidence.push(...evidence)
      return { ...view, unknown: [...view.unknown, ...unknown] }
    },
    {
      params: z.object({ project: nameSchema, name: nameSchema }),
      query: z.object({
        cluster: nameSchema.optional(),
        log: z
          .enum(['true', 'false'])
          .default('false')
          .describe('Ask the cluster for the last log lines of the container that the first cause names; needs the right logs:read'),
      }),
      response: whyViewSchema,
      detail: { summary: 'Causes for which a service is not Synced and Healthy, the most likely one first, with evidence and next step' },
    },
  )
}

async function whyOf(deps: Deps, id: ServiceId, asked: Asked): Promise<WhyView> {
  const { store, views } = deps
  const { project, service } = id
  const key = { kind: 'Service', project, name: service } as const
  const resource = await store.getResource(key)
  const [view] = resource === null ? [] : await views.resources([resource], asked.scope)
  if (resource === null || view?.kind !== 'Service') throw keyNotFound(key)
  const placements = await placementsOf(deps, id, asked)
  const objects = await objectsOf(deps, id, asked)
  const bad = placements.filter(isBad)
  const facts: WhyFacts = {
    service: view.status,
    placements: bad.map(toWhyPlacement),
    objects,
    clusterCount: isEverywhere(asked.scope) && asked.cluster === undefined ? view.status.clusters.total : placements.length,
    dependencies: bad.some(({ reason }) => reason === 'BlockedBy') ? await dependenciesOf(deps, id, resource.spec, asked) : [],
  }
  const worst = asked.cluster === undefined ? view.status : (placements[0] ?? view.status)
  const causes = explain(facts)
  const [first] = causes
  const isAsked = asked.cluster !== undefined && asked.above.length === 0
  const elsewhere = first === undefined || !isAsked ? null : await elsewhereOf(deps, id, first, asked)
  if (elsewhere !== null) first?.evidence.push(...elsewhere.evidence)
  return {
    ...{ project, service, cluster: asked.cluster ?? null },
    ...{ sync: worst.sync, health: worst.health, causes },
    changes: causes.length === 0 ? [] : await changesOf(deps, id, [...bad, ...(elsewhere?.bad ?? [])], asked, elsewhere?.clusters),
    unknown: unknownOf(placements, facts, asked),
  }
}

/** Only those that the caller may read. */
async function dependenciesOf(deps: Deps, id: ServiceId, spec: string, asked: Asked): Promise<WhyFacts['dependencies']> {
  const above = [...asked.above, `${id.project}/${id.service}`]
  if (above.length > DEPTH_MAX) return []
  const keys = dependencyKeys(id.project, serviceSpecSchema.parse(JSON.parse(spec)).dependsOn)
  const found: Array<WhyFacts['dependencies'][number]> = []
  for (const key of keys) {
    const of = parseServiceKey(key)
    if (above.includes(key) || !serviceInScope(withoutClusters(asked.scope), of)) continue
    if ((await deps.store.getResource({ kind: 'Service', project: of.project, name: of.service })) === null) {
      const cause = {
        cause: 'DependencyMissing',
        summary: `the service ${key} does not exist`,
        object: null,
        clusters: { count: 0, first: [] },
      }
      found.push({
        key,
        state: 'missing',
        cause: { ...cause, evidence: [], next: `Create the service ${key}, or remove it from dependsOn.` },
      })
      continue
    }
    const reading = asked.read.get(key) ?? (asked.read.size < DEPENDENCIES_READ ? whyOf(deps, of, { ...asked, above }) : undefined)
    if (reading === undefined) break
    asked.read.set(key, reading)
    const { causes, sync, health } = await reading
    found.push({ key, state: `${sync}, ${health}`, cause: causes[0] ?? null })
  }
  return found
}

function unknownOf(placements: readonly PlacementView[], { objects }: WhyFacts, { read }: Asked): string[] {
  const away = placements.filter(({ liveness }) => liveness.word !== 'Online').map(({ cluster }) => cluster)
  return [
    ...(away.length === 0
      ? []
      : [
          away.length === 1
            ? `the state of cluster ${away[0]} after its last report: it is not online`
            : `the state of ${away.length} clusters after their last reports: they are not online (${away.slice(0, 5).join(', ')})`,
        ]),
    ...(placements.length < PLACEMENTS_READ ? [] : [`further clusters: only the ${PLACEMENTS_READ} in the worst state were examined`]),
    ...(read.size < DEPENDENCIES_READ ? [] : [`only ${DEPENDENCIES_READ} dependencies were examined`]),
    ...(objects.length < OBJECTS_READ ? [] : [`only ${OBJECTS_READ} objects were examined`]),
  ]
}
