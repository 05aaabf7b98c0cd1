// Questions through the poll of an agent: a real server and a real sync loop, an answerer of the test.
import { afterEach, expect, test } from 'bun:test'
import { logLine, noteLine } from '../../agent/ask/answer-lines.ts'
import type { AnswerSink } from '../../agent/ask/answer-writer.ts'
import { AskRefused } from '../../agent/ask/ask-desk.ts'
import { questionRefusal } from '../../agent/messages/question-messages.ts'
import type { SyncOptions } from '../../agent/sync/sync-loop.ts'
import { ASKS_OF_CALLER_MAX } from '../../server/ask/ask-limits.ts'
import { type AnswerStream, type Asked, GATHER_MS } from '../../server/ask/asks.ts'
import { ROOM_BYTES } from '../../server/ask/open-asks.ts'
import { ANSWERS, type AnswerLine, type AskFrame, askBytes, type Question } from '../../shared/protocol/ask.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { joined, killAgents } from '../support/link-site.ts'

afterEach(killAgents)

const OBJECT: Question = { kind: 'object', ref: { group: '', kind: 'ConfigMap', namespace: 'web', name: 'a' } }
const FOLLOW: Question = { kind: 'logs', ref: { group: '', kind: 'Pod', namespace: 'web', name: 'p' }, follow: true }
const BY = { id: 't-1', kind: 'user', name: 'ola@example.com' }
const note = noteLine

type Answer = (ask: AskFrame, sink: AnswerSink, signal: AbortSignal) => Promise<void>

async function askedSite(answer: Answer, sync: Partial<SyncOptions> = {}) {
  const frames: AskFrame[] = []
  const answerer = {
    answer: (ask: AskFrame, sink: AnswerSink, signal: AbortSignal) => {
      frames.push(ask)
      return answer(ask, sink, signal)
    },
  }
  const made = await joined({ sync: { answerer, ...sync } })
  await made.clock.advance(60_000)
  const { server, agent, clock } = made
  const clusterId = agent.clusterId as ClusterId
  const asked = (question: Question = OBJECT, by = BY): Asked => ({
    question,
    by,
    cluster: { clusterId, name: 'site', lastSeenMs: clock.nowMs() },
  })
  return { ...made, frames, asked, ask: (question?: Question, by?: typeof BY) => server.asks.ask(asked(question, by)) }
}

/** All lines, while time passes. */
async function linesOf(stream: AnswerStream, clock: { advance(ms: number): Promise<void> }): Promise<AnswerLine[]> {
  const lines: AnswerLine[] = []
  let isDone = false
  let failure: unknown = null
  const reading = (async () => {
    for (let bytes = await stream.read(); bytes !== null; bytes = await stream.read())
      for (const line of new TextDecoder().decode(bytes).split('\n')) if (line !== '') lines.push(JSON.parse(line))
  })()
    .catch((error: unknown) => {
      failure = error
    })
    .finally(() => {
      isDone = true
    })
  for (let n = 0; n < 400 && !isDone; n++) await clock.advance(100)
  await reading
  if (failure !== null) throw failure
  return lines
}

test('AK1 a question goes out with the open poll, its answer comes back, and the next poll is open at once', async () => {
  const { ask, clock, frames, asked, server, publish, status } = await askedSite(async (_, sink) => sink.write(note('seen')))
  const startMs = clock.nowMs()
  expect(await linesOf(ask(), clock)).toEqual([note('seen'), { t: 'end' }])
  expect(clock.nowMs() - startMs).toBeLessThan(500)
  expect(frames.map(({ who, within, question }) => ({ who, within, question }))).toEqual([{ who: BY, within: null, question: OBJECT }])
  expect(server.asks.open()).toBe(0)
  expect(asked().cluster.name).toBe('site')
  await publish('2')
  await clock.advance(1_000)
  expect(status()?.state).toBe('following')
})

test('AK1 a frame that was signed for another poll, cluster or epoch, or by another key, is not answered', async () => {
  const made = await askedSite(async () => {})
  const { link, clock, frames, server, agent } = made
  const stranger = generateKey('ed25519')
  const frame = {
    ...{ t: 'ask' as const, id: 'A'.repeat(22), epoch: 1, question: OBJECT, within: null, who: BY, bytesMax: 1_000, msMax: 1_000 },
  }
  const forged: Array<(nonce: string) => object> = [
    () => ({ ...frame, signature: server.keys.sign(askBytes(String(agent.clusterId), 'A'.repeat(11), frame)) }),
    (nonce) => ({ ...frame, signature: server.keys.sign(askBytes('c-0000000000000009', nonce, frame)) }),
    (nonce) => ({ ...frame, signature: signBytes(stranger.privateKey, askBytes(String(agent.clusterId), nonce, frame)) }),
    (nonce) => ({ ...frame, question: FOLLOW, signature: server.keys.sign(askBytes(String(agent.clusterId), nonce, frame)) }),
  ]
  for (const forge of forged) {
    let polls = 0
    link.answer = (path, url) => {
      const nonce = url.searchParams.get('asks')
      if (path !== ROUTES.desired || nonce === null) return null
      polls += 1
      return new Response(`${JSON.stringify(forge(nonce))}\n`)
    }
    await made.publish(String(Math.random())) // ends the open poll
    await clock.advance(30_000)
    expect(polls).toBeGreaterThan(0)
    expect(polls).toBeLessThan(4)
  }
  expect(frames).toEqual([])
})

test('AK1 a question whose first answer was lost is asked again by the next poll, and answered once', async () => {
  const { ask, clock, frames, link } = await askedSite(async (_, sink) => sink.write(note('once')))
  let lost = 0
  link.loseAnswer = (path) => path === ROUTES.desired && lost++ === 0
  expect(await linesOf(ask(), clock)).toEqual([note('once'), { t: 'end' }])
  expect(frames.length).toBe(1)
})

test('AK6 a short answer travels in one part, and lines of a busy log are gathered', async () => {
  const { ask, clock, link } = await askedSite(async ({ question }, sink) => {
    const isLog = question.kind === 'logs'
    for (let n = 0; n < (isLog ? 100 : 1); n++) {
      await sink.write(note(`line ${n}`))
      if (isLog) await clock.sleep(5)
    }
  })
  let parts = 0
  link.answer = (path) => {
    if (path.startsWith(ANSWERS)) parts += 1
    return null
  }
  expect((await linesOf(ask(), clock)).length).toBe(2)
  expect(parts).toBe(1)
  expect((await linesOf(ask(FOLLOW), clock)).length).toBe(101)
  expect(parts).toBeLessThan(20)
})

test('AK12 questions that come while others wait for an answer go together; one alone goes at once', async () => {
  const done = Promise.withResolvers<void>()
  const { ask, clock, link, server, asked } = await askedSite(async (_, sink) => {
    await done.promise
    await sink.write(note('done'))
  })
  let polls = 0
  link.answer = (path) => {
    if (path === ROUTES.desired) polls += 1
    return null
  }
  const { clusterId } = asked().cluster
  const went: number[] = []
  const startMs = clock.nowMs()
  const one = async () => {
    await server.asks.gathered(clusterId)
    went.push(clock.nowMs() - startMs)
    return linesOf(ask(), { advance: () => clock.settle() })
  }
  const answers = [one()]
  await clock.advance(10)
  const before = polls
  for (let n = 0; n < 5; n++) {
    answers.push(one())
    await clock.advance(10)
  }
  await clock.advance(GATHER_MS)
  expect(went).toEqual([0, ...Array.from({ length: 5 }, () => GATHER_MS)])
  expect(polls - before).toBe(1)
  done.resolve()
  await clock.advance(1_000)
  expect((await Promise.all(answers)).map((lines) => lines.length)).toEqual([2, 2, 2, 2, 2, 2])
  const againMs = clock.nowMs()
  await server.asks.gathered(clusterId)
  await server.asks.gathered(clusterId)
  expect(clock.nowMs()).toBe(againMs)
})

test('AK4 an agent that is away is refused at once, and its question is not kept', async () => {
  const { ask, clock, agent, frames, server } = await askedSite(async () => {})
  await agent.kill()
  await clock.advance(11_000)
  expect(() => ask()).toThrow(expect.objectContaining({ code: 'cluster_offline' }))
  agent.start()
  await clock.advance(10_000)
  expect([frames, server.asks.open()]).toEqual([[], 0])
})

test('AK4 a question that no poll takes in time ends as offline', async () => {
  const { ask, clock, agent, server } = await askedSite(async () => {})
  await agent.kill()
  await expect(linesOf(ask(), clock)).rejects.toMatchObject({ code: 'cluster_offline' })
  expect(server.asks.open()).toBe(0)
})

test('AK8 an agent that takes no questions is named as such', async () => {
  const { server, agent, clock } = await joined()
  await clock.advance(60_000)
  const cluster = { clusterId: agent.clusterId as never, name: 'site', lastSeenMs: 0 }
  expect(() => server.asks.ask({ question: OBJECT, by: BY, cluster })).toThrow(expect.objectContaining({ code: 'ask_unsupported' }))
})

test('AK8 a question of a newer server is refused by name', async () => {
  const { ask, clock } = await askedSite(async ({ question }) => {
    throw new AskRefused(questionRefusal('question_unknown', { kind: question.kind }))
  })
  expect(await linesOf(ask(), clock)).toEqual([{ t: 'failed', ...questionRefusal('question_unknown', { kind: 'object' }) }])
})

test('AK6 questions of one caller are bounded, and a place is free again after an answer', async () => {
  const { ask, clock } = await askedSite((_, __, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())))
  const streams = Array.from({ length: ASKS_OF_CALLER_MAX }, () => ask(FOLLOW))
  expect(() => ask(FOLLOW)).toThrow(expect.objectContaining({ code: 'too_many_requests' }))
  streams[0]?.cancel()
  ask(FOLLOW).cancel()
  for (const stream of streams) stream.cancel()
  await clock.advance(20_000)
})

test('AK6 an answer ends at its size and at its time', async () => {
  const endless: Answer = async (_, sink, signal) => {
    while (!signal.aborted) await sink.write(note('x'.repeat(100_000)))
  }
  const { ask, clock } = await askedSite(endless)
  const lines = await linesOf(ask(), clock)
  expect(lines.at(-1)).toEqual({ t: 'end', truncated: 'bytes' })
  expect(lines.length).toBeLessThan(90)
})

test('AK6 a reader that stops reading holds up the agent and fills no memory', async () => {
  let written = 0
  const { ask, clock } = await askedSite(async (_, sink, signal) => {
    while (!signal.aborted) {
      await sink.write(logLine('p', 'c', 'x'.repeat(50_000)))
      written += 50_000
    }
  })
  const stream = ask(FOLLOW)
  await clock.advance(60_000)
  const held = written
  expect(held).toBeLessThan(3 * ROOM_BYTES)
  for (let n = 0; n < 20; n++) await stream.read()
  await clock.advance(20_000)
  expect(written).toBeGreaterThan(held)
  stream.cancel()
  await clock.advance(20_000)
})

test('AK6 the agent stops when the asker leaves, also from a quiet log', async () => {
  let ended = false
  const { ask, clock } = await askedSite(async (_, __, signal) => {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    ended = true
  })
  const stream = ask(FOLLOW)
  await clock.advance(30_000)
  expect(ended).toBe(false)
  stream.cancel()
  await clock.advance(6_000)
  expect(ended).toBe(true)
})

test('AK6 an answer survives lost replies to its parts, and an answer that nobody can deliver ends', async () => {
  const { ask, clock, link } = await askedSite(async (_, sink) => {
    for (let n = 0; n < 3; n++) await sink.write(note(String(n)))
  })
  let lost = 0
  link.loseAnswer = (path) => path.startsWith(ANSWERS) && lost++ === 0
  expect((await linesOf(ask(), clock)).map((line) => ('message' in line ? line.message : line.t))).toEqual(['0', '1', '2', 'end'])
  link.answer = (path) => (path.startsWith(ANSWERS) ? 'down' : null)
  await expect(linesOf(ask(), clock)).rejects.toMatchObject({ code: 'ask_unanswered' })
})

test('AK6 an answer belongs to the cluster that was asked', async () => {
  const { server } = await askedSite(async () => {})
  await expect(
    server.asks.answer('c-0000000000000009' as never, 'A'.repeat(22), 0, new Uint8Array(), new AbortController().signal),
  ).rejects.toMatchObject({ code: 'ask_gone' })
})
