import { describe, expect, test } from 'bun:test'
import { statusText } from '../../agent/cli/print-status.ts'
import { enforcementOf } from '../../agent/enforcement-report.ts'
import { serviceText } from '../../agent/messages/service-messages.ts'
import { enforcementText } from '../../agent/messages/site-messages.ts'
import { statusWarning, statusWords } from '../../agent/messages/status-messages.ts'
import type { AgentReport, LinkReport } from '../../agent/observe/report.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'

const NOW = 10_000_000
const link = (change: Partial<LinkReport> = {}): LinkReport => ({
  server: 'https://skerry',
  state: 'following',
  sinceMs: NOW - 3_600_000,
  lastContactMs: NOW - 12_000,
  headSignedMs: NOW - 600_000,
  error: null,
  parts: null,
  metered: false,
  waitSeconds: 110,
  budgetBytes: 0,
  bytesSent: 1,
  bytesReceived: 1,
  requests: 1,
  ...change,
})
const HOLDER = { agent: 'a-2', incarnation: 2, instance: '' }
const report = (change: Partial<AgentReport> = {}): AgentReport => ({
  running: true,
  version: '1.0.0',
  clusterId: 'c-1',
  agentId: 'a-1',
  incarnation: 1,
  recipient: null,
  link: link(),
  enforcement: enforcementOf({ kind: 'held' }, null, true, null),
  replica: { position: 'db.1.7.hash', epoch: 1, rows: 3, verified: true },
  disk: null,
  resync: null,
  policy: null,
  ageKeys: null,
  foreignRecipient: null,
  outboxDepth: 0,
  todayBytes: 12_345,
  services: [],
  ...change,
})
const failure = (code: 'revoked' | 'restore_pending' | 'disk_full' | 'server_unreachable' | 'join_token_unknown', message: string) => ({
  code,
  message,
  remedy: ERRORS[code].remedy,
})
const NOT_JOINED = {
  clusterId: null,
  agentId: null,
  incarnation: null,
  recipient: null,
  replica: null,
  enforcement: enforcementOf({ kind: 'asking', message: null }, null, false, null),
}

describe('what a person at the site reads', () => {
  test.each<[string, Partial<AgentReport>, string[]]>([
    [
      'well',
      {},
      ['enforcement  enforcing', 'https://skerry: connected for 1 h, last contact 12 s ago', 'no service targets this cluster yet'],
    ],
    ['compared with lists', { resync: { compared: 12, differences: 1 } }, ['resync       12 lists compared, 1 missed changes found']],
    [
      'just started',
      { link: link({ sinceMs: NOW - 2_000, lastContactMs: null }) },
      ['https://skerry: no answer yet for 2 s, last contact never'],
    ],
    [
      'not joined',
      { ...NOT_JOINED, link: link({ state: 'halted', lastContactMs: null, error: failure('join_token_unknown', 'join: unknown') }) },
      [
        'not joined yet',
        enforcementText('waiting.not_joined'),
        'last contact never',
        'join: unknown (join_token_unknown)',
        ERRORS.join_token_unknown.remedy,
        statusWords('no_services.not_joined'),
      ],
    ],
    [
      'offline',
      { link: link({ state: 'offline', error: failure('server_unreachable', 'pull: refused') }), outboxDepth: 4 },
      [
        'enforcement  enforcing',
        'unreachable for 1 h',
        'pull: refused (server_unreachable)',
        ERRORS.server_unreachable.remedy,
        statusWords('outbox', { rows: 4 }),
      ],
    ],
    [
      'revoked',
      { link: link({ state: 'halted', error: failure('revoked', 'pull: revoked') }) },
      ['enforcement  enforcing', 'refuses this agent for 1 h', ERRORS.revoked.remedy],
    ],
    [
      'on a full disk',
      { link: link({ state: 'offline', error: failure('disk_full', 'pull: full') }) },
      [`${statusWords('link.disk_full')} for 1 h`, ERRORS.disk_full.remedy],
    ],
    [
      'while the server waits for a person',
      { link: link({ state: 'restore_pending', error: failure('restore_pending', 'pull: restored') }) },
      ['enforcement  enforcing', `${statusWords('link.restore')} for 1 h`, ERRORS.restore_pending.remedy],
    ],
    ['refetching', { link: link({ state: 'refetching' }) }, ['fetching the differences for 1 h']],
    [
      'with a large page on a bad link',
      { link: link({ state: 'fetching_parts', parts: { have: 3, of: 20, bytes: 5_242_880 } }) },
      [`${statusWords('link.parts', { have: 3, parts: 20, size: '5.2 MB' })} for 1 h`],
    ],
    ['without a budget', {}, ['traffic      12.3 kB today, polls of 1 min']],
    [
      'metered, within its budget',
      { link: link({ metered: true, waitSeconds: 900, budgetBytes: 1_000_000 }), todayBytes: 64_000 },
      ['traffic      64.0 kB of 1.0 MB today, metered, polls of 15 min'],
    ],
    [
      'metered, with its budget spent',
      { link: link({ metered: true, waitSeconds: 900, budgetBytes: 1_000_000 }), todayBytes: 1_000_000 },
      [statusWarning('budget_spent').text, `next step    ${statusWarning('budget_spent').next}`],
    ],
    [
      'superseded',
      { enforcement: enforcementOf({ kind: 'superseded', by: HOLDER, asks: true }, null, true, null) },
      [`superseded: ${enforcementText('superseded', { other: 'agent a-2' })}`],
    ],
    [
      'CM12 superseded by a later incarnation of itself',
      { enforcement: enforcementOf({ kind: 'superseded', by: HOLDER, asks: false }, null, true, null) },
      [
        enforcementText('superseded.later_self', {
          other: 'agent a-2',
          deleteClaim: 'kubectl -n skerry-system delete configmap skerry-claim',
        }),
      ],
    ],
    [
      'held',
      { enforcement: enforcementOf({ kind: 'held' }, null, true, { by: 'ola', why: 'a storm', sinceMs: 0, scope: '--all' }) },
      [
        `enforcing: ${enforcementText('enforcing.held', { hold: serviceText('Held', { by: 'ola', since: '1970-01-01T00:00Z', until: '', why: 'a storm', scope: '--all' }) })}`,
      ],
    ],
    [
      'without an API server',
      { enforcement: enforcementOf({ kind: 'held' }, 'no answer from https://10.0.0.1: ECONNREFUSED', true, null) },
      [`waiting: ${enforcementText('waiting.unreachable', { failure: 'no answer from https://10.0.0.1: ECONNREFUSED' })}`],
    ],
    [
      'stopped',
      { running: false, link: null, enforcement: { state: 'stopped', message: 'x' } },
      [statusWords('not_running'), statusWords('link.unknown'), statusWords('traffic_stopped', { bytes: '12.3 kB' })],
    ],
    ['damaged', { replica: { position: 'db.1.7.hash', epoch: 1, rows: 3, verified: false } }, [statusWords('replica_damaged')]],
    [
      'nothing received',
      { replica: { position: null, epoch: 0, rows: 0, verified: true } },
      [statusWords('replica_empty'), statusWords('no_services.nothing')],
    ],
  ])('SY5 %s', (_, change, lines) => {
    const text = statusText(report(change), NOW)
    for (const line of lines) expect(text).toContain(line)
    expect(text).not.toMatch(/undefined|null|NaN|following|halted/)
  })
})

test.each([
  ['ten minutes ago', { headSignedMs: NOW - 600_000 }, null],
  ['a little more than two hours ago', { headSignedMs: NOW - 7_300_000 }, statusWarning('head_late', { length: '2 h' }).text],
  ['never, for a minute', { headSignedMs: null, sinceMs: NOW - 60_000 }, statusWarning('head_never').text],
  ['never, for a moment', { headSignedMs: null, sinceMs: NOW - 5_000 }, null],
  ['never, while the server is unreachable', { headSignedMs: null, state: 'offline' }, null],
])('PR7 SY5 a head that the server signed %s', (_, change, said) => {
  const text = statusText(report({ link: link(change) }), NOW)
  if (said === null) expect(text).not.toContain('signed')
  else expect(text).toContain(said)
})

test('EC1 a prune that waits for a person names the command that shows it', () => {
  const refusal = { digest: 'd', names: ['ConfigMap a/b'], count: 1, ownedCount: 1, why: 'w' }
  const status = {
    sync: 'OutOfSync',
    health: 'Healthy',
    reason: 'PruneBlocked',
    message: 'm',
    sinceMs: 0,
    objectCount: 1,
    healthyCount: 1,
    refusal,
  } as const
  expect(statusText(report({ services: [{ name: 'web/shop', status }] }), NOW)).toContain('  m; `skerry-agent confirm web/shop` shows them')
})

test('CL1 a long message is cut in the table and said in full below', () => {
  const message = `ConfigMap a/b: ${'no '.repeat(40)}end`
  const status = {
    sync: 'OutOfSync',
    health: 'Healthy',
    reason: 'Invalid',
    message,
    sinceMs: 0,
    objectCount: 1,
    healthyCount: 1,
  } as const
  const text = statusText(report({ services: [{ name: 'web/shop', status }] }), NOW)
  expect(text).toEndWith(`\n\nweb/shop: ${message}`)
  expect(text.split(message)).toHaveLength(2)
  expect(text).toContain('no n…\n')
})

test('SL15 a server that seals to another recipient key is said with both fingerprints and a next step', () => {
  const lines = (foreignRecipient: string | null) => statusText(report({ recipient: 'f-own', foreignRecipient }), NOW).split('\n')
  const at = lines('f-other').findIndex((line) => /^recipient +f-own$/.test(line))
  expect(lines('f-other').slice(at + 1, at + 3)).toEqual([expect.stringContaining('f-other'), expect.stringMatching(/^next step /)])
  expect(lines(null).some((line) => line.startsWith('next step'))).toBe(false)
})

test('RP4 a disk that was full is said while there is no reserve, also with the server in reach', () => {
  const lines = (disk: string | null) =>
    statusText(report({ disk }), NOW)
      .split('\n')
      .filter((line) => line.startsWith('disk'))
  expect(lines(null)).toEqual([])
  expect(lines('no space left')).toEqual(['disk         no space left'])
})
