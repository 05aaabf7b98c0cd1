// The oracle of our YAML reading is kubectl itself. It needs no cluster, only its binary.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { findKubectl } from '../support/kubectl.ts'

const SCALARS = [
  ...['yes', 'Yes', 'YES', 'yEs', 'no', 'NO', 'on', 'On', 'off', 'OFF', 'y', 'Y', 'n', 'N', 'true', 'True', 'TRUE', 'tRUE', 'false'],
  ...['null', 'Null', 'NULL', '~', 'nULL', '""', "'yes'", '"0644"', 'plain text', '- ', '-', '--', '=', '.', '..'],
  ...[
    '0',
    '-0',
    '+1',
    '-1',
    '007',
    '0644',
    '08',
    '09',
    '0o14',
    '0O14',
    '0x1F',
    '0X1f',
    '-0x1f',
    '+0x1f',
    '0x',
    '0xg',
    '0b101',
    '-0b11',
    '0b2',
  ],
  ...[
    '1_000',
    '_1',
    '1_',
    '0_7',
    '0x_1f',
    '1__0',
    '1_000.5',
    '1.5',
    '1.',
    '.5',
    '-.5',
    '+.5',
    '.5e3',
    '.5_0',
    '1e3',
    '1E3',
    '1e+3',
    '1e400',
  ],
  ...['-1e400', '1.2.3', '1,000', '12e03', '1:30', '12:30:45', '190:20:30.15', '2001-01-01', '2001-1-1', '2001-12-14T21:59:43.10-05:00'],
  ...[
    '2001-13-01',
    '9007199254740991',
    '123456789012345678901',
    '1e5x',
    '0.1',
    '1e-7',
    '100m',
    '3Gi',
    '0777777',
    '!!str 0644',
    '!!str yes',
  ],
  ...['!!int "0644"', '!!float 3', '!!bool "on"', '! 12', '"\\u00e9\\x41"', "'it''s'"],
]
const KEYS = [
  'on',
  'n',
  'y',
  'yes',
  'NO',
  'true',
  '1',
  '0644',
  '0x1f',
  '1_0',
  '-5',
  '0.5',
  '12.25',
  '"on"',
  'on-call',
  'Null1',
  '2001-01-01',
  '=',
]

const kubectl = findKubectl()
if (kubectl === null) process.stderr.write('SKIPPED: no kubectl (scripts/setup --cluster makes one): YAML was not compared with it\n')

describe.skipIf(kubectl === null)('kubectl as oracle', () => {
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'skerry-yaml-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  function readByKubectl(text: string): unknown {
    const file = join(folder, 'manifest.yaml')
    writeFileSync(file, text)
    const run = Bun.spawnSync([kubectl ?? '', 'patch', '--local', '-f', file, '--type', 'merge', '-p', '{}', '-o', 'json'], {
      env: { HOME: folder },
    })
    return run.success ? JSON.parse(run.stdout.toString()) : { failed: run.stderr.toString() }
  }
  const head = 'apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n'
  const ours = (text: string) => parseYamlDocuments(text, { file: 'manifest.yaml' })

  test('YM1 every tricky scalar is read as kubectl reads it', () => {
    const text = `${head}v:\n${SCALARS.map((scalar) => `- ${scalar}\n`).join('')}`
    const parsed = ours(text)
    expect(parsed.problems).toEqual([])
    const theirs = readByKubectl(text) as { v: unknown[] }
    const values = (parsed.documents[0]?.value ?? {}) as { v?: unknown[] }
    expect(SCALARS.map((scalar, index) => [scalar, values.v?.[index]])).toEqual(SCALARS.map((scalar, index) => [scalar, theirs.v[index]]))
  })

  test('YM1 block scalars, folding, escapes, anchors and merges are read as kubectl reads them', () => {
    const text = `${head}a: |\n  one\n   two\n\n  three\n\nb: >-\n  folded\n  text\n\n  new\nc: "a \\\n  b\\tc"\nd: &d {x: yes, y1: 0644}\ne: {<<: *d, x: 1}\nf:\n  <<: [*d, {z: 2, x: 9}]\ng: *d\nh: plain\n  goes on\ni: |2+\n    kept\n\n`
    expect(ours(text).problems).toEqual([])
    expect(ours(text).documents[0]?.value).toEqual(readByKubectl(text))
  })

  test('YM2 keys become what kubectl makes of them', () => {
    for (const key of KEYS) {
      const text = `${head}k: {${key}: 1}\n`
      const parsed = ours(text)
      expect([key, parsed.problems]).toEqual([key, []])
      expect([key, parsed.documents[0]?.value]).toEqual([key, readByKubectl(text)])
    }
  })

  test('YM3 what kubectl refuses is refused', () => {
    for (const value of ['.inf', '-.Inf', '.nan', '{~: 1}', '{[a]: 1}', '{null: 1}']) {
      const text = `${head}k: ${value}\n`
      expect([value, ours(text).problems.length]).toEqual([value, 1])
      expect(readByKubectl(text)).toHaveProperty('failed')
    }
  })

  test('YM1 JSON with tabs and escapes is read as kubectl reads it', () => {
    const text =
      '{\n\t"apiVersion": "example.com/v1", "kind": "Thing",\n\t"metadata": {"name": "a"},\n\t"v": ["\\/", "\\ud83d\\ude00", 1e2, 12, true, null, "yes"]}'
    expect(ours(text).documents[0]?.value).toEqual(readByKubectl(text))
  })
})
