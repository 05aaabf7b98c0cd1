// Join tokens, clusters and their agents. Labels and revocation of a cluster are in its resource; all else is here.
import { setImmediate } from 'node:timers/promises'
import type { CompiledQuery, Transaction } from 'kysely'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { clusterSpecSchema, FLEET } from '../../shared/model/resources.ts'
import { joinTokenId } from '../../shared/protocol/join.ts'
import { INCARNATION_MAX } from '../../shared/protocol/status.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { AgentRecord, ClusterRecord, JoinInput, JoinResult, JoinTokenRecord } from '../fleet/records.ts'
import { nextNumber } from './counters.ts'
import { clusterJoined, clusterLeaves, labelsIn } from './counts/placement-counts.ts'
import type { Engine } from './engines/engine.ts'
import type { ChangeNote } from './feed/change-log.ts'
import { readSlices, SLICE_ROWS } from './read-slices.ts'
import { forgetHistory } from './status/status-history.ts'
import { appendEvents } from './status/store-events.ts'
import { deleteStatusOfCluster } from './status/store-status.ts'
import type { Store } from './store.ts'
import { confirmationNote, leaveAll } from './store-confirmations.ts'
import type { ReadDb, StoreDb, Tx } from './store-db.ts'
import { readLabels, type Tables } from './tables.ts'

type AgentStore = Pick<
  Store,
  | 'createJoinToken'
  | 'listJoinTokens'
  | 'deleteJoinToken'
  | 'join'
  | 'joinTokenHash'
  | 'agent'
  | 'removedCluster'
  | 'formerClusters'
  | 'listAgents'
  | 'raiseIncarnation'
  | 'adoptShards'
  | 'adoptedShards'
  | 'listClusters'
  | 'clusterByName'
  | 'findClusters'
  | 'markSeen'
>

/** A cluster's last-seen time is written again only when it is this much older. */
export const SEEN_COARSENESS_MS = 10_000
/** Removed clusters are forgotten when this many clusters joined after them. */
const REMOVED_NUMBERS_KEPT = 200_000
/** Former registrations of one cluster that are named. */
const FORMER_CLUSTERS_MAX = 16
/** Clusters in one statement, which is one block of this thread. */
const CLUSTERS_A_TIME = 500

export function createAgentStore(db: StoreDb): AgentStore {
  /** Compiled once: each question and most requests look up a cluster, and composing the query costs more than it. */
  let clusterNamed: CompiledQuery<ClusterRow> | undefined
  return {
    createJoinToken: async (record) => {
      await db.write(async ({ sql: trx, changes, audit }) => {
        await trx.insertInto('join_tokens').values(fromJoinToken(record)).execute()
        changes.add(joinTokenNote(record.id))
        const detail = `${record.uses} uses, expires ${new Date(record.expiresMs).toISOString()}`
        audit.add({ verb: 'create', kind: 'JoinToken', name: record.id, detail, after: canonicalJson({ labels: record.labels }) })
      })
    },
    listJoinTokens: async () => {
      const rows = await db.read.selectFrom('join_tokens').selectAll().orderBy('created_ms').orderBy('id').execute()
      return rows.map(toJoinToken)
    },
    deleteJoinToken: async (id) => {
      return db.write(async ({ sql: trx, changes, audit }) => {
        const deleted = await trx.deleteFrom('join_tokens').where('id', '=', id).returning('token_hash').executeTakeFirst()
        if (deleted === undefined) return false
        await forgetUses(trx, [deleted.token_hash])
        changes.add(joinTokenNote(id))
        audit.add({ verb: 'delete', kind: 'JoinToken', name: id })
        return true
      })
    },

    joinTokenHash: async (tokenId, publicKey) => {
      const token = await db.read.selectFrom('join_tokens').select('token_hash').where('token_id', '=', tokenId).executeTakeFirst()
      if (token !== undefined) return token.token_hash
      const agent = await db.read.selectFrom('agents').select('join_token_hash').where('public_key', '=', publicKey).executeTakeFirst()
      return agent !== undefined && joinTokenId(agent.join_token_hash) === tokenId ? agent.join_token_hash : null
    },
    // JN6: a stranger can invent any number of tokens, so only a join that would be granted takes the write lock.
    join: async (input) => {
      const look = await checkJoin(db.read, input)
      return look.kind === 'granted' ? db.write((tx) => join(tx, input)) : look
    },
    agent: async (agentId) => {
      const row = await agentRows(db.read).where('agents.agent_id', '=', agentId).executeTakeFirst()
      return row === undefined ? null : toAgent(row)
    },
    removedCluster: async (agentId) => {
      const columns = ['cluster_id', 'name'] as const
      const row = await db.read.selectFrom('removed_clusters').select(columns).where('agent_id', '=', agentId).executeTakeFirst()
      return row === undefined ? null : { clusterId: row.cluster_id, name: row.name }
    },
    formerClusters: async (clusterUid) => {
      if (clusterUid === '') return []
      const ofUid = db.read.selectFrom('removed_clusters').select('cluster_id').where('cluster_uid', '=', clusterUid)
      const rows = await ofUid.orderBy('no', 'desc').limit(FORMER_CLUSTERS_MAX).execute()
      return rows.map((row) => row.cluster_id)
    },
    listAgents: async () => {
      const rows = agentRows(db.read).orderBy('resources.name').limit(SLICE_ROWS)
      const read = (after: AgentRow | null) => (after === null ? rows : rows.where('resources.name', '>', after.name)).execute()
      return readSlices(read, toAgent)
    },
    raiseIncarnation: async (agentId) => {
      const row = await db.write(async ({ sql: trx, changes }) => {
        const raised = await trx
          .updateTable('agents')
          .set((eb) => ({ incarnation: eb('incarnation', '+', 1) }))
          .where('agent_id', '=', agentId)
          .where('incarnation', '<', INCARNATION_MAX)
          .returning(['incarnation', 'cluster_id'])
          .executeTakeFirst()
        if (raised !== undefined) changes.add({ topic: 'cluster', cluster: raised.cluster_id })
        return raised
      })
      if (row === undefined) throw new AppError('cluster_unknown', { doing: 'grant a new incarnation' })
      return row.incarnation
    },
    adoptedShards: async () => {
      const rows = await db.read.selectFrom('meta').selectAll().where('key', 'like', `${SHARD_KEY}%`).execute()
      return new Map(rows.map(({ key, value }) => [Number(key.slice(SHARD_KEY.length)), value]))
    },
    adoptShards: (files) =>
      db.write(async ({ sql: trx, changes }) => {
        const raised = await adoptShards(trx, files)
        if (raised.length > 0) changes.add({ topic: 'cluster', keys: raised })
        return raised
      }),

    listClusters: async () => {
      const rows = clusterRows(db.read).orderBy('resources.name').limit(SLICE_ROWS)
      const read = (after: ClusterRow | null) => (after === null ? rows : rows.where('resources.name', '>', after.name)).execute()
      return readSlices(read, toCluster)
    },
    clusterByName: async (name) => {
      clusterNamed ??= clusterRows(db.read).where('clusters.name', '=', PLACE_OF_NAME).compile()
      const query = { ...clusterNamed, parameters: clusterNamed.parameters.map((one) => (one === PLACE_OF_NAME ? name : one)) }
      const [row] = (await db.read.getExecutor().executeQuery<ClusterRow>(query)).rows
      return row === undefined ? null : toCluster(row)
    },
    findClusters: async (by) => {
      const found: ClusterRecord[] = []
      const ids = 'ids' in by ? new Set(by.ids) : null
      const count = 'names' in by ? by.names.length : by.ids.length
      for (let start = 0; start < count; start += CLUSTERS_A_TIME) {
        if (start > 0) await setImmediate()
        const end = start + CLUSTERS_A_TIME
        // resources.name leads to the keys of all three tables; by ids SQLite would read all clusters.
        const names = 'names' in by ? by.names.slice(start, end) : await namesOfClusters(db.read, by.ids.slice(start, end))
        const rows = await clusterRows(db.read).where('resources.name', 'in', names).execute()
        for (const row of rows) if (ids?.has(row.cluster_id) !== false) found.push(toCluster(row))
      }
      return found
    },
    markSeen: async (seen, waits = new Map()) => {
      for (const wait of new Set(waits.values())) {
        const clusters = [...waits].flatMap(([clusterId, seconds]) => (seconds === wait ? [clusterId] : []))
        for (let start = 0; start < clusters.length; start += CLUSTERS_A_TIME) {
          await setImmediate()
          const some = clusters.slice(start, start + CLUSTERS_A_TIME)
          await db.write(({ sql: trx }) =>
            trx.updateTable('clusters').set({ wait_s: wait }).where('cluster_id', 'in', some).where('wait_s', '!=', wait).execute(),
          )
        }
      }
      // By time, so that clusters of one statement were seen at about the same moment; it gets the latest of them.
      const marks = [...seen].sort(([, a], [, b]) => a - b)
      for (let start = 0; start < marks.length; start += CLUSTERS_A_TIME) {
        if (start > 0) await setImmediate()
        const some = marks.slice(start, start + CLUSTERS_A_TIME)
        const atMs = some.at(-1)?.[1] ?? 0
        const ids = some.map(([clusterId]) => clusterId)
        await db.write(({ sql: trx }) =>
          trx
            .updateTable('clusters')
            .set({ last_seen_ms: atMs })
            .where('cluster_id', 'in', ids)
            .where((eb) => eb.or([eb('last_seen_ms', 'is', null), eb('last_seen_ms', '<=', atMs - SEEN_COARSENESS_MS)]))
            .execute(),
        )
      }
    },
  }
}

/** The tokens are gone. */
export const forgetUses = (trx: Transaction<Tables>, tokenHashes: readonly string[]) =>
  trx.deleteFrom('join_uses').where('token_hash', 'in', tokenHashes).execute()

const joinTokenNote = (id: string): ChangeNote => ({ topic: 'token', name: `JoinToken/${id}` })
const clusterNote = (cluster: ClusterId, name: string): ChangeNote => ({ topic: 'cluster', cluster, name: `Cluster/${name}` })

const SHARD_KEY = 'shard '

async function adoptShards(trx: Transaction<Tables>, files: Parameters<Store['adoptShards']>[0]): Promise<ClusterId[]> {
  const raised: ClusterId[] = []
  for (const { index, dbId: value, clusterIds } of files) {
    const key = `${SHARD_KEY}${index}`
    const held = await trx.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst()
    if (held?.value === value) continue
    for (let start = 0; start < clusterIds.length; start += CLUSTERS_A_TIME)
      await trx
        .updateTable('clusters')
        .set((eb) => ({ epoch: eb('epoch', '+', 1), adopted_ordinal: eb.ref('ordinal') }))
        .where('cluster_id', 'in', clusterIds.slice(start, start + CLUSTERS_A_TIME))
        .execute()
    raised.push(...clusterIds)
    await trx
      .insertInto('meta')
      .values({ key, value })
      .onConflict((on) => on.column('key').doUpdateSet({ value }))
      .execute()
  }
  return raised
}

async function namesOfClusters(read: ReadDb, ids: readonly ClusterId[]): Promise<string[]> {
  const rows = await read.selectFrom('clusters').select('name').where('cluster_id', 'in', ids).execute()
  return rows.map(({ name }) => name)
}

/** With agent, resource, desired rows, statuses and what waits for a person because of it. */
export async function deleteClusterRows(tx: Tx, engine: Engine, name: string): Promise<boolean> {
  const { sql: trx, changes, audit } = tx
  const found = trx.selectFrom('clusters').select(['cluster_id', 'no', 'cluster_uid']).where('name', '=', name)
  const cluster = await found.select((eb) => labelsIn(eb).as('labels')).executeTakeFirst()
  if (cluster === undefined) return false
  const id = cluster.cluster_id
  await clusterLeaves(tx, id, readLabels(cluster.labels ?? '{}'))
  changes.add(clusterNote(id, name))
  await trx.deleteFrom('resources').where('kind', '=', 'Cluster').where('project', '=', FLEET).where('name', '=', name).execute()
  const questions = trx.deleteFrom('confirmations').where('cluster', '=', name).returning(['id', 'project', 'service'])
  for (const question of await questions.execute()) changes.add(confirmationNote(question))
  await leaveAll(tx, id)
  await trx.deleteFrom('desired').where('cluster_id', '=', id).execute()
  await deleteStatusOfCluster(tx, engine, cluster.no)
  await forgetHistory(trx, cluster.no)
  await rememberRemoved(trx, { ...cluster, name })
  await trx.deleteFrom('agents').where('cluster_id', '=', id).execute()
  await trx.deleteFrom('clusters').where('cluster_id', '=', id).execute()
  audit.add({ verb: 'delete', kind: 'Cluster', name, cluster: name })
  return true
}

/** SE8: the agent may ask years later. */
async function rememberRemoved(
  trx: Transaction<Tables>,
  { cluster_id, cluster_uid, no, name }: Pick<Tables['clusters'], 'cluster_id' | 'cluster_uid' | 'no' | 'name'>,
): Promise<void> {
  const { agent_id } = await trx.selectFrom('agents').select('agent_id').where('cluster_id', '=', cluster_id).executeTakeFirstOrThrow()
  await trx.insertInto('removed_clusters').values({ agent_id, cluster_id, cluster_uid, name, no }).execute()
  await trx
    .deleteFrom('removed_clusters')
    .where('no', '<', no - REMOVED_NUMBERS_KEPT)
    .execute()
}

interface Granted {
  kind: 'granted'
  known: AgentRow | undefined
  token: Tables['join_tokens']
}

/** Everything that is decided without writing. */
async function checkJoin(read: ReadDb, input: JoinInput): Promise<Granted | JoinResult> {
  const known = await agentRows(read).where('agents.public_key', '=', input.publicKey).executeTakeFirst()
  // A lost answer is requested again, perhaps with a token that is used up by now. A revoked key is answered without
  // spending a use: only a person undoes a revocation, and its sessions say so.
  if (known !== undefined && known.name === input.clusterName) {
    const agent = toAgent(known)
    if (known.join_token_hash === input.tokenHash || agent.revoked) return { kind: 'joined', agent, repeated: true }
  }
  const token = await read.selectFrom('join_tokens').selectAll().where('token_hash', '=', input.tokenHash).executeTakeFirst()
  if (token === undefined) return { kind: 'token_unknown' }
  if (input.nowMs >= token.expires_ms) return { kind: 'token_expired' }
  if (token.uses_left <= 0) return { kind: 'token_used_up' }
  if (known !== undefined && known.name !== input.clusterName) return { kind: 'name_taken' } // a key stands for one cluster
  const used = await read
    .selectFrom('join_uses')
    .select('token_hash')
    .where('token_hash', '=', input.tokenHash)
    .where('public_key', '=', input.publicKey)
    .executeTakeFirst()
  // JN8: an earlier request of this key, from any sender.
  if (used !== undefined) return known === undefined ? { kind: 'token_used_up' } : { kind: 'joined', agent: toAgent(known), repeated: true }
  if (known === undefined) {
    const taken = await read.selectFrom('clusters').select('cluster_id').where('name', '=', input.clusterName).executeTakeFirst()
    if (taken !== undefined) return { kind: 'name_taken' }
  }
  return { kind: 'granted', known, token }
}

async function join(tx: Tx, input: JoinInput): Promise<JoinResult> {
  const { sql: trx, changes, audit } = tx
  const look = await checkJoin(trx, input) // again: another join may have been faster
  if (look.kind !== 'granted') return look
  const { known, token } = look
  // Counted down by the database and not by us, so that two servers cannot spend the same use.
  const { numUpdatedRows } = await trx
    .updateTable('join_tokens')
    .set((eb) => ({ uses_left: eb('uses_left', '-', 1) }))
    .where('id', '=', token.id)
    .where('uses_left', '>', 0)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return { kind: 'token_used_up' }
  await trx.insertInto('join_uses').values({ token_hash: input.tokenHash, public_key: input.publicKey }).execute()
  changes.add(joinTokenNote(token.id))
  changes.add(clusterNote(known?.cluster_id ?? input.clusterId, input.clusterName))
  if (input.event !== undefined) await appendEvents(tx, tx.engine, [input.event])
  const { clusterName } = input
  audit.add({
    ...{ verb: known === undefined ? 'join' : 'rejoin', kind: 'Cluster', name: clusterName, cluster: clusterName },
    actor: { kind: 'agent', id: known?.agent_id ?? input.agentId, name: clusterName, verified: true },
    detail: `with join token ${token.id}`,
  })
  if (known === undefined) return { kind: 'joined', agent: await insertCluster(tx, input, token.labels), repeated: false }
  await rejoin(trx, input, known.cluster_id)
  const row = await agentRows(trx).where('agents.public_key', '=', input.publicKey).executeTakeFirstOrThrow()
  return { kind: 'joined', agent: toAgent(row), repeated: false }
}

async function insertCluster(tx: Tx, input: JoinInput, labels: string): Promise<AgentRecord> {
  const { sql: trx } = tx
  clusterJoined(tx, readLabels(labels))
  const { clusterId, agentId, clusterName: name, nowMs } = input
  await trx
    .insertInto('clusters')
    .values({
      cluster_id: clusterId,
      no: await nextNumber(trx, 'cluster_no'),
      row_count: 0,
      name,
      cluster_uid: input.clusterUid,
      epoch: 1,
      ordinal: 0,
      adopted_ordinal: 0,
      settled_epoch: 0,
      status_rev: 0,
      status_floor: 0,
      sweep_from: null,
      sweep_floor: 0,
      event_rev: 0,
      joined_ms: nowMs,
      last_seen_ms: null,
      wait_s: 0,
    })
    .execute()
  await trx
    .insertInto('agents')
    .values({
      agent_id: agentId,
      cluster_id: clusterId,
      public_key: input.publicKey,
      recipient: input.recipient,
      rotate_ms: 0,
      join_token_hash: input.tokenHash,
      incarnation: 1,
      joined_ms: nowMs,
    })
    .execute()
  await trx
    .insertInto('resources')
    .values({
      kind: 'Cluster',
      project: FLEET,
      name,
      uid: clusterId,
      generation: 1,
      version: await nextNumber(trx, 'resource_version'),
      labels,
      spec: canonicalJson(clusterSpecSchema.parse({})),
      created_ms: nowMs,
      updated_ms: nowMs,
      deleting_ms: null,
      deleting_by: null,
    })
    .execute()
  const { publicKey, recipient } = input
  return { agentId, clusterId, clusterName: name, publicKey, recipient, incarnation: 1, epoch: 1, revoked: false, joinedMs: nowMs }
}

/** The same key with another token: the same cluster with its present labels. The recipient key stays (SL10). */
async function rejoin(trx: Transaction<Tables>, input: JoinInput, clusterId: ClusterId): Promise<void> {
  await trx
    .updateTable('agents')
    .set((eb) => ({ incarnation: eb('incarnation', '+', 1), join_token_hash: input.tokenHash }))
    .where('public_key', '=', input.publicKey)
    .execute()
  await trx
    .updateTable('clusters')
    .set((eb) => ({ epoch: eb('epoch', '+', 1), cluster_uid: input.clusterUid }))
    .where('cluster_id', '=', clusterId)
    .execute()
}

const PLACE_OF_NAME = '?'

/** In order of `resources.name`, which has an index: in another order, each slice would sort the rest. */
const clusterRows = (db: ReadDb) =>
  db
    .selectFrom('clusters')
    .innerJoin('agents', 'agents.cluster_id', 'clusters.cluster_id')
    .innerJoin('resources', (on) =>
      on.onRef('resources.name', '=', 'clusters.name').on('resources.kind', '=', 'Cluster').on('resources.project', '=', FLEET),
    )
    .select([
      'clusters.cluster_id',
      'clusters.name',
      'clusters.joined_ms',
      'clusters.last_seen_ms',
      'clusters.wait_s',
      'resources.labels',
      'resources.spec',
      'agents.agent_id',
    ])
const agentRows = (db: ReadDb) =>
  clusterRows(db).select([
    'agents.public_key',
    'agents.recipient',
    'agents.rotate_ms',
    'agents.incarnation',
    'agents.join_token_hash',
    'clusters.epoch',
  ])

type ClusterRow = Awaited<ReturnType<ReturnType<typeof clusterRows>['executeTakeFirstOrThrow']>>
type AgentRow = Awaited<ReturnType<ReturnType<typeof agentRows>['executeTakeFirstOrThrow']>>

/** There are two of them. */
type Settings = Pick<ClusterRecord, 'revoked' | 'config' | 'overrides' | 'siteConfig'>
const settingsOf = remembering(20_000, (spec) => clusterSpecSchema.parse(JSON.parse(spec)) as Settings)
/** Every reconciliation of every service reads the labels of all clusters. */
const labelsOf = remembering(20_000, readLabels)

/** Caches the parsed values of this many texts. Values are shared and never changed. */
function remembering<T>(max: number, read: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const held = known.get(text)
    if (held !== undefined) return held
    const value = read(text)
    if (known.size >= max) known.clear()
    known.set(text, value)
    return value
  }
}

const toCluster = (row: ClusterRow): ClusterRecord => ({
  clusterId: row.cluster_id,
  name: row.name,
  labels: labelsOf(row.labels),
  ...settingsOf(row.spec),
  joinedMs: row.joined_ms,
  lastSeenMs: row.last_seen_ms,
  waitSeconds: row.wait_s,
  agentId: row.agent_id,
})

const toAgent = (row: AgentRow): AgentRecord => ({
  agentId: row.agent_id,
  clusterId: row.cluster_id,
  clusterName: row.name,
  publicKey: row.public_key,
  recipient: row.recipient,
  ...(row.rotate_ms === 0 ? {} : { rotateMs: row.rotate_ms }),
  incarnation: row.incarnation,
  epoch: row.epoch,
  revoked: settingsOf(row.spec).revoked,
  joinedMs: row.joined_ms,
})

const fromJoinToken = (record: JoinTokenRecord): Tables['join_tokens'] => ({
  id: record.id,
  token_hash: record.tokenHash,
  token_id: joinTokenId(record.tokenHash),
  uses_left: record.usesLeft,
  uses: record.uses,
  labels: canonicalJson(record.labels),
  created_ms: record.createdMs,
  expires_ms: record.expiresMs,
  created_by: record.createdBy,
})

const toJoinToken = (row: Tables['join_tokens']): JoinTokenRecord => ({
  id: row.id,
  tokenHash: row.token_hash,
  usesLeft: row.uses_left,
  uses: row.uses,
  labels: readLabels(row.labels),
  createdMs: row.created_ms,
  expiresMs: row.expires_ms,
  createdBy: row.created_by,
})
