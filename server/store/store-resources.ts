// Resources that people wrote, and what the last look at their sources brought.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { matchesSelector } from '../../shared/model/labels.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Page, RenderState, ResourceKey, StoredResource } from '../fleet/records.ts'
import type { Deed } from './audit/audit-log.ts'
import { nextNumber } from './counters.ts'
import { clusterRelabelled } from './counts/placement-counts.ts'
import type { ChangeNote } from './feed/change-log.ts'
import { scopeFilter } from './scope-filter.ts'
import { findDependencyCycle } from './service-dependencies.ts'
import { appendEvents } from './status/store-events.ts'
import type { Store } from './store.ts'
import { deleteClusterRows } from './store-agents.ts'
import { confirmationNote } from './store-confirmations.ts'
import type { ReadDb, StoreDb } from './store-db.ts'
import { readError, readLabels, readRelease, type Tables, writeError } from './tables.ts'
import { forgetRevisions, noteRevision } from './upkeep/revision-log.ts'

type ResourceStore = Pick<
  Store,
  | 'applyResource'
  | 'resealConfig'
  | 'getResource'
  | 'listResources'
  | 'markDeleting'
  | 'deleteResource'
  | 'deleteCluster'
  | 'finishDeletion'
  | 'takeBackDeletion'
  | 'repositoryState'
  | 'repositoryErrors'
  | 'setRepositoryState'
  | 'renderState'
  | 'renderErrors'
  | 'setRenderState'
>

/** Rows read at once while a selector is looked for. */
const SCAN_ROWS = 500

/**
 * Services that cannot be rendered for some or all of their clusters. Services that are being deleted are left out:
 * nothing is rendered for them any more.
 */
export const readRenderErrors = (db: ReadDb) =>
  db
    .selectFrom('render_states')
    .innerJoin('resources', (join) =>
      join.onRef('resources.project', '=', 'render_states.project').onRef('resources.name', '=', 'render_states.service'),
    )
    .select(['render_states.project', 'render_states.service', 'render_states.error', 'resources.spec'])
    .where('render_states.error', 'is not', null)
    .where('resources.kind', '=', 'Service')
    .where('resources.deleting_ms', 'is', null)
    .execute()

/** AP25: null if the resource must not exist, or does not. */
export function versionConflict({ kind, name }: ResourceKey, expected: number | null, version: number | null): AppError {
  const is = version === null ? 'does not exist' : `is at version ${version}`
  const asked = expected === null ? 'the request creates it' : `the request is for version ${expected}`
  return new AppError('conflict', { status: 412, detail: `${kind} ${name} ${is}; ${asked}`, extra: { expectedVersion: expected, version } })
}

export function createResourceStore(db: StoreDb, newUid: () => string): ResourceStore {
  const deleteResource: Store['deleteResource'] = (key, ifVersion) =>
    db.write(async (tx) => {
      const { sql: trx, changes, audit } = tx
      const { kind, project, name } = key
      if (ifVersion !== undefined) await requireVersion(trx, key, ifVersion)
      if (kind === 'Cluster') return deleteClusterRows(tx, db.engine, name)
      const ofRepository = trx.deleteFrom('repository_states').where('project', '=', project).where('name', '=', name)
      const ofService = trx.deleteFrom('render_states').where('project', '=', project).where('service', '=', name)
      if (kind === 'Repository') await trx.deleteFrom('commits').where('project', '=', project).where('repository', '=', name).execute()
      const ofIt = kind === 'Repository' ? ofRepository : kind === 'Service' ? ofService : null
      const state = await ofIt?.executeTakeFirstOrThrow()
      if (kind === 'Service') await forgetRevisions(trx, { project, service: name })
      const held = await find(trx, key)
      if (kind === 'Config') await trx.deleteFrom('config_states').where('project', '=', project).where('name', '=', name).execute()
      if (kind === 'Repository')
        await trx
          .deleteFrom('webhook_secrets')
          .where('uid', '=', held?.uid ?? '')
          .execute()
      if (kind === 'Repository' && held !== undefined) await trx.deleteFrom('watermarks').where('uid', '=', held.uid).execute()
      const { numDeletedRows } = await whereKey(trx.deleteFrom('resources'), key).executeTakeFirstOrThrow()
      if (numDeletedRows + (state?.numDeletedRows ?? 0n) > 0n) changes.add(resourceNote(key))
      if (held !== undefined) audit.add({ verb: 'delete', ...auditOf(key), before: auditText(held) })
      return numDeletedRows > 0n
    })
  return {
    applyResource: (key, change) =>
      db.write(async (tx) => {
        const { sql: trx, changes, audit } = tx
        const held = await find(trx, key)
        const expected = change.ifVersion
        if (expected !== undefined && expected !== (held?.version ?? null)) return { kind: 'conflict', version: held?.version ?? null }
        const labels = canonicalJson(change.labels)
        const { spec, nowMs } = change
        const circle = key.kind === 'Service' && held?.spec !== spec ? await findDependencyCycle(trx, key, spec) : null
        if (circle !== null) return { kind: 'cycle', ...circle }
        if (held === undefined) {
          if (key.kind === 'Cluster') return { kind: 'conflict', version: null } // a cluster comes into being by joining only
          const row = {
            ...key,
            uid: newUid(),
            generation: 1,
            version: await nextNumber(trx, 'resource_version'),
            labels,
            spec,
            created_ms: nowMs,
            updated_ms: nowMs,
            deleting_ms: null,
            deleting_by: null,
          }
          await trx.insertInto('resources').values(row).execute()
          changes.add(resourceNote(row))
          audit.add({ verb: 'create', ...auditOf(key), after: auditText(row) })
          return { kind: 'created', resource: toResource(row) }
        }
        if (held.labels === labels && held.spec === spec) return { kind: 'unchanged', resource: toResource(held) }
        const row = {
          ...held,
          labels,
          spec,
          generation: held.spec === spec ? held.generation : held.generation + 1,
          version: await nextNumber(trx, 'resource_version'),
          updated_ms: nowMs,
        }
        await whereKey(trx.updateTable('resources').set(row), key).execute()
        if (key.kind === 'Cluster' && held.labels !== labels)
          await clusterRelabelled(tx, key.name, { before: readLabels(held.labels), after: change.labels })
        changes.add(resourceNote(row))
        audit.add({ verb: 'update', ...auditOf(key), before: auditText(held), after: auditText(row) })
        return { kind: 'configured', resource: toResource(row) }
      }),

    resealConfig: (key, version, spec) =>
      db.write(async ({ sql: trx, changes }) => {
        const held = await find(trx, key)
        if (held === undefined || held.version !== version) return false
        await whereKey(trx.updateTable('resources').set({ spec, version: await nextNumber(trx, 'resource_version') }), key).execute()
        changes.add(resourceNote(held))
        return true
      }),

    getResource: async (key) => {
      const row = await find(db.read, key)
      return row === undefined ? null : toResource(row)
    },

    listResources: async (kind, query) => {
      const items: StoredResource[] = []
      let after = query.after === undefined ? undefined : splitCursor(query.after)
      for (;;) {
        let select = db.read.selectFrom('resources').selectAll().where('kind', '=', kind)
        if (query.project !== undefined) select = select.where('project', '=', query.project)
        if (query.scope !== undefined) select = select.where(scopeFilter(query.scope, kind === 'Project' ? 'name' : 'project'))
        if (after !== undefined) {
          const { project, name } = after
          select = select.where((eb) => eb.or([eb('project', '>', project), eb.and([eb('project', '=', project), eb('name', '>', name)])]))
        }
        const rows = await select.orderBy('project').orderBy('name').limit(SCAN_ROWS).execute()
        for (const row of rows) {
          const resource = toResource(row)
          if (query.selector !== undefined && !matchesSelector(resource.labels, query.selector)) continue
          if (query.keep?.(resource) === false) continue
          const last = items.at(-1)
          if (items.length === query.limit && last !== undefined) return page(items, `${last.project}/${last.name}`)
          items.push(resource)
        }
        const last = rows.at(-1)
        if (last === undefined || rows.length < SCAN_ROWS) return page(items, null)
        after = last
      }
    },

    markDeleting: (key, nowMs, by, events = [], ifVersion) =>
      db.write(async (tx) => {
        const { sql: trx, changes, audit } = tx
        const held = await find(trx, key)
        if (held === undefined) return false
        if (ifVersion !== undefined && ifVersion !== held.version) throw versionConflict(key, ifVersion, held.version)
        await appendEvents(tx, db.engine, events)
        audit.add({ verb: 'delete', ...auditOf(key), before: auditText(held), ...(held.deleting_ms === null ? {} : { detail: 'again' }) })
        if (held.deleting_ms !== null) return true
        const version = await nextNumber(trx, 'resource_version')
        const marks = { deleting_ms: nowMs, deleting_by: by, updated_ms: nowMs, version }
        await whereKey(trx.updateTable('resources').set(marks), key).execute()
        changes.add(resourceNote(held))
        return true
      }),

    deleteResource,
    deleteCluster: (name, ifVersion) => deleteResource({ kind: 'Cluster', project: FLEET, name }, ifVersion),

    finishDeletion: (key, version, events = []) =>
      db.write(async (tx) => {
        const { sql: trx, changes, audit } = tx
        const marked = trx.deleteFrom('resources').where('version', '=', version).where('deleting_ms', 'is not', null)
        const { numDeletedRows } = await whereKey(marked, key).executeTakeFirstOrThrow()
        if (numDeletedRows === 0n) return false
        changes.add(resourceNote(key))
        audit.add({ verb: 'finish-delete', ...auditOf(key) })
        await trx.deleteFrom('render_states').where('project', '=', key.project).where('service', '=', key.name).execute()
        await forgetRevisions(trx, { project: key.project, service: key.name })
        await appendEvents(tx, db.engine, events)
        return true
      }),

    takeBackDeletion: (key, subject, nowMs) =>
      db.write(async ({ sql: trx, changes, audit }) => {
        const [question] = await trx
          .deleteFrom('confirmations')
          .where('subject', '=', subject)
          .where('confirmed_ms', 'is', null)
          .returning(['id', 'project', 'service'])
          .execute()
        if (question === undefined) return false
        changes.add(confirmationNote(question))
        changes.add(resourceNote(key))
        audit.add({ verb: 'undelete', ...auditOf(key) })
        const version = await nextNumber(trx, 'resource_version')
        const marks = { deleting_ms: null, deleting_by: null, updated_ms: nowMs, version }
        await whereKey(trx.updateTable('resources').set(marks), key).execute()
        return true
      }),

    repositoryState: async (project, name) => {
      const row = await db.read
        .selectFrom('repository_states')
        .selectAll()
        .where('project', '=', project)
        .where('name', '=', name)
        .executeTakeFirst()
      return {
        commit: row?.commit_id ?? null,
        fetchedMs: row?.fetched_ms ?? null,
        tag: row?.tag ?? null,
        error: readError(row?.error ?? null),
      }
    },

    repositoryErrors: async () => {
      const rows = await db.read
        .selectFrom('repository_states')
        .innerJoin('resources', (join) =>
          join.onRef('resources.project', '=', 'repository_states.project').onRef('resources.name', '=', 'repository_states.name'),
        )
        .select(['repository_states.project', 'repository_states.name', 'repository_states.error'])
        .where('repository_states.error', 'is not', null)
        .where('resources.kind', '=', 'Repository')
        .orderBy('repository_states.project')
        .orderBy('repository_states.name')
        .execute()
      return rows.flatMap(({ project, name, error: text }) => {
        const error = readError(text)
        return error === null ? [] : [{ project, name, error }]
      })
    },

    setRepositoryState: async (project, name, state) => {
      const columns = { commit_id: state.commit, fetched_ms: state.fetchedMs, tag: state.tag, error: writeError(state.error) }
      await db.write(async ({ sql: trx, changes }) => {
        const ofIt = trx.selectFrom('repository_states').selectAll().where('project', '=', project).where('name', '=', name)
        if (isSame(await ofIt.executeTakeFirst(), columns)) return
        await trx
          .insertInto('repository_states')
          .values({ project, name, ...columns })
          .onConflict((on) => on.columns(['project', 'name']).doUpdateSet(columns))
          .execute()
        changes.add({ topic: 'repository', project, name })
      })
    },

    renderState: async ({ project, service }) => {
      const row = await db.read
        .selectFrom('render_states')
        .selectAll()
        .where('project', '=', project)
        .where('service', '=', service)
        .executeTakeFirst()
      return {
        commit: row?.commit_id ?? null,
        generation: row?.generation ?? 0,
        digest: row?.digest ?? null,
        objectCount: row?.object_count ?? 0,
        renderedMs: row?.rendered_ms ?? null,
        error: readError(row?.error ?? null),
        ...readRelease(row?.release_note ?? null),
      }
    },

    renderErrors: async () =>
      (await readRenderErrors(db.read)).flatMap(({ project, service, error: text, spec }) => {
        const error = readError(text)
        return error === null ? [] : [{ id: { project, service }, error, spec }]
      }),

    setRenderState: async ({ project, service }, state, variants = [], events = []) => {
      const columns = {
        commit_id: state.commit,
        generation: state.generation,
        digest: state.digest,
        object_count: state.objectCount,
        rendered_ms: state.renderedMs,
        error: writeError(state.error),
        release_note: state.release === undefined ? null : canonicalJson(state.release),
      }
      await db.write(async (tx) => {
        const { sql: trx, changes, audit } = tx
        await appendEvents(tx, db.engine, events)
        const ofIt = trx.selectFrom('render_states').selectAll().where('project', '=', project).where('service', '=', service)
        const held = await ofIt.executeTakeFirst()
        if (isSame(held, columns)) return
        await trx
          .insertInto('render_states')
          .values({ project, service, ...columns })
          .onConflict((on) => on.columns(['project', 'service']).doUpdateSet(columns))
          .execute()
        await noteRevision(trx, { project, service }, state, variants)
        changes.add({ topic: 'render', project, name: service })
        if (state.digest !== null && state.digest !== held?.digest)
          audit.add({ verb: 'publish', kind: 'Service', project, name: service, detail: revisionText(state, held?.digest ?? null) })
      })
    },
  }
}

async function requireVersion(db: ReadDb, key: ResourceKey, version: number): Promise<void> {
  const found = await find(db, key)
  if (found !== undefined && found.version !== version) throw versionConflict(key, version, found.version)
}

const find = (db: ReadDb, { kind, project, name }: ResourceKey) =>
  db.selectFrom('resources').selectAll().where('kind', '=', kind).where('project', '=', project).where('name', '=', name).executeTakeFirst()

interface Filterable {
  where(column: 'kind' | 'project' | 'name', operator: '=', value: string): this
}
const whereKey = <T extends Filterable>(query: T, { kind, project, name }: ResourceKey): T =>
  query.where('kind', '=', kind).where('project', '=', project).where('name', '=', name)

/** A note on a cluster carries its id, which is the uid of its resource, as all records about clusters do. */
const resourceNote = ({ kind, project, name, uid }: ResourceKey & { uid?: string }): ChangeNote => ({
  topic: 'resource',
  ...(kind === 'Cluster' && uid !== undefined ? { cluster: uid } : { project }),
  name: `${kind}/${name}`,
})

/** In the audit log. */
const auditOf = ({ kind, project, name }: ResourceKey): Pick<Deed, 'kind' | 'project' | 'name' | 'cluster'> => ({
  kind,
  ...(project === '' ? {} : { project }),
  name,
  ...(kind === 'Cluster' ? { cluster: name } : {}),
})

/** The secrets of a Config are sealed in the document. */
const auditText = ({ labels, spec }: Pick<Tables['resources'], 'labels' | 'spec'>): string => `{"labels":${labels},"spec":${spec}}`

const revisionText = ({ commit, digest }: RenderState, before: string | null): string =>
  `revision ${digest} of commit ${commit ?? 'unknown'}${before === null ? '' : `; before: ${before}`}`

/** Nothing would change. */
const isSame = <T extends object>(held: T | undefined, columns: Partial<T>): boolean =>
  held !== undefined && Object.entries(columns).every(([column, value]) => held[column as keyof T] === value)

export function toResource(row: Tables['resources']): StoredResource {
  const { kind, project, name, uid, generation, version, spec } = row
  return {
    kind,
    project,
    name,
    uid,
    generation,
    version,
    labels: readLabels(row.labels),
    spec,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
    deletingMs: row.deleting_ms,
    ...(row.deleting_by === null ? {} : { deletingBy: row.deleting_by }),
  }
}

const page = <T>(items: T[], next: string | null): Page<T> => ({ items, next })

/** `project/name`: neither part holds a slash. */
function splitCursor(text: string): { project: string; name: string } {
  const slash = text.indexOf('/')
  return { project: text.slice(0, Math.max(slash, 0)), name: text.slice(slash + 1) }
}
