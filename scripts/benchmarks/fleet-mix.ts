// A fixed mix of the queries that people make: every filter alone and with others, every order, searches with many, few
// and no results, pages far into a list, states that hardly any row is in. Each kind of query counts the same.
import { OBJECT_SORTS } from '../../shared/model/views.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { clusterName, REGIONS } from './fleet-rows.ts'

/** As it stands in the address of `/api/v1/objects`. */
type Filter = Record<string, string>

export interface Asked {
  kind: string
  query: Filter
  /** Pages that are turned one after the other. */
  pages: number
}

type Random = () => number
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
const SERVICES = ['web', 'checkout', 'gateway', 'printer', 'tax', 'fuel']
const KINDS: Filter[] = [{ kind: 'Deployment' }, { kind: 'ConfigMap', group: '' }, { kind: 'Secret' }, { kind: 'CronJob', group: 'batch' }]

const cluster = (random: Random, clusters: number): Filter => ({ cluster: clusterName(Math.floor(random() * clusters)) })
const service = (random: Random): Filter => ({ service: pick(random, SERVICES) })
const ofKind = (random: Random): Filter => pick(random, KINDS)
const search = (random: Random, texts: readonly string[]): Filter => ({ search: pick(random, texts) })
const labels = (random: Random): Filter => {
  const region = `region=${pick(random, REGIONS)}`
  const tenant = `tenant=t${Math.floor(random() * 25)}`
  return {
    labelSelector: pick(random, ['env=prod', 'env=dev', region, 'ring=0', tenant, `env=prod,${region}`, 'env notin (prod,dev)', 'gpu']),
  }
}
const state = (random: Random): Filter =>
  pick<Filter>(random, [{ health: 'Degraded' }, { health: 'Progressing' }, { sync: 'OutOfSync' }, { health: 'Degraded,Progressing' }])

/** Kind of question → one of it. */
const QUESTIONS: Record<string, (random: Random, clusters: number) => Filter> = {
  everything: () => ({}),
  cluster,
  labels,
  project: (random) => ({ project: pick(random, ['shop', 'plant', 'edge', 'ops', 'nowhere']) }),
  service,
  kind: ofKind,
  namespace: (random) => ({ namespace: pick(random, SERVICES) }),
  name: (random) => ({ name: pick(random, ['web', 'checkout-settings', 'printer-cache', 'nobody']) }),
  state,
  'rare state': (random) => pick<Filter>(random, [{ health: 'Suspended' }, { health: 'Missing' }, { sync: 'Unknown' }]),
  reason: (random) => ({ reason: pick(random, ['CrashLoopBackOff', 'Unschedulable', 'Conflict', 'NeverHeardOf']) }),
  image: (random) => ({ image: pick(random, ['checkout', 'registry.example/web/', ':1.3.', 'log4j']) }),
  drift: () => ({ drift: 'open' }),
  'search that finds much': (random) => search(random, ['web', 'settings', 'deployment', 'store']),
  'search that finds little': (random) => search(random, ['zeitüberschreitung', 'keda', 'ship', 'memory', 'pod-1a', 'backoff node-3']),
  'search that finds one': (random, clusters) =>
    search(random, [`${clusterName(Math.floor(random() * clusters))} web`, `${clusterName(7)}-config`]),
  'search that finds nothing': (random) => search(random, ['xyzzy', 'web xyzzy', 'kubernetes-the-hard-way']),
  'labels and state': (random) => ({ ...labels(random), ...state(random) }),
  'service and state': (random) => ({ ...service(random), ...state(random) }),
  'kind and search': (random) => ({ ...ofKind(random), ...search(random, ['web', 'camera', 'pharmacy']) }),
  'cluster and search': (random, clusters) => ({ ...cluster(random, clusters), ...search(random, ['web', 'cache', 'xyzzy']) }),
  'service and labels': (random) => ({ ...service(random), ...labels(random) }),
  'image and state': (random) => ({ image: pick(random, ['checkout', ':1.2.']), ...state(random) }),
  'drift and labels': (random) => ({ drift: 'open', ...labels(random) }),
  'four filters': (random) => ({ ...labels(random), ...ofKind(random), ...state(random), ...search(random, ['web', 'gate']) }),
  'nothing there': (random) => ({ ...service(random), namespace: 'elsewhere' }),
}
/** Every seventh question turns so many pages, of 500: four thousand rows into the list. */
const DEEP_PAGES = 8

/** `rounds` questions of each kind; the first ones find everything cold. */
export function fleetMix(clusters: number, rounds: number): Asked[] {
  const random = seededRandom(5)
  const asked: Asked[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [n, [kind, question]] of Object.entries(QUESTIONS).entries()) {
      const deep = asked.length % 7 === 6
      const sort = OBJECT_SORTS[(round + n) % OBJECT_SORTS.length] ?? 'cluster'
      const limit = deep || random() < 0.1 ? '500' : '100'
      asked.push({ kind, query: { ...question(random, clusters), sort, limit }, pages: deep ? DEEP_PAGES : 1 })
    }
  }
  return asked
}
