// Files of secrets: made once with mode 0600, replaced whole and durably, and overwritten when another takes their
// place.
import { closeSync, fstatSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncPath } from '../../shared/adapters/sync-path.ts'

/** Durable and whole before it is used: a half-written key would lock out every agent. */
export function readOrMake(path: string, make: () => string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  const text = make()
  writeWhole(path, text)
  return text
}

/** The file that a crash leaves when it interrupts a replacement. */
export const stagedPath = (path: string) => `${path}.new`

function writeWhole(path: string, text: string): void {
  const staged = stagedPath(path)
  writeFileSync(staged, text, { mode: 0o600 })
  syncPath(staged)
  renameSync(staged, path)
  syncPath(dirname(path))
}

/** The new file takes the name in one step; then what the old one held is overwritten, so that its blocks give nothing
 *  away either. */
export function replaceSecret(path: string, text: string): void {
  const old = openSync(path, 'r+')
  try {
    writeWhole(path, text)
    writeSync(old, Buffer.alloc(fstatSync(old).size), 0, null, 0)
    fsyncSync(old)
  } finally {
    closeSync(old)
  }
}
