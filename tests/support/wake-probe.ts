// How long a change takes to a healthy agent, measured while something else happens: from the request that makes the
// change to the page applied.
import { readFileSync } from 'node:fs'
import { percentile } from '../../scripts/benchmarks/figures.ts'
import type { LocalFleet } from '../../scripts/local-cluster/local-fleet.ts'
import type { JournalLine, SyncSite } from './sync-site.ts'

const PATIENCE_MS = 30_000

export interface WakeProbe {
  /** One change; ms until the site has applied it. */
  wake(): Promise<number>
  /** As many as fit until `end` resolves. */
  during(end: Promise<unknown>, each?: () => void): Promise<number[]>
}

/** `service` is one of the site's; its number of objects does not change. */
export async function createWakeProbe(fleet: LocalFleet, site: SyncSite, service: string): Promise<WakeProbe> {
  const path = `/projects/default/services/${service}`
  const resource = await fleet.api<{ spec: { sync: Record<string, unknown> } }>(path)
  let changes = 0
  const wake = async () => {
    const before = readFileSync(site.files.journal, 'utf8').length
    const startMs = performance.timeOrigin + performance.now()
    const sync = { ...resource.spec.sync, maxPrunePercent: 40 + (changes++ % 2) }
    await fleet.api(path, { method: 'PUT', body: { ...resource, spec: { ...resource.spec, sync } } })
    while (performance.timeOrigin + performance.now() < startMs + PATIENCE_MS) {
      const lines = readFileSync(site.files.journal, 'utf8').slice(before).split('\n')
      const page = lines.filter((line) => line.endsWith('}')).map((line) => JSON.parse(line) as JournalLine)
      for (const line of page) if (line.kind === 'page') return line.atMs - startMs
      await Bun.sleep(2)
    }
    throw new Error(`${site.name} heard nothing of a change within ${PATIENCE_MS} ms\n${site.log().split('\n').slice(-10).join('\n')}`)
  }
  return {
    wake,
    async during(end, each = () => {}) {
      let over = false
      void end.finally(() => {
        over = true
      })
      const took: number[] = []
      while (!over) {
        took.push(await wake())
        each()
        await Bun.sleep(20)
      }
      return took
    },
  }
}

export const latencyText = (took: readonly number[]): string =>
  `n ${took.length} p50 ${Math.round(percentile([...took], 50))} p99 ${Math.round(percentile([...took], 99))} max ${Math.round(Math.max(...took))} ms`
