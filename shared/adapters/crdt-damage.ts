// Checks a cr-sqlite file through a plain connection, before native code is loaded on it. cr-sqlite assumes that its
// tables are complete and well-formed: on a file that a power loss left half made, it ended the process.
import { createHash } from 'node:crypto'
import { type Database, structureDamage } from './sqlite.ts'

/** Every object that cr-sqlite 0.16.3 creates in a file with the one replicated table. */
const NAMES = [
  'crsql_master',
  'crsql_site_id',
  'crsql_site_id_site_id',
  'crsql_tracked_peers',
  'desired',
  'desired__crsql_clock',
  'desired__crsql_clock_dbv_idx',
  'desired__crsql_dtrig',
  'desired__crsql_itrig',
  'desired__crsql_pks',
  'desired__crsql_pks_pks',
  'desired__crsql_utrig',
]
/** SHA-256 over the types, names and SQL of these objects. */
const SCHEMA_SHA256 = '1c5d0533b5beaf1363e37de76eaeb068579fd40ce2e0fb3aa2d8cfe1d329db91'
/** 0.16.3 as the library stores it. */
const VERSION_NUMBER = 160_300
const SITE_ID_BYTES = 16
const VERSION_BOUND = 2 ** 53

/** Null means that cr-sqlite may open the file; whether its rows are right is for the caller to check. Throws SQLite's
 *  error when the file cannot be read. */
export function crdtDamage(db: Database): string | null {
  return structureDamage(db) ?? schemaDamage(db) ?? contentDamage(db)
}

/** The schema entries of cr-sqlite and its table, by name. Other tables are ignored. */
export function crdtSchema(db: Database): Array<{ name: string; line: string }> {
  const rows = db.query<{ type: string; name: string; sql: string }, []>(
    `SELECT type, name, sql FROM sqlite_master
     WHERE sql IS NOT NULL AND (name GLOB 'crsql_*' OR name = 'desired' OR name GLOB 'desired__crsql_*') ORDER BY name`,
  )
  return rows.all().map(({ type, name, sql }) => ({ name, line: `${type}\t${name}\t${sql}` }))
}

export const schemaSha256 = (schema: ReturnType<typeof crdtSchema>): string =>
  createHash('sha256')
    .update(schema.map(({ line }) => line).join('\n'))
    .digest('hex')

function schemaDamage(db: Database): string | null {
  const schema = crdtSchema(db)
  const names = new Set(schema.map(({ name }) => name))
  const missing = NAMES.filter((name) => !names.has(name))
  if (missing.length > 0) return `${missing.join(', ')} missing: cr-sqlite did not finish creating the file`
  return schemaSha256(schema) === SCHEMA_SHA256 ? null : 'its schema differs from the one that cr-sqlite creates'
}

function contentDamage(db: Database): string | null {
  const settings = db.query<{ key: unknown; value: unknown }, []>('SELECT key, value FROM crsql_master').all()
  const [version] = settings
  if (settings.length !== 1 || version?.key !== 'crsqlite_version' || version.value !== VERSION_NUMBER)
    return `cr-sqlite version ${String(version?.value ?? 'missing')} is not ${VERSION_NUMBER}`
  const sites = db.query<{ own: number; wrong: number }, []>(`
    SELECT coalesce(sum(ordinal = 0), 0) AS own, coalesce(sum(typeof(site_id) <> 'blob' OR length(site_id) <> ${SITE_ID_BYTES}), 0) AS wrong FROM crsql_site_id`)
  const { own = 0, wrong = 0 } = sites.get() ?? {}
  if (own !== 1 || wrong > 0) return 'the site id is missing or malformed'
  const { first, last } = db
    .query<{ first: number | null; last: number | null }, []>(
      'SELECT min(db_version) AS first, max(db_version) AS last FROM desired__crsql_clock',
    )
    .get() ?? { first: null, last: null }
  return (first ?? 1) >= 1 && (last ?? 1) < VERSION_BOUND ? null : `row versions are out of range: ${first} to ${last}`
}
