// What a person at the site asks of the running agent: commands, the local socket, and what comes back. No agent runs
// here; a socket in a folder answers as one would.
import { afterEach, describe, expect, test } from 'bun:test'
import { runAgentCli } from '../../agent/cli/agent-cli.ts'
import { userText } from '../../agent/cli/edge-commands.ts'
import { type LocalApi, orderRunningAgent, serveLocalApi } from '../../agent/local-api.ts'
import type { AgentReport } from '../../agent/observe/report.ts'
import type { EdgeAnswer, EdgeOrder } from '../../agent/reconcile/edge-orders.ts'
import { tempDir } from '../support/temp-dir.ts'

const refusal = {
  digest: 'd'.repeat(64),
  names: ['ConfigMap web/a', 'PersistentVolumeClaim web/b'],
  list: '3f2c0d0d0d0d0d0d',
  count: 8,
  ownedCount: 9,
  why: '8 of 9 objects are more than 50 %',
}
const status = {
  sync: 'OutOfSync',
  health: 'Healthy',
  reason: 'PruneBlocked',
  message: '',
  sinceMs: 1,
  objectCount: 1,
  healthyCount: 1,
  refusal,
} as const
const report: AgentReport = {
  running: true,
  version: '1',
  clusterId: null,
  agentId: null,
  incarnation: null,
  recipient: null,
  link: null,
  enforcement: { state: 'enforcing', message: '' },
  replica: null,
  disk: null,
  resync: null,
  policy: null,
  ageKeys: null,
  foreignRecipient: null,
  outboxDepth: 0,
  todayBytes: 0,
  services: [
    { name: 'web/shop', status },
    { name: 'web/calm', status: null },
  ],
}

test.each([
  ['ann', 1000, 'ann'],
  ['unknown', 0, 'uid 0@ship-7'],
  ['', 1000, 'uid 1000@ship-7'],
  ['', null, 'somebody@ship-7'],
])('HO1, EC1 who asks, of a user called %p with the number %p, is %p', (name, uid, text) => {
  expect(userText(name, uid, 'ship-7')).toBe(text)
})

let api: LocalApi | null = null
afterEach(async () => {
  await api?.stop()
  api = null
})

function site(answer: EdgeAnswer = { kind: 'done', message: 'as you wish' }) {
  const data = tempDir()
  const orders: EdgeOrder[] = []
  // As the real one: its methods are its own.
  class Agent {
    #orders = orders
    report() {
      return { ...report, outboxDepth: this.#orders.length }
    }
    order(one: EdgeOrder) {
      this.#orders.push(one)
      return answer
    }
  }
  api = serveLocalApi(data, new Agent())
  const run = async (...args: string[]) => {
    const said = { out: '', err: '' }
    const hear = (where: 'out' | 'err') => (text: string) => {
      said[where] += text
    }
    const io = { env: {}, out: hear('out'), err: hear('err'), onStop: () => {} }
    const code = await runAgentCli(['bun', 'skerry-agent', ...args, '--data', data], io)
    return { code, ...said }
  }
  return { data, orders, run }
}

test.each(['run', 'status', 'hold', 'unhold', 'confirm', 'take-over', 'version', ''])(
  'CL8 the help of skerry-agent %s begins with examples',
  async (command) => {
    let out = ''
    const io = { env: {}, out: (text: string) => { out += text }, err: () => {}, onStop: () => {} } // biome-ignore format: short
    expect(await runAgentCli(['bun', 'skerry-agent', ...(command === '' ? [] : [command]), '--help'], io)).toBe(0)
    expect(out).toStartWith(`Examples:\n  skerry-agent ${command}`)
  },
)

describe('orders at the site', () => {
  test('CM7 take-over says who decides and why, and takes no less', async () => {
    const { orders, run } = site()
    expect(await run('take-over', '--reason', 'moved', '--by', 'ola')).toEqual({ code: 0, out: 'as you wish\n', err: '' })
    expect(orders).toEqual([{ kind: 'take_over', by: 'ola', why: 'moved' }])
    expect((await run('take-over', '--by', 'ola')).code).toBe(2)
  })

  test('CM7 a take-over that is refused says so', async () => {
    const { run } = site({ kind: 'refused', message: 'this agent enforces already' })
    expect(await run('take-over', '--reason', 'moved')).toMatchObject({
      code: 1,
      err: expect.stringContaining('take-over: this agent enforces already'),
    })
  })

  test('HO1 hold and unhold say what they ask for', async () => {
    const { orders, run } = site()
    expect(await run('hold', 'web/shop', '--reason', 'a repair', '--by', 'ola', '--for', '8h')).toEqual({
      code: 0,
      out: 'as you wish\n',
      err: '',
    })
    await run('hold', '--all', '--reason', 'a storm', '--by', 'ola')
    await run('unhold', 'web/shop', '--by', 'ola')
    await run('unhold', 'calm', '--by', 'ola')
    expect(orders).toEqual([
      { kind: 'hold', service: 'web/shop', by: 'ola', why: 'a repair', untilMs: expect.any(Number) },
      { kind: 'hold', service: null, by: 'ola', why: 'a storm' },
      { kind: 'unhold', service: 'web/shop', by: 'ola' },
      { kind: 'unhold', service: 'default/calm', by: 'ola' },
    ])
  })
  test.each([
    [['hold', '--reason', 'x']],
    [['hold', 'web/shop', '--all', '--reason', 'x']],
    [['hold', 'web/shop', '--reason', 'x', '--for', 'soon']],
    [['unhold']],
  ])('HO1 %p is asked of nobody', async (args) => {
    const { orders, run } = site()
    const { code, err } = await run(...args)
    expect([code, orders]).toEqual([1, []])
    expect(err).toContain('expected')
  })

  test('EC1 confirm shows the list first, and says yes to exactly that', async () => {
    const { orders, run } = site()
    const shown = await run('confirm', 'web/shop')
    expect(shown.out).toBe(
      `Deletions of web/shop that wait for confirmation: 8 of 9 objects are more than 50 %\n  ConfigMap web/a\n  PersistentVolumeClaim web/b (its data will be lost)\n  and 6 more\nTo confirm exactly these: skerry-agent confirm web/shop --digest ${refusal.list}\n`,
    )
    expect((await run('confirm', 'web/calm')).out).toBe('No deletion of web/calm waits for confirmation.\n')
    expect(orders).toEqual([])
    await run('confirm', 'web/shop', '--digest', refusal.list, '--by', 'ola')
    expect(orders).toEqual([{ kind: 'confirm', service: 'web/shop', digest: refusal.list, by: 'ola' }])
  })

  test('EC1 what the agent refuses is a failure with its words, and so is no agent', async () => {
    const { data, run } = site({ kind: 'refused', message: 'it has come to another revision since' })
    const refused = await run('confirm', 'web/shop', '--digest', 'x')
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('it has come to another revision since')
    expect(await orderRunningAgent(data, { kind: 'unhold', service: 'no such name', by: '' })).toMatchObject({ kind: 'refused' })
    await api?.stop()
    api = null
    expect((await run('unhold', '--all')).err).toContain('no agent runs on')
  })
})
