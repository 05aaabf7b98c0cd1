// What people and programs ask of a large fleet: hits and misses, rare and common states, combinations, deep pages. By class, so that figures say what is slow.

import { seededRandom } from '../../shared/runtime/random.ts'
import { clusterName, type FleetShape, REGIONS } from './fleet-rows.ts'

export interface MixedQuery {
  group: string
  /** As it stands in the address of `/api/v1/objects`. */
  query: Record<string, string>
  /** Pages that are read one after the other; the last one is measured, too. */
  pages: number
}

const SERVICES = ['web', 'checkout', 'inventory', 'gateway', 'metrics', 'payments', 'tax']
const SORTS = ['cluster', 'name', 'newest', 'oldest', 'health']

/** The same for the same numbers. */
export function queryMix(shape: Pick<FleetShape, 'clusters'>, count: number): MixedQuery[] {
  const random = seededRandom(99)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const cluster = () => clusterName(Math.floor(random() * shape.clusters))
  const site = () => ({ labelSelector: `site=${cluster()}` })
  const makers: Record<string, () => Record<string, string>> = {
    first: () => ({}),
    cluster: () => ({ cluster: cluster() }),
    service: () => ({ service: pick(SERVICES) }),
    'cluster+service': () => ({ cluster: cluster(), service: pick(SERVICES) }),
    label: () => ({
      labelSelector: pick([
        `region=${pick(REGIONS)}`,
        'env=dev',
        'env in (dev,staging),ring!=0',
        `tenant=t${Math.floor(random() * 25)}`,
        '!canary',
      ]),
    }),
    site,
    degraded: () => ({ health: 'Degraded' }),
    progressing: () => ({ health: 'Progressing' }),
    'out of sync': () => ({ sync: 'OutOfSync' }),
    'bad+label': () => ({ health: 'Degraded,Missing', labelSelector: `region=${pick(REGIONS)}` }),
    'bad+service': () => ({ health: pick(['Degraded', 'Progressing']), service: pick(SERVICES) }),
    'healthy+kind': () => ({ health: 'Healthy', kind: pick(['Deployment', 'ConfigMap', 'CronJob']) }),
    reason: () => ({ reason: pick(['CrashLoopBackOff', 'ImagePullBackOff', 'Unschedulable', 'NoSuchReason']) }),
    kind: () => ({ kind: pick(['Deployment', 'Ingress', 'secret', 'Nothing']) }),
    name: () => ({ name: pick(['web', 'web-cache', 'checkout-settings', 'nothing']) }),
    'own name': () => ({ name: `${cluster()}-config` }),
    image: () => ({ image: pick(['web/part-0:1.2', 'sha256:0', '/gateway/', 'no-such-image']) }),
    drift: () => ({ drift: 'open' }),
    'drift+label': () => ({ drift: 'open', labelSelector: `region=${pick(REGIONS)}` }),
    'search rare': () => ({ search: pick(['node-3 pod-5', 'insufficient', 'zeitüberschreitung', 'code 137 web']) }),
    'search common': () => ({ search: pick(['settings', 'web', 'deployment', 'store']) }),
    'search cluster': () => ({ search: cluster() }),
    'search two': () => ({ search: pick(['store web', 'ship degraded', 'kiosk pull', 'gateway cache', 'rolling replicas']) }),
    'search miss': () => ({ search: pick(['nothing-like-this', 'web nothing-like-this']) }),
  }
  const groups = Object.keys(makers)
  return Array.from({ length: count }, (_, n): MixedQuery => {
    const group = groups[n % groups.length] ?? ''
    const query = makers[group]?.() ?? {}
    const sort = n % 3 === 0 ? 'cluster' : pick(SORTS)
    const limit = pick(['20', '100', '100', '500'])
    return { group, query: { ...query, sort, limit }, pages: n % 5 === 0 ? 4 : 1 }
  })
}
