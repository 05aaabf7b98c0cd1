// One Git folder for each repository, place and ref: another URL or ref starts afresh, and what belonged to an older one is removed.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import type { Fetcher } from './git-http.ts'
import { createGitSource } from './git-source.ts'
import type { Source } from './source.ts'

export interface SourceKey {
  /** Of the Repository resource. */
  uid: string
  url: string
  ref: string
}

export interface Sources {
  open(key: SourceKey): Source
  /** Removes everything of a repository that is no more. */
  forget(uid: string): Promise<void>
}

export function createGitSources(root: string, fetcher: Fetcher): Sources {
  const opened = new Map<string, { folder: string; source: Source }>()
  const removeOthers = async (uid: string, kept: string | null) => {
    const names = await readdir(root).catch(() => [])
    const old = names.filter((name) => name.startsWith(`${uid}-`) && ![kept, `${kept}.new`, `${kept}.old`].includes(name))
    await Promise.all(old.map((name) => rm(join(root, name), { recursive: true, force: true })))
  }
  return {
    open({ uid, url, ref }) {
      const folder = `${uid}-${sha256Hex(`${url}\n${ref}`).slice(0, 12)}`
      const held = opened.get(uid)
      if (held?.folder === folder) return held.source
      const source = createGitSource({ url, ref, dir: join(root, folder), fetcher })
      opened.set(uid, { folder, source })
      removeOthers(uid, folder).catch(() => {}) // only space is lost; the next start tries again
      return source
    },
    async forget(uid) {
      opened.delete(uid)
      await removeOthers(uid, null)
    },
  }
}
