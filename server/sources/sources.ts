// One Source, with a folder of its own, for each repository and what it says: another URL, ref or option starts afresh,
// and what belonged to an older one is removed.
import { join } from 'node:path'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import type { HelmRepositorySpec, OciSpec } from '../../shared/model/sources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { AddressGuard } from './address/guard.ts'
import { removeFolders, removeLeftSecrets, removeUnknownFolders, uidOf } from './folders.ts'
import { findGitPrograms, type GitDeps, openGitSource } from './git/open.ts'
import { createGitTokens } from './git/tokens.ts'
import type { RaiseWatermark } from './git/watermark.ts'
import { createHelmSource, createIndexCache, type IndexCache } from './helm/helm-source.ts'
import { createOciSource } from './oci/oci-source.ts'
import { openRegistry, pullAnonymously } from './oci/pull.ts'
import type { FileSpec, Source, SourcePlace } from './source.ts'
import { createFileSource } from './stored/file-source.ts'
import { createUnpacked, type Unpacked } from './stored/unpacked.ts'
import { createUploadSource } from './upload-source.ts'
import type { WebCredential } from './web-request.ts'

export interface SourceKey {
  /** The UID of the Repository resource; for a remote base see remoteBaseUid. */
  uid: string
  project: string
  place: SourcePlace
}

export interface Sources {
  /** The source of that repository at that place: one for all callers. Sends no request. */
  open(key: SourceKey): Source
  /**
   * Removes the files of another place of that repository. Only for its single user: others may still use an older
   * place of it.
   */
  removeOthers(key: SourceKey): Promise<void>
  /** Removes what belongs to none of these repositories and was not opened since the start. */
  removeUnknown(uids: ReadonlySet<string>): Promise<void>
  /** Removes everything of a repository that is no more. */
  forget(uid: string): Promise<void>
}

/** The servers to which a credential would be sent. */
export interface CredentialUse {
  /** Address of the repository. */
  url: string
  /** Host of the server that the registry at `url` names for tokens. */
  tokenServer?: string | undefined
}

export interface SourceDeps {
  /** A folder for each source is made below it. */
  root: string
  /** The name of this process among several that share the root. Absent if there is no other. */
  owner?: string
  /** Every request of every source goes through it (SO1). */
  addresses: AddressGuard
  /**
   * The secrets of a Config by their names, read again for each request that needs one; throws `credential_missing` if
   * there is no such Config, and `source_refused` if it is for other hosts.
   */
  credentials(project: string, secretRef: string, use: CredentialUse): Promise<Readonly<Record<string, string>>>
  clock: Clock
  /** The server stops: programs that run are ended. */
  stopping: AbortSignal
  /** Aborts when nobody waits for the running code any more: programs that it started are ended. Absent means that
   *  somebody always does. */
  cancelled?(): AbortSignal | undefined
  /** For the source that the running job fetches. */
  raiseWatermark: RaiseWatermark
}

/** The sources of a server, in folders below `root`; removes keys that a killed server left there. */
export function createSources(deps: SourceDeps): Sources {
  const { root } = deps
  const git = gitDeps(deps)
  const kept = { unpacked: createUnpacked(), indexes: createIndexCache() }
  /** By folder. */
  const opened = new Map<string, { uid: string; source: Source }>()
  /** Folder of a repository beside which there is no other one. */
  const alone = new Map<string, string>()
  removeLeftSecrets(root, deps.owner)
  const folderOf = ({ uid, place }: SourceKey) => `${uid}-${sha256Hex(folderText(place)).slice(0, 12)}`
  const removeOf = async (uid: string, kept: string | null) => {
    const isOld = (folder: string) => uidOf(folder) === uid && folder !== kept
    for (const [folder] of opened) if (isOld(folder)) opened.delete(folder)
    await removeFolders(root, isOld)
  }
  return {
    open(key) {
      const folder = folderOf(key)
      const held = opened.get(folder)
      if (held !== undefined) return held.source
      const source = openOr(() => create(key, join(root, folder), { ...deps, ...kept, git }))
      opened.set(folder, { uid: key.uid, source })
      return source
    },
    async removeOthers(key) {
      const folder = folderOf(key)
      if (alone.get(key.uid) === folder) return
      await removeOf(key.uid, folder)
      alone.set(key.uid, folder)
    },
    async removeUnknown(uids) {
      const isOpen = (of: string) => [...opened.values()].some(({ uid }) => uid === of) // as of when the folders are known
      await removeUnknownFolders(root, (uid) => uids.has(uid) || isOpen(uid))
    },
    async forget(uid) {
      alone.delete(uid)
      await removeOf(uid, null)
    },
  }
}

/** Every user of a place gets its error. */
function openOr(open: () => Source): Source {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const refuse = () => Promise.reject(error)
    return { head: refuse, fetch: refuse, has: async () => false, open: refuse }
  }
}

/** For a Git repository with only an address and a ref it never changes: no upgrade fetches again. */
function folderText(place: SourcePlace): string {
  if (place.kind === 'git' && Object.keys(place.spec).every((name) => name === 'url' || name === 'ref'))
    return `${place.spec.url}\n${place.spec.ref}`
  return canonicalJson(place)
}

function create(
  { place, project }: SourceKey,
  dir: string,
  deps: SourceDeps & { unpacked: Unpacked; indexes: IndexCache; git: GitDeps },
): Source {
  const { addresses, unpacked, indexes, git } = deps
  switch (place.kind) {
    case 'git': {
      const { auth } = place.spec
      const secrets = auth === undefined ? null : () => deps.credentials(project, auth.secretRef, { url: place.spec.url })
      return openGitSource({ ...place.spec, dir, secrets }, git)
    }
    case 'helm': {
      const credential = credentialOf(deps, project, place.spec)
      const pullChart = pullAnonymously(addresses)
      const { fetcher, namedOnly } = addresses
      return createHelmSource({ url: place.spec.url, dir, fetcher, namedOnly, credential, unpacked, indexes, pullChart })
    }
    case 'oci': {
      const credential = credentialOf(deps, project, place.spec)
      return createOciSource({ ...openRegistry(place.spec, addresses, credential), dir, unpacked })
    }
    case 'upload':
      return createUploadSource({ dir, unpacked })
    case 'file': {
      const { fetcher, namedOnly } = addresses
      return createFileSource({ url: place.spec.url, dir, fetcher, namedOnly, credential: credentialOf(deps, project, place.spec) })
    }
  }
}

const credentialOf = (deps: SourceDeps, project: string, { auth, url }: HelmRepositorySpec | OciSpec | FileSpec): WebCredential => ({
  secretRef: auth?.secretRef ?? null,
  read: async (tokenServer) => (auth === undefined ? {} : deps.credentials(project, auth.secretRef, { url, tokenServer })),
})

const gitDeps = ({ addresses, clock, stopping, cancelled, raiseWatermark, owner = '' }: SourceDeps): GitDeps => ({
  owner,
  fetcher: addresses.fetcher,
  allowedAddress: (host) => addresses.allowedAddress(host),
  proxyOf: (url) => addresses.proxyOf(url),
  clock,
  stopping,
  cancelled,
  raiseWatermark,
  tokens: createGitTokens({ fetcher: addresses.fetcher, clock }),
  programs: findGitPrograms(),
})
