// Refusals of questions that people ask the site, and notes in the answers. A refusal travels with its code, of which
// shared/protocol/ask.ts has the list; `code.variant` is another text of the same code.
import type { ASK_REFUSALS } from '../../shared/protocol/ask.ts'
import { type Args, type Code, type Entry, partsOf, reasonOf, type Table, textsOf } from '../../shared/runtime/messages.ts'

type RefusalCode = (typeof ASK_REFUSALS)[keyof typeof ASK_REFUSALS]
type RefusalTable = Readonly<Partial<Record<RefusalCode, Entry>> & Record<`${RefusalCode}.${string}`, Entry>>

interface Service {
  service: string
}
interface Asked {
  object: string
}
const OF_SITE = 'A person at the site decides about this rule.'
const GRANT = 'Grant it at the site; `skerry-agent rbac --kinds … --asking` prints the rules.'
const ruleText = (rule: string, why: string): string => `refused by the local policy, rule ${rule}: ${why}`

export const QUESTION_REFUSALS = {
  question_unknown: { text: ({ kind }: { kind: string }) => `this agent does not know the question ${kind}`, next: 'Upgrade the agent.' },
  'question_unknown.parts': {
    text: ({ kind }: { kind: string }) => `this agent does not know all parts of the question ${kind}`,
    next: 'Upgrade the agent.',
  },
  'local_policy.no_restarts': {
    text: 'the agent runs with --asking read and restarts nothing',
    next: 'A person at the site can start it with --asking restart.',
  },
  'local_policy.apply': { text: ruleText('deny', 'apply'), next: OF_SITE },
  'local_policy.deny': { text: ({ kind }: { kind: string }) => ruleText('ask.deny', kind), next: OF_SITE },
  'local_policy.project': {
    text: ({ project }: { project: string }) => ruleText('ask.projects', `${project} is not allowed`),
    next: OF_SITE,
  },
  'local_policy.namespace': {
    text: ({ namespace }: { namespace: string }) => ruleText('ask.namespaces', `${namespace} is not allowed`),
    next: OF_SITE,
  },
  'local_policy.cluster_scope': { text: ruleText('ask.namespaces', 'objects outside namespaces are not allowed'), next: OF_SITE },
  'outside_service.other': {
    text: ({ what, service }: Service & { what: string }) => `${what} does not belong to service ${service}`,
    next: 'Ask about an object of the service, or with a right on the cluster.',
  },
  'outside_service.no_revision': {
    text: ({ service }: Service) => `service ${service} has no revision in this cluster`,
    next: 'Try it where the service is placed, or with a right on the cluster.',
  },
  object_not_found: { text: ({ object }: Asked) => `${object} does not exist in the cluster` },
  'object_not_found.kind': {
    text: ({ kind }: { kind: string }) => `the cluster serves no kind ${kind}`,
    next: 'Check the kind and its API group.',
  },
  'object_not_found.read': { text: ({ doing, failure }: { doing: string; failure: string }) => `cannot ${doing}: ${failure}` },
  'object_not_found.no_objects': { text: ({ service }: Service) => `service ${service} has no objects here` },
  'object_not_found.not_in_service': {
    text: ({ kind, name }: { kind: string; name: string }) => `the service has no ${kind} ${name} here`,
  },
  'object_not_found.nothing_to_try': { text: ({ service }: Service) => `there are no objects of service ${service} to try` },
  'object_not_found.no_pods': { text: ({ object }: Asked) => `${object} has no Pods` },
  'object_not_found.no_container': {
    text: ({ object, container }: Asked & { container: string }) => `${object} has no container ${container}`,
  },
  'object_not_found.no_selector': { text: ({ object }: Asked) => `${object} selects no Pods by labels`, next: 'Ask for the log of a Pod.' },
  'object_not_found.no_workload': {
    text: ({ object }: Asked) => `${object} cannot be restarted`,
    next: 'Restart a Deployment, StatefulSet or DaemonSet.',
  },
  agent_forbidden: {
    text: ({ doing, verb, resource, group }: { doing: string; verb: string; resource: string; group: string }) =>
      `the agent may not ${doing}: its RBAC lacks verb ${verb} on ${resource} (${group})`,
    next: GRANT,
  },
  'agent_forbidden.list': { text: ({ why }: { why: string }) => why, next: GRANT },
  'agent_forbidden.no_logs': { text: 'this agent reads no logs' },
  'question_failed.read': { text: ({ doing, failure }: { doing: string; failure: string }) => `cannot ${doing}: ${failure}` },
  'question_failed.incomplete': {
    text: ({ service, why }: Service & { why: string }) => `the revision of service ${service} is not complete here: ${why}`,
  },
  'question_failed.sealed': {
    text: ({ row }: { row: string }) => `${row} is sealed, and no key of this agent opens it`,
    next: 'Compare the recipients in `skerry token list --agents` and `skerry-agent status`.',
  },
  'question_failed.no_log': { text: 'no log could be read' },
  'question_failed.paused': { text: ({ object }: Asked) => `${object} is paused`, next: 'Set spec.paused to false first.' },
  'agent_busy.questions': {
    text: ({ most }: { most: number }) => `the agent answers ${most} questions already`,
    next: 'Ask again later.',
  },
  'agent_busy.traffic': { text: 'the agent has used its daily traffic budget', next: 'Ask again tomorrow, or raise --daily-bytes.' },
  'agent_busy.streams': {
    text: ({ most, now }: { most: number; now: number }) => `the agent follows at most ${most} containers at once; ${now} are followed now`,
    next: 'Name a Pod and a container.',
  },
} satisfies Table & RefusalTable

export interface QuestionRefusal {
  code: RefusalCode
  message: string
  remedy?: string
}
type Refusals = typeof QUESTION_REFUSALS

const partsOfRefusal = partsOf(QUESTION_REFUSALS)

/** A refusal with its remedy apart, as it travels. */
export function questionRefusal<C extends Code<Refusals>>(code: C, ...args: Args<Refusals[C]>): QuestionRefusal {
  const { text, next } = partsOfRefusal(code, ...args)
  return { code: reasonOf(code) as RefusalCode, message: text, ...(next === undefined ? {} : { remedy: next }) }
}

/** Notes in answers, and what is said of single objects. */
export const ANSWER_NOTES = {
  children_cut: { text: ({ most }: { most: number }) => `only the first ${most} children are shown` },
  events_cut: { text: ({ most, count }: { most: number; count: number }) => `only the newest ${most} of ${count} events are shown` },
  fields_cut: { text: ({ object, most }: Asked & { most: number }) => `${object}: only the first ${most} fields are shown` },
  pods_cut: { text: ({ most, count }: { most: number; count: number }) => `only the first ${most} of ${count} Pods are read, by name` },
  list_cut: { text: ({ most, plural }: { most: number; plural: string }) => `only ${most} ${plural} were read` },
  log_of: { text: ({ object }: Asked) => `the log of ${object}` },
  cut_off: { text: ({ what, failure }: { what: string; failure: string }) => `${what} was cut off: ${failure}` },
  not_applied: { text: 'not applied yet' },
  managed_by: { text: ({ owner }: { owner: string }) => `already managed by ${owner}` },
  another_service: { text: 'another service' },
  not_managed: { text: 'exists and is not managed by the service; compare it with a right on the cluster' },
  kind_not_served: {
    text: ({ apiVersion, kind }: { apiVersion: string; kind: string }) => `the cluster serves no kind ${kind} of ${apiVersion}`,
  },
  // The work that a refusal names.
  get: { text: ({ object }: Asked) => `get ${object}` },
  list: { text: ({ plural }: { plural: string }) => `list ${plural}` },
  read_log: { text: ({ object }: Asked) => `read the log of ${object}` },
  restart: { text: ({ object }: Asked) => `restart ${object}` },
  core_group: { text: 'core group' },
  service: { text: ({ service }: Service) => `service ${service}` },
  list_of_nodes: { text: 'the list of nodes' },
  invalid_question: { text: 'invalid question' },
} satisfies Table

export const answerNote = textsOf(ANSWER_NOTES)
