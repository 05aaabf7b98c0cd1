// Views of `skerry-agent query`: what this site last reported and applied, as SQL over the file of the agent's state.
import type { SqlViewColumn } from '../../shared/model/fleet-sql.ts'

interface SiteView {
  about: string
  /** Column → its SQL and meaning. */
  columns: Readonly<Record<string, SqlViewColumn & { sql: string }>>
  from: string
}

const text = (sql: string, about: string) => ({ type: 'text' as const, sql, about })
const integer = (sql: string, about: string) => ({ type: 'integer' as const, sql, about })

/** Part of a key such as `shop/web/apps/Deployment/shop/web`. Names hold no slash; JSON takes every other character. */
const part = (key: string, index: number): string => `json_extract('[' || replace(json_quote(${key}), '/', '","') || ']', '$[${index}]')`
const json = (path: string): string => `json_extract(o.doc, '$.${path}')`

const STATE = {
  sync: text(json('sync'), '`Synced`, `OutOfSync` or `Unknown`'),
  health: text(json('health'), '`Healthy`, `Progressing`, `Degraded`, `Suspended`, `Missing` or `Unknown`'),
  reason: text(json('reason'), 'reason'),
  message: text(json('message'), 'message'),
  since_ms: integer(json('sinceMs'), 'time of the last change'),
}
const OBJECT = (key: string, at: number) => ({
  api_group: text(part(key, at), 'API group of the kind, such as `apps`; empty: the core group'),
  kind: text(part(key, at + 1), 'kind, such as `Deployment`'),
  namespace: text(part(key, at + 2), 'namespace; empty: the object has none'),
  name: text(part(key, at + 3), 'name of the object'),
})
const OWNER = { project: text(part('o.key', 0), 'project of the service'), service: text(part('o.key', 1), 'name of the service') }
const reported = (kind: string): string => `outbox o WHERE o.kind = '${kind}' AND o.doc IS NOT NULL`

export const SITE_VIEWS: Readonly<Record<string, SiteView>> = {
  services: {
    about: 'Services of this site.',
    columns: {
      ...OWNER,
      ...STATE,
      received_commit: text(json('received.commit'), 'commit that arrived'),
      applied_commit: text(json('applied.commit'), 'commit that is applied; null: none is'),
      applied_ms: integer(json('applied.atMs'), 'time at which it was applied'),
      healthy_commit: text(json('healthy.commit'), 'commit that was healthy last'),
      object_count: integer(json('objectCount'), 'number of objects'),
      healthy_count: integer(json('healthyCount'), 'number of healthy objects'),
    },
    from: reported('service'),
  },
  objects: {
    about: 'Objects of services with their states.',
    columns: { ...OWNER, ...OBJECT('o.key', 2), ...STATE, images: text(json('images'), 'images as JSON; null: it runs none') },
    from: reported('object'),
  },
  drifts: {
    about: 'The newest drift of each object.',
    columns: {
      ...OWNER,
      ...OBJECT('o.key', 2),
      action: text(json('action'), '`healed`, `reported`, `contested` or `failed`'),
      manager: text(json('manager'), 'field manager that made the change'),
      paths: text(json('paths'), 'fields, as JSON'),
      count: integer(json('count'), 'number of occurrences'),
      detected_ms: integer(json('detectedMs'), 'time of the drift'),
      healed_ms: integer(json('healedMs'), 'time at which it was corrected; null: it was not'),
    },
    from: reported('drift'),
  },
  events: {
    about: 'Events that the server has not acknowledged yet.',
    columns: {
      at_ms: integer(json('atMs'), 'time, in milliseconds since 1970'),
      type: text(json('type'), '`Normal` or `Warning`'),
      reason: STATE.reason,
      message: STATE.message,
      service: text(json('service'), 'project and name of the service; null: it concerns none'),
      object: text(json('object'), 'object; null: it concerns none'),
    },
    from: reported('event'),
  },
  inventory: {
    about: 'Objects that the agent manages.',
    columns: {
      project: text(part('i.service', 0), 'project of the service'),
      service: text(part('i.service', 1), 'name of the service'),
      ...OBJECT('i.ref', 0),
      api_version: text('i.api_version', 'version of the API'),
      uid: text('i.uid', 'uid of the live object; null: not applied yet'),
      commit: text('i.commit_text', 'commit that last changed the object'),
    },
    from: 'inventory i',
  },
}

export function siteViewSql(name: string): { sql: string; columns: readonly string[] } | null {
  const view = Object.hasOwn(SITE_VIEWS, name) ? SITE_VIEWS[name] : undefined
  if (view === undefined) return null
  const columns = Object.entries(view.columns)
  return {
    columns: Object.keys(view.columns),
    sql: `SELECT ${columns.map(([as, { sql }]) => `${sql} AS \`${as}\``).join(', ')} FROM ${view.from}`,
  }
}
