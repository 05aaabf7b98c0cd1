// Which end-to-end tests have a server in them. Those run twice: its fleet store is in SQLite the first time, in PostgreSQL the
// second.

/** By name of the file in tests/e2e, without its ending. tests/unit/end-to-end.test.ts says when one is missing. */
export const WITH_SERVER: readonly string[] = [
  'bad-input',
  'chain',
  'chaos-cluster',
  'chaos-garbage',
  'chaos-kill',
  'chaos-lies',
  'chaos-link',
  'chaos-loss',
  'demo',
  'demo-objects',
  'full-disk',
  'idle',
  'large-page',
  'offline',
  'read-only-root',
  'services',
  'site-ownership',
  'site-rollout',
  'sources',
  'two-clusters',
]

/** What is about the file itself, with the reason. */
export const SQLITE_ONLY: Readonly<Record<string, string>> = {
  backup: 'a backup of PostgreSQL is made with its own programs',
}
