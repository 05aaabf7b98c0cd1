// OT1 to OT4: when telemetry runs, and the spans that an agent reads off its own reports. The wire is held against a
// real collector in tests/e2e/telemetry.test.ts.
import { afterEach, expect, test } from 'bun:test'
import { ChangeSpans } from '../../agent/observe/change-spans.ts'
import { openTelemetry } from '../../shared/adapters/telemetry.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import type { FinishedSpan } from '../../shared/runtime/spans.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, createReconcileKit } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const OTLP = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }
const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {} }
const open = async (env: Record<string, string>) => {
  const errors: string[] = []
  const log = { ...silentLogger, error: (message: string) => void errors.push(message) }
  const telemetry = await openTelemetry({ env, service: 'skerry', clock, log })
  await telemetry?.stop()
  return { isOn: telemetry !== null, errors: errors.length }
}

test.each([
  ['without an endpoint', {}, false, 0],
  ['with an endpoint', OTLP, true, 0],
  ['with an endpoint for traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:1/v1/traces' }, true, 0],
  ['with OTEL_SDK_DISABLED', { ...OTLP, OTEL_SDK_DISABLED: 'TRUE' }, false, 0],
  ['with another exporter', { ...OTLP, OTEL_TRACES_EXPORTER: 'none' }, false, 0],
  ['with gRPC, which is told', { ...OTLP, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, false, 1],
  ['with an endpoint that is no URL, which is told', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' }, false, 1],
] as const)('OT1 telemetry %s', async (_, env, isOn, errors) => {
  expect(await open(env)).toEqual({ isOn, errors })
})

test('OT3 what a collector does not accept is dropped, and no call waits for it', async () => {
  const telemetry = await openTelemetry({ env: { ...OTLP, OTEL_BSP_MAX_QUEUE_SIZE: '16' }, service: 'skerry', clock, log: silentLogger })
  const startMs = performance.now()
  for (let n = 0; n < 10_000; n++)
    telemetry?.record({ name: 'publish', trace: 'a'.repeat(32), startMs: 1, endMs: 2, attributes: { 'skerry.service': 'a/b' } })
  expect(performance.now() - startMs).toBeLessThan(2_000)
  await telemetry?.stop()
})

test('OT2 OT4 the agent tells each step of a revision once, and of none that was reached before it started', async () => {
  const told: FinishedSpan[] = []
  const { cluster, clock: time, kit, run } = setup()
  const spans = () => {
    const watcher = new ChangeSpans((span) => void told.push(span), time)
    watcher.pageApplied(time.nowMs() - 40, time.nowMs() - 10)
    return watcher
  }
  await kit.stop()
  const traced = createReconcileKit({ cluster, clock: time, watched: (state) => spans().watching(state) })
  traced.desire([configMap('a')], { commit: 'first', trace: 'a'.repeat(32) })
  traced.start()
  await run()
  expect(told.map(({ name, trace, attributes }) => [name, trace, attributes['skerry.commit']])).toEqual([
    ['pull', 'a'.repeat(32), 'first'],
    ['apply', 'a'.repeat(32), 'first'],
    ['become healthy', 'a'.repeat(32), 'first'],
  ])
  const known = ['skerry.service', 'skerry.commit', 'skerry.revision', 'skerry.objects', 'skerry.objects.healthy']
  for (const { attributes } of told) expect(Object.keys(attributes)).toEqual(known)
  const [pull, apply, healthy] = told
  expect(pull?.startMs).toBeLessThan(pull?.endMs ?? 0)
  expect([apply?.endMs ?? 0, healthy?.endMs ?? 0].every((ms) => ms >= (pull?.startMs ?? 0))).toBe(true)
  cluster.deleteAs('kubectl', { group: '', kind: 'ConfigMap', namespace: 'default', name: 'a' })
  await run()
  expect(told).toHaveLength(3)
  await traced.stop()
})

test('OT5 the first failure of a revision is a span with an error, once, and its later success another one', async () => {
  const told: FinishedSpan[] = []
  const { cluster, clock: time, kit, run, settle } = setup()
  await kit.stop()
  const traced = createReconcileKit({
    cluster,
    clock: time,
    watched: (state) => new ChangeSpans((span) => void told.push(span), time).watching(state),
  })
  let refuses = true
  cluster.fail(({ verb, ref }) =>
    refuses && verb === 'apply' && ref?.namespace === 'default' ? { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no' } : null,
  )
  traced.desire([configMap('a'), configMap('b')], { commit: 'first', trace: 'a'.repeat(32) })
  traced.start()
  await run()
  const failed = told.filter(({ error }) => error !== undefined)
  expect(failed.map(({ name, trace, error, attributes }) => [name, trace, error, attributes['skerry.commit']])).toEqual([
    ['apply', 'a'.repeat(32), 'Failed', 'first'],
  ])
  refuses = false
  traced.desire([configMap('a', { a: '2' }), configMap('b', { a: '2' })], { commit: 'second', trace: 'b'.repeat(32) })
  await settle()
  expect(told.filter(({ name, error }) => name === 'apply' && error === undefined).map(({ trace }) => trace)).toEqual(['b'.repeat(32)])
  await traced.stop()
})
