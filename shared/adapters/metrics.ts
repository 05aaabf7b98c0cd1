// Metrics in the OpenMetrics text format, from a table that also makes their reference page. A name, type or label that is not in the table does not
// compile, so a series cannot appear without documentation.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

interface Described {
  /** One sentence, with the unit. */
  help: string
  labels?: readonly string[]
}
export type MetricSpec = Described & ({ type: 'counter' } | { type: 'gauge' } | { type: 'histogram'; buckets: readonly number[] })
export type MetricTable = Readonly<Record<string, MetricSpec>>

type LabelsOf<Spec extends MetricSpec> = Record<Spec extends { labels: readonly (infer Label extends string)[] } ? Label : never, string>
type NamesOf<Table extends MetricTable, Type extends MetricSpec['type']> = {
  [Name in keyof Table]: Table[Name]['type'] extends Type ? Name : never
}[keyof Table]
/** One value of a gauge that is computed when it is scraped. */
export interface Sample {
  labels?: Readonly<Record<string, string>>
  value: number
}

export interface Metrics<Table extends MetricTable> {
  add<Name extends NamesOf<Table, 'counter'>>(name: Name, amount: number, labels: LabelsOf<Table[Name]>): void
  /** In seconds or bytes, as the table says. */
  observe<Name extends NamesOf<Table, 'histogram'>>(name: Name, value: number, labels: LabelsOf<Table[Name]>): void
  /** Adds to one series of a gauge. */
  shift<Name extends NamesOf<Table, 'gauge'>>(name: Name, by: number, labels: LabelsOf<Table[Name]>): void
  /** Replaces all series of a gauge. */
  set<Name extends NamesOf<Table, 'gauge'>>(name: Name, samples: readonly Sample[]): void
  /** Replaces all series of a counter that another part counts. */
  setTotal<Name extends NamesOf<Table, 'counter'>>(name: Name, samples: readonly Sample[]): void
  answer(): Promise<Response>
}

/** Metrics of the process itself, with the names that Prometheus uses for every program. */
export const PROCESS_METRICS = {
  process_cpu_seconds_total: { type: 'counter', help: 'Processor time of the process, in seconds' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory of the process, in bytes' },
  process_start_time_seconds: { type: 'gauge', help: 'Start of the process, in seconds since the epoch' },
  skerry_event_loop_delay_seconds: {
    type: 'gauge',
    help: 'Delay of the event loop since the last scrape, in seconds',
    labels: ['statistic'],
  },
} as const satisfies MetricTable

const DELAY_RESOLUTION_MS = 20
const NANOSECONDS = 1e9
const MICROSECONDS = 1e6

export function createMetrics<const Table extends MetricTable>(table: Table): Metrics<Table & typeof PROCESS_METRICS> {
  const registry = new Registry()
  // The types of the library know the other format only.
  ;(registry as { setContentType(type: string): void }).setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  const all: MetricTable = { ...table, ...PROCESS_METRICS }
  const made = new Map(Object.entries(all).map(([name, spec]) => [name, make(registry, name, spec)]))
  const metric = <Type>(name: PropertyKey): Type => made.get(String(name)) as Type
  const replace = (name: PropertyKey, samples: readonly Sample[]): void => {
    const series = metric<Gauge | Counter>(name)
    series.reset()
    for (const { labels = {}, value } of samples) {
      if (series instanceof Gauge) series.set(labels, value)
      else series.inc(labels, value)
    }
  }
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  delay.enable()
  const startedAt = performance.timeOrigin / 1_000
  return {
    add: (name, amount, labels) => metric<Counter>(name).inc(labels, amount),
    observe: (name, value, labels) => metric<Histogram>(name).observe(labels, value),
    shift: (name, by, labels) => metric<Gauge>(name).inc(labels, by),
    set: replace,
    setTotal: replace,
    async answer() {
      const { user, system } = process.cpuUsage()
      replace('process_cpu_seconds_total', [{ value: (user + system) / MICROSECONDS }])
      replace('process_resident_memory_bytes', [{ value: process.memoryUsage.rss() }])
      replace('process_start_time_seconds', [{ value: startedAt }])
      replace('skerry_event_loop_delay_seconds', [
        { labels: { statistic: 'p50' }, value: delay.percentile(50) / NANOSECONDS },
        { labels: { statistic: 'p99' }, value: delay.percentile(99) / NANOSECONDS },
        { labels: { statistic: 'max' }, value: delay.max / NANOSECONDS },
      ])
      delay.reset()
      const headers = { 'content-type': registry.contentType, 'cache-control': 'no-store' }
      return new Response(await registry.metrics(), { headers })
    },
  }
}

function make(registry: Registry, name: string, { type, help, labels = [], ...more }: MetricSpec): Counter | Gauge | Histogram {
  const given = { name, help, labelNames: [...labels], registers: [registry] }
  switch (type) {
    case 'counter':
      return new Counter(given)
    case 'gauge':
      return new Gauge(given)
    case 'histogram':
      return new Histogram({ ...given, buckets: 'buckets' in more ? [...more.buckets] : [] })
  }
}
