import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { LINE_BYTES_MAX, LineSplitter, parseWatchLine } from '../../agent/cluster/watch-stream.ts'

const encoder = new TextEncoder()
const CONFIG_MAPS = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true, verbs: [] }

describe('lines of a stream', () => {
  test('KA20 come out whole wherever the chunks were cut', () => {
    const line = fc.string({ unit: 'binary', minLength: 1 }).map((text) => text.replaceAll('\n', ' ').replaceAll('\uFFFD', '?'))
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat()), fc.string({ unit: 'grapheme' }), (lines, cuts, unfinished) => {
        const rest = unfinished.replaceAll('\n', ' ')
        const bytes = encoder.encode(lines.map((text) => `${text}\n`).join('') + rest)
        const splitter = new LineSplitter()
        const positions = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b)
        const found = positions.slice(1).flatMap((end, index) => splitter.push(bytes.subarray(positions[index], end)))
        expect(found).toEqual(lines)
        // What was unfinished is still there.
        expect(splitter.push(encoder.encode('\n'))).toEqual(rest === '' ? [] : [rest])
      }),
      { numRuns: 500 },
    )
  })

  test('KA20 a buffer that the stream uses again does no harm', () => {
    const splitter = new LineSplitter()
    const buffer = encoder.encode('first')
    splitter.push(buffer)
    buffer.fill(120)
    expect(splitter.push(encoder.encode('\n'))).toEqual(['first'])
  })

  test('KA20 a line without an end is an error, not a full memory', () => {
    const splitter = new LineSplitter()
    const chunk = new Uint8Array(LINE_BYTES_MAX / 4).fill(120)
    for (let index = 0; index < 4; index += 1) splitter.push(chunk)
    expect(() => splitter.push(encoder.encode('x'))).toThrow('longer than')
  })
})

describe('what a line means', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', resourceVersion: '7' }, extra: { kept: null } }
  const bookmark = (annotations?: Record<string, string>) => ({
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: '9', annotations } },
  })

  test.each([
    ['an event', { type: 'MODIFIED', object }, { kind: 'object', type: 'MODIFIED', resourceVersion: '7', object }],
    ['a bookmark', bookmark(), { kind: 'bookmark', resourceVersion: '9', initialEventsEnd: false }],
    [
      'the end of the list',
      bookmark({ 'k8s.io/initial-events-end': 'true' }),
      { kind: 'bookmark', resourceVersion: '9', initialEventsEnd: true },
    ],
    [
      'a forgotten position',
      { type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old resource version' } },
      { kind: 'expired' },
    ],
    [
      'another error',
      { type: 'ERROR', object: { kind: 'Status', code: 500, message: 'conversion webhook for x failed' } },
      { kind: 'error', failure: { kind: 'webhook', status: 500 } },
    ],
    ['an unknown type', { type: 'NEWS', object }, { kind: 'error', failure: { kind: 'server_error' } }],
    ['an event without an object', { type: 'ADDED', object: { kind: 'ConfigMap' } }, { kind: 'error' }],
    ['a bookmark without a position', { type: 'BOOKMARK', object: { metadata: {} } }, { kind: 'error' }],
    ['no event at all', [1], { kind: 'error' }],
  ])('KA20 %s', (_, line, expected) => expect(parseWatchLine(JSON.stringify(line), CONFIG_MAPS)).toMatchObject(expected))

  test('KA20 half a line is an error', () => expect(parseWatchLine('{"type":"ADDED"', CONFIG_MAPS)).toMatchObject({ kind: 'error' }))

  test.each([
    { type: 'ADDED', object: { kind: 'Secret', data: { password: 'hunter' } } },
    { type: 'BOOKMARK', object: { data: { password: 'hunter' } } },
    { type: 'hunter2', object: {} },
    ['hunter'],
  ])('KA54 an error about the line %j quotes nothing of it', (line) => {
    const parsed = parseWatchLine(JSON.stringify(line), CONFIG_MAPS)
    expect(parsed).toMatchObject({ kind: 'error', failure: { kind: 'server_error', reason: 'Unreadable' } })
    expect(JSON.stringify(parsed)).not.toContain('hunter')
  })
})
