// Texts for people at the site: the state of enforcement and its problems in `skerry-agent status`, and the answers to
// local commands. The claim is named here as agent/reconcile/claim/claim.ts names it.
import { type Args, type Code, type Table, textsOf } from '../../shared/runtime/messages.ts'

interface Other {
  /** The other agent, with its registration and server. */
  other: string
}
interface ClaimNames {
  /** The ConfigMap of the claim. */
  claim: string
  /** The command that deletes it. */
  deleteClaim: string
}

/** CM7, CM12: the step of a person who decides between two agents. */
const DECIDE =
  'this agent checks again every few minutes and enforces when the other one has stopped; stop one of the two, or run `skerry-agent take-over --reason …` to enforce now'

const replaceClaim = ({ deleteClaim }: Pick<ClaimNames, 'deleteClaim'>): string =>
  `if no other agent enforces this cluster, run \`skerry-agent take-over --reason …\` or \`${deleteClaim}\``

/** By state of enforcement, as `skerry-agent status` shows it. */
export const ENFORCEMENT = {
  'waiting.not_joined': { text: 'not joined to a server yet, so there is no desired state' },
  'waiting.unreachable': { text: ({ failure }: { failure: string }) => `the Kubernetes API does not answer; retrying: ${failure}` },
  'waiting.claim': { text: 'requesting the claim of this cluster' },
  'waiting.check': {
    text: ({ other }: Other) => `${other} holds the claim of this cluster`,
    next: 'checking for a minute whether it is active',
  },
  'waiting.claim_unwritable': {
    text: ({ claim, failure }: Pick<ClaimNames, 'claim'> & { failure: string }) => `the claim ${claim} cannot be written: ${failure}`,
  },
  'waiting.claim_unchecked': {
    text: ({ claim, failure }: Pick<ClaimNames, 'claim'> & { failure: string }) => `the claim ${claim} cannot be checked: ${failure}`,
  },
  superseded: { text: ({ other }: Other) => `${other} enforces this cluster`, next: DECIDE },
  'superseded.later_self': {
    text: ({ other }: Other) => `${other} enforces this cluster, which is a later incarnation of this agent (a copied data folder)`,
    next: ({ deleteClaim }: Pick<ClaimNames, 'deleteClaim'>) =>
      `stop this agent; or, if the other one no longer exists, run \`${deleteClaim}\``,
  },
  contested: { text: ({ other }: Other) => `${other} is active in this cluster`, next: DECIDE },
  'unclear.unreadable': {
    text: ({ claim }: Pick<ClaimNames, 'claim'>) => `ConfigMap ${claim} holds no readable claim`,
    next: replaceClaim,
  },
  'unclear.incarnation': {
    text: ({ claim, named, own }: Pick<ClaimNames, 'claim'> & { named: number; own: number }) =>
      `ConfigMap ${claim} names incarnation ${named} of this agent, which has incarnation ${own}`,
    next: replaceClaim,
  },
  removed: {
    text: 'the cluster was removed from the server; objects stay and drift is not corrected',
    next: 'to join again, start the agent with a new join token',
  },
  'enforcing.held': { text: ({ hold }: { hold: string }) => `only deleted objects are restored; ${hold}` },
  stopped: { text: 'no agent runs on this data folder; applied objects stay, and drift is not corrected until an agent runs' },
} satisfies Table

export const enforcementText = textsOf(ENFORCEMENT)

/** Problems of an agent, in its own status and on the server. */
export const PROBLEMS = {
  superseded: {
    text: ({ agent }: { agent: string }) => `agent ${agent} holds the claim of this cluster: this agent stopped enforcing`,
  },
  contested: { text: ({ other }: Other) => `${other} is active in this cluster: this agent does not enforce` },
  claim_unclear: { text: ({ message }: { message: string }) => message },
  kube_unreachable: { text: ({ failure }: { failure: string }) => failure },
  disk_full: {
    text: ({ folder }: { folder: string }) =>
      `no space left in the data folder ${folder}: the agent keeps enforcing, but may receive no changes, and drops the oldest events`,
    next: 'free some space, it then continues without a restart',
  },
  recipient_substituted: {
    text: ({ other, own }: { other: string; own: string }) =>
      `the server seals to recipient ${other}, and keeps it although this agent announced its own, ${own}`,
  },
  policy_unreadable: {
    text: ({ file, problem }: { file: string; problem: string }) =>
      `the local policy ${file} cannot be read; its last valid content stays in use: ${problem}`,
  },
  held: { text: ({ hold }: { hold: string }) => hold },
  suspended: { text: ({ hold }: { hold: string }) => hold },
} satisfies Table

const problemText = textsOf(PROBLEMS)
export const agentProblem = <C extends Code<typeof PROBLEMS>>(code: C, ...args: Args<(typeof PROBLEMS)[C]>) => ({
  code,
  message: problemText(code, ...args),
})

/** Refusals of local commands. */
export const ORDER_REFUSALS = {
  not_enforcing: { text: 'the agent does not enforce yet', next: 'repeat the command when it does' },
  order_unreadable: { text: 'the order cannot be read' },
  audit_log_unwritable: {
    text: ({ folder, failure }: { folder: string; failure: string }) => `the audit log in ${folder} cannot be written: ${failure}`,
  },
  service_not_here: { text: ({ service }: { service: string }) => `service ${service} is not in this cluster` },
  hold_has_ended: { text: 'the end of the hold is in the past' },
  clock_not_set: {
    text: 'the clock of this machine is not set, so the hold cannot have an end',
    next: 'a hold without an end lasts until `skerry-agent unhold`',
  },
  nothing_to_confirm: { text: ({ service }: { service: string }) => `no pending confirmation for ${service}` },
  list_changed: {
    text: ({ service }: { service: string }) =>
      `the list of ${service} has changed since it was shown: run \`skerry-agent confirm ${service}\` again`,
  },
  cluster_removed: { text: 'this cluster was removed from its server: join it again with a new join token' },
  no_other_agent: { text: 'no other agent holds the claim of this cluster' },
  enforces_already: { text: 'this agent enforces already, or is about to' },
  later_self: {
    text: ({ other, deleteClaim }: Other & Pick<ClaimNames, 'deleteClaim'>) =>
      `${other} is a later incarnation of this agent: move agent.sqlite out of the data folder and start this agent again; or, if the other one no longer exists, run \`${deleteClaim}\``,
  },
} satisfies Table

const refusalText = textsOf(ORDER_REFUSALS)
export const refusedOrder = <C extends Code<typeof ORDER_REFUSALS>>(code: C, ...args: Args<(typeof ORDER_REFUSALS)[C]>) => ({
  kind: 'refused' as const,
  message: refusalText(code, ...args),
})

/** Answers to a takeover that was carried out. */
export const TAKEOVERS = {
  claim_replaced: { text: ({ by }: { by: string }) => `replaced the claim; decided by ${by}` },
  taken_over: { text: ({ other, by }: Other & { by: string }) => `taken over from ${other}, which stops; decided by ${by}` },
} satisfies Table

export const takeoverText = textsOf(TAKEOVERS)

/** Parts of these texts. */
export const SITE_PARTS = {
  value_too_long: { text: ({ most }: { most: number }) => `the value has more than ${most} characters` },
  values_too_long: { text: ({ most }: { most: number }) => `all reported values together have more than ${most} characters` },
  claimant: {
    text: ({ agent, cluster, server }: { agent: string; cluster: string; server: string }) =>
      `agent ${agent}${cluster === '' ? '' : ` of the registration ${cluster}`}${server === '' ? '' : ` at ${server}`}`,
  },
  whole_cluster: { text: 'the whole cluster' },
  policy_documents: { text: ({ count }: { count: number }) => `has ${count} documents; expected one` },
  policy_allows_all: { text: 'allows everything' },
  not_a_log_line: { text: 'is not a line of the log' },
  // Problems of the age keys of this site.
  secrets_unread: {
    text: ({ namespace, failure }: { namespace: string; failure: string }) =>
      `Secrets in namespace ${namespace} cannot be read: ${failure}`,
  },
  not_an_age_key: { text: ({ place, entry }: { place: string; entry: string }) => `${place}: ${entry} is no file of age-keygen` },
  no_age_key: { text: ({ place, suffix }: { place: string; suffix: string }) => `${place} has no entry that ends with ${suffix}` },
  // Why a ConfigMap of the site is not reported.
  too_many_maps: { text: ({ most }: { most: number }) => `the services of this cluster name more than ${most} ConfigMaps` },
  site_config_denied: { text: 'refused by the local policy, rule deny: site-config' },
  namespace_denied: {
    text: ({ namespace }: { namespace: string }) => `refused by the local policy, rule namespaces: ${namespace} is not allowed`,
  },
} satisfies Table

export const sitePart = textsOf(SITE_PARTS)
