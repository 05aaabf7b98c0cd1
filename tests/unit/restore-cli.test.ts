import { expect, test } from 'bun:test'
import type { RestorePlanView } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { createTestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'

const PLAN: RestorePlanView = {
  pending: true,
  sinceMs: 700_000,
  token: 'tok',
  clusters: [
    {
      cluster: 'ship-1',
      lastSeenMs: 990_000,
      heard: true,
      behind: { epoch: 1, ordinal: 450, provenEpoch: 1, provenOrdinal: 460 },
      same: 3,
      services: [
        { project: 'shop', service: 'late', what: 'unclaimed', from: 'feedfacefeed', to: null },
        { project: 'shop', service: 'web', what: 'change', from: 'aaaaaaaaaaaa', to: 'bbbbbbbbbbbb' },
      ],
    },
    { cluster: 'ship-2', lastSeenMs: null, heard: false, behind: null, same: 1, services: [] },
  ],
  unknownAgents: [{ agentId: 'a-00000000000000ff', tries: 3, lastMs: 940_000 }],
}

async function restored(plan: RestorePlanView = PLAN) {
  const said: string[] = []
  const admin = await createTestAdmin({
    restore: {
      pendingSinceMs: async () => plan.sinceMs,
      plan: async () => plan,
      confirm: async (token, by) => {
        if (token !== plan.token) throw new AppError('conflict', { detail: 'another plan' })
        said.push(by)
        return { clusters: 2, marked: 1 }
      },
    },
  })
  return { admin, said }
}

test('RP2 restore shows each change, who is silent, who knocks, and how to go on', async () => {
  const { admin } = await restored()
  const { code, out } = await runTestCli(admin, ['restore'])
  expect(code).toBe(0)
  expect(out).toContain('(detected 5m ago); 1 of 2 clusters proved')
  expect(out).toMatch(/ship-1 +10s +shop +late +feedface +- +unclaimed: kept/)
  expect(out).toMatch(/ship-1 +10s +shop +web +aaaaaaaa +bbbbbbbb +would change/)
  expect(out).toContain('4 services in clusters stay unchanged')
  expect(out).toContain('they said before: ship-2\n')
  expect(out).toMatch(/a-00000000000000ff, 3 times, last \d+s ago/)
  expect(out).toContain('skerry join-token create')
  expect(out).toEndWith('Confirm it: skerry restore confirm\n')
  expect(JSON.parse((await runTestCli(admin, ['restore', '-o', 'json'])).out)).toEqual(PLAN)
})

test('RP2 restore confirm shows the plan, asks, and sends the token of that plan', async () => {
  const { admin, said } = await restored()
  expect((await runTestCli(admin, ['restore', 'confirm'])).code).toBe(2)
  expect((await runTestCli(admin, ['restore', 'confirm'], { isTty: true, stdin: 'n\n' })).code).toBe(1)
  expect(said).toEqual([])
  const yes = await runTestCli(admin, ['restore', 'confirm'], { isTty: true, stdin: 'y\n' })
  expect([yes.code, yes.out, said]).toEqual([0, 'restore confirmed: 2 clusters served again\n', ['admin']])
  expect(yes.err).toContain('would change')
  const { status, body } = await admin.call('POST', '/api/v1/restore/confirm', { token: 'other' })
  expect([status, (body as { code: string }).code]).toEqual([409, 'conflict'])
  for (const wrong of [{}, { token: 1 }, { token: 'tok', more: 1 }])
    expect((await admin.call('POST', '/api/v1/restore/confirm', wrong)).status).toBe(422)
})

test('RP2 without a restore both say so', async () => {
  const { admin, said } = await restored({ pending: false, sinceMs: null, token: null, clusters: [], unknownAgents: [] })
  for (const argv of [['restore'], ['restore', 'confirm', '--yes']]) {
    const { code, out, err } = await runTestCli(admin, argv)
    expect([code, out, err]).toEqual([0, '', 'no pending restore\n'])
  }
  expect(said).toEqual([])
})
