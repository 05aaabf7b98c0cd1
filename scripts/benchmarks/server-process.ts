// The cost of a server process as seen from outside: memory and processor time from /proc, and the delay of its event
// loop from a preloaded probe.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { createLocalFleet, type LocalFleet, type Programs } from '../local-cluster/local-fleet.ts'
import { percentile, rounded } from './figures.ts'

export interface Lag {
  p50Ms: number
  p99Ms: number
  maxMs: number
}

export interface ProbedFleet {
  fleet: LocalFleet
  /** Until `stop`; the samples are one every 2 ms. */
  measureLag(): { stop(): Promise<Lag> }
}

export const benchPrograms = (): Programs => (process.env['SKERRY_PROGRAMS'] === 'source' ? 'source' : 'dist')

/** A fleet whose server is started with the probe. */
export async function createProbedFleet({
  serverEnv,
  ...options
}: {
  dataDir?: string
  serverEnv?: Record<string, string>
} = {}): Promise<ProbedFleet> {
  const folder = createDataFolder('skerry-lag')
  const file = join(folder.path, 'lag.json')
  const fleet = await createLocalFleet({
    ...options,
    programs: benchPrograms(),
    serverEnv: {
      SKERRY_REQUESTS_PER_SECOND: '0',
      ...serverEnv,
      BUN_OPTIONS: `--preload ${join(import.meta.dir, 'lag-probe.ts')}`,
      SKERRY_BENCH_LAG: file,
    },
  })
  await fleet.startServer()
  const measureLag = () => {
    rmSync(file, { force: true })
    process.kill(fleet.serverPid(), 'SIGUSR2')
    return {
      async stop() {
        process.kill(fleet.serverPid(), 'SIGUSR2')
        for (let tries = 0; !existsSync(file) && tries < 200; tries++) await Bun.sleep(25)
        await Bun.sleep(50) // written whole
        const samples = JSON.parse(readFileSync(file, 'utf8')) as number[]
        return {
          p50Ms: percentile(samples, 50),
          p99Ms: percentile(samples, 99),
          maxMs: rounded(samples.reduce((a, b) => Math.max(a, b), 0)),
        }
      },
    }
  }
  return { fleet, measureLag }
}

/** User and system time that the process has used, ms. The kernel counts in hundredths of a second. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The most that was ever resident, MB (1e6 bytes). */
export function peakResidentMb(pid: number): number {
  const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return rounded((Number(line?.[1]) * 1_024) / 1e6)
}
