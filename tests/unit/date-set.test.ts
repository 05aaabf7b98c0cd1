// Somebody sets the date while a request is on its way, or while something is kept for a time: only the time that
// passes counts.

import { afterEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { createKubeHttp } from '../../agent/cluster/kube-http.ts'
import type { SessionKeeper } from '../../agent/link/session-keeper.ts'
import type { Replica } from '../../agent/replica/replica.ts'
import { HeadCheck } from '../../agent/sync/head-check.ts'
import { memoryStage } from '../../agent/sync/part-stage.ts'
import { createPull } from '../../agent/sync/pull.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const YEAR_MS = 365 * 86_400_000
const stops: Array<() => unknown> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

test.each([
  ['set back', -YEAR_MS],
  ['set ahead', YEAR_MS],
])('PL10 RC17 a long poll that is cut tells how long the way bears, with a date that was %s', async (_, setByMs) => {
  const time = createVirtualClock()
  const clock = time.process(0)
  const position = { dbId: '0'.repeat(32), term: 1, dv: 1, hash: '0'.repeat(32) }
  const session: SessionKeeper = {
    call: async () => {
      await time.sleep(40_000)
      throw new AppError('server_unreachable', { doing: 'pull', extra: { cut: { sent: true, begun: false, bodyBytes: 0 } } })
    },
    takeNextIncarnation: async () => {},
    renewKeys: async () => false,
  }
  const waitLimit = () => ({ startSeconds: 55, limitSeconds: 110, longest: false })
  const head = new HeadCheck({ clock, randomBytes, clusterId: () => 'c', serverKeys: () => [], renewKeys: async () => false })
  const pull = createPull({ session, stage: memoryStage(), clock, random: () => 0.5, clusterId: () => 'c', head, waitLimit })
  const replica = { position: () => position } as unknown as Replica
  const polled = pull.follow(replica, { kind: 'follow', proven: true, restarted: false }, true, new AbortController().signal)
  await time.advance(1_000)
  clock.setBy(setByMs)
  await time.advance(60_000)
  expect(await polled).toMatchObject({ kind: 'nothing_new', heard: false })
  expect(pull.waitSeconds()).toBe(32)
})

test.each([
  ['set back', -YEAR_MS, 2],
  ['left alone', 0, 2],
])('KA9 RC17 credentials are read again when they are 60 s old, with a date that was %s', async (_, setByMs, reads) => {
  const time = createVirtualClock()
  const clock = time.process(0)
  const listener = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ ok: true }) })
  let count = 0
  const read = async () => {
    count += 1
    return { tls: { insecure: false }, authorization: null }
  }
  const credentials = { source: 'test', server: `http://127.0.0.1:${listener.port}`, read }
  const http = createKubeHttp(credentials, { clock, log: silentLogger, userAgent: 'test' })
  stops.push(
    () => http.close(),
    () => listener.stop(true),
  )
  const get = () => http.request({ method: 'GET', path: '/x', plural: '' })
  await get()
  clock.setBy(setByMs)
  time.jump(61_000)
  await get()
  expect(count).toBe(reads)
})
