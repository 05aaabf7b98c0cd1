// The tables of the fleet store as types, and the marshalling of their JSON columns. SQL names stay in server/store;
// all other code uses the port. Integers are below 2^53 everywhere, so a PostgreSQL adapter may read its bigints as
// numbers.
import type { Generated } from 'kysely'
import { z } from 'zod'
import type { HealthWord } from '../../shared/kube/health-object.ts'
import type { ChangeTopic } from '../../shared/model/change.ts'
import type { StatusKind, SyncWord } from '../../shared/model/status.ts'
import { problemSchema } from '../../shared/runtime/error.ts'
import type { AgentId, ClusterId } from '../../shared/runtime/ids.ts'
import type { NotificationState } from '../fleet/notification-records.ts'
import type { Confirmation, FleetEvent, ReleaseNote, ResourceKind, SessionRecord, StoredError } from '../fleet/records.ts'
import type { RollupDimension } from './counts/rollup-dimensions.ts'

export interface Tables {
  /** `schema`: number of the last migration; `shard <index>`: dbId of the shard file that was last adopted. */
  meta: { key: string; value: string }
  /** Numbers that only grow, taken inside the transaction that uses them: their order is the order of commits on every
   *  database. */
  counters: { name: 'resource_version' | 'event_id' | 'change' | 'cluster_no' | 'dictionary' | 'notification'; value: number }
  /** Clusters that people removed; the newest are kept. */
  removed_clusters: { agent_id: AgentId; cluster_id: ClusterId; cluster_uid: string; name: string; no: number }
  /** Uses of valid join tokens. A captured join is useless after its key joined with another token. */
  join_uses: { token_hash: string; public_key: string }
  /** Names of data that came with a change that is not followed yet. */
  confirmed_data: { project: string; service: string; cluster_id: ClusterId; names: string }
  resources: {
    kind: ResourceKind
    project: string
    name: string
    uid: string
    generation: number
    version: number
    labels: string
    spec: string
    created_ms: number
    updated_ms: number
    deleting_ms: number | null
    /** The person who deleted it. Null means that it is not being deleted, or was by a server of schema 7. */
    deleting_by: string | null
  }
  repository_states: {
    project: string
    name: string
    commit_id: string | null
    fetched_ms: number | null
    error: string | null
    tag: string | null
  }
  /** Commits that repositories had, as far as their sources say who wrote them. */
  commits: {
    project: string
    repository: string
    commit_id: string
    author: string | null
    subject: string | null
    authored_ms: number | null
    seen_ms: number
  }
  /** SO55: the newest verified commit of a ref of a repository. */
  watermarks: { uid: string; ref: string; commit_id: string; signed_ms: number }
  /** SQL that people keep, for everybody who may ask. */
  saved_queries: { name: string; query: string; about: string; saved_by: string; updated_ms: number }
  render_states: {
    project: string
    service: string
    commit_id: string | null
    generation: number
    digest: string | null
    object_count: number
    rendered_ms: number | null
    error: string | null
    /** JSON of a ReleaseNote. Null means that there is nothing to note. */
    release_note: string | null
  }
  /** `doc`: JSON of the state of the external sources of a Config. */
  config_states: { project: string; name: string; doc: string }
  /** How often the webhook of the repository with that uid got another secret. */
  webhook_secrets: { uid: string; number: number }
  desired: {
    cluster_id: ClusterId
    project: string
    service: string
    ordinal: number
    doc: string | null
    set_sha: string | null
    placed_by: string
    /** For a row that depends on facts of the cluster, among others (RL5). */
    facts_key: string | null
    /** For a row of a program's render: all inputs that it read (RL6). */
    rendered_from: string | null
    /** The digest of the desired revision. Null for a removal order and a tombstone. */
    digest: string | null
    /** The word that people see, without liveness: from this row and the agent's report. Null for a tombstone. */
    sync: SyncWord | null
    health: HealthWord | null
    /** 1: a tombstone whose status rows may not all be removed yet. */
    cleanup: number
    /** SL16: proves that this server placed the set in this cluster. */
    proof: string | null
  }
  join_tokens: {
    id: string
    token_hash: string
    /** `joinTokenId` of that hash; null only while a migration is under way. */
    token_id: string | null
    uses_left: number
    uses: number
    labels: string
    created_ms: number
    expires_ms: number
    created_by: string
  }
  /** Labels and revocation are not here: they are the Cluster resource's, which has one writer. */
  clusters: {
    cluster_id: ClusterId
    /** Stands for the cluster in `status_rows`. */
    no: number
    /** Its rows there. */
    row_count: number
    name: string
    cluster_uid: string
    epoch: number
    ordinal: number
    /** Greatest status rev ever seen of the cluster. */
    status_rev: number
    /** Rev of the newest complete inventory: whatever is older and not in the table was removed by it. */
    status_floor: number
    /** Inventory in ranges: where the next one has to begin (null means none is under way), and the floor when the last
     *  one has come. */
    sweep_from: string | null
    sweep_floor: number
    /** Greatest rev that went into the event stream. */
    event_rev: number
    /** The ordinal when the shard file that is in use now was adopted, or found after an unclean stop: a page beyond it
     *  is in that file's log, or of a time that is gone. */
    adopted_ordinal: number
    /** Proofs of a lower epoch are of a time that a person settled (RP2). */
    settled_epoch: number
    joined_ms: number
    last_seen_ms: number | null
    /** How long its agent's polls wait; 0: as they do by default, or not known. */
    wait_s: number
  }
  /** RP2: what this server once said and does not know any more. A row: a restore waits for a person. */
  restore_proofs: { cluster_id: ClusterId; epoch: number; ordinal: number; at_ms: number }
  agents: {
    agent_id: AgentId
    cluster_id: ClusterId
    public_key: string
    recipient: string
    /** When another recipient key was asked for; 0: it was not, or the agent has made it. */
    rotate_ms: number
    join_token_hash: string
    incarnation: number
    joined_ms: number
  }
  /** Keys of status rows: ten thousand clusters share most of them. `refs`: rows that have it; without any it may be
   *  collected, under the next number of the counter `dictionary`. */
  names: {
    id: Generated<number>
    kind: Exclude<StatusKind, 'event'>
    key: string
    project: string
    service: string
    api_group: string
    object_kind: string
    namespace: string
    name: string
    refs: number
  }
  /** Reports of objects, services and drifts without their time: most rows share one. */
  states: {
    id: Generated<number>
    /** SHA-256 of all that follows but `refs`. */
    digest: string
    sync: SyncWord | ''
    health: HealthWord | ''
    reason: string
    message: string
    /** JSON array, sorted. Null means not a workload. */
    images: string | null
    refs: number
  }
  /**
   * Reports of agents: `state_id` and `since_ms` for objects, services and drifts; `doc` for all but objects. With
   * neither, the agent removed it. The row stays until the next complete inventory, so that a late copy of an older
   * write is still recognised.
   */
  status_rows: {
    cluster_no: number
    name_id: number
    rev: number
    state_id: number | null
    doc: string | null
    since_ms: number | null
    received_ms: number
  }
  /** Counts that are kept with every change. */
  rollups: { dimension: RollupDimension; key: string; value: string; n: number }
  /** Every committed change, in the order of commits. */
  changes: {
    id: number
    at_ms: number
    topic: ChangeTopic
    cluster: string | null
    project: string | null
    name: string | null
    /** JSON array. Null means too many, or it has none. */
    keys: string | null
  }
  /** Renders of a service that brought another digest. */
  revisions: {
    project: string
    service: string
    number: number
    commit_id: string | null
    generation: number
    digest: string
    object_count: number
    set_sha: string | null
    rendered_ms: number
    /** By repository; null where there is one only. */
    sources: string | null
    /** How many clusters were given it, whatever they have now; 0 for revisions of a server of schema 18. */
    given: number
  }
  /** Variants of revisions that differ between clusters. */
  revision_variants: {
    project: string
    service: string
    number: number
    digest: string
    object_count: number
    set_sha: string | null
  }
  /** When the words of a service in a cluster changed. */
  status_history: {
    cluster_no: number
    project: string
    service: string
    at_ms: number
    sync: SyncWord
    health: HealthWord
    reason: string
    commit_id: string | null
    /** JSON of a KeptCause, or `null`. Null means that the events tell. */
    cause: Generated<string | null>
  }
  events: {
    id: number
    at_ms: number
    type: FleetEvent['type']
    reason: string
    message: string
    cluster: string | null
    project: string | null
    service: string | null
    object: string | null
    trace: string | null
  }
  confirmations: {
    id: string
    kind: Confirmation['kind']
    subject: string
    project: string
    service: string
    cluster: string | null
    token: string
    names: string
    why: string
    created_ms: number
    confirmed_ms: number | null
    confirmed_by: string | null
    /** Equal for equal questions of different clusters, which are then in `confirmation_clusters`. Null means that it
     *  is not asked of single clusters. */
    group_key: string | null
    /** How many clusters there are. */
    members: number
    /** The number that the last of them got. */
    last_member: number
    /** 0: nobody refused it. */
    refused_ms: number
    refused_by: string | null
    refused_why: string | null
  }
  /** Clusters that ask the same. */
  confirmation_clusters: {
    subject: string
    confirmation_id: string
    /** In the order in which they came. */
    no: number
    cluster: string
  }
  /** Only appended to; the oldest go by retention. */
  audit: {
    seq: number
    at_ms: number
    /** Name of the actor. */
    actor: string
    verb: string
    kind: string
    project: string | null
    name: string | null
    cluster: string | null
    result: string
    /** Hash of `doc`. */
    hash: string
    /** The entry as canonical JSON. The other columns repeat parts of it, for look-ups. */
    doc: string
  }
  /** One row: the newest entry, and what is signed in the place of the entries that retention deleted. */
  audit_head: { seq: number; hash: string; anchor: string | null }
  api_tokens: {
    id: string
    token_hash: string
    name: string
    created_ms: number
    /** 0: it does not expire. */
    expires_ms: number
    /** Id of the token that ends with the first use of this one. */
    replaces: string | null
    /** Null for one made before there were roles: it is an admin's. */
    role: string | null
    created_by: string | null
    /** 0: never. */
    last_used_ms: Generated<number>
    last_used_from: Generated<string | null>
    /** JSON array. Null means not limited to projects. */
    projects: Generated<string | null>
  }
  /** The outbox of messages to sinks. */
  notifications: {
    id: number
    project: string
    route: string
    sink: string
    group_key: string
    state: NotificationState
    version: number
    sent_version: number
    attempts: number
    next_ms: number | null
    created_ms: number
    updated_ms: number
    sent_ms: number | null
    /** The first failed attempt since the last delivery; 0: none. */
    tried_ms: number
    error: string | null
    ref: string | null
    /** JSON of a NotificationDoc. */
    doc: string
  }
  /** Writes with an Idempotency-Key. */
  kept_requests: {
    /** Digest of the caller and its key. */
    id: string
    /** The digest of the request. */
    digest: string
    until_ms: number
    /** JSON. Null means that the request did not end, or that its answer is not kept. */
    answer: string | null
    bytes: number
  }
  /** Credentials that may be used once, by a digest. */
  used_once: {
    id: string
    until_ms: number
  }
  /** JSON of `SessionRecord`. */
  sessions: {
    id: string
    kind: SessionRecord['kind']
    provider: string
    subject: string
    name: string
    email: string | null
    /** JSON array. */
    group_names: string
    access_hash: string
    access_expires_ms: number
    refresh_hash: string | null
    earlier_refresh_hash: string | null
    rotated_ms: number
    created_ms: number
    expires_ms: number
    checked_ms: number
    last_used_ms: number
    last_used_from: string | null
    sealed: string | null
  }
}

const labels = z.record(z.string(), z.string())
export const readLabels = (json: string): Record<string, string> => labels.parse(JSON.parse(json))

const failing = z.object({
  code: z.string(),
  message: z.string(),
  remedy: z.string().exactOptional(),
  problem: problemSchema.exactOptional(),
  without: z.array(z.string()),
  keeping: z.array(z.string()),
  moreWithout: z.number(),
})
const storedError = z.object({
  code: z.string(),
  message: z.string(),
  problems: z.array(problemSchema),
  sinceMs: z.number(),
  remedy: z.string().exactOptional(),
  failing: z.array(failing).exactOptional(),
  at: z.object({ commit: z.string(), author: z.string().nullable(), subject: z.string().exactOptional() }).exactOptional(),
})
export const readError = (json: string | null): StoredError | null => (json === null ? null : storedError.parse(JSON.parse(json)))
export const writeError = (error: StoredError | null): string | null => (error === null ? null : JSON.stringify(error))

const texts = z.record(z.string(), z.string())
const releaseNote = z.object({ variants: z.number(), revisions: texts, tools: texts, warnings: z.array(problemSchema) })
/** As the member that it is of a render's state. */
export const readRelease = (json: string | null): { release?: ReleaseNote } =>
  json === null ? {} : { release: releaseNote.parse(JSON.parse(json)) }

export const readSources = (json: string | null): Record<string, string> => (json === null ? {} : texts.parse(JSON.parse(json)))

const names = z.array(z.string())
export const readNames = (json: string): string[] => names.parse(JSON.parse(json))
