// A commit as one trace over two processes, received by a collector of the OpenTelemetry project.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ChildProcess, createDataFolder, freePort, startChild } from '../../scripts/local-cluster/child-process.ts'
import { openTelemetry } from '../../shared/adapters/telemetry.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { rootSpanId } from '../../shared/runtime/trace-id.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { configMapYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'
import { ROOT } from '../support/source-files.ts'

setDefaultTimeout(60_000)

/** As the collector sends it on: OTLP in JSON. */
interface Received {
  resourceSpans: Array<{
    resource: { attributes: Array<{ key: string; value: { stringValue?: string } }> }
    scopeSpans: Array<{ spans: Array<Omit<Span, 'service' | 'resource'>> }>
  }>
}
interface Span {
  service: string | undefined
  resource: Record<string, string | undefined>
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  status?: { code?: number; message?: string }
}

const folder = createDataFolder('skerry-telemetry')
const spans: Span[] = []
const sink = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: async (request) => {
    for (const { resource, scopeSpans } of ((await request.json()) as Received).resourceSpans) {
      const attributes = Object.fromEntries(resource.attributes.map(({ key, value }) => [key, value.stringValue]))
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ ...span, service: attributes['service.name'], resource: attributes })
    }
    return Response.json({})
  },
})
const port = freePort()
const env = {
  OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
}
let collector: ChildProcess
let scenario: Scenario

beforeAll(async () => {
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: {
      otlp_http: { endpoint: `http://127.0.0.1:${sink.port}`, encoding: 'json', compression: 'none', sending_queue: { enabled: false } },
    },
    service: { telemetry: { metrics: { level: 'none' } }, pipelines: { traces: { receivers: ['otlp'], exporters: ['otlp_http'] } } },
  }
  writeFileSync(join(folder.path, 'collector.json'), JSON.stringify(config))
  collector = startChild([join(ROOT, 'build/otel/otelcol'), '--config', join(folder.path, 'collector.json')], join(folder.path, 'log'))
  Object.assign(process.env, env)
  const isUp = () =>
    fetch(env.OTEL_EXPORTER_OTLP_ENDPOINT).then(
      () => true,
      () => collector.exitCode() !== null && Promise.reject(new Error(collector.logTail())),
    )
  await eventually('the collector listens', isUp)
  scenario = await startScenario({ sites: { harbour: { controllers: false } } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(async () => {
  for (const name of Object.keys(env)) delete process.env[name]
  await scenario?.stop()
  await collector?.kill()
  await sink.stop(true)
  await folder.remove()
})

const traced = async (names: readonly string[], trace: string) => {
  const has = () => names.every((name) => spans.some((span) => span.traceId === trace && span.name === name))
  await eventually(`spans ${names.join(', ')}`, async () => has())
  return spans.filter(({ traceId }) => traceId === trace)
}

test('OT1 OT2 CO3 ingest, render, publish, pull and apply of a commit are one trace over server and agent', async () => {
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web' }) })
  const commit = await scenario.push({ 'web/a.yaml': configMapYaml('a', { value: 'one' }) })
  await scenario.settled('harbour', ['web'], { commit })
  const trace = (await scenario.status('harbour', 'web'))?.applied?.trace ?? 'none'
  const found = await traced(['ingest', 'render', 'publish', 'pull', 'apply', 'become healthy'], trace)
  const root = rootSpanId(trace)
  expect(found.map(({ name, service, spanId, parentSpanId = '' }) => [name, service, spanId === root, parentSpanId]).sort()).toEqual([
    ['apply', 'skerry-agent', false, root],
    ['become healthy', 'skerry-agent', false, root],
    ['ingest', 'skerry', true, ''],
    ['publish', 'skerry', false, root],
    ['pull', 'skerry-agent', false, root],
    ['render', 'skerry', false, root],
  ])
  const saysOf = (log: string, message: string) => log.split('\n').filter((line) => line.includes(message) && line.includes(commit))
  const lines = [
    ...saysOf(scenario.fleet.serverLog(), 'revision published'),
    ...saysOf(scenario.sites['harbour']?.agent.log() ?? '', 'revision read'),
  ]
  expect(lines.map((line) => (JSON.parse(line) as { trace?: string }).trace)).toEqual([trace, trace])
  expect(new Set(found.map(({ resource }) => resource['deployment.environment.name']))).toEqual(new Set(['test']))
  expect(found.every((span) => BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))).toBe(true)
})

test.each(['http/json', 'http/protobuf'])('OT1 the collector reads %s, and a failed step is an error', async (protocol) => {
  const trace = (protocol === 'http/json' ? 'b' : 'c').repeat(32)
  process.env['OTEL_EXPORTER_OTLP_PROTOCOL'] = protocol
  const telemetry = await openTelemetry({ env: process.env, service: 'skerry', clock: systemClock, log: silentLogger })
  delete process.env['OTEL_EXPORTER_OTLP_PROTOCOL']
  telemetry?.record({ name: 'render', trace, startMs: 1_000, endMs: 1_250, attributes: { 'skerry.service': 'a/b' }, error: 'bad_manifest' })
  await telemetry?.stop()
  const [span] = await traced(['render'], trace)
  expect(span).toMatchObject({
    startTimeUnixNano: '1000000000',
    endTimeUnixNano: '1250000000',
    status: { code: 2, message: 'bad_manifest' },
  })
})
