// The file for the first admin token: looked at before there is a token, because that is told once.
import { expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkTokenFile, writeTokenFile } from '../../server/access/api-tokens.ts'
import { tempDir } from '../support/temp-dir.ts'

test('AP2 a token file that cannot be written is told before a token is made', async () => {
  const dir = tempDir()
  for (const path of [join(dir, 'none', 'token'), dir]) await expect(checkTokenFile(path)).rejects.toMatchObject({ code: 'bad_options' })
})

test('AP2 looking leaves no file, and one that is there as it is; what is written only its user reads', async () => {
  const path = join(tempDir(), 'token')
  await checkTokenFile(path)
  expect(existsSync(path)).toBe(false)
  writeFileSync(path, 'old\n', { mode: 0o644 })
  await checkTokenFile(path)
  expect(readFileSync(path, 'utf8')).toBe('old\n')
  await writeTokenFile(path, 'sk_new')
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['sk_new\n', 0o600])
})
