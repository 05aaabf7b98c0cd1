// Rights of the person at the screen, asked before anything that needs them is read or offered: a refusal would be an
// entry in the audit log for every visit.

import type { canIAnswerSchema } from '../../../../shared/model/access-views.ts'
import type { ACCESS_KINDS, AccessKind, AccessVerb } from '../../../../shared/model/access-words.ts'
import { call, type Query } from './api.ts'
import { useResource } from './resource.ts'
import { session } from './session.ts'

export type CanI = (typeof canIAnswerSchema)['_output']
export type { AccessKind, AccessVerb }

const EVERY = ['read', 'write', 'delete'] as const
/** Verbs by kind. The modules of the server would bring their whole schema library into the browser. */
export const VERBS_OF: Readonly<Record<(typeof ACCESS_KINDS)[number], readonly AccessVerb[]>> = {
  Service: [...EVERY, 'render', 'sync', 'confirm', 'suspend', 'live:read', 'logs:read', 'restart'],
  Repository: [...EVERY, 'sync', 'webhook:read'],
  Config: [...EVERY, 'secret:write', 'config:use'],
  HealthRule: EVERY,
  Project: EVERY,
  Cluster: [...EVERY, 'suspend', 'cluster:label', 'live:read', 'logs:read', 'restart'],
  Role: EVERY,
  RoleBinding: EVERY,
  JoinToken: ['read', 'delete', 'join-token:create'],
  ApiToken: ['token:read', 'token:create', 'token:revoke'],
  Agent: ['read'],
  Audit: ['audit:read'],
  NotificationSink: [...EVERY, 'notify:test'],
  NotificationRoute: EVERY,
  Server: ['read', 'server-key', 'restore'],
  SavedQuery: ['write', 'delete'],
}
/** Bounds the questions for a person with roles in many projects. */
const PROJECTS_ASKED = 10

export const canI = (query: Query, signal?: AbortSignal): Promise<CanI> =>
  call('GET /auth/can-i', { query, ...(signal === undefined ? {} : { signal }) })

/** Whether the caller has the right in the whole fleet, or in one of the projects in which a role is given. Null means
 *  not known yet. */
export function useMay(verb: AccessVerb, kind: AccessKind, where: 'fleet' | 'some' = 'fleet'): CanI | null {
  const now = session.value
  const projects = now.state === 'in' && where === 'some' ? [...new Set((now.person.roles ?? []).flatMap((one) => one.projects ?? []))] : []
  const { value } = useResource(
    `may ${verb} ${kind} ${where}`,
    async (signal) => {
      const fleet = await canI({ verb, kind }, signal)
      for (const project of fleet.allowed ? [] : projects.slice(0, PROJECTS_ASKED)) {
        const answer = await canI({ verb, kind, project }, signal)
        if (answer.allowed) return answer
      }
      return fleet
    },
    concernsRoles,
  )
  return value
}

/** Roles and bindings may change what a person may do. */
const concernsRoles = ({ topic, name }: { topic: string; name: string | null }): boolean =>
  topic === 'resource' && (name?.startsWith('Role') ?? true)

/** One question about one thing. Absent project: a kind of the fleet; absent name: every one of the kind. */
export interface Right {
  verb: AccessVerb
  kind: AccessKind
  project?: string
  name?: string
  cluster?: string
}

const FREE: CanI = { allowed: true, detail: '', by: null }

/** The answer about a right, null before it is known. Everybody may what needs no right (null), such as to end an own
 *  session. */
export const useRight = (right: Right | null): CanI | null =>
  useResource(
    `may ${JSON.stringify(right)}`,
    (signal) => (right === null ? Promise.resolve(FREE) : canI({ ...right }, signal)),
    concernsRoles,
  ).value

/** On the objects of a service in a cluster. */
export const useMayOn = (verb: AccessVerb, at: { cluster: string; project: string; service: string }): CanI | null =>
  useRight({ verb, kind: 'Service', project: at.project, name: at.service, cluster: at.cluster })

/** To see what a service renders to. */
export const useMayRender = (project: string, name: string): CanI | null => useRight({ verb: 'render', kind: 'Service', project, name })

export const useMayOnCluster = (verb: AccessVerb, cluster: string): boolean =>
  useRight({ verb, kind: 'Cluster', name: cluster })?.allowed === true
