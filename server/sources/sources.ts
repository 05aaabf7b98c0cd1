// One Source, with a folder of its own, for each repository and what it says: another URL, ref or option starts afresh, and what belonged to an older one is removed.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import type { RepositoryPlace } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { AddressGuard } from './address-guard.ts'
import { createGitSource } from './git-source.ts'
import type { Source } from './source.ts'

export interface SourceKey {
  /** Of the Repository resource. */
  uid: string
  project: string
  place: RepositoryPlace
}

export interface Sources {
  open(key: SourceKey): Source
  /** Removes everything of a repository that is no more. */
  forget(uid: string): Promise<void>
}

export interface SourceDeps {
  /** A folder for each source is made below it. */
  root: string
  /** Every request of every source goes through it (SO1). */
  addresses: AddressGuard
  /** The secrets of a Config by their names, read anew for each request that needs one; throws `credential_missing` when there is no such Config. */
  credentials(project: string, secretRef: string): Promise<Readonly<Record<string, string>>>
}

export function createSources(deps: SourceDeps): Sources {
  const { root } = deps
  const opened = new Map<string, { folder: string; source: Source }>()
  const removeOthers = async (uid: string, kept: string | null) => {
    const names = await readdir(root).catch(() => [])
    const old = names.filter((name) => name.startsWith(`${uid}-`) && ![kept, `${kept}.new`, `${kept}.old`].includes(name))
    await Promise.all(old.map((name) => rm(join(root, name), { recursive: true, force: true })))
  }
  return {
    open(key) {
      const { uid } = key
      const folder = `${uid}-${sha256Hex(folderText(key.place)).slice(0, 12)}`
      const held = opened.get(uid)
      if (held?.folder === folder) return held.source
      const source = create(key, join(root, folder), deps)
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

/** Of a Git repository with nothing but an address and a ref, as it always was: no upgrade fetches anew. */
function folderText(place: RepositoryPlace): string {
  if (place.kind === 'git' && Object.keys(place.spec).every((name) => name === 'url' || name === 'ref'))
    return `${place.spec.url}\n${place.spec.ref}`
  return canonicalJson(place)
}

function create({ place }: SourceKey, dir: string, { addresses }: SourceDeps): Source {
  switch (place.kind) {
    case 'git':
      return createGitSource({ url: place.spec.url, ref: place.spec.ref, dir, fetcher: addresses.fetcher })
    case 'helm':
    case 'oci':
      throw new AppError('source_refused', { detail: `${place.spec.url}: this version reads Git repositories only` })
  }
}
