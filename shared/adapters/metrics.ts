// Metrics in the OpenMetrics text format, from a table that also makes their reference page. A name, type or label that
// is not in the table does not compile, so a series cannot appear without documentation.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
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
  // The library would index each sample and print a family without a pause; tens of thousands of series block for long.
  const replaced = new Map<string, readonly Sample[]>()
  const replace = (name: PropertyKey, samples: readonly Sample[]): void => {
    if (!replaced.has(String(name))) registry.removeSingleMetric(String(name))
    replaced.set(String(name), samples)
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
      const parts = [(await registry.metrics()).replace(EOF, '').trimStart()] // a line break if the library has none
      const labelTexts: LabelTexts = new Map()
      for (const [name, samples] of [...replaced]) {
        const { type = 'gauge', help = '' } = all[name] ?? {}
        const family = type === 'counter' ? name.replace(/_total$/, '') : name
        parts.push(`# HELP ${family} ${escaped(help)}\n# TYPE ${family} ${type}\n`)
        for (let start = 0; start < samples.length; start += SAMPLES_A_TURN) {
          if (start > 0) await setImmediate()
          parts.push(linesOf(name, samples.slice(start, start + SAMPLES_A_TURN), labelTexts))
        }
      }
      return new Response(`${parts.join('')}${EOF}`, { headers })
    },
  }
}

const EOF = '# EOF\n'
const SAMPLES_A_TURN = 2_000

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

/** Families of one thing share their labels, which are printed once. */
type LabelTexts = Map<NonNullable<Sample['labels']>, string>

function linesOf(name: string, samples: readonly Sample[], labelTexts: LabelTexts): string {
  let lines = ''
  for (const { labels, value } of samples) {
    let text = ''
    if (labels !== undefined) {
      text = labelTexts.get(labels) ?? labelText(labels)
      labelTexts.set(labels, text)
    }
    lines += `${name}${text} ${value}\n`
  }
  return lines
}

function labelText(labels: NonNullable<Sample['labels']>): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
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
