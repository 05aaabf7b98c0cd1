// Entry point of a worker from source; the binary re-executes itself as `skerry worker`.
import { runWorkerProcess } from './process.ts'

process.exit(await runWorkerProcess())
