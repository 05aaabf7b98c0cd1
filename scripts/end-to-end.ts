// Which end-to-end tests have a server in them. They can run with its fleet store in SQLite or in PostgreSQL.

/** By name of the file in tests/e2e, without its ending. tests/unit/end-to-end.test.ts says when one is missing. */
export const WITH_SERVER: readonly string[] = [
  'ask',
  'bad-input',
  'builds',
  'chain',
  'chaos-cluster',
  'chaos-garbage',
  'chaos-kill',
  'chaos-lies',
  'chaos-link',
  'chaos-loss',
  'dashboard',
  'dashboard-pages',
  'dashboard-site',
  'demo',
  'demo-objects',
  'full-disk',
  'idle',
  'large-page',
  'node',
  'notify',
  'offline',
  'projects',
  'read-only-root',
  'secrets',
  'services',
  'site-ownership',
  'site-rollout',
  'sources',
  'telemetry',
  'two-clusters',
  'upgrade',
]

/** Those in which the store itself is stressed, or that walk through all of the product: each check runs them on
 *  PostgreSQL too. The others run on it with `scripts/check --long`, because the contract tests of the store run on
 *  both databases anyway. */
export const ON_EACH_STORE: readonly string[] = ['chain', 'chaos-kill', 'full-disk']

/** Test files that only `scripts/check --long` runs. The older Kubernetes: what differs between minors is in tables
 *  that each check proves with recorded answers of both. */
export const LONG_ONLY: readonly string[] = [
  'builds',
  'cluster-older',
  'gitea',
  'image',
  'litestream',
  'release',
  's3',
  'upgrade',
  'upgrade-sealing',
]

/** Tests of the SQLite file itself, each with the reason. */
export const SQLITE_ONLY: Readonly<Record<string, string>> = {
  backup: 'a backup of PostgreSQL is made with its own programs',
  disaster: 'a backup of PostgreSQL is made with its own programs',
  image: 'the program is the one of the other tests; what is tested is the image around it',
  litestream: 'Litestream follows files of SQLite',
  'upgrade-sealing': 'a backup of PostgreSQL is made with its own programs',
  prometheus: 'the counts of a fleet are those of the contract of the store',
}
