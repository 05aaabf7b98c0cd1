// How a Worker is started, from source and out of the compiled binary, where it is an entry point of its own
// (scripts/build), found by its path below the program's root.
export type WorkerName = 'desired/page-worker' | 'desired/check-worker' | 'store/queries/query-worker' | 'store/engines/wal-worker'

export const startWorker = (name: WorkerName): Worker =>
  new Worker(import.meta.url.includes('$bunfs') ? `/$bunfs/root/${name}.js` : new URL(`./${name}.ts`, import.meta.url).href)
