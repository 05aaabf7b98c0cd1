// How a Worker of this folder is started, from source and out of the compiled binary, where it is an entry point of its own (scripts/build), found by its path
// below the program's root.
export type WorkerName = 'page-worker' | 'check-worker'

export const startWorker = (name: WorkerName): Worker =>
  new Worker(import.meta.url.includes('$bunfs') ? `/$bunfs/root/desired/${name}.js` : new URL(`./${name}.ts`, import.meta.url).href)
