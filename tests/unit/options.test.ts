import { describe, expect, test } from 'bun:test'
import { type OptionTable, parseAddress, readOptions } from '../../shared/runtime/options.ts'
import { naming } from '../support/naming.ts'

const table = {
  data: { type: 'text', help: 'Data folder.', required: true },
  listen: { type: 'address', help: 'Where to listen.', default: '127.0.0.1:8080' },
  logLevel: { type: 'text', help: 'Log level.', default: 'info', choices: ['debug', 'info'] },
  joinToken: { type: 'text', help: 'Join token.', secret: true, choices: ['x'] },
  quiet: { type: 'flag', help: 'Say less.' },
  limit: { type: 'integer', help: 'How many.', max: 100 },
  every: { type: 'interval', help: 'How often.', default: '24h', leastMs: 3_600_000 },
} as const satisfies OptionTable

describe('readOptions', () => {
  test('a flag wins over the environment, the environment over the default', () => {
    const read = readOptions(table, { data: '/flag' }, { SKERRY_DATA: '/env', SKERRY_LOG_LEVEL: 'debug', SKERRY_QUIET: '1' })
    expect<unknown>(read).toEqual({
      kind: 'options',
      options: { data: '/flag', listen: '127.0.0.1:8080', logLevel: 'debug', quiet: true, every: 86_400_000 },
    })
  })
  test('everything wrong is told at once, by flag and environment name, and a secret is never echoed', () => {
    const read = readOptions(table, { logLevel: 'loud', joinToken: 'hunter2', limit: '-1' }, {})
    expect(read).toEqual({
      kind: 'problems',
      problems: [
        { path: '--data (SKERRY_DATA)', message: naming('required') },
        { path: '--log-level (SKERRY_LOG_LEVEL)', message: naming('debug, info', '"loud"') },
        { path: '--join-token (SKERRY_JOIN_TOKEN)', message: naming('***') },
        { path: '--limit (SKERRY_LIMIT)', message: naming('whole number', '"-1"') },
      ],
    })
    expect(JSON.stringify(read)).not.toContain('hunter2')
  })
})

test.each([
  ['100', []],
  ['101', [{ path: '--limit (SKERRY_LIMIT)', message: naming('whole number', 100, '"101"') }]],
])('a greatest number: %s', (limit, problems) => {
  const read = readOptions(table, { data: '/flag', limit }, {})
  expect<unknown>(read.kind === 'problems' ? read.problems : []).toEqual(problems)
})

test.each([
  ['off', 0],
  ['1h', 3_600_000],
  ['7d', 604_800_000],
  ['30m', naming('60m', '"30m"')],
  ['daily', naming('off', '24h', '"daily"')],
])('an interval: %s', (every, expected) => {
  const read = readOptions(table, { data: '/flag', every }, {})
  expect(read.kind === 'problems' ? read.problems[0]?.message : read.options.every).toEqual(expected)
})

test.each([
  ['127.0.0.1:8080', { hostname: '127.0.0.1', port: 8080 }],
  [':8080', { hostname: '0.0.0.0', port: 8080 }],
  ['[::1]:0', { hostname: '::1', port: 0 }],
  ['localhost:65536', null],
  ['localhost', null],
  ['', null],
])('address %p', (text, expected) => expect(parseAddress(text)).toEqual(expected))
