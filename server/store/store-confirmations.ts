// Questions that wait for a person. Refusals of many clusters' agents with the same revision and the same names are one
// question, with one row for each cluster: the names are kept once, and one answer holds for all clusters that the
// person was shown.
import { setImmediate } from 'node:timers/promises'
import type { Selectable, Transaction } from 'kysely'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Confirmation } from '../fleet/records.ts'
import type { ChangeNote } from './feed/change-log.ts'
import { readSlices, SLICE_ROWS } from './read-slices.ts'
import { scopeFilter } from './scope-filter.ts'
import type { Store } from './store.ts'
import type { ReadDb, StoreDb, Tx } from './store-db.ts'
import { readNames, type Tables } from './tables.ts'

type ConfirmationStore = Pick<
  Store,
  | 'openConfirmation'
  | 'confirmation'
  | 'confirmationFor'
  | 'confirmationsFor'
  | 'openConfirmationsFor'
  | 'confirmationsOfService'
  | 'listConfirmations'
  | 'askedServices'
  | 'waitingServices'
  | 'pendingConfirmations'
  | 'confirm'
  | 'refuse'
  | 'closeConfirmation'
>

type Row = Selectable<Tables['confirmations']>
type Member = Selectable<Tables['confirmation_clusters']>
type Asked = Parameters<Store['openConfirmation']>[0]
/** The question of one cluster. */
type AskedOfCluster = Asked & { cluster: string }

/** Clusters that are named with a question of many. */
const CLUSTERS_NAMED = 5
const SUBJECTS_A_TIME = 500

export function createConfirmationStore(db: StoreDb, newId: () => string): ConfirmationStore {
  return {
    openConfirmation: (asked) => db.write((tx) => (isOfCluster(asked) ? openOfCluster(tx, asked, newId) : openOfFleet(tx, asked, newId))),
    confirmation: (id) => readOne(db.read, id),
    confirmationFor: async (subject) => (await forSubjects(db.read, [subject])).get(subject) ?? null,
    confirmationsFor: (subjects) => forManySubjects(db.read, subjects),
    openConfirmationsFor: async (subjects) => {
      const found = await forManySubjects(db.read, subjects)
      return new Map([...found].filter(([, { confirmedMs }]) => confirmedMs === null))
    },
    confirmationsOfService: (id) => ofService(db.read, id),
    askedServices: () =>
      db.read.selectFrom('confirmations').select(['project', 'service']).distinct().where('kind', '!=', 'prune').execute(),
    waitingServices: () =>
      db.read
        .selectFrom('confirmations')
        .select(['project', 'service'])
        .distinct()
        .where('confirmed_ms', 'is', null)
        .where('refused_ms', '=', 0)
        .execute(),
    pendingConfirmations: async () => {
      const rows = await db.read
        .selectFrom('confirmations')
        .select((eb) => ['kind', eb.fn.countAll<number>().as('count'), eb.fn.min('created_ms').as('oldest')])
        .where('confirmed_ms', 'is', null)
        .where('refused_ms', '=', 0)
        .groupBy('kind')
        .orderBy('kind')
        .execute()
      return rows.map(({ kind, count, oldest }) => ({ kind, count: Number(count), oldestMs: Number(oldest) }))
    },
    listConfirmations: async ({ scope, limit, after, refused = false } = {}) => {
      let open = db.read.selectFrom('confirmations').selectAll().where('confirmed_ms', 'is', null).orderBy('created_ms').orderBy('id')
      open = open.where('refused_ms', refused ? '>' : '=', 0)
      if (scope !== undefined) open = open.where(scopeFilter(scope, 'project', 'service'))
      if (limit !== undefined) open = open.limit(limit)
      if (after !== undefined) {
        const { createdMs, id } = after
        open = open.where((eb) => eb.or([eb('created_ms', '>', createdMs), eb.and([eb('created_ms', '=', createdMs), eb('id', '>', id)])]))
      }
      const items: Confirmation[] = []
      for (const row of await open.execute()) items.push(await withClusters(db.read, row))
      return items
    },
    confirm: async (id, by, nowMs, upTo) => {
      const isConfirmed = await db.write((tx) => confirm(tx, { id, by, nowMs, upTo: upTo ?? null }, newId))
      return isConfirmed ? readOne(db.read, id) : null
    },
    refuse: async (id, no) => {
      const isRefused = await db.write((tx) => refuse(tx, { ...no, id, upTo: no.upTo ?? null }, newId))
      return isRefused ? readOne(db.read, id) : null
    },
    closeConfirmation: async (subject) => {
      await db.write(async (tx) => {
        const member = await findMember(tx.sql, subject)
        if (member !== undefined) return leave(tx, member)
        const closed = tx.sql.deleteFrom('confirmations').where('subject', '=', subject).returning(['id', 'project', 'service'])
        for (const question of await closed.execute()) tx.changes.add(confirmationNote(question))
      })
    },
  }
}

const isOfCluster = (asked: Asked): asked is AskedOfCluster => asked.kind === 'prune' && asked.cluster !== null

export const confirmationNote = ({ id, project, service }: Pick<Row, 'id' | 'project' | 'service'>): ChangeNote => ({
  topic: 'confirmation',
  project,
  name: service,
  keys: [id],
})

/** Equal for what is one question. It is stored: another formula needs a migration. */
export const groupKey = ({ project, service, token, names }: Pick<Confirmation, 'project' | 'service' | 'token' | 'names'>): string =>
  sha256Hex(canonicalJson([project, service, token, names]))
/** The subject of a question with rows for its clusters. */
export const groupSubject = (id: string): string => `clusters/${id}`

const findRow = (sql: ReadDb, column: 'id' | 'subject', value: string) =>
  sql.selectFrom('confirmations').selectAll().where(column, '=', value).executeTakeFirst()
const findMember = (sql: ReadDb, subject: string) =>
  sql.selectFrom('confirmation_clusters').selectAll().where('subject', '=', subject).executeTakeFirst()

async function readOne(sql: ReadDb, id: string): Promise<Confirmation | null> {
  const row = await findRow(sql, 'id', id)
  return row === undefined ? null : withClusters(sql, row)
}

/** The shown form: of one cluster, or with the number of clusters and the first of them. */
async function withClusters(sql: ReadDb, row: Row): Promise<Confirmation> {
  if (row.group_key === null) return toConfirmation(row)
  const first = await sql
    .selectFrom('confirmation_clusters')
    .selectAll()
    .where('confirmation_id', '=', row.id)
    .orderBy('no')
    .limit(CLUSTERS_NAMED)
    .execute()
  const [only] = first
  if (row.members === 1 && only !== undefined) return ofMember(toConfirmation(row), only)
  const clusters = { count: row.members, first: first.map(({ cluster }) => cluster), upTo: row.last_member }
  return { ...toConfirmation(row), clusters }
}

const ofMember = (group: Confirmation, { subject, cluster }: Pick<Member, 'subject' | 'cluster'>): Confirmation => ({
  ...group,
  subject,
  cluster,
})

async function forManySubjects(sql: ReadDb, subjects: readonly string[]): Promise<Map<string, Confirmation>> {
  const found = new Map<string, Confirmation>()
  for (let start = 0; start < subjects.length; start += SUBJECTS_A_TIME) {
    if (start > 0) await setImmediate()
    for (const [subject, one] of await forSubjects(sql, subjects.slice(start, start + SUBJECTS_A_TIME))) found.set(subject, one)
  }
  return found
}

async function forSubjects(sql: ReadDb, subjects: readonly string[]): Promise<Map<string, Confirmation>> {
  const found = new Map<string, Confirmation>()
  if (subjects.length === 0) return found
  const rows = await sql.selectFrom('confirmations').selectAll().where('subject', 'in', subjects).execute()
  for (const row of rows) found.set(row.subject, toConfirmation(row))
  const members = await sql.selectFrom('confirmation_clusters').selectAll().where('subject', 'in', subjects).execute()
  const ids = [...new Set(members.map(({ confirmation_id }) => confirmation_id))]
  if (ids.length === 0) return found
  const groups = await sql.selectFrom('confirmations').selectAll().where('id', 'in', ids).execute()
  const byId = new Map(groups.map((row) => [row.id, toConfirmation(row)]))
  for (const member of members) {
    const group = byId.get(member.confirmation_id)
    if (group !== undefined) found.set(member.subject, ofMember(group, member))
  }
  return found
}

/** One for each cluster, with the names of their question shared. */
async function ofService(sql: ReadDb, { project, service }: { project: string; service: string }): Promise<Confirmation[]> {
  const rows = await sql.selectFrom('confirmations').selectAll().where('project', '=', project).where('service', '=', service).execute()
  const found: Confirmation[] = []
  for (const row of rows) {
    const group = toConfirmation(row)
    if (row.group_key === null) {
      found.push(group)
      continue
    }
    const members = sql.selectFrom('confirmation_clusters').selectAll().where('confirmation_id', '=', row.id)
    const read = (after: Member | null) =>
      members
        .where('no', '>', after?.no ?? 0)
        .orderBy('no')
        .limit(SLICE_ROWS)
        .execute()
    for (const one of await readSlices(read, (member) => ofMember(group, member))) found.push(one)
  }
  return found
}

/**
 * ST7: the same confirmation, or one about fewer of the same names, keeps its id, its age and a given answer. Another
 * one gets a new id: the old id stands for the old names.
 */
async function openOfFleet({ sql: trx, changes }: Tx, asked: Asked, newId: () => string): Promise<Confirmation> {
  const held = await findRow(trx, 'subject', asked.subject)
  const same = held !== undefined && held.token === asked.token && areAmong(asked.names, held)
  const row: Row = {
    ...fromAsked(asked),
    ...(same ? refusalOf(held) : NOT_REFUSED),
    ...(same && held.confirmed_ms !== null ? { names: held.names } : {}),
    id: same ? held.id : newId(),
    created_ms: same ? held.created_ms : asked.createdMs,
    confirmed_ms: same ? held.confirmed_ms : null,
    confirmed_by: same ? held.confirmed_by : null,
  }
  if (held !== undefined && (Object.keys(row) as Array<keyof Row>).every((column) => held[column] === row[column]))
    return toConfirmation(held)
  changes.add({ ...confirmationNote(row), keys: held === undefined || held.id === row.id ? [row.id] : [held.id, row.id] })
  await trx
    .insertInto('confirmations')
    .values(row)
    .onConflict((on) => on.column('subject').doUpdateSet(row))
    .execute()
  return toConfirmation(row)
}

/** ST7, for one of the clusters of a question. */
async function openOfCluster(tx: Tx, asked: AskedOfCluster, newId: () => string): Promise<Confirmation> {
  const { sql: trx, changes } = tx
  const member = await findMember(trx, asked.subject)
  const held = member === undefined ? undefined : await findRow(trx, 'id', member.confirmation_id)
  if (member !== undefined && held !== undefined) {
    const names = JSON.stringify(asked.names)
    const isSame = held.token === asked.token && areAmong(asked.names, held)
    if (isSame && (held.confirmed_ms !== null || held.refused_ms > 0 || names === held.names)) return withClusters(trx, held)
    if (isSame && held.members === 1) {
      const changed = { names, why: asked.why, group_key: groupKey(asked) }
      await trx.updateTable('confirmations').set(changed).where('id', '=', held.id).execute()
      changes.add(confirmationNote(held))
      return withClusters(trx, { ...held, ...changed })
    }
    await leave(tx, member)
  }
  const group = (await openGroup(trx, groupKey(asked))) ?? (await makeGroup(trx, asked, newId()))
  const joined = { members: group.members + 1, last_member: group.last_member + 1 }
  await trx.updateTable('confirmations').set(joined).where('id', '=', group.id).execute()
  const of = { subject: asked.subject, confirmation_id: group.id, no: joined.last_member, cluster: asked.cluster }
  await trx.insertInto('confirmation_clusters').values(of).execute()
  changes.add(confirmationNote(group))
  return withClusters(trx, { ...group, ...joined })
}

const areAmong = (names: readonly string[], held: Row): boolean => {
  const known = new Set(readNames(held.names))
  return names.every((name) => known.has(name))
}

/** Clusters that ask after the answer are not part of it. */
const openGroup = (trx: Transaction<Tables>, key: string) =>
  trx
    .selectFrom('confirmations')
    .selectAll()
    .where('group_key', '=', key)
    .where('confirmed_ms', 'is', null)
    .where('refused_ms', '=', 0)
    .orderBy('created_ms')
    .limit(1)
    .executeTakeFirst()

async function makeGroup(trx: Transaction<Tables>, asked: Omit<AskedOfCluster, 'cluster'>, id: string): Promise<Row> {
  const row: Row = { ...fromAsked({ ...asked, cluster: null, subject: groupSubject(id) }), id, group_key: groupKey(asked) }
  await trx.insertInto('confirmations').values(row).execute()
  return row
}

async function leave({ sql: trx, changes }: Tx, { subject, confirmation_id: id }: Member): Promise<void> {
  await trx.deleteFrom('confirmation_clusters').where('subject', '=', subject).execute()
  const [left] = await trx
    .updateTable('confirmations')
    .set((eb) => ({ members: eb('members', '-', 1) }))
    .where('id', '=', id)
    .returning(['id', 'project', 'service', 'members'])
    .execute()
  if (left === undefined) return
  changes.add(confirmationNote(left))
  if (left.members === 0) await trx.deleteFrom('confirmations').where('id', '=', id).execute()
}

/** With a cluster that is deleted. */
export async function leaveAll(tx: Tx, clusterId: ClusterId): Promise<void> {
  const prefix = `prune/${clusterId}`
  const members = tx.sql.selectFrom('confirmation_clusters').selectAll()
  for (const member of await members.where('subject', '>', `${prefix}/`).where('subject', '<', `${prefix}0`).execute())
    await leave(tx, member)
}

interface Yes {
  id: string
  by: string
  nowMs: number
  /** For a question of many clusters: the answer holds for those with a number up to this one. Null for all. */
  upTo: number | null
}

/** False: there is no such question, or none of the clusters that were shown asks it any more. */
async function confirm(tx: Tx, { id, by, nowMs, upTo }: Yes, newId: () => string): Promise<boolean> {
  const { sql: trx, changes, audit } = tx
  const held = await findRow(trx, 'id', id)
  if (held === undefined || held.confirmed_ms !== null) return held !== undefined
  if (upTo !== null && held.last_member > upTo && !(await keepOpen(tx, held, upTo, newId()))) return false
  const confirmed = { confirmed_ms: nowMs, confirmed_by: by, ...NOT_REFUSED }
  await trx.updateTable('confirmations').set(confirmed).where('id', '=', id).execute()
  changes.add(confirmationNote(held))
  const { kind, project, service, cluster, token, why } = held
  audit.add({
    ...(kind === 'sync' ? { verb: 'sync', detail: `revision ${token}` } : { verb: 'confirm', detail: `${kind} ${id}: ${why}` }),
    ...{ kind: 'Service', project, name: service, cluster: cluster ?? undefined, after: held.names },
  })
  return true
}

/** ST24: clusters that ask later get a question of their own. False: there is no such question, or it was confirmed. */
async function refuse(tx: Tx, { id, by, nowMs, upTo, why }: Yes & { why: string }, newId: () => string): Promise<boolean> {
  const { sql: trx, changes, audit } = tx
  const held = await findRow(trx, 'id', id)
  if (held === undefined || held.confirmed_ms !== null) return false
  if (upTo !== null && held.last_member > upTo && !(await keepOpen(tx, held, upTo, newId()))) return false
  await trx.updateTable('confirmations').set({ refused_ms: nowMs, refused_by: by, refused_why: why }).where('id', '=', id).execute()
  changes.add(confirmationNote(held))
  const { kind, project, service, cluster } = held
  audit.add({
    ...{ verb: 'refuse', detail: `${kind} ${id}: ${held.why}` },
    ...{ kind: 'Service', project, name: service, cluster: cluster ?? undefined, after: held.names },
  })
  return true
}

/** Clusters that came after the others were shown get a question of their own. False: the others are gone. */
async function keepOpen({ sql: trx, changes }: Tx, held: Row, upTo: number, id: string): Promise<boolean> {
  const later = trx.selectFrom('confirmation_clusters').where('confirmation_id', '=', held.id).where('no', '>', upTo)
  const { count } = await later.select((eb) => eb.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  const moved = Number(count)
  if (moved === held.members) return false
  if (moved === 0) return true
  const row: Row = { ...held, id, subject: groupSubject(id), members: moved }
  await trx.insertInto('confirmations').values(row).execute()
  const move = trx.updateTable('confirmation_clusters').set({ confirmation_id: id })
  await move.where('confirmation_id', '=', held.id).where('no', '>', upTo).execute()
  await trx
    .updateTable('confirmations')
    .set({ members: held.members - moved })
    .where('id', '=', held.id)
    .execute()
  changes.add(confirmationNote(row))
  return true
}

function fromAsked({ createdMs, names, ...rest }: Asked): Omit<Row, 'id'> {
  const { kind, subject, project, service, cluster, token, why } = rest
  const columns = { kind, subject, project, service, cluster, token, why, names: JSON.stringify(names), created_ms: createdMs }
  return { ...columns, confirmed_ms: null, confirmed_by: null, group_key: null, members: 0, last_member: 0, ...NOT_REFUSED }
}

type Refused = Pick<Row, 'refused_ms' | 'refused_by' | 'refused_why'>
const NOT_REFUSED: Refused = { refused_ms: 0, refused_by: null, refused_why: null }
const refusalOf = ({ refused_ms, refused_by, refused_why }: Row): Refused => ({ refused_ms, refused_by, refused_why })

function toConfirmation(row: Row): Confirmation {
  const { id, kind, subject, project, service, cluster, token, why, names } = row
  const [createdMs, confirmedMs, confirmedBy] = [row.created_ms, row.confirmed_ms, row.confirmed_by]
  const refused = { atMs: row.refused_ms, by: row.refused_by ?? '', why: row.refused_why ?? '' }
  return {
    ...{ id, kind, subject, project, service, cluster, token, names: readNames(names), why, createdMs, confirmedMs, confirmedBy },
    ...(row.refused_ms === 0 ? {} : { refused }),
  }
}
