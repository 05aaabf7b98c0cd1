// A folder of its own for each caller, gone after the test file.
import { afterAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A slow disk is no failure of what was tested. */
const REMOVAL_TIMEOUT_MS = 60_000

const made: string[] = []
afterAll(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true })
}, REMOVAL_TIMEOUT_MS)

export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-test-'))
  made.push(dir)
  return dir
}
