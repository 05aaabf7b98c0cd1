// Authors of the commits of repositories, saved queries, and the newest verified commit of each ref.
import { createTable, type Ddl } from './ddl.ts'

export async function createCommits(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'commits',
    ['project', 'repository', 'commit_id'],
    [
      ['project', 'text'],
      ['repository', 'text'],
      ['commit_id', 'text'],
      ['author', 'text', 'null'],
      ['subject', 'text', 'null'],
      ['authored_ms', 'bigint', 'null'],
      ['seen_ms', 'bigint'],
    ],
  ).execute()
  await ddl.trx.schema.createIndex('commits_by_time').on('commits').columns(['project', 'repository', 'seen_ms']).execute()
  await createTable(
    ddl,
    'saved_queries',
    ['name'],
    [
      ['name', 'text'],
      ['query', 'text'],
      ['about', 'text'],
      ['saved_by', 'text'],
      ['updated_ms', 'bigint'],
    ],
  ).execute()
}

export async function createWatermarks(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'watermarks',
    ['uid', 'ref'],
    [
      ['uid', 'text'],
      ['ref', 'text'],
      ['commit_id', 'text'],
      ['signed_ms', 'bigint'],
    ],
  ).execute()
}
