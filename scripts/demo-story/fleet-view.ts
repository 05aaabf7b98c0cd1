// What the story asks the server while it waits.
import type { LocalFleet } from '../local-cluster/local-fleet.ts'

export interface ServiceInCluster {
  cluster: string
  project: string
  service: string
  sync: string
  health: string
  reason: string
  message: string
  objectCount: number
  healthyCount: number
  removed?: boolean
}

/** Every service in every cluster, as the server last heard. */
export async function servicesInClusters(fleet: LocalFleet): Promise<ServiceInCluster[]> {
  const { items } = await fleet.api<{ items: ServiceInCluster[] }>('/status/services')
  return items
}

export async function until<T>(what: string, check: () => Promise<T | null>, timeoutMs: number, everyMs = 100): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < deadline) {
    try {
      const value = await check()
      if (value !== null) return value
    } catch (error) {
      last = error
    }
    await Bun.sleep(everyMs)
  }
  throw new Error(`${what}: not within ${timeoutMs / 1_000} s${last === undefined ? '' : ` (${last})`}`)
}
