// Every method of the store, walked: the feed grows exactly if the method changed something. A new method is written
// into one of the two tables here.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Kysely } from 'kysely'
import { fleetEvent } from '../../server/fleet/fleet-event.ts'
import type { NewNotification } from '../../server/fleet/notification-records.ts'
import type { ResourceKey } from '../../server/fleet/records.ts'
import { warning } from '../../server/messages/event-messages.ts'
import type { Store } from '../../server/store/store.ts'
import type { Connections } from '../../server/store/store-db.ts'
import type { Tables } from '../../server/store/tables.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { API_TOKEN, agentId, clusterId, joinCluster, joinInput, makeToken } from '../support/store-fixtures.ts'
import { STORES } from '../support/stores.ts'

setDefaultTimeout(20_000) // PostgreSQL on a busy machine

/** Not part of the store's truth, or of no interest to anybody who follows. */
const BOOKKEEPING: Record<string, 'all' | readonly string[]> = {
  changes: 'all', // the feed itself
  counters: 'all', // numbers that the changes took
  rollups: 'all', // counts of what changed
  names: 'all', // a dictionary of what is in status_rows
  states: 'all', // …and another one
  meta: 'all', // which migration, which shard file
  audit: 'all', // who did it
  audit_head: 'all', // where the log goes on
  sessions: 'all', // of people; nobody watches them
  confirmed_data: 'all', // answers to questions that a pass has not followed yet
  join_uses: 'all', // which keys joined by which token
  webhook_secrets: 'all', // how often a webhook got another secret, which nobody watches
  watermarks: 'all', // which commits are refused; the state of the repository says so
  commits: 'all', // notes about commits; the state of the repository that names one is written with it
  kept_requests: 'all', // answers to repeated requests
  used_once: 'all', // credentials that nobody may use again
  clusters: [
    'last_seen_ms', // of every agent, several times a minute; what people see of it is a function of the time
    'wait_s', // how long that agent's next request may take to come
    'adopted_ordinal', // what a proof of a restore is held against
    'status_rev', // how far an agent has got in reporting, whatever it reported
    'status_floor',
    'sweep_from',
    'sweep_floor',
    'event_rev',
    'row_count', // of status_rows
  ],
  desired: ['placed_by', 'cleanup', 'proof'], // by which targets, whether status rows are left, and who wrote it; what the cluster shall have is the same
  api_tokens: ['last_used_ms', 'last_used_from'], // when and from where it was last used
  status_rows: ['rev', 'received_ms'], // when it was said again
}

const changeRecipient = (store: Store, before: string) =>
  store.changeRecipient({ agentId: agentId('a'), before, recipient: 'new', event: RECIPIENT_EVENT })
const RECIPIENT_EVENT = fleetEvent(1, warning('RecipientChanged', { before: 'a', after: 'b' }), { cluster: 'a' })
type Call = (store: Store) => Promise<unknown>
/** Whether it changes something; `prepare`: it only makes the next steps possible. In order, on one store. */
type Steps = ReadonlyArray<readonly [what: string, expected: 'changes' | 'idle' | 'prepare', call: Call]>

const service = (name: string): ResourceKey => ({ kind: 'Service', project: 'p', name })
const config: ResourceKey = { kind: 'Config', project: 'p', name: 'web' }
const repository: ResourceKey = { kind: 'Repository', project: 'p', name: 'apps' }
const write = (store: Store, key: ResourceKey, spec = '{}') => store.applyResource(key, { labels: {}, spec, nowMs: 1 })
const versionOf = async (store: Store, key = service('web')) => (await store.getResource(key))?.version ?? 0
const error = { code: 'git_failed', message: 'm', problems: [], sinceMs: 1 }
const render = { commit: 'c', generation: 1, digest: 'd', objectCount: 1, renderedMs: 1, error: null }
const variant = { digest: 'e', objectCount: 1 }
const id = { project: 'p', service: 'web' }
const row = (commit: string, digit = 'a') => {
  const doc = { commit, digest: commit, count: 1, sync: syncOptionsSchema.parse({}), protect: false }
  return { clusterId: clusterId(digit), ...id, doc, setSha: 'x', placedBy: '' }
}
const object = (name: string, rev: number, gone = false) => {
  const doc = { sync: 'Synced', health: 'Healthy', reason: 'Applied', message: '', sinceMs: 1 }
  return { kind: 'object' as const, key: `p/web//Pod/n/${name}`, rev, doc: gone ? null : doc }
}
const told = (rev: number) => ({ kind: 'event' as const, key: `${rev}`, rev, doc: { atMs: 1, type: 'Normal', reason: 'r', message: 'm' } })
const delta = { complete: false, nowMs: 1 }
const question = (token = 't', names = ['a', 'b']) => ({
  kind: 'remove_service' as const,
  subject: 'remove_service/p/web',
  ...id,
  cluster: null,
  token,
  names,
  why: 'w',
  createdMs: 1,
})
const ofCluster = (digit: string) =>
  ({ ...question(), kind: 'prune', subject: `prune/${clusterId(digit)}/p/web`, cluster: `cluster-${digit}` }) as const
const openId = async (store: Store) => (await store.confirmationFor(question().subject))?.id ?? ''
const event = { atMs: 1, type: 'Normal' as const, reason: 'r', message: 'm', cluster: null, ...id, object: null }
const notification: NewNotification = {
  ...{ project: 'p', route: '', sink: 's', groupKey: 'g', state: 'open', version: 1, sentVersion: 0, attempts: 0, nextMs: 1 },
  ...{ createdMs: 1, updatedMs: 1, sentMs: null, triedMs: 0, error: null, ref: null },
  doc: { type: 'commit', project: 'p', service: 'web', sha: 'c', state: 'pending', description: 'd' },
}

const joined: Steps[number] = ['joined', 'prepare', (store) => joinCluster(store, 'a')]
const written: Steps[number] = ['written', 'prepare', (store) => write(store, service('web'))]
const marked: Steps[number] = ['marked', 'prepare', (store) => store.markDeleting(service('web'), 2, 'ann')]
const asked: Steps[number] = ['asked', 'prepare', (store) => store.openConfirmation(question())]

const WRITES: Partial<Record<keyof Store, Steps>> = {
  applyResource: [
    ['created', 'changes', (store) => write(store, service('web'))],
    ['configured', 'changes', (store) => write(store, service('web'), '{"a":1}')],
    ['relabelled', 'changes', (store) => store.applyResource(service('web'), { labels: { a: 'b' }, spec: '{"a":1}', nowMs: 2 })],
    ['unchanged', 'idle', (store) => store.applyResource(service('web'), { labels: { a: 'b' }, spec: '{"a":1}', nowMs: 3 })],
    ['conflict', 'idle', (store) => store.applyResource(service('web'), { labels: {}, spec: '{}', ifVersion: 999, nowMs: 3 })],
    ['a circle', 'idle', (store) => write(store, service('web'), '{"dependsOn":[{"name":"web"}]}')],
  ],
  resealConfig: [
    ['written', 'prepare', (store) => write(store, config, '{"a":1}')],
    ['sealed anew', 'changes', async (store) => store.resealConfig(config, await versionOf(store, config), '{"a":2}')],
    ['at another version', 'idle', (store) => store.resealConfig(config, 999, '{"a":3}')],
    ['unknown', 'idle', (store) => store.resealConfig({ ...config, name: 'none' }, 1, '{"a":3}')],
  ],
  setConfigState: [
    ['written', 'changes', (store) => store.setConfigState('p', 'web', '{}')],
    ['again', 'idle', (store) => store.setConfigState('p', 'web', '{}')],
  ],
  markDeleting: [
    written,
    ['marked', 'changes', (store) => store.markDeleting(service('web'), 2, 'ann')],
    ['again', 'idle', (store) => store.markDeleting(service('web'), 3, 'ann')],
    ['unknown', 'idle', (store) => store.markDeleting(service('none'), 3, 'ann')],
  ],
  deleteResource: [
    written,
    ['service', 'changes', (store) => store.deleteResource(service('web'))],
    ['again', 'idle', (store) => store.deleteResource(service('web'))],
    ['rendered', 'prepare', (store) => store.setRenderState(id, render)],
    ['what was left of it', 'changes', (store) => store.deleteResource(service('web'))],
    ['written', 'prepare', (store) => write(store, repository)],
    ['repository', 'changes', (store) => store.deleteResource(repository)],
    joined,
    ['cluster', 'changes', (store) => store.deleteResource({ kind: 'Cluster', project: '', name: 'cluster-a' })],
    ['again', 'idle', (store) => store.deleteResource({ kind: 'Cluster', project: '', name: 'cluster-a' })],
  ],
  finishDeletion: [
    written,
    ['not marked', 'idle', async (store) => store.finishDeletion(service('web'), await versionOf(store))],
    marked,
    ['another version', 'idle', (store) => store.finishDeletion(service('web'), 999)],
    ['finished', 'changes', async (store) => store.finishDeletion(service('web'), await versionOf(store))],
  ],
  takeBackDeletion: [
    written,
    marked,
    ['unasked', 'idle', (store) => store.takeBackDeletion(service('web'), question().subject, 3)],
    asked,
    ['taken back', 'changes', (store) => store.takeBackDeletion(service('web'), question().subject, 3)],
  ],
  setRepositoryState: [
    ['read', 'changes', (store) => store.setRepositoryState('p', 'apps', { commit: 'c', fetchedMs: 1, tag: null, error: null })],
    ['failed', 'changes', (store) => store.setRepositoryState('p', 'apps', { commit: 'c', fetchedMs: 1, tag: null, error })],
    ['again', 'idle', (store) => store.setRepositoryState('p', 'apps', { commit: 'c', fetchedMs: 1, tag: null, error })],
  ],
  setRenderState: [
    ['rendered', 'changes', (store) => store.setRenderState(id, render)],
    ['failed', 'changes', (store) => store.setRenderState(id, { ...render, error })],
    ['again', 'idle', (store) => store.setRenderState(id, { ...render, error })],
  ],
  publish: [
    joined,
    ['placed', 'changes', (store) => store.publish([row('c1')])],
    ['changed', 'changes', (store) => store.publish([row('c2')])],
    ['tombstone', 'changes', (store) => store.publish([{ ...row('c2'), doc: null, setSha: null }])],
    ['placed again', 'changes', (store) => store.publish([row('c3')])],
    ['the same', 'idle', (store) => store.publish([row('c3')])],
    ['by other targets', 'idle', (store) => store.publish([{ ...row('c3'), placedBy: 'other' }])],
    ['in a cluster that is gone', 'idle', (store) => store.publish([row('c3', 'b')])],
  ],
  createJoinToken: [['made', 'changes', (store) => makeToken(store, 't')]],
  deleteJoinToken: [
    ['made', 'prepare', (store) => makeToken(store, 't')],
    ['deleted', 'changes', (store) => store.deleteJoinToken('t')],
    ['unknown', 'idle', (store) => store.deleteJoinToken('t')],
  ],
  join: [
    ['made', 'prepare', async (store) => [await makeToken(store, 't'), await makeToken(store, 'u')]],
    ['joined', 'changes', (store) => store.join(joinInput('a'))],
    ['again', 'idle', (store) => store.join(joinInput('a'))],
    ['used up', 'idle', (store) => store.join(joinInput('b'))],
    ['unknown token', 'idle', (store) => store.join(joinInput('b', { tokenHash: 'none' }))],
    ['joined anew', 'changes', (store) => store.join(joinInput('a', { tokenHash: 'hash-u' }))],
  ],
  changeRecipient: [
    joined,
    ['changed', 'changes', (store) => changeRecipient(store, joinInput('a').recipient)],
    ['from another key', 'idle', (store) => changeRecipient(store, 'another')],
  ],
  askForRecipient: [
    joined,
    ['asked for', 'changes', (store) => store.askForRecipient(clusterId('a'), 5)],
    ['of an unknown cluster', 'idle', (store) => store.askForRecipient(clusterId('b'), 5)],
  ],
  raiseIncarnation: [
    joined,
    ['raised', 'changes', (store) => store.raiseIncarnation(agentId('a'))],
    ['unknown', 'idle', (store) => store.raiseIncarnation(agentId('b')).catch(() => {})],
  ],
  adoptShards: [
    joined,
    ['another file', 'changes', (store) => store.adoptShards([{ index: 0, dbId: 'd', clusterIds: [clusterId('a')] }])],
    ['the same', 'idle', (store) => store.adoptShards([{ index: 0, dbId: 'd', clusterIds: [clusterId('a')] }])],
    ['of no cluster', 'idle', (store) => store.adoptShards([{ index: 1, dbId: 'e', clusterIds: [] }])],
  ],
  markSeen: [joined, ['seen', 'idle', (store) => store.markSeen(new Map([[clusterId('a'), 90_000]]), new Map([[clusterId('a'), 300]]))]],
  deleteCluster: [
    joined,
    ['deleted', 'changes', (store) => store.deleteCluster('cluster-a')],
    ['unknown', 'idle', (store) => store.deleteCluster('cluster-a')],
  ],
  upsertStatus: [
    joined,
    ['reported', 'changes', (store) => store.upsertStatus(clusterId('a'), [object('x', 1), object('y', 2)], delta)],
    ['removed', 'changes', (store) => store.upsertStatus(clusterId('a'), [object('x', 3, true)], delta)],
    ['swept', 'changes', (store) => store.upsertStatus(clusterId('a'), [object('z', 4)], { complete: true, nowMs: 1 })],
    ['an older one', 'idle', (store) => store.upsertStatus(clusterId('a'), [object('z', 2)], delta)],
    ['of an unknown cluster', 'idle', (store) => store.upsertStatus(clusterId('b'), [object('z', 2)], delta)],
    ['event', 'changes', (store) => store.upsertStatus(clusterId('a'), [told(5)], delta)],
    ['event again', 'idle', (store) => store.upsertStatus(clusterId('a'), [told(5)], delta)],
  ],
  deleteStatusOfService: [
    joined,
    ['reported', 'prepare', (store) => store.upsertStatus(clusterId('a'), [object('x', 1)], delta)],
    ['deleted', 'changes', (store) => store.deleteStatusOfService(clusterId('a'), id)],
    ['again', 'idle', (store) => store.deleteStatusOfService(clusterId('a'), id)],
  ],
  dropTombstones: [
    joined,
    ['placed', 'prepare', (store) => store.publish([row('c1')])],
    ['removed', 'changes', (store) => store.publish([{ ...row('c1'), doc: null, setSha: null }])],
    ['another one placed', 'prepare', (store) => store.publish([{ ...row('c1'), service: 'api' }])],
    ['cleaned', 'prepare', (store) => store.deleteStatusOfService(clusterId('a'), id)],
    ['dropped', 'idle', async (store) => store.dropTombstones(await store.tombstones({ limit: 9 }))],
  ],
  appendEvents: [
    ['told', 'changes', (store) => store.appendEvents([event])],
    ['none', 'idle', (store) => store.appendEvents([])],
  ],
  distrustLogs: [
    joined,
    ['placed', 'prepare', (store) => store.publish([row('c1')])],
    ['distrusted', 'idle', (store) => store.distrustLogs()],
  ],
  recordRestoreProofs: [
    joined,
    ['recorded', 'changes', (store) => store.recordRestoreProofs([{ clusterId: clusterId('a'), epoch: 2, ordinal: 3, atMs: 1 }])],
    ['more', 'changes', (store) => store.recordRestoreProofs([{ clusterId: clusterId('a'), epoch: 1, ordinal: 4, atMs: 2 }])],
    ['less', 'idle', (store) => store.recordRestoreProofs([{ clusterId: clusterId('a'), epoch: 2, ordinal: 3, atMs: 3 }])],
    ['none', 'idle', (store) => store.recordRestoreProofs([])],
  ],
  settleRestore: [joined, ['settled', 'changes', (store) => store.settleRestore(5_000)]],
  openConfirmation: [
    ['asked', 'changes', (store) => store.openConfirmation(question())],
    ['about fewer', 'changes', (store) => store.openConfirmation(question('t', ['a']))],
    ['about something else', 'changes', (store) => store.openConfirmation(question('u'))],
    ['the same', 'idle', (store) => store.openConfirmation(question('u'))],
  ],
  confirm: [
    ['asked by a cluster', 'changes', (store) => store.openConfirmation(ofCluster('a'))],
    ['asked by another', 'changes', (store) => store.openConfirmation(ofCluster('b'))],
    ['asked by it again', 'idle', (store) => store.openConfirmation(ofCluster('b'))],
    ['confirmed for the first', 'changes', async (store) => store.confirm((await store.listConfirmations())[0]?.id ?? '', 'p', 2, 1)],
    ['taken back by the second', 'changes', (store) => store.closeConfirmation(ofCluster('b').subject)],
    asked,
    ['confirmed', 'changes', async (store) => store.confirm(await openId(store), 'p', 2)],
    ['again', 'idle', async (store) => store.confirm(await openId(store), 'p', 3)],
    ['unknown', 'idle', (store) => store.confirm('none', 'p', 3)],
    ['asked again about fewer', 'idle', (store) => store.openConfirmation(question('t', ['a']))],
  ],
  refuse: [
    asked,
    ['refused', 'changes', async (store) => store.refuse(await openId(store), { by: 'p', why: 'kept', nowMs: 2 })],
    ['unknown', 'idle', (store) => store.refuse('none', { by: 'p', why: 'kept', nowMs: 3 })],
  ],
  closeConfirmation: [
    asked,
    ['closed', 'changes', (store) => store.closeConfirmation(question().subject)],
    ['again', 'idle', (store) => store.closeConfirmation(question().subject)],
  ],
  createApiToken: [['made', 'changes', (store) => store.createApiToken({ ...API_TOKEN, id: 't', tokenHash: 'h' })]],
  deleteApiToken: [
    ['made', 'prepare', (store) => store.createApiToken({ ...API_TOKEN, id: 't', tokenHash: 'h' })],
    ['unknown', 'idle', (store) => store.deleteApiToken('none')],
    ['revoked', 'changes', (store) => store.deleteApiToken('t')],
  ],
  noteApiTokenUse: [
    ['made', 'prepare', (store) => store.createApiToken({ ...API_TOKEN, id: 'v', tokenHash: 'j' })],
    ['used', 'idle', (store) => store.noteApiTokenUse('v', 5, '192.0.2.1')],
  ],
  retireReplaced: [
    ['made first', 'prepare', (store) => store.createApiToken({ ...API_TOKEN, id: 'w', tokenHash: 'k' })],
    ['made', 'prepare', (store) => store.createApiToken({ ...API_TOKEN, id: 'u', tokenHash: 'i', replaces: 'w' })],
    ['used for the first time', 'changes', (store) => store.retireReplaced('u')],
    ['used again', 'idle', (store) => store.retireReplaced('u')],
    ['unknown', 'idle', (store) => store.retireReplaced('none')],
  ],
  notifications: [
    ['planned', 'changes', ({ notifications }) => notifications.plan({ created: [notification], changed: [] })],
    ['nothing planned', 'idle', ({ notifications }) => notifications.plan({ created: [], changed: [] })],
    [
      'from another cursor',
      'idle',
      ({ notifications }) => notifications.plan({ cursor: { from: 99, to: 100 }, created: [notification], changed: [] }),
    ],
    ['delivered', 'changes', ({ notifications }) => notifications.settle({ ...notification, id: 1, state: 'closed' })],
    ['read', 'idle', ({ notifications }) => notifications.pending()],
    ['nothing to remove', 'idle', ({ notifications }) => notifications.prune()],
  ],
  addVariants: [
    ['no revision', 'idle', (store) => store.addVariants(id, [variant])],
    ['rendered', 'prepare', (store) => store.setRenderState(id, render)],
    ['added', 'changes', (store) => store.addVariants(id, [variant])],
    ['again', 'idle', (store) => store.addVariants(id, [variant])],
  ],
}

const READS: ReadonlyArray<keyof Store> = [
  'configState',
  'secretRotation',
  'webhookNumber',
  'changes',
  'close',
  'queries',
  'getResource',
  'listResources',
  'repositoryState',
  'renderErrors',
  'renderState',
  'revisions',
  'statusHistory',
  'clusterHistory',
  'desiredInCluster',
  'desiredOfService',
  'desiredOf',
  'desiredWith',
  'placementTotals',
  'askedServices',
  'pendingConfirmations',
  'newestVariants',
  'findClusters',
  'clusterOrdinals',
  'tombstones',
  'clustersOfProject',
  'referencedContent',
  'listJoinTokens',
  'joinTokenHash',
  'agent',
  'listAgents',
  'removedCluster',
  'formerClusters',
  'adoptedShards',
  'listClusters',
  'clusterByName',
  'listStatus',
  'listEvents',
  'listObjectEvents',
  'restoreFacts',
  'restoreProofs',
  'confirmation',
  'confirmationFor',
  'confirmationsFor',
  'openConfirmationsFor',
  'confirmationsOfService',
  'listConfirmations',
  'apiTokenByHash',
  'countAdminTokens',
  'listApiTokens',
  'statusBacklog',
  'upkeep',
  'variant',
  'rollups',
  'commitsOf',
  'commitsOfRepository',
  'isPublished',
  'repositoryErrors',
  'revisionsFrom',
  'waitingServices',
  'fleetSql',
  'writeVersion',
]

/** Those write only tables that BOOKKEEPING leaves out. */
const OUTSIDE: ReadonlyArray<keyof Store> = [
  'audit',
  'createSession',
  'changeSession',
  'deleteSession',
  'deleteExpiredSessions',
  'sessionByAccess',
  'sessionByRefresh',
  'listSessions',
  'noteConfirmedData',
  'confirmedData',
  'dropConfirmedData',
  'noteCommit',
  'setSecretRotation',
  'nextWebhookNumber',
  'savedQueries',
  'raiseWatermark',
  'beginRequest',
  'endRequest',
  'forgetRequest',
  'useOnce',
]

/** Everything that the store holds, without bookkeeping. */
async function truth(db: Kysely<Tables>): Promise<string> {
  const texts: string[] = []
  for (const { name } of await db.introspection.getTables()) {
    const left = BOOKKEEPING[name] ?? []
    if (left === 'all') continue
    const rows: object[] = await db
      .selectFrom(name as keyof Tables)
      .selectAll()
      .execute()
    // No view shows tombstones.
    const seen = name === 'desired' ? rows.filter((row) => 'doc' in row && 'set_sha' in row && (row.doc ?? row.set_sha) !== null) : rows
    const shown = seen.map((held) => JSON.stringify(Object.entries(held).filter(([column]) => !left.includes(column))))
    texts.push(`${name}\n${shown.sort().join('\n')}`)
  }
  return texts.sort().join('\n')
}

describe.each(STORES)('$name', (kind) => {
  let store: Store
  let looking: Connections
  beforeEach(async () => {
    const place = await kind.place()
    store = await place.open()
    looking = await place.connect()
  })
  afterEach(async () => {
    await store.close()
    await looking.close()
  })

  test('CF5 each method of the store either changes something or reads, and the tables of this test say which', () => {
    const known = [...Object.keys(WRITES), ...READS, ...OUTSIDE].sort()
    expect(Object.keys(store).sort()).toEqual(known)
  })

  test.each(Object.entries(WRITES))('CF5 %s: the feed grows exactly if something changed', async (_, steps) => {
    for (const [what, expected, call] of steps) {
      const [before, from] = [await truth(looking.reader), await store.changes.position()]
      await call(store)
      if (expected === 'prepare') continue
      const changes = expected === 'changes'
      const found = { feed: (await store.changes.position()) > from, store: (await truth(looking.reader)) !== before }
      expect({ what, ...found }).toEqual({ what, feed: changes, store: changes })
    }
  })
})
