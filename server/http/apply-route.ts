// POST apply: many resources at once. All are checked first and all problems are reported at once. Only then are they
// written, projects, configs and repositories before services. The consequences follow after the last write: one by
// one, many relabelled clusters would be many harmless steps (TG3).
import { Elysia } from 'elysia'
import { z } from 'zod'
import { type ApplyAnswer, applyAnswerSchema } from '../../shared/model/apply-views.ts'
import { explainIssues, withoutReadOnly } from '../../shared/model/explain.ts'
import { confirmDataSchema } from '../../shared/model/removal-views.ts'
import { type Applicable, applicableSchema } from '../../shared/model/resources.ts'
import { APPLY_RESOURCES_MAX } from '../../shared/model/views.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { Principal } from '../access/principal.ts'
import type { ChangedResource } from '../actions/port.ts'
import { confirmedData } from '../actions/removal-plans.ts'
import { projectWarnings } from '../fleet/project-rules.ts'
import type { StoredResource } from '../fleet/records.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'
import { readChangesInPlace } from './apply-changes.ts'
import { type ApplyEffects, readEffects, readEffectsInTime } from './apply-effects.ts'
import { readMoves } from './apply-moves.ts'
import { lacking, missingText } from './auth.ts'
import { fails, takes } from './declared.ts'
import { dependenciesFirst, dependencyProblems } from './dependency-problems.ts'
import type { AdminDeps } from './deps.ts'
import { projectProblems, violationsOf } from './project-problems.ts'
import { specProblems } from './resource-checks.ts'
import { askOfKey, keyOf, keyText, plannedAction, refusal, secretProblems, writeResource } from './write-resource.ts'
import { mayNameProject, mayNameService, mayReadService, missingRights } from './write-rights.ts'

const applyRequestSchema = z.strictObject({
  resources: z.array(z.unknown()).max(APPLY_RESOURCES_MAX),
  dryRun: z.boolean().default(false),
  /** Exact names of objects that hold data and may be deleted where this apply takes services away (RM1). */
  confirmData: confirmDataSchema,
})
const documented = z.strictObject({ ...applyRequestSchema.shape, resources: z.array(applicableSchema).max(APPLY_RESOURCES_MAX) })

const KIND_ORDER: Record<Applicable['kind'], number> = {
  ...{ Role: 0, Project: 0, RoleBinding: 1 },
  ...{ Config: 1, HealthRule: 1, Repository: 2, NotificationSink: 2, NotificationRoute: 3, Cluster: 3, Service: 4 },
}

/** Pure: what the documents say, or everything that is wrong with them. `places`: the index of each resource among the
 *  documents. `wrong`: those that are none. */
export function parseApplicables(documents: readonly unknown[]): {
  resources: Applicable[]
  places: number[]
  problems: Problem[]
  wrong: unknown[]
} {
  const resources: Applicable[] = []
  const places: number[] = []
  const problems: Problem[] = []
  const wrong: unknown[] = []
  const firstByKey = new Map<string, number>()
  documents.forEach((document, index) => {
    const input = withoutReadOnly(document)
    const parsed = applicableSchema.safeParse(input)
    if (!parsed.success) {
      wrong.push(input)
      const found = explainIssues(applicableSchema, input, parsed.error)
      problems.push(
        ...found.map(({ path, message }) => ({ path: path === '' ? `resources[${index}]` : `resources[${index}].${path}`, message })),
      )
      return
    }
    const key = keyText(keyOf(parsed.data))
    const first = firstByKey.get(key)
    if (first !== undefined)
      problems.push({ path: `resources[${index}].metadata.name`, message: `${key} is already in resources[${first}]` })
    firstByKey.set(key, first ?? index)
    resources.push(parsed.data)
    places.push(index)
  })
  return { resources, places, problems, wrong }
}

export function applyRoute(deps: AdminDeps) {
  return new Elysia({ tags: ['apply'] }).post('/apply', ({ body, query, request }) => apply(deps, body, query, deps.principal(request)), {
    query: z.object({ effects: z.enum(['true', 'false']).default('false') }),
    detail: {
      summary: 'Create or change many resources',
      requestBody: takes(documented),
      ...fails(404, 409),
    },
    response: applyAnswerSchema,
  })
}

/** `effects=true` in the query: a write names its effects on objects, too. A server that does not know it ignores it.
 */
async function apply(deps: AdminDeps, body: unknown, query: { effects: 'true' | 'false' }, by: Principal): Promise<ApplyAnswer> {
  const request = applyRequestSchema.safeParse(body)
  if (!request.success) {
    const problems = explainIssues(applyRequestSchema, body, request.error).map(({ path, message }) => ({ path, message }))
    throw new AppError('bad_request', { doing: 'apply', detail: 'expected {resources, dryRun, confirmData}', problems })
  }
  const { resources, places, problems, wrong } = parseApplicables(request.data.resources)
  refuseForbidden(deps, by, resources, places)
  const held = await Promise.all(resources.map((resource) => deps.store.getResource(keyOf(resource))))
  const planned = resources.map((resource, index) => ({ resource, held: held[index] ?? null }))
  const roles = new Set(resources.flatMap(({ kind, metadata }) => (kind === 'Role' ? [metadata.name] : [])))
  for (const [index, item] of planned.entries()) {
    const refused = await refusal(deps, item.resource, item.held, roles)
    const who = item.held === null ? '' : `${keyText(keyOf(item.resource))} `
    if (refused !== null) problems.push({ path: `resources[${places[index]}].${refused.path}`, message: `${who}${refused.message}` })
  }
  refuseMissingRights(deps, by, planned, places)
  for (const [index, { resource, held }] of planned.entries())
    for (const { path, message } of await secretProblems(deps, resource, held))
      problems.push({ path: `resources[${places[index]}].${path}`, message })
  for (const [index, resource] of resources.entries())
    for (const { path, message } of await specProblems(resource, deps.checkPatches))
      problems.push({ path: `resources[${places[index]}].${path}`, message })
  for (const [index, { path, message }] of await dependencyProblems(deps.store, resources, mayReadService(deps.authorizer, by), wrong))
    problems.push({ path: `resources[${places[index]}].${path}`, message })
  for (const [index, { path, message }] of await projectProblems(deps, resources, mayNameProject(deps.authorizer, by)))
    problems.push({ path: `resources[${places[index]}].${path}`, message })
  if (problems.length > 0) {
    throw new AppError('invalid_resource', {
      doing: 'apply',
      detail: `${problems.length} problem${problems.length === 1 ? '' : 's'}`,
      problems,
    })
  }
  planned.sort((a, b) => KIND_ORDER[a.resource.kind] - KIND_ORDER[b.resource.kind])
  const ordered = dependenciesFirst(planned, ({ resource }) => resource)
  const sight = { ...deps, isShown: mayNameService(deps.authorizer, by) }
  const found = await readMoves(sight, ordered)
  const confirmed = confirmedData(found.removals, request.data.confirmData)
  const { changes, left: changesLeft } = await readChangesInPlace(sight, ordered)
  const violations = await violationsOf(deps, resources)
  const warnings = resources.flatMap(({ kind, metadata: { name }, spec }) =>
    kind === 'Project' ? (projectWarnings(spec).warnings ?? []).map((message) => ({ resource: `project/${name}`, message })) : [],
  )
  const moves = {
    ...(violations.length === 0 ? {} : { violations }),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(found.moves.length === 0 ? {} : { moves: found.moves }),
    ...(changes.length === 0 ? {} : { changes }),
    ...(changesLeft === 0 ? {} : { changesLeft }),
  }
  if (!request.data.dryRun) {
    const effects = query.effects === 'true' ? effectFields(await readEffectsInTime(sight, ordered)) : {}
    const results = await writeAll(deps, ordered, by, confirmed)
    return { dryRun: false, ...effects, ...moves, results }
  }
  await deps.probes.note(
    by,
    ordered.map(({ resource }) => resource),
  )
  const effects = effectFields(await readEffects(sight, ordered))
  const results: ApplyAnswer['results'] = []
  for (const { resource, held } of ordered) results.push({ ...keyOf(resource), action: await plannedAction(deps, resource, held) })
  return { dryRun: true, ...effects, ...moves, results }
}

const effectFields = ({ effects, left }: ApplyEffects): Pick<ApplyAnswer, 'effects' | 'effectsLeft'> => ({
  ...(effects.length === 0 ? {} : { effects }),
  ...(left === 0 ? {} : { effectsLeft: left }),
})

/** AZ4: before anything is looked up, so that a refusal says nothing about what exists. */
function refuseForbidden({ authorizer }: AdminDeps, by: Principal, resources: readonly Applicable[], places: readonly number[]): void {
  const lacks = resources.flatMap((resource, index) => {
    const deed = { verb: 'write', ...askOfKey(keyOf(resource)) } as const
    return authorizer.allows(by, deed) ? [] : [{ path: `resources[${places[index]}]`, message: missingText(by, deed), deed }]
  })
  if (lacks.length > 0) throw lacking('apply', lacks)
}

/** AZ4: rights that the contents ask for. A binding may name a role of the same request. */
function refuseMissingRights(
  { authorizer }: AdminDeps,
  by: Principal,
  planned: ReadonlyArray<{ resource: Applicable; held: StoredResource | null }>,
  places: readonly number[],
): void {
  const written = new Map(
    planned.flatMap(({ resource }) => (resource.kind === 'Role' ? [[resource.metadata.name, resource.spec.rules]] : [])),
  )
  const rulesOf = (role: string) => written.get(role) ?? authorizer.rulesOf(role)
  const lacks = planned.flatMap(({ resource, held }, index) =>
    missingRights(authorizer, by, resource, held, rulesOf).map((lack) => ({
      ...lack,
      path: `resources[${places[index]}]${lack.path === '' ? '' : `.${lack.path}`}`,
    })),
  )
  if (lacks.length > 0) throw lacking('apply', lacks)
}

async function writeAll(
  deps: AdminDeps,
  planned: ReadonlyArray<{ resource: Applicable; held: StoredResource | null }>,
  by: Principal,
  confirmed: ConfirmedData,
): Promise<ApplyAnswer['results']> {
  const results: ApplyAnswer['results'] = []
  const changes: ChangedResource[] = []
  const isShown = mayReadService(deps.authorizer, by)
  try {
    for (const { resource, held } of planned) {
      const { action, changed } = await writeResource(deps, resource, { by: by.name, held, isShown })
      if (changed !== null) changes.push(changed)
      results.push({ ...keyOf(resource), action })
    }
  } finally {
    if (changes.length > 0) deps.actions.onChanged(changes, confirmed) // also when a later one failed: those before it are written
  }
  return results
}
