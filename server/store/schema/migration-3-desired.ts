// Schema 3, what is derived of desired rows: the digest of each, its words as people see them, and the first revision
// that is known of each service.
import { sql } from 'kysely'
import { serviceRowSchema } from '../../../shared/model/desired.ts'
import { placementWords, type ReportedService } from '../../../shared/model/placement-words.ts'
import { serviceStatusSchema } from '../../../shared/model/status.ts'
import type { Ddl } from './ddl.ts'
import type { OldStatuses } from './migration-3-statuses.ts'

/** Rows that are read, and written by one statement. */
const SLICE_ROWS = 500

/** While the old table of statuses is still there. */
export async function deriveDesired({ trx, progress }: Ddl): Promise<void> {
  const digestOf = remembering(readDigest)
  let done = 0
  for (let after: Placement | null = null; ; ) {
    const rows: Placement[] = await readSlice({ trx }, after)
    const values = rows.flatMap(({ cluster_id, project, service, doc, reported }) => {
      if (doc === null) return []
      const digest = digestOf(doc)
      const words = placementWords({ digest }, reported === null ? null : readReport(reported))
      return [sql`(${cluster_id}, ${project}, ${service}, ${digest}, ${words?.sync ?? null}, ${words?.health ?? null})`]
    })
    if (values.length > 0)
      await sql`update desired set digest = v.column4, sync = v.column5, health = v.column6 from (values ${sql.join(values)}) as v
        where desired.cluster_id = v.column1 and desired.project = v.column2 and desired.service = v.column3`.execute(trx)
    done += rows.length
    progress?.({ what: 'services in clusters', done, total: null })
    after = rows.at(-1) ?? null
    if (rows.length < SLICE_ROWS) return
  }
}

interface Placement {
  cluster_id: string
  project: string
  service: string
  doc: string | null
  reported: string | null
}

async function readSlice({ trx }: Pick<Ddl, 'trx'>, after: Placement | null): Promise<Placement[]> {
  let query = trx
    .withTables<OldStatuses>()
    .selectFrom('desired')
    .leftJoin('statuses', (on) =>
      on
        .on(sql<boolean>`statuses.cluster_id = desired.cluster_id`)
        .on('statuses.kind', '=', 'service')
        .on(sql<boolean>`statuses.key = desired.project || '/' || desired.service`),
    )
    .select(['desired.cluster_id', 'desired.project', 'desired.service', 'desired.doc', 'statuses.doc as reported'])
  if (after !== null)
    query = query.where(
      sql<boolean>`(desired.cluster_id, desired.project, desired.service) > (${after.cluster_id}, ${after.project}, ${after.service})`,
    )
  return query.orderBy('desired.cluster_id').orderBy('desired.project').orderBy('desired.service').limit(SLICE_ROWS).execute()
}

/** Null for an order to remove it, and for a row that cannot be read. */
function readDigest(doc: string): string | null {
  const row = serviceRowSchema.safeParse(parse(doc)).data
  return row === undefined || row.removal !== undefined ? null : row.digest
}

const readReport = (doc: string): ReportedService | null => serviceStatusSchema.safeParse(parse(doc)).data ?? null

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Most clusters of a service share one document. */
function remembering(read: (doc: string) => string | null): (doc: string) => string | null {
  const known = new Map<string, string | null>()
  return (doc) => {
    const held = known.get(doc)
    if (held !== undefined) return held
    const digest = read(doc)
    if (known.size >= 1_000) known.clear()
    known.set(doc, digest)
    return digest
  }
}

/** The present revision is the first known one of each service. Its set is known where a cluster has it. */
export async function seedRevisions({ trx }: Ddl): Promise<void> {
  await sql`insert into revisions (project, service, number, commit_id, generation, digest, object_count, set_sha, rendered_ms)
    select r.project, r.service, 1, r.commit_id, r.generation, r.digest, r.object_count,
      (select max(d.set_sha) from desired d where d.project = r.project and d.service = r.service and d.digest = r.digest),
      coalesce(r.rendered_ms, 0)
    from render_states r where r.digest is not null`.execute(trx)
}
