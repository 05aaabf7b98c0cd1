// The process of `skerry`. The server starts it once more for each worker, which loads nothing of the server: `skerry
// worker` is no verb for people.
if (process.argv[2] === 'worker' && !process.stdin.isTTY) process.exit(await (await import('./worker/process.ts')).runWorkerProcess())
// The process of fleet queries is another one that only the server starts.
if (process.argv[2] === 'query-worker' && !process.stdin.isTTY)
  process.exit(await (await import('./store/sql/query-process.ts')).runQueryProcess())

process.exitCode = await (await import('./program.ts')).runProgram()
