// Fleet queries: SQL over views of the fleet. The rows of each view are those that the caller may read.
import { Elysia } from 'elysia'
import { sqlAnswerSchema, sqlQuestionSchema, sqlViewSchema } from '../../shared/model/fleet-sql.ts'
import { listOf } from '../../shared/model/views.ts'
import { FLEET_VIEWS } from '../store/sql/views.ts'
import type { AdminDeps } from './deps.ts'

export function sqlRoutes({ store, authorizer, principal }: Pick<AdminDeps, 'store' | 'authorizer' | 'principal'>) {
  const scopesOf = (request: Request) => {
    const caller = principal(request)
    const scope = (kind: 'Service' | 'Cluster' | 'Repository') => authorizer.scope(caller, 'read', kind)
    return { services: scope('Service'), clusters: scope('Cluster'), repositories: scope('Repository') }
  }
  return new Elysia({ tags: ['fleet'] })
    .post('/query', ({ body, request }) => store.fleetSql.answer(body, scopesOf(request), request.signal), {
      body: sqlQuestionSchema,
      response: sqlAnswerSchema,
      detail: { summary: 'Answer a SELECT over the views of the fleet; changes nothing' },
    })
    .get('/query/views', () => ({ items: SQL_VIEWS, continue: null }), {
      response: listOf(sqlViewSchema),
      detail: { summary: 'Views and columns of fleet queries' },
    })
}

const SQL_VIEWS = Object.entries(FLEET_VIEWS).map(([name, { about, columns }]) => ({
  name,
  about,
  columns: Object.entries(columns).map(([column, described]) => ({ name: column, ...described })),
}))
