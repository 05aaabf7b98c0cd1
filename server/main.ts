// The process of `skerry`. The server starts it once more for each worker, which loads nothing of the server: `skerry worker` is no verb for people.
if (process.argv[2] === 'worker' && !process.stdin.isTTY) process.exit(await (await import('./worker/process.ts')).runWorkerProcess())

process.exitCode = await (await import('./program.ts')).runProgram()
