// The importer of OpenTelemetry, configured by its usual environment variables. The packages are loaded only when an
// endpoint is set: a process without one has neither their memory nor their time.
import type { Context, SpanContext } from '@opentelemetry/api'
import type { IdGenerator, Sampler } from '@opentelemetry/sdk-trace'
import { COMMIT, VERSION } from '../runtime/build-info.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { FinishedSpan, RecordSpan } from '../runtime/spans.ts'
import { rootSpanId } from '../runtime/trace-id.ts'

export interface Telemetry {
  record: RecordSpan
  /** Sends what waits, for two seconds at most. */
  stop(): Promise<void>
}

type Env = Readonly<Record<string, string | undefined>>

export interface TelemetryDeps {
  env: Env
  /** `service.name` unless OTEL_SERVICE_NAME says another. */
  service: string
  attributes?: Readonly<Record<string, string>>
  clock: Clock
  log: Logger
}

const PROTOCOLS = ['http/protobuf', 'http/json'] as const
/** Spans that wait for the collector, at most; further ones are dropped. */
const QUEUE_MAX = 2_048
const QUEUE_LIMIT = 20_000
const STOP_MS = 2_000
/** One line of the log for a collector that does not answer. */
const SILENT_MS = 300_000

/** Null if no endpoint is set, or the usual variables turn it off. */
export async function openTelemetry(deps: TelemetryDeps): Promise<Telemetry | null> {
  const { env, log } = deps
  const endpoint = said(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? said(env, 'OTEL_EXPORTER_OTLP_ENDPOINT')
  if (endpoint === undefined || said(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null
  if ((said(env, 'OTEL_TRACES_EXPORTER') ?? 'otlp') !== 'otlp') return null
  const wanted = said(env, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? said(env, 'OTEL_EXPORTER_OTLP_PROTOCOL') ?? PROTOCOLS[0]
  const protocol = PROTOCOLS.find((known) => known === wanted)
  if (protocol === undefined || !URL.canParse(endpoint)) {
    const why = protocol === undefined ? `protocol ${wanted}: expected ${PROTOCOLS.join(' or ')}` : `endpoint ${endpoint}: expected a URL`
    log.error('traces are off: invalid OTEL_EXPORTER_OTLP variable', { why })
    return null
  }
  return start(deps, protocol)
}

async function start(
  { env, service, attributes = {}, clock, log }: TelemetryDeps,
  protocol: (typeof PROTOCOLS)[number],
): Promise<Telemetry> {
  const [api, sdk, resources, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
    protocol === 'http/json' ? import('@opentelemetry/exporter-trace-otlp-http') : import('@opentelemetry/exporter-trace-otlp-proto'),
  ])
  const tell = quietly(clock, (message) => log.warn('traces cannot be sent', { error: message.slice(0, 500) }))
  api.diag.setLogger({ error: tell, warn: tell, info: () => {}, debug: () => {}, verbose: () => {} }, { logLevel: api.DiagLogLevel.WARN })
  const number = (name: string, most: number) => {
    const value = Number(said(env, name) ?? Number.NaN)
    return Number.isInteger(value) && value > 0 ? Math.min(value, most) : undefined
  }
  const queue = number('OTEL_BSP_MAX_QUEUE_SIZE', QUEUE_LIMIT) ?? QUEUE_MAX
  const batch = number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', queue)
  const delayMs = number('OTEL_BSP_SCHEDULE_DELAY', 600_000)
  const timeoutMs = number('OTEL_BSP_EXPORT_TIMEOUT', 600_000)
  const ids = new PresetIds(new sdk.RandomIdGenerator())
  const own = { 'service.name': service, 'service.version': VERSION, 'vcs.ref.head.revision': COMMIT, ...attributes }
  const provider = new sdk.TracerProvider({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES count before what we say.
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes(own))
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    sampler: samplerOf(sdk, env, tell),
    idGenerator: ids,
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        maxQueueSize: queue,
        ...(batch === undefined ? {} : { maxExportBatchSize: batch }),
        ...(delayMs === undefined ? {} : { scheduledDelayMillis: delayMs }),
        ...(timeoutMs === undefined ? {} : { exportTimeoutMillis: timeoutMs }),
      }),
    ],
  })
  const tracer = provider.getTracer('skerry', VERSION)
  const { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace: traces } = api
  const kinds: Partial<Record<FinishedSpan['name'], number>> = { publish: SpanKind.PRODUCER, pull: SpanKind.CONSUMER }
  const parentOf = (trace: string): Context => {
    const parent: SpanContext = { traceId: trace, spanId: rootSpanId(trace), traceFlags: TraceFlags.SAMPLED, isRemote: true }
    return traces.setSpanContext(ROOT_CONTEXT, parent)
  }
  log.info('traces are sent', { protocol, queue })
  return {
    record: ({ name, trace, startMs, endMs, isRoot = false, attributes, error }) => {
      if (isRoot) ids.preset(trace)
      const options = { startTime: new Date(startMs), kind: kinds[name] ?? SpanKind.INTERNAL, attributes: { ...attributes } }
      const span = tracer.startSpan(name, options, isRoot ? ROOT_CONTEXT : parentOf(trace))
      if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error.slice(0, 500) })
      span.end(new Date(Math.max(startMs, endMs)))
    },
    stop: async () => {
      const ended = new AbortController()
      const flushed = provider.shutdown().catch((error: unknown) => tell(String(error)))
      await Promise.race([flushed, clock.sleep(STOP_MS, ended.signal)])
      ended.abort()
    },
  }
}

const said = (env: Env, name: string): string | undefined => env[name]?.trim() || undefined

/** By the trace alone, so that server and agents decide the same for one change. */
function samplerOf(sdk: typeof import('@opentelemetry/sdk-trace'), env: Env, tell: (message: string) => void): Sampler {
  const name = said(env, 'OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  switch (name.replace('parentbased_', '')) {
    case 'always_off':
      return new sdk.AlwaysOffSampler()
    case 'traceidratio': {
      const ratio = Number(said(env, 'OTEL_TRACES_SAMPLER_ARG') ?? 1)
      return new sdk.TraceIdRatioBasedSampler(ratio >= 0 && ratio <= 1 ? ratio : 1)
    }
    case 'always_on':
      return new sdk.AlwaysOnSampler()
    default:
      tell(`unknown OTEL_TRACES_SAMPLER ${name}: every change is traced`)
      return new sdk.AlwaysOnSampler()
  }
}

/** The span that begins a trace has the ids that everybody derives from the correlation id. */
class PresetIds implements IdGenerator {
  readonly #random: IdGenerator
  #next: string | null = null

  constructor(random: IdGenerator) {
    this.#random = random
  }

  /** For the span that is started next. */
  preset(trace: string): void {
    this.#next = trace
  }

  // The SDK asks for the span id first.
  generateSpanId = (): string => (this.#next === null ? this.#random.generateSpanId() : rootSpanId(this.#next))

  generateTraceId = (): string => {
    const trace = this.#next ?? this.#random.generateTraceId()
    this.#next = null
    return trace
  }
}

/** A collector that is away says so with each batch. */
function quietly(clock: Clock, tell: (message: string) => void): (message: string) => void {
  let untilMs = Number.NEGATIVE_INFINITY
  return (message) => {
    const nowMs = clock.monotonicMs()
    if (nowMs < untilMs) return
    untilMs = nowMs + SILENT_MS
    tell(message)
  }
}
