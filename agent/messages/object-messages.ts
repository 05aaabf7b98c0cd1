// Texts of the statuses of objects.
import { statusesOf, type Table, textsOf } from '../../shared/runtime/messages.ts'

interface Failed {
  /** The answer of the API server, or of the agent in its place. */
  failure: string
}
const failed = ({ failure }: Failed): string => failure

interface Kind {
  apiVersion: string
  kind: string
}
interface Sealed {
  /** Names of the recipients that could open the file. */
  recipients: string
  /** Names of the keys of this site; '' if it has none. */
  own: string
  /** Problems of the keys of this site, each after `; `. */
  problems: string
}
const encryptedTo = ({ recipients, own }: Sealed): string =>
  `it is encrypted by SOPS to ${recipients}, and ${own === '' ? 'this site has no age key for it' : `keys of this site are ${own}`}`

const KEPT = 'kept in the inventory until an API serves the kind'

export const OBJECT = {
  // Not applied, or not managed.
  Pending: { text: 'not applied yet; the agent continues after other services in the queue' },
  Missing: { text: 'not in the cluster yet; will be created when the steps before it finish' },
  Ignored: { text: 'not applied, because of an annotation' },
  ExistingKept: { text: 'already exists; its annotation IfNotPresent only creates missing objects' },
  'Waiting.ownDeletion': { text: ({ deleting }: { deleting: string }) => `${deleting}; recreated after that` },
  'Waiting.namesake': {
    text: ({ deleting }: { deleting: string }) => `waiting until the existing object of this name is deleted: ${deleting}`,
  },
  'Waiting.namespace': { text: ({ namespace }: { namespace: string }) => `namespace ${namespace} is not Active yet` },
  'Waiting.namespaceDeletion': {
    text: ({ namespace, deleting }: { namespace: string; deleting: string }) =>
      `namespace ${namespace} is being deleted: ${deleting}; recreated after that`,
  },
  JudgedAnew: { text: 'its health is evaluated again with new rules' },

  // Deleted, or ended.
  Removing: { text: 'deleted; waiting for confirmation by the API server' },
  DeletionStuck: {
    text: ({ deleting, length, advice }: { deleting: string; length: string; advice: string }) =>
      `${deleting}, for more than ${length}: ${advice}`,
  },
  ConfirmationPending: { text: ({ lost }: { lost: string }) => `kept until its deletion is confirmed (\`skerry confirm\`): ${lost}` },
  Finished: { text: 'finished; removed by its TTL' },
  JobFailed: {
    text: ({ cause }: { cause: string }) => `${cause === '' ? 'failed' : `failed: ${cause}`}; removed by its TTL`,
    next: 'correct its manifest, a changed manifest runs it again',
  },
  RunStuck: {
    text: ({ deadline, cause }: { deadline: string; cause: string }) =>
      `a run of it has had no running Pod for ${deadline} (sync.healthDeadline); ${cause}`,
  },

  // Owned or changed by others.
  OwnedByOther: {
    text: ({ owner }: { owner: string }) => `already managed by ${owner}`,
    next: 'rename the object, remove it there, or set sync.takeover',
  },
  'OwnedByOther.unwatched': { text: 'managed by another tool; health not evaluated' },
  AlreadyExists: { text: 'an object of this name exists that this hook did not create', next: 'delete it, or rename the hook' },
  Contested: {
    text: ({ drift }: { drift: string }) => `${drift} again after every correction`,
    next: 'stop that manager, or remove the field from Git',
  },
  Drifted: { text: ({ drift }: { drift: string }) => drift, next: 'restore it, commit the change, or set sync.drift to correct' },
  'Drifted.deleted': {
    text: ({ drift }: { drift: string }) => drift,
    next: 'create it again, remove it from Git, or set sync.drift to correct',
  },

  // Kinds that the cluster does not serve, or the agent cannot read.
  NotWatched: { text: 'cannot read this kind yet', next: 'retrying' },
  'NotWatched.failed': {
    text: ({ failure }: Failed) => `cannot read this kind yet: ${failure}`,
    next: ({ next }: { next: string }) => next,
  },
  'NotWatched.conversion': {
    text: ({ failure }: Failed) => `cannot read this kind yet: ${failure}`,
    next: 'if this persists, check the conversion webhook of the CRD (spec.conversion); retrying',
  },
  UnknownKind: {
    text: ({ apiVersion, kind }: Kind) => `no API of this cluster serves ${kind} of ${apiVersion}`,
    next: 'install its CRD or operator; retrying',
  },
  'UnknownKind.silent': {
    text: ({ apiVersion }: Pick<Kind, 'apiVersion'>) => `the API of ${apiVersion} does not answer`,
    next: 'start its server, or delete its APIService; retrying',
  },
  'UnknownKind.otherVersion': {
    text: ({ apiVersion, kind, versions }: Kind & { versions: string }) =>
      `this cluster serves ${kind} as ${versions}, not as ${apiVersion}`,
    next: 'change its apiVersion',
  },
  'UnknownKind.kept': {
    text: ({ apiVersion, kind }: Kind) => `no API serves ${apiVersion} ${kind}; ${KEPT}`,
    next: 'install its CRD or APIService again',
  },
  'UnknownKind.keptDefined': {
    text: ({ apiVersion, kind, crd }: Kind & { crd: string }) =>
      `no API serves ${apiVersion} ${kind}; ${KEPT}; its CustomResourceDefinition ${crd} exists`,
    next: 'retrying',
  },
  'UnknownKind.keptUnread': {
    text: ({ apiVersion, kind, crd, failure }: Kind & Failed & { crd: string }) =>
      `no API serves ${apiVersion} ${kind}; ${KEPT}; its CustomResourceDefinition ${crd} cannot be read: ${failure}`,
    next: 'retrying',
  },
  'UnknownKind.keptSilent': {
    text: ({ apiVersion }: Pick<Kind, 'apiVersion'>) => `the API of ${apiVersion} does not answer`,
    next: 'start its server, or delete its APIService; the object is kept or deleted when it answers',
  },

  // Manifests that cannot be applied.
  'Unreadable.noObject': { text: 'the row has no Kubernetes object' },
  'Unreadable.noName': { text: 'metadata.name is missing (generateName is for hooks only)', next: 'set it' },
  'Unreadable.noNamespace': { text: 'namespace is missing', next: 'set metadata.namespace, or spec.namespace of the service' },
  'Unreadable.noEnforcedNamespace': { text: 'sync.enforceNamespace needs spec.namespace of the service', next: 'set it' },
  'Unreadable.otherNamespace': {
    text: ({ named, namespace }: { named: string; namespace: string }) =>
      `namespace ${named} is not ${namespace}, which sync.enforceNamespace requires`,
    next: 'change the namespace, or turn the option off',
  },
  'Unreadable.verbs': {
    text: ({ apiVersion, kind }: Kind) => `${kind} of ${apiVersion} cannot be patched and watched`,
    next: 'remove it from the manifests',
  },
  SealedUnreadable: {
    text: 'it is sealed, and no key of this agent opens it',
    next: 'compare the recipient in `skerry token list --agents` and `skerry-agent status`',
  },
  SopsKeyMissing: {
    text: (sealed: Sealed) => `${encryptedTo(sealed)}${sealed.problems}`,
    next: 'add the key to a Secret with label skerry.dev/sops-keys in namespace skerry-system, or run `sops updatekeys` with a recipient of this site',
  },
  'SopsKeyMissing.otherProjects': {
    text: (sealed: Sealed & { from: string; project: string }) =>
      `${encryptedTo(sealed)}; the key in ${sealed.from} is for other projects than ${sealed.project}${sealed.problems}`,
    next: 'change skerry.dev/sops-projects on the Secret, or the folder of the key',
  },
  SopsKeyRotated: {
    text: (sealed: Sealed & { former: string }) => `${encryptedTo(sealed)}; ${sealed.former} was removed from this site${sealed.problems}`,
    next: 'run `sops updatekeys` with a recipient of this site, or restore that key',
  },
  SopsKeyWrong: {
    text: ({ recipient }: { recipient: string }) =>
      `the age key ${recipient} of this site does not open it, although its SOPS file names that key`,
    next: 'restore the file, or encrypt it again with sops',
  },
  SopsMacWrong: {
    text: 'its SOPS file was changed after it was encrypted (the MAC does not match): values, names or their order differ',
    next: 'edit it with sops, not by hand',
  },
  SopsUnreadable: { text: ({ why }: { why: string }) => `its SOPS file cannot be read: ${why}` },
  'SopsUnreadable.noKeys': { text: 'this agent has no age keys' },
  'SopsUnreadable.misplaced': {
    text: 'its encrypted values are not those of its SOPS file; a patch or a transformer moved them: encrypt the object as it is applied',
  },
  'SopsUnreadable.newer': { text: 'a later version of the server wrote its SOPS documents', next: 'upgrade the agent' },

  // Requests that failed.
  Unreachable: { text: failed, next: 'check that the API server runs and that the agent can reach it; retrying' },
  Throttled: { text: failed, next: 'the API server is overloaded; retrying' },
  ServerError: { text: failed, next: 'if this persists, read the log of the API server; retrying' },
  Unauthorized: { text: failed, next: 'check the credentials of the agent; retrying' },
  Forbidden: { text: failed, next: 'change the RBAC rule, quota or admission policy that forbids it; retrying' },
  NotFound: { text: failed, next: 'install the CRD or APIService, or remove the object from Git; retrying' },
  NamespaceMissing: { text: failed, next: 'create the namespace or set sync.createNamespace; retrying' },
  NamespaceTerminating: { text: failed, next: 'waiting until the namespace is deleted' },
  Conflict: { text: failed, next: 'remove the other field manager, or set sync.force; retrying' },
  'Conflict.delete': { text: failed, next: 'stop the manager that keeps writing the object; retrying' },
  Immutable: {
    text: failed,
    next: 'undo the change, delete the object so that it is created again, or annotate it with skerry.dev/sync-options: Force',
  },
  AlreadyTaken: {
    text: failed,
    next: 'choose another port or address, or set sync.pruneWhen: applied if this revision removes its current owner; retrying',
  },
  Invalid: { text: failed, next: 'correct the manifest' },
  // RC38: a later CustomResourceDefinition may accept the manifest.
  'Invalid.schema': {
    text: failed,
    next: 'correct the manifest, or install the CustomResourceDefinition version that it needs; retrying',
  },
  WebhookUnavailable: { text: failed, next: 'start the backend of the webhook, or delete the webhook configuration; retrying' },

  // Refused by the Project or the policy of the site. shared/model/bounds.ts has the texts of single rules.
  'LocalPolicy.project': {
    text: ({ project, allowed }: { project: string; allowed: string }) =>
      `refused by the local policy, rule projects: ${project} is not allowed (allowed: ${allowed})`,
  },
  'LocalPolicy.apply': { text: 'refused by the local policy, rule deny: apply' },
  'LocalPolicy.delete': { text: 'refused by the local policy, rule deny: delete' },
  'LocalPolicy.prune': { text: 'refused by the local policy, rule deny: prune' },
  ServiceAccountUnplaced: {
    text: ({ name }: { name: string }) => `sync.serviceAccount is ${name}, and the service has no namespace`,
    next: ({ name }: { name: string }) => `write namespace/${name}, or set spec.namespace`,
  },
} satisfies Table

export const objectText = textsOf(OBJECT)
export const objectStatus = statusesOf(OBJECT)

/** Parts of these texts: failures that the reconciler itself finds, and notes beside a status. */
export const OBJECT_PARTS = {
  namesake_created: { text: 'another object of this name was created before the deletion' },
  changed_before_delete: {
    text: ({ attempts }: { attempts: number }) => `changed by another client before each of ${attempts} attempts to delete it`,
  },
  namespace_closed: {
    text: ({ namespace, deleting }: { namespace: string; deleting: string }) =>
      `namespace ${namespace} accepts no new objects: ${deleting}`,
  },
  namespace_held: { text: ({ failure, deleting }: Failed & { deleting: string }) => `${failure}; namespace: ${deleting}` },
  advised: { text: ({ text, advice }: { text: string; advice: string }) => `${text}; ${advice}` },
  search_interrupted: { text: 'the search was interrupted' },
  groups_silent: {
    text: ({ groups }: { groups: string }) => `no server answers for the API groups ${groups}: start it, or delete its APIService`,
  },
  kind_undiscovered: {
    text: ({ what }: { what: string }) => `discovery does not list ${what}, which exists: wait until its API is served, or delete it`,
  },
  kind_of_definitions: { text: 'CustomResourceDefinitions, a kind' },
  stale_watch_cache: {
    text: 'kube-apiserver lists newer objects than etcd holds, because etcd was restored while it ran: restart kube-apiserver',
  },
  no_definitions: { text: 'the API server serves no CustomResourceDefinitions' },
  // The account of sync.serviceAccount, after a refusal.
  may_not_impersonate: {
    text: ({ failure }: Failed) => failure,
    next: 'allow the agent to impersonate it (verb impersonate on serviceaccounts), or remove sync.serviceAccount',
  },
  account_missing: {
    text: ({ failure, account }: Failed & { account: string }) =>
      `${failure}; the ServiceAccount ${account} of sync.serviceAccount does not exist`,
    next: 'create it with its rights in another service or by hand',
  },
  account_without_right: {
    text: ({ failure, account }: Failed & { account: string }) =>
      `${failure}; give the ServiceAccount ${account} of sync.serviceAccount that right`,
  },
  asked_as_account: {
    text: ({ failure, account }: Failed & { account: string }) =>
      `${failure}; requested as the ServiceAccount ${account} of sync.serviceAccount`,
  },
  or_delete_by_hand: { text: ({ advice, object }: { advice: string; object: string }) => `${advice}, or delete ${object} by hand` },
  // Drift and fields of others.
  local_policy: { text: 'the local policy' },
  deleted_outside: { text: 'deleted outside Git' },
  fields_changed: { text: ({ paths, manager }: { paths: string; manager: string }) => `${paths} changed by ${manager}` },
  fields_removed: { text: ({ paths, manager }: { paths: string; manager: string }) => `${paths} removed by ${manager}` },
  unknown_manager: { text: 'an unknown manager' },
  fields_of_autoscaler: { text: ({ part, name }: { part: string; name: string }) => `${part} are ignored, managed by ${name}` },
  some_autoscaler: { text: 'an autoscaler' },
  fields_added: { text: ({ paths }: { paths: string }) => `added by others, and left to them: ${paths}` },
  nulls_left_out: { text: 'null fields are left out, because the API server rejects null there' },
  owner_elsewhere: { text: ({ service, cluster }: { service: string; cluster: string }) => `${service} of Skerry cluster ${cluster}` },
} satisfies Table

export const objectPart = textsOf(OBJECT_PARTS)

/** Requests to the API server that failed without an answer, or whose answer cannot be used. Statuses quote them. */
export const FAILURES = {
  UntrustedCertificate: {
    text: ({ address, code }: { address: string; code: string }) =>
      `the certificate of ${address} was refused (${code}): it is not signed by the certificate authority in the credentials, is not for this name, or has expired`,
  },
  no_answer: { text: ({ address, failure }: { address: string; failure: string }) => `no answer from ${address}: ${failure}` },
  status_alone: { text: ({ code }: { code: number }) => `HTTP ${code} without a message` },
  no_answer_in_time: { text: ({ seconds }: { seconds: number }) => `no answer within ${seconds} s` },
  TooManyWatches: {
    text: ({ watches }: { watches: number }) => `the agent has ${watches} open watches, which is the limit`,
    next: 'reduce the kinds that its services use',
  },
  Cut: { text: ({ cuts }: { cuts: number }) => `the API server closed the watch ${cuts} times in a row right after it was opened` },
  Stopped: { text: 'the agent stopped the list' },
  'Unreadable.object': { text: 'the answer is not a Kubernetes object' },
  'Unreadable.list': { text: ({ kind }: { kind: string }) => `the answer is not a list of ${kind}` },
  'Unreadable.line': { text: ({ chars }: { chars: number }) => `a line of the watch is not an event: ${chars} characters` },
  'Unreadable.event': {
    text: ({ type, chars }: { type: string; chars: number }) =>
      `an event of the watch has no Kubernetes object: ${type}, ${chars} characters`,
  },
  'Unreadable.eventType': { text: ({ type }: { type: string }) => `an event of the watch has an unknown type: ${type}` },
  'Unreadable.bookmark': { text: 'a bookmark of the watch has no resourceVersion' },
} satisfies Table

export const failureText = textsOf(FAILURES)
export const failureSays = statusesOf(FAILURES)
