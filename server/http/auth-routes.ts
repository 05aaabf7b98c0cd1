// Questions about rights: for the caller, for another subject, and for all subjects.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { canIAnswerSchema, type RightSource, whoCanAnswerSchema } from '../../shared/model/access-views.ts'
import { ACCESS_KINDS, ACCESS_VERBS, PROJECT_KINDS } from '../../shared/model/access-words.ts'
import { FLEET } from '../../shared/model/resources.ts'
import type { WhoamiAnswer } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { Authorizer } from '../access/authorizer.ts'
import { type Principal, subjectKeys, tokenPrincipal } from '../access/principal.ts'
import { type Ask, type Grant, grantFor } from '../fleet/rights.ts'
import { forbidden, missingText } from './auth.ts'
import type { AdminDeps } from './deps.ts'

const question = z.object({
  verb: z.enum(ACCESS_VERBS),
  kind: z.enum(ACCESS_KINDS),
  name: nameSchema.optional(),
  project: nameSchema.optional(),
  cluster: nameSchema.optional(),
})
const who = z.string().min(1).max(320)
const canIQuery = question.extend({
  asUser: who.optional().describe('Check for this user: a verified e-mail address, or provider:subject.'),
  asGroup: z
    .preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(who).max(50).optional())
    .describe('Check for a member of these groups: provider:group.'),
  asToken: nameSchema.optional().describe('Check for API tokens of this name, without the role that the token itself has.'),
})

export function authRoutes(deps: AdminDeps) {
  const { authorizer, store } = deps
  const askOf = async ({ verb, kind, name, project, cluster }: z.infer<typeof question>): Promise<Ask> => {
    const at = kind === 'Cluster' ? (cluster ?? name) : cluster
    const found = at === undefined ? null : await store.clusterByName(at)
    return {
      verb,
      kind,
      ...(name === undefined ? {} : { name }),
      ...(project === undefined ? {} : { project }),
      // A cluster that does not exist has no labels: the answer does not reveal whether it exists.
      ...(at === undefined ? {} : { cluster: found ?? { name: at, labels: {} } }),
    }
  }
  const mayReadBindings = (principal: Principal, project: string | undefined) =>
    authorizer.allows(principal, { verb: 'read', kind: 'RoleBinding', ...(project === undefined ? {} : { project }), name: '' })

  return new Elysia({ tags: ['access'] })
    .get(
      '/auth/can-i',
      async ({ query: asked, request }) => {
        const query = inItsPlace(asked)
        const caller = deps.principal(request)
        const ask = await askOf(query)
        const keys = [
          ...(query.asUser === undefined ? [] : subjectKeys({ ...NOBODY, ...userOf(query.asUser) })),
          ...(query.asGroup ?? []).map((group) => `group:${group}`),
          ...(query.asToken === undefined ? [] : [`token:${query.asToken}`]),
        ]
        if (keys.length === 0) return answerOf(caller, ask, authorizer.grantFor(caller, ask))
        if (!mayReadBindings(caller, query.project))
          throw forbidden(caller, { verb: 'read', kind: 'RoleBinding', ...placed(query.project) })
        const name = [query.asUser, ...(query.asGroup ?? []), query.asToken].filter((one) => one !== undefined).join(', ')
        const kind = query.asToken === undefined ? 'user' : 'token'
        const grant = grantFor(authorizer.grantsOfKeys(keys), ask)
        return grant === null || mayReadBindings(caller, bindingPlace(grant)) ? answerOf({ kind, name }, ask, grant) : HIDDEN
      },
      {
        query: canIQuery,
        response: canIAnswerSchema,
        detail: { summary: 'Whether the caller, or somebody else, has a right, and which role and binding give it' },
      },
    )
    .get(
      '/auth/who-can',
      async ({ query: asked, request }) => {
        const query = inItsPlace(asked)
        const caller = deps.principal(request)
        if (!mayReadBindings(caller, query.project))
          throw forbidden(caller, { verb: 'read', kind: 'RoleBinding', ...placed(query.project) })
        const ask = await askOf(query)
        let hidden = 0
        const items: z.infer<typeof whoCanAnswerSchema>['items'] = []
        for (const [subject, grants] of authorizer.subjects()) {
          const grant = grantFor(grants, ask)
          if (grant === null) continue
          if (mayReadBindings(caller, bindingPlace(grant))) items.push({ subject, ...sourceOf(grant) })
          else hidden += 1
        }
        if (authorizer.allows(caller, { verb: 'token:read', kind: 'ApiToken' })) items.push(...(await tokensThatCan(ask)))
        items.sort((a, b) => (a.subject < b.subject ? -1 : a.subject > b.subject ? 1 : 0))
        return { items, hidden }
      },
      {
        query: question,
        response: whoCanAnswerSchema,
        detail: {
          summary: 'Users, groups and API tokens that have a right; `hidden` counts those of bindings that the caller may not read',
        },
      },
    )

  async function tokensThatCan(ask: Ask) {
    const nowMs = deps.clock.nowMs()
    const held = (await store.listApiTokens()).filter(({ expiresMs }) => expiresMs === null || expiresMs > nowMs)
    return held.flatMap((token) => {
      const grant = authorizer.grantFor(tokenPrincipal(token.id, token.name, token.role, token.projects), ask)
      return grant === null || grant.by.binding !== null ? [] : [{ subject: `token:${token.name}`, ...sourceOf(grant) }]
    })
  }
}

const NOBODY = {
  id: '',
  kind: 'user',
  name: '',
  provider: null,
  subject: null,
  email: null,
  groups: [],
  role: null,
  projects: null,
} as const

/** An e-mail address, or `provider:subject`. */
function userOf(text: string): Pick<Principal, 'provider' | 'subject' | 'email'> {
  const colon = text.indexOf(':')
  if (colon > 0) return { provider: text.slice(0, colon), subject: text.slice(colon + 1), email: null }
  if (text.includes('@')) return { provider: null, subject: null, email: text }
  throw new AppError('bad_request', { detail: 'asUser: expected an e-mail address or provider:subject' })
}

/**
 * Kinds of the fleet have no project: a caller who may read the bindings of one project learns nothing about rights on
 * them.
 */
const inItsPlace = <Q extends z.infer<typeof question>>(query: Q): Q =>
  PROJECT_KINDS.some((kind) => kind === query.kind) ? query : { ...query, project: undefined }

/** Project of the binding that gives it. Undefined means the fleet. */
const bindingPlace = ({ by }: Grant): string | undefined =>
  by.binding === null || by.binding.project === FLEET ? undefined : by.binding.project

/** AZ4: a binding names projects and clusters that the caller may not read. */
const HIDDEN = { allowed: true, by: null, detail: 'by a role binding that you may not read' } as const

const placed = (project: string | undefined) => (project === undefined ? {} : { project })

function answerOf(caller: Pick<Principal, 'kind' | 'name'>, ask: Ask, grant: Grant | null) {
  const by = grant === null ? null : sourceOf(grant)
  return { allowed: grant !== null, by, detail: grant === null ? missingText(caller, ask) : grantText(grant) }
}

export function sourceOf({ by, projects, services, clusters }: Grant): RightSource {
  return { role: by.role, binding: by.binding, projects: projects && [...projects], services: services && [...services], clusters }
}

/** Each role once for each place in which it is given. */
export function whoamiView(principal: Principal, authorizer: Authorizer): WhoamiAnswer {
  const { id, kind, name, provider, subject, email, groups, role, projects } = principal
  const roles = new Map(authorizer.grantsOf(principal).map((grant) => [canonicalJson(sourceOf(grant)), sourceOf(grant)]))
  const ofWhom = { id, kind, name, provider, subject, email, groups: [...groups], role }
  return { ...ofWhom, projects: projects && [...projects], roles: [...roles.values()] }
}

const grantText = ({ by: { role, binding } }: Grant): string =>
  binding === null
    ? `by role ${role} of the token`
    : `by role ${role} of the role binding ${binding.name}${binding.project === '' ? '' : ` in project ${binding.project}`}`
