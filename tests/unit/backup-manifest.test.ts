// What the manifest of a backup from anybody's disk may say.
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FORMAT, MANIFEST, readManifest } from '../../server/backup/manifest.ts'
import { tempDir } from '../support/temp-dir.ts'

const whole = {
  format: FORMAT,
  skerry: '1.2.3-dev',
  store: 'sqlite',
  schema: 3,
  createdMs: 1,
  fingerprint: 'ab12',
  counts: {},
  files: [],
  content: [],
}

function read(more: object): unknown {
  const dir = tempDir()
  writeFileSync(join(dir, MANIFEST), JSON.stringify({ ...whole, ...more }))
  try {
    return readManifest(dir)
  } catch (error) {
    return error
  }
}

test.each([
  ['a version that moves the cursor', { skerry: '1\u001b[2J' }],
  ['a version with a line of its own', { skerry: '1\nerror: none' }],
  ['a fingerprint that moves the cursor', { fingerprint: '\u001b[2J' }],
  ['a time that no calendar has', { createdMs: Number.MAX_SAFE_INTEGER }],
])('BK4 %s is refused, and a whole one is not', (_, more) => {
  expect(read({})).toMatchObject({ skerry: '1.2.3-dev' })
  expect(read(more)).toMatchObject({ code: 'backup_unusable' })
})
