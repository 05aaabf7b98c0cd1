// Compares proposed content of a service with its current content. Changes nothing.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { type DiffRequest, diffRequestSchema, diffViewSchema } from '../../shared/model/diff-views.ts'
import { explainIssues, withoutReadOnly } from '../../shared/model/explain.ts'
import { matchesSelector, parseSelectorText } from '../../shared/model/labels.ts'
import { applicableSchema, type ServiceSpec } from '../../shared/model/resources.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { Principal } from '../access/principal.ts'
import type { Ask } from '../fleet/rights.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import type { Proposal } from '../ingest/render/previews.ts'
import { forbidden, lacking } from './auth.ts'
import { fails } from './declared.ts'
import { dependencyProblems } from './dependency-problems.ts'
import type { AdminDeps } from './deps.ts'
import { projectProblems } from './project-problems.ts'
import { createRenderTurns } from './render-turns.ts'
import { specProblems } from './resource-checks.ts'
import { requireCluster } from './sight.ts'
import { keyNotFound, keyOf, keyText } from './write-resource.ts'
import { mayReadService, missingRights } from './write-rights.ts'

const params = z.object({ project: nameSchema, name: nameSchema })

export function diffRoutes(deps: AdminDeps) {
  const turns = createRenderTurns(deps.clock)
  return new Elysia({ tags: ['services'] }).post(
    '/projects/:project/services/:name/diff',
    async ({ params: { project, name }, body, request }) => {
      const by = deps.principal(request)
      const view = await turns.run(by.id, async () => deps.previews.diff(await proposalOf(deps, { project, service: name }, body, by)))
      if (view === null) throw keyNotFound({ kind: 'Service', project, name })
      return view
    },
    {
      params,
      body: diffRequestSchema,
      response: diffViewSchema,
      detail: {
        summary: 'Compare proposed files, another revision or another spec of a service with its current objects; changes nothing',
        ...fails(413, 422, 502),
      },
    },
  )
}

async function proposalOf(deps: AdminDeps, id: Proposal['id'], request: DiffRequest, by: Principal): Promise<Proposal> {
  const { cluster, selector: text, content = {} } = request
  const spec = request.service === undefined ? null : await proposedSpec(deps, id, request.service, by)
  const hasFiles = Object.values(content).some((one) => 'archive' in one || 'ref' in one)
  // Without confinement, rendering content is as much as running programs of its author on the server.
  if (hasFiles && !deps.isConfined) for (const ask of unconfinedAsks(id)) if (!deps.authorizer.allows(by, ask)) throw forbidden(by, ask)
  const selector = text === undefined || text === '' ? undefined : parseSelectorText(text)
  if (selector === null) throw wrong('selector', 'expected key=value, key!=value, key or !key, joined by commas')
  if (cluster !== undefined) {
    const held = spec === null ? await deps.store.getResource({ kind: 'Service', project: id.project, name: id.service }) : null
    const asked = spec ?? (held === null ? null : parseServiceSpec(held.spec))
    await requireCluster(deps, by, { name: cluster, project: id.project, spec: asked })
  }
  return {
    id,
    spec,
    content: new Map(Object.entries(content)),
    selects: ({ name, labels }) =>
      (cluster === undefined || name === cluster) && (selector === undefined || matchesSelector(labels, selector)),
  }
}

const unconfinedAsks = ({ project, service }: Proposal['id']): Ask[] => [
  { verb: 'write', kind: 'Service', project, name: service },
  { verb: 'write', kind: 'Repository', project },
]

/** A proposed spec passes the checks of a write, and needs its rights. */
async function proposedSpec(deps: AdminDeps, { project, service }: Proposal['id'], document: unknown, by: Principal): Promise<ServiceSpec> {
  const ask: Ask = { verb: 'write', kind: 'Service', project, name: service }
  if (!deps.authorizer.allows(by, ask)) throw forbidden(by, ask)
  const input = withoutReadOnly(document)
  const parsed = applicableSchema.safeParse(input)
  if (!parsed.success) throw refused(explainIssues(applicableSchema, input, parsed.error))
  const resource = parsed.data
  if (resource.kind !== 'Service' || resource.metadata.project !== project || resource.metadata.name !== service)
    throw wrong('service', `expected the Service ${service} of project ${project}, not ${keyText(keyOf(resource))}`)
  const held = await deps.store.getResource(keyOf(resource))
  const lacks = missingRights(deps.authorizer, by, resource, held)
  if (lacks.length > 0) throw lacking('compare', lacks)
  const ofOthers = await dependencyProblems(deps.store, [resource], mayReadService(deps.authorizer, by), [])
  const ofProject = await projectProblems(deps, [resource])
  const problems = [...(await specProblems(resource, deps.checkPatches)), ...[...ofOthers, ...ofProject].map(([, problem]) => problem)]
  if (problems.length > 0) throw refused(problems)
  return resource.spec
}

const refused = (problems: readonly Problem[]): AppError =>
  new AppError('invalid_resource', {
    doing: 'compare',
    detail: `${problems.length} problem${problems.length === 1 ? '' : 's'}`,
    problems: problems.map(({ path, message }) => ({ path: path.startsWith('service') ? path : `service.${path}`, message })),
  })

const wrong = (path: string, message: string): AppError =>
  new AppError('bad_request', { doing: 'compare', detail: message, problems: [{ path, message }] })
