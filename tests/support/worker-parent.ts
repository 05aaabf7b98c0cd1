// A parent of a worker that hangs; says its process id, and waits to be killed.
import { join } from 'node:path'
import { startWorkerProcess, WORKER_LIMITS } from '../../server/control/workers/worker-process.ts'
import type { Greeting } from '../../server/worker/channel/messages.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'

const launch = { command: [process.execPath, join(import.meta.dir, 'odd-worker.ts')], env: {}, cwd: '/' }
const limits = { ...WORKER_LIMITS, memoryBytes: 2 ** 30 }
const worker = await startWorkerProcess(launch, {} as Greeting, { clock: systemClock, log: silentLogger, limits })
const { value } = await worker.call('source.open', {}, {})
void worker.call('source.has', { revision: 'hang' }, {}).catch(() => {})
process.stdout.write(`${(value as { version: string }).version}\n`)
