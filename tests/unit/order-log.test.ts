// The audit log of an agent: orders of people at the site, chained, in a file.
import { expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createOrderLog, createQuestionLog, QUESTIONS, RESTARTS, readOrderLog } from '../../agent/order-log.ts'
import type { EdgeOrder } from '../../agent/reconcile/edge-orders.ts'
import { tempDir } from '../support/temp-dir.ts'

const clock = { nowMs: () => Date.parse('2026-01-10T00:00:00Z') }
const hold: EdgeOrder = { kind: 'hold', service: 'shop/web', by: 'ada', why: 'stocktaking' }
const unhold: EdgeOrder = { kind: 'unhold', service: null, by: 'bob' }

test('AU8 orders are chained over restarts, and a line that a crash cut off is removed', () => {
  const dir = tempDir()
  createOrderLog(dir, clock).record(hold)
  appendFileSync(join(dir, 'orders.jsonl'), '{"seq":2,"at"')
  const log = createOrderLog(dir, clock)
  log.record(unhold)
  log.record(unhold, 'nothing was held')
  const { entries, broken } = readOrderLog(dir)
  expect(broken).toBeNull()
  expect(entries).toMatchObject([
    { seq: 1, verb: 'hold', kind: 'Service', project: 'shop', name: 'web', reason: 'stocktaking', result: 'started' },
    { seq: 2, verb: 'unhold', kind: 'Cluster', result: 'started', actor: { kind: 'local', name: 'bob', verified: false } },
    { seq: 3, verb: 'unhold', result: 'failed', detail: 'nothing was held' },
  ])
})

test('AU8 the part of a line that a failed write left is removed before the next line', () => {
  const dir = tempDir()
  const path = join(dir, 'orders.jsonl')
  const log = createOrderLog(dir, clock)
  log.record(hold)
  const whole = readFileSync(path, 'utf8')
  rmSync(path)
  mkdirSync(path)
  expect(() => log.record(unhold)).toThrow()
  rmSync(path, { recursive: true })
  writeFileSync(path, `${whole}{"seq":2,"at"`)
  log.record(unhold)
  expect(readOrderLog(dir)).toMatchObject({ broken: null, entries: [{ seq: 1 }, { seq: 2, verb: 'unhold' }] })
})

test('AU8 a changed or removed line is found, and a full file is replaced without a gap', () => {
  const dir = tempDir()
  const log = createOrderLog(dir, clock, 600)
  for (let times = 0; times < 5; times++) log.record(hold)
  const { entries, broken } = readOrderLog(dir)
  expect(broken).toBeNull()
  expect(entries.at(-1)?.seq).toBe(5)
  expect(entries.length).toBeLessThan(5)
  const path = join(dir, 'orders.jsonl')
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.replace('stocktaking', 'nothing'))
  expect(readOrderLog(dir).broken).toMatchObject({ problem: 'changed: its content does not match its hash' })
  writeFileSync(path, `${text}${text}`)
  expect(readOrderLog(dir).broken).not.toBeNull()
})

test('AK7 many questions displace no record of a restart, and a refused restart is a question', () => {
  const dir = tempDir()
  const log = createQuestionLog(dir, clock, 2_000)
  const who = { kind: 'user', id: 'idp:1', name: 'ada' }
  const ref = { group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'web' }
  log.record({ question: { kind: 'restart', ref }, who, within: null })
  log.record({ question: { kind: 'restart', ref }, who, within: null }, 'refused by the local policy')
  for (let times = 0; times < 50; times++) log.record({ question: { kind: 'logs', ref }, who, within: null })
  expect(readOrderLog(dir, RESTARTS)).toMatchObject({ broken: null, entries: [{ seq: 1, verb: 'ask:restart', result: 'started' }] })
  const { entries, broken } = readOrderLog(dir, QUESTIONS)
  expect([broken, entries.length < 52, entries.at(-1)?.seq]).toEqual([null, true, 51])
})
