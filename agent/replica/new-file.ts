// A whole, checked, synced file beside the one in force, ready to take its name (PL8, PL9).
import { existsSync, rmSync } from 'node:fs'
import { isDamage } from '../../shared/adapters/sqlite.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { rowHash } from '../../shared/crdt/row-hash.ts'
import { bucketCountFor, bucketOf } from '../../shared/protocol/refetch.ts'
import type { Page } from './page-reader.ts'
import { openReplicaFile, type ReplicaFile, type ReplicaFileOptions } from './replica-file.ts'

export interface NewFile {
  path: string
  options: ReplicaFileOptions
  page: Page
  /** Verified, and with its path; null if it does not count. */
  old: { file: ReplicaFile; path: string } | null
}

export type Built = { kind: 'built'; changedIds: string[] } | { kind: 'refused'; why: string }

export function buildNewFile({ path, options, page, old }: NewFile): Built {
  const wrong = wrongKeep(page, old?.file ?? null)
  if (wrong !== null) return { kind: 'refused', why: wrong }
  const { hello, rows, checkpoint, wraps } = page
  const file = openReplicaFile(path, { ...options, building: true })
  let changedIds: string[]
  try {
    file.fill(
      old === null ? [] : keptRows(old.file, hello.keep ?? ''),
      rows,
      { hello, checkpoint },
      (id) => wraps.get(id) ?? old?.file.wrapOf(id) ?? null,
    )
    const why = file.damage('quick')
    if (why !== null) return { kind: 'refused', why }
    changedIds = differingIds(file, old?.path ?? null)
    file.db.run('PRAGMA journal_mode=WAL')
  } finally {
    file.close()
  }
  if (existsSync(`${path}-wal`)) return { kind: 'refused', why: 'its log could not be folded in' }
  syncPath(path)
  return { kind: 'built', changedIds }
}

/** All of them if there is nothing to compare with; the caller then checks more than necessary. */
function differingIds(file: ReplicaFile, oldPath: string | null): string[] {
  try {
    if (oldPath !== null) return file.differingIds(oldPath)
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  return Array.from(file.all(), ({ id }) => id)
}

export function removeFile(path: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
}

/** `keep` refers to sums of the rows held now, or keeps nothing. */
function wrongKeep({ hello: { keep } }: Page, old: ReplicaFile | null): string | null {
  if (keep === undefined || !keep.includes('1')) return null
  const held = old?.held() ?? null
  if (held === null) return 'keeps rows of an incomplete replica'
  const buckets = bucketCountFor(held.count)
  return keep.length === buckets ? null : `lists ${keep.length} kept buckets of ${buckets}`
}

function* keptRows(old: ReplicaFile, keep: string): Iterable<readonly [id: string, doc: string]> {
  const count = keep.length === 256 || keep.length === 16 || keep.length === 1 ? keep.length : 0
  if (!keep.includes('1')) return
  for (const { id, doc } of old.all()) if (keep[bucketOf(rowHash(id, doc), count)] === '1') yield [id, doc]
}
