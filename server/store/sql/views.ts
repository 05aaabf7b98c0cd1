// The views of fleet queries: their columns, their documentation, and their SQL over the tables of the store with the
// rows that the caller may read.
import type { SqlViewColumn } from '../../../shared/model/fleet-sql.ts'
import type { SqlEngine } from '../../../shared/sql/dialect.ts'
import type { WrittenView } from '../../../shared/sql/write.ts'
import type { Sight } from './sight.ts'

export interface ViewContext {
  engine: SqlEngine
  sight: Sight
  nowMs: number
}

interface FleetView {
  about: string
  columns: Readonly<Record<string, SqlViewColumn>>
  /** Each column with its SQL. */
  select(context: ViewContext): Readonly<Record<string, string>>
  from(context: ViewContext): string
  /** Beside what the caller may read. */
  where?(context: ViewContext): string
  readable(sight: Sight): string
}

const text = (about: string): SqlViewColumn => ({ type: 'text', about })
const integer = (about: string): SqlViewColumn => ({ type: 'integer', about })

const CLUSTER = text('name of the cluster')
const PROJECT = text('project of the service')
const SERVICE = text('name of the service')
const SYNC = text('`Synced`, `OutOfSync` or `Unknown`')
const HEALTH = text('`Healthy`, `Progressing`, `Degraded`, `Suspended`, `Missing` or `Unknown`')
const AT = integer('time, in milliseconds since 1970')

const json = (engine: SqlEngine, column: string, ...path: string[]): string =>
  engine === 'sqlite' ? `json_extract(${column}, '$.${path.join('.')}')` : `(cast(${column} as jsonb) #>> '{${path.join(',')}}')`
const jsonNumber = (engine: SqlEngine, column: string, ...path: string[]): string =>
  engine === 'sqlite' ? json(engine, column, ...path) : `cast(${json(engine, column, ...path)} as bigint)`

/** A cluster reports its own state in a row whose name is `cluster`. */
const clusterName = "(select id from names where kind = 'cluster' and key = 'cluster')"
/** AZ11: the error of a render may be one of other clusters, and name them. */
function ofAllClusters(sight: Sight, column: string): string {
  const condition = sight.unlimitedServices({ project: 'res.project', service: 'res.name' })
  return condition === '1 = 1' ? column : `case when ${condition} then ${column} end`
}
const placed = (sight: Sight) => sight.services({ project: 'n.project', service: 'n.service', cluster: 'r.cluster_no' })
/** Rows of one kind that agents reported. */
const reported = (kind: 'object' | 'drift') =>
  `status_rows r join names n on n.id = r.name_id and n.kind = '${kind}' join clusters c on c.no = r.cluster_no join states s on s.id = r.state_id`
const REPORTED = {
  cluster: 'c.name',
  project: 'n.project',
  service: 'n.service',
  api_group: 'n.api_group',
  kind: 'n.object_kind',
  namespace: 'n.namespace',
  name: 'n.name',
} as const
const OBJECT_COLUMNS = {
  cluster: CLUSTER,
  project: PROJECT,
  service: SERVICE,
  api_group: text('API group of the kind, such as `apps`; empty: the core group'),
  kind: text('kind, such as `Deployment`'),
  namespace: text('namespace; empty: the object has none'),
  name: text('name of the object'),
} as const

export const FLEET_VIEWS: Readonly<Record<string, FleetView>> = {
  clusters: {
    about: 'Clusters that have joined.',
    columns: {
      name: CLUSTER,
      labels: text("labels as JSON; `label(labels, 'env')` is one of them"),
      joined_ms: integer('time at which the cluster joined'),
      last_seen_ms: integer('time of the last contact of its agent; null: never'),
      agent_version: text('version of the agent'),
      kubernetes_version: text('version of Kubernetes'),
      node_count: integer('number of nodes'),
      problem_count: integer('number of problems that the agent reports of itself'),
    },
    select: ({ engine }) => ({
      name: 'c.name',
      labels: "coalesce(res.labels, '{}')",
      joined_ms: 'c.joined_ms',
      last_seen_ms: 'c.last_seen_ms',
      agent_version: json(engine, 'r.doc', 'agentVersion'),
      kubernetes_version: json(engine, 'r.doc', 'kubernetesVersion'),
      node_count: jsonNumber(engine, 'r.doc', 'nodeCount'),
      problem_count:
        engine === 'sqlite' ? "json_array_length(r.doc, '$.problems')" : "jsonb_array_length(cast(r.doc as jsonb) -> 'problems')",
    }),
    from: () =>
      `clusters c left join resources res on res.kind = 'Cluster' and res.project = '' and res.name = c.name left join status_rows r on r.cluster_no = c.no and r.name_id = ${clusterName}`,
    readable: (sight) => sight.clusters('c.no'),
  },
  services: {
    about: 'Services with their last render.',
    columns: {
      project: PROJECT,
      name: SERVICE,
      repository: text('repository of the source; null: there are several sources'),
      path: text('folder in the repository'),
      namespace: text('namespace of its objects'),
      mode: text('`auto` or `manual`'),
      labels: text('labels as JSON'),
      commit: text('commit of the last render'),
      digest: text('digest of the last render without an error'),
      object_count: integer('number of objects of that render'),
      rendered_ms: integer('time of that render'),
      error: text('code of the error of the last render; null: it has none, or you may read the service in some clusters only'),
      error_message: text('message of that error'),
      created_ms: integer('time at which the service was created'),
    },
    select: ({ engine, sight }) => ({
      project: 'res.project',
      name: 'res.name',
      repository: json(engine, 'res.spec', 'source', 'repository'),
      path: json(engine, 'res.spec', 'source', 'path'),
      namespace: json(engine, 'res.spec', 'namespace'),
      mode: json(engine, 'res.spec', 'sync', 'mode'),
      labels: 'res.labels',
      commit: 'rs.commit_id',
      digest: 'rs.digest',
      object_count: 'coalesce(rs.object_count, 0)',
      rendered_ms: 'rs.rendered_ms',
      error: ofAllClusters(sight, json(engine, 'rs.error', 'code')),
      error_message: ofAllClusters(sight, json(engine, 'rs.error', 'message')),
      created_ms: 'res.created_ms',
    }),
    from: () => 'resources res left join render_states rs on rs.project = res.project and rs.service = res.name',
    where: () => "res.kind = 'Service'",
    readable: (sight) => sight.wholeServices({ project: 'res.project', service: 'res.name' }),
  },
  repositories: {
    about: 'Repositories with the commit that was read last.',
    columns: {
      project: text('project of the repository'),
      name: text('name of the repository'),
      commit: text('commit, or version of a chart, that was read last'),
      fetched_ms: integer('time at which it was read'),
      error: text('code of the error of the last read; null: it has none'),
    },
    select: ({ engine }) => ({
      project: 'res.project',
      name: 'res.name',
      commit: 'st.commit_id',
      fetched_ms: 'st.fetched_ms',
      error: json(engine, 'st.error', 'code'),
    }),
    from: () => 'resources res left join repository_states st on st.project = res.project and st.name = res.name',
    where: () => "res.kind = 'Repository'",
    readable: (sight) => sight.repositories('res.project'),
  },
  placements: {
    about: 'Services in clusters.',
    columns: {
      cluster: CLUSTER,
      project: PROJECT,
      service: SERVICE,
      sync: SYNC,
      health: HEALTH,
      reason: text('reason that the agent reports'),
      message: text('message that the agent reports'),
      since_ms: integer('time of the last change'),
      digest: text('digest of the desired revision; null: the service leaves the cluster'),
      desired_commit: text('commit of the desired revision'),
      applied_commit: text('commit that is applied; null: none is'),
      applied_ms: integer('time at which it was applied'),
      healthy_commit: text('commit that was healthy last'),
      object_count: integer('number of objects'),
    },
    select: ({ engine, sight }) => ({
      cluster: 'c.name',
      project: 'd.project',
      service: 'd.service',
      sync: 'd.sync',
      health: 'd.health',
      reason: "coalesce(s.reason, '')",
      message: sight.message("coalesce(s.message, '')"),
      since_ms: 'r.since_ms',
      digest: 'd.digest',
      desired_commit: json(engine, 'd.doc', 'commit'),
      applied_commit: json(engine, 'r.doc', 'applied', 'commit'),
      applied_ms: jsonNumber(engine, 'r.doc', 'applied', 'atMs'),
      healthy_commit: json(engine, 'r.doc', 'healthy', 'commit'),
      object_count: jsonNumber(engine, 'r.doc', 'objectCount'),
    }),
    from: () =>
      "desired d join clusters c on c.cluster_id = d.cluster_id left join names n on n.kind = 'service' and n.key = d.project || '/' || d.service " +
      'left join status_rows r on r.cluster_no = c.no and r.name_id = n.id left join states s on s.id = r.state_id',
    where: () => "d.sync is not null and d.service <> ''",
    readable: (sight) => sight.services({ project: 'd.project', service: 'd.service', cluster: 'c.no' }),
  },
  objects: {
    about: 'Kubernetes objects of services in clusters, as agents reported them last.',
    columns: {
      ...OBJECT_COLUMNS,
      sync: SYNC,
      health: HEALTH,
      reason: text('reason'),
      message: text('message'),
      since_ms: integer('time of the last change'),
    },
    select: ({ sight }) => ({
      ...REPORTED,
      ...{ sync: 's.sync', health: 's.health', reason: 's.reason', message: sight.message('s.message'), since_ms: 'r.since_ms' },
    }),
    from: () => reported('object'),
    readable: placed,
  },
  images: {
    about: 'Images of workloads in clusters, as the live pod templates name them: one row for each image of an object.',
    columns: { ...OBJECT_COLUMNS, image: text('image, as it is written in the object') },
    select: ({ engine }) => ({ ...REPORTED, image: engine === 'sqlite' ? 'img.value' : 'img.value' }),
    from: ({ engine }) =>
      `${reported('object')} cross join ${
        engine === 'sqlite'
          ? 'json_each(s.images) as img'
          : "jsonb_array_elements_text(coalesce(cast(s.images as jsonb), '[]')) as img(value)"
      }`,
    where: () => 's.images is not null',
    readable: placed,
  },
  drifts: {
    about: 'The newest drift of each object: changes that were not made in Git.',
    columns: {
      ...OBJECT_COLUMNS,
      action: text('`healed`, `reported`, `contested` or `failed`'),
      manager: text('field manager that made the change; empty: nobody holds the fields'),
      paths: text('fields, as JSON'),
      count: integer('number of occurrences'),
      detected_ms: integer('time of the drift'),
      healed_ms: integer('time at which it was corrected; null: it was not'),
    },
    select: ({ engine }) => ({
      ...REPORTED,
      action: 's.reason',
      manager: json(engine, 'r.doc', 'manager'),
      paths: json(engine, 'r.doc', 'paths'),
      count: jsonNumber(engine, 'r.doc', 'count'),
      detected_ms: 'r.since_ms',
      healed_ms: jsonNumber(engine, 'r.doc', 'healedMs'),
    }),
    from: () => reported('drift'),
    readable: placed,
  },
  events: {
    about: 'Events of agents and of the server. Events without a service are shown to callers who may read every service.',
    columns: {
      id: integer('increasing number'),
      at_ms: AT,
      type: text('`Normal` or `Warning`'),
      reason: text('reason'),
      message: text('message'),
      cluster: text('cluster; null: it concerns none'),
      project: text('project; null: it concerns none'),
      service: text('service; null: it concerns none'),
      object: text('object; null: it concerns none'),
    },
    select: ({ sight }) => ({
      ...Object.fromEntries(['id', 'at_ms', 'type', 'reason', 'cluster', 'project', 'service', 'object'].map((one) => [one, `e.${one}`])),
      message: sight.message('e.message'),
    }),
    from: ({ sight }) => `events e${sight.isWhole ? '' : ' left join clusters c on c.name = e.cluster'}`,
    readable: (sight) => sight.services({ project: 'e.project', service: 'e.service', cluster: 'c.no' }),
  },
  revisions: {
    about: 'Revisions of services: renders that brought another digest.',
    columns: {
      project: PROJECT,
      service: SERVICE,
      number: integer('number, from 1'),
      commit: text('commit that it was rendered from first'),
      digest: text('digest'),
      generation: integer('generation of the spec of the service'),
      object_count: integer('number of objects'),
      rendered_ms: integer('time of the render'),
    },
    select: () => ({
      project: 'v.project',
      service: 'v.service',
      number: 'v.number',
      commit: 'v.commit_id',
      digest: 'v.digest',
      generation: 'v.generation',
      object_count: 'v.object_count',
      rendered_ms: 'v.rendered_ms',
    }),
    from: () => 'revisions v',
    readable: (sight) => sight.wholeServices({ project: 'v.project', service: 'v.service' }),
  },
  commits: {
    about: 'Commits that repositories had since the server knows their authors, the newest 2,000 of each.',
    columns: {
      project: text('project of the repository'),
      repository: text('name of the repository'),
      commit: text('commit'),
      author: text('name of the author'),
      subject: text('first line of the message'),
      authored_ms: integer('time at which it was written'),
      seen_ms: integer('time at which the server read it'),
    },
    select: () => ({
      project: 'k.project',
      repository: 'k.repository',
      commit: 'k.commit_id',
      author: 'k.author',
      subject: 'k.subject',
      authored_ms: 'k.authored_ms',
      seen_ms: 'k.seen_ms',
    }),
    from: () => 'commits k',
    readable: (sight) => sight.repositories('k.project'),
  },
  history: {
    about: 'Changes of the status of services in clusters.',
    columns: {
      cluster: CLUSTER,
      project: PROJECT,
      service: SERVICE,
      at_ms: AT,
      sync: SYNC,
      health: HEALTH,
      reason: text('reason'),
      commit: text('commit that was applied, or received if none was'),
    },
    select: () => ({
      cluster: 'c.name',
      project: 'h.project',
      service: 'h.service',
      at_ms: 'h.at_ms',
      sync: 'h.sync',
      health: 'h.health',
      reason: 'h.reason',
      commit: 'h.commit_id',
    }),
    from: () => 'status_history h join clusters c on c.no = h.cluster_no',
    readable: (sight) => sight.services({ project: 'h.project', service: 'h.service', cluster: 'h.cluster_no' }),
  },
}

export const VIEW_NAMES: readonly string[] = Object.keys(FLEET_VIEWS)

/** Null means that there is no such view. */
export function viewSql(name: string, context: ViewContext): WrittenView | null {
  const view = Object.hasOwn(FLEET_VIEWS, name) ? FLEET_VIEWS[name] : undefined
  if (view === undefined) return null
  const { engine, sight } = context
  const columns = Object.keys(view.columns)
  const selected = view.select(context)
  const quote = engine === 'sqlite' ? '`' : '"'
  const shown = columns.map((one) => `${selected[one] ?? 'null'} as ${quote}${one}${quote}`).join(', ')
  const readable = view.readable(sight)
  const own = [view.where?.(context) ?? ALL_ROWS, readable].filter((one) => one !== ALL_ROWS)
  const rows = (conditions: readonly string[]): string =>
    `select ${shown} from ${view.from(context)}${conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`}`
  if (readable === ALL_ROWS) return { columns, sql: rows(own) }
  // SQ4: a condition of the query must see readable rows alone, or its errors would tell of the others. A limit keeps
  // both databases from moving it inside.
  const fence = engine === 'sqlite' ? ' limit -1' : ' offset 0'
  return {
    columns,
    sql: rows(own) + fence,
    narrow: {
      types: Object.fromEntries(
        columns.filter((one) => OWN_COLUMN.test(selected[one] ?? '')).map((one) => [one, view.columns[one]?.type ?? 'text']),
      ),
      sql: (conditions) => rows([...own, ...conditions.map(({ column, test }) => `${selected[column]} ${test}`)]) + fence,
    },
  }
}

const ALL_ROWS = '1 = 1'
/** A column of a table as it is: comparing it cannot fail, and it hides nothing of the row. */
const OWN_COLUMN = /^[a-z0-9]+\.[a-z_]+$/
