// Texts of the Events that the server itself adds to the stream. Those of agents come from their own catalogue.
import { eventsOf, objectCount, type Table } from '../../shared/runtime/messages.ts'

interface By {
  by: string
}
interface Session {
  session: string
  name: string
  provider: string
}
interface Token {
  id: string
  name: string
  role: string
}
interface OfRepository {
  repository: string
}
interface OfConfig {
  config: string
}
interface Sealed {
  /** Empty when no person asked for it. */
  by: string
  secrets: number
  configs: number
  masterKey: string
}
const sealedText = ({ by, secrets, configs, masterKey }: Sealed): string =>
  `${by === '' ? '' : `by ${by}: `}${secrets} secrets of ${configs} Configs are sealed under new data keys, wrapped by ${masterKey}`

interface Decided extends By {
  kind: string
  /** Number of clusters of a question that concerns several; null means that it concerns one. */
  clusters: number | null
  names: string
}
const inClusters = (clusters: number | null): string => (clusters === null ? '' : ` in ${clusters} clusters`)

interface Revision {
  /** The most objects and hooks that a variant has. */
  objects: number
  hooks: number
  /** Number of different renders. */
  variants: number
  revision: string
  /** Author and subject, in brackets. Empty means unknown. */
  written: string
  clusters: string
}
function publishedText({ objects, hooks, variants, revision, written, clusters }: Revision): string {
  const andHooks = hooks === 0 ? '' : ` and ${hooks} ${hooks === 1 ? 'hook' : 'hooks'}`
  const inVariants = variants === 1 ? '' : ` at most, in ${variants} variants,`
  return `${objectCount(objects)}${andHooks}${inVariants} of ${revision}${written} to ${clusters}`
}

const CONFIRM = (confirmation: string): string => `run \`skerry confirm ${confirmation}\``

/** Events of type Normal. */
export const NEWS = {
  // Sign-in and tokens.
  ApiTokenCreated: { text: ({ id, name, role, by }: Token & By) => `API token ${id} (${name}, role ${role}) created by ${by}` },
  ApiTokenExchanged: { text: ({ name }: { name: string }) => `a new API token for ${name}; the earlier one expires when it is first used` },
  ApiTokenRevoked: { text: ({ id, name, role, by }: Token & By) => `API token ${id} (${name}, role ${role}) revoked by ${by}` },
  SessionRevoked: {
    text: ({ session, name, provider, by }: Session & By) => `session ${session} of ${name} (${provider}) revoked by ${by}`,
  },
  SignedIn: {
    text: ({ session, name, provider, from, kind }: Session & { from: string; kind: string }) =>
      `${name} (${provider}) signed in${from === '' ? '' : ` from ${from}`}: session ${session}, ${kind}`,
  },
  SignedOut: { text: ({ session, name, provider }: Session) => `${name} (${provider}) signed out: session ${session}` },
  'SignInEnded.key': {
    text: ({ session, name, provider }: Session) => `session ${session} of ${name} (${provider}) ended: the key for secrets was replaced`,
  },
  SignInLinkUsed: { text: 'a browser signed in with a sign-in link' },

  // Keys of the server.
  MacKeyRotated: {
    text: ({ by }: By) => `by ${by}: sessions end, webhooks have new secrets; the earlier secrets are accepted until the next rotation`,
  },
  RowsSealed: { text: ({ by }: By) => `by ${by}: rendered Secrets are sealed to their clusters from now on` },
  SecretKeyRotated: { text: sealedText },
  ServerKeyRotated: {
    text: ({ by, before, after }: By & { before: string; after: string }) =>
      `by ${by}: ${before} was replaced by ${after}; agents follow at their next contact`,
  },
  ServerKeysRevoked: {
    text: ({ by, before, count }: By & { before: string; count: number }) =>
      `by ${by}: keys before ${before} are no longer trusted; ${count} join tokens deleted`,
  },

  // Clusters.
  ClusterDeleted: { text: ({ by }: By) => `deleted by ${by}; applied objects stay in the cluster` },
  ClusterJoined: { text: 'joined with a join token' },
  ClusterOnline: { text: ({ duration }: { duration: string }) => `back after ${duration}` },
  ClusterReadmitted: { text: ({ by }: By) => `by ${by}` },
  ClusterRelabelled: { text: ({ changes, by }: By & { changes: string }) => `${changes}, by ${by}` },
  RestoreConfirmed: {
    text: ({ by, clusters, services }: By & { clusters: number; services: number }) =>
      `confirmed by ${by}: ${clusters} clusters are served again, ${services} services delete nothing before their next commit`,
  },

  // Repositories and Configs.
  ConfigValuesChanged: {
    text: ({ config, names }: OfConfig & { names: string }) => `Config ${config}: new values from outside (${names})`,
  },
  RepositoryRecovered: { text: ({ repository, url }: OfRepository & { url: string }) => `repository ${repository} is read again: ${url}` },
  ValueSourceRecovered: {
    text: ({ config, name, source }: OfConfig & { name: string; source: string }) =>
      `Config ${config}: ${name} from ${source} is readable again`,
  },
  VerificationBegan: {
    text: ({ repository, commit }: OfRepository & { commit: string }) =>
      `repository ${repository}: verification begins with commit ${commit}; commits that were signed before it are refused from now on`,
  },

  // Services.
  ConfirmationRefused: {
    text: ({ kind, clusters, names, by, why }: Decided & { why: string }) =>
      `${kind}${inClusters(clusters)} refused by ${by} (${why}); kept: ${names}`,
  },
  Confirmed: { text: ({ kind, clusters, names, by }: Decided) => `${kind}${inClusters(clusters)} confirmed by ${by}: ${names}` },
  'Confirmed.data': {
    text: ({ kind, clusters, names, by, data }: Decided & { data: string }) =>
      `${kind}${inClusters(clusters)} confirmed by ${by}: ${names}; with the data of ${data}`,
  },
  DeletionRequested: { text: ({ by }: By) => `by ${by}` },
  'DeletionRequested.data': { text: ({ by, data }: By & { data: string }) => `by ${by}, with the data of ${data}` },
  DeletionTakenBack: { text: ({ by }: By) => `by ${by}, who applied the service again` },
  RemovalOrdered: {
    text: ({ policy, cluster, by, why }: By & { policy: string; cluster: string; why: string }) =>
      `${policy} in ${cluster}, by ${by}: ${why}`,
  },
  RenderRecovered: {
    text: ({ revision, written }: Pick<Revision, 'revision' | 'written'>) => `renders again at ${revision}${written}`,
  },
  'RenderRecovered.first': {
    text: ({ revision, written }: Pick<Revision, 'revision' | 'written'>) => `renders now at ${revision}${written}`,
  },
  Resumed: { text: ({ scope, by }: By & { scope: string }) => `${scope} resumed by ${by}` },
  'Resumed.why': { text: ({ scope, by, why }: By & { scope: string; why: string }) => `${scope} resumed by ${by}: ${why}` },
  RevisionPublished: { text: publishedText },
  'RevisionPublished.waits': {
    text: (revision: Revision & { service: string; project: string }) =>
      `${publishedText(revision)}; it waits for \`skerry sync ${revision.service} -p ${revision.project}\``,
  },
  ServiceDeleted: { text: 'removed from every cluster' },
  ServiceRemoved: { text: ({ cluster }: { cluster: string }) => `no objects are left to manage in ${cluster}` },
  Suspended: { text: ({ scope, by, why }: By & { scope: string; why: string }) => `${scope} suspended by ${by}: ${why}` },
  SyncAllowed: {
    text: ({ commit, clusters, by }: By & { commit: string; clusters: string }) => `commit ${commit} was approved for ${clusters} by ${by}`,
  },
} satisfies Table

/** Events of type Warning. */
export const WARNINGS = {
  BreakGlassToken: {
    text: ({ name, uid, id, until, why }: { name: string; uid: number; id: string; until: string; why: string }) =>
      `${name} (uid ${uid}) created the admin token ${id} on the machine of the server, until ${until}: ${why}`,
  },
  RefreshTokenReused: {
    text: ({ session, name, provider }: Session) =>
      `session ${session} of ${name} (${provider}) ended: the refresh token was used twice and may have been copied`,
  },
  SignInEnded: {
    text: ({ session, name, provider, why }: Session & { why: string }) => `session ${session} of ${name} (${provider}) ended: ${why}`,
  },
  'SecretKeyRotated.unopened': {
    text: (sealed: Sealed & { unopened: number }) => `${sealedText(sealed)}; ${sealed.unopened} do not open with the keys of this server`,
  },
  ClusterOffline: { text: ({ duration }: { duration: string }) => `no contact for ${duration}; the state is its last report` },
  ClusterRevoked: { text: ({ by }: By) => `by ${by}` },
  EventsDropped: {
    text: ({ most, count }: { most: number; count: number }) =>
      `this cluster reports more than ${most} events an hour: ${count} older events dropped`,
  },
  RecipientChanged: {
    text: ({ before, after }: { before: string; after: string }) => `the recipient key of the agent changed from ${before} to ${after}`,
  },
  RestorePending: {
    text: 'the store of the server is older than the state of its clusters; the clusters keep their state until a person confirms: run `skerry restore` to see the changes',
  },
  StatusRowsRefused: {
    text: ({ most, count, first }: { most: number; count: number; first: string }) =>
      `this cluster has ${most} status rows, the limit: ${count} more are not stored, starting with ${first}`,
  },
  RepositoryFailed: {
    text: ({ repository, failure }: OfRepository & { failure: string }) =>
      `repository ${repository}: ${failure}; the last content stays in use`,
  },
  ValueSourceFailed: {
    text: (source: FailedSource) => `${failedSource(source)}; the last value stays in use`,
  },
  'ValueSourceFailed.first': { text: (source: FailedSource) => `${failedSource(source)}; there is no value yet` },
  ConfirmationNeeded: {
    text: ({ why }: { why: string }) => why,
    next: ({ confirmation }: { confirmation: string }) => `${CONFIRM(confirmation)} to see the names and confirm`,
  },
  'ConfirmationNeeded.deletions': {
    text: ({ count, cluster, confirmation }: { count: number; cluster: string; confirmation: string }) =>
      `${count} ${count === 1 ? 'deletion' : 'deletions'} in ${cluster} waits for confirmation: ${CONFIRM(confirmation)}`,
  },
  'ConfirmationNeeded.prune': {
    text: ({ count, owned, cluster, confirmation }: { count: number; owned: number; cluster: string; confirmation: string }) =>
      `pruning ${count} of ${owned} objects in ${cluster} waits for confirmation: ${CONFIRM(confirmation)}`,
  },
  ManifestWarning: { text: ({ path, message }: { path: string; message: string }) => `${path}: ${message}` },
  RenderFailed: { text: ({ failure, kept }: { failure: string; kept: string }) => `${failure}; ${kept}` },
} satisfies Table

interface FailedSource extends OfConfig {
  name: string
  source: string
  failure: string
}
function failedSource({ config, name, source, failure }: FailedSource): string {
  return `Config ${config}: ${name} from ${source}: ${failure}`
}

export const news = eventsOf('Normal', NEWS)
export const warning = eventsOf('Warning', WARNINGS)
