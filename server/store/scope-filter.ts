// Scopes as conditions of SQL, so that a page and its count hold only what the caller may read.
import { type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { isEverywhere, type Scope } from '../fleet/rights.ts'
import type { Tables } from './tables.ts'

type Column = 'project' | 'name' | 'service'

/** Rows with a project and a name. Places that are limited to clusters count: rows of clusters are filtered where their
 *  labels are known. */
export const scopeFilter =
  (scope: Scope, projectColumn: Column = 'project', nameColumn: Column = 'name') =>
  // biome-ignore lint/suspicious/noExplicitAny: the columns are those of whichever table is asked
  (eb: ExpressionBuilder<Tables, any>) => {
    if (isEverywhere(scope)) return sql<SqlBool>`1 = 1`
    const places = scope.map(({ projects, services }) =>
      eb.and([
        ...(projects === null ? [] : [eb(projectColumn, 'in', [...projects])]),
        ...(services === null ? [] : [eb.or(services.map((pattern) => named(eb, nameColumn, pattern)))]),
      ]),
    )
    return places.length === 0 ? sql<SqlBool>`1 = 0` : eb.or(places)
  }

/** Names have no characters that mean something to LIKE. */
// biome-ignore lint/suspicious/noExplicitAny: as above
const named = (eb: ExpressionBuilder<Tables, any>, column: Column, pattern: string) =>
  pattern.endsWith('*') ? eb(column, 'like', `${pattern.slice(0, -1)}%`) : eb(column, '=', pattern)
