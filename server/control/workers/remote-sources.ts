// Sources of repositories, as control uses them: each question is a job of a worker. The content of a revision never
// changes, so control keeps its ids and asks for each once.
import type { z } from 'zod'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { SignedCommit } from '../../../shared/model/commits.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { ContentIds, ContentSource, ContentSources, OpenedContent } from '../../ingest/content-port.ts'
import { removeUnknownFolders, removeUnusedBases } from '../../sources/folders.ts'
import { SizedCache } from '../../sources/sized-cache.ts'
import type { SourcePick } from '../../sources/source.ts'
import type { CredentialUse } from '../../sources/sources.ts'
import type { RaisedWatermark, VerifiedRef } from '../../store/store-commits.ts'
import { ASKED, type AskedAnswers, type Method, type Orders, PATHS_AT_ONCE_MAX, type SourceKey } from '../../worker/channel/messages.ts'
import type { JobKind } from './lane.ts'
import type { JobAnswer, WorkerPool } from './pool.ts'

export interface RemoteSourcesDeps {
  workers: Pick<WorkerPool, 'run'>
  /** Parent of the folders of sources. Control reads only the names of folders. */
  root: string
  /** Reads the secrets of a Config of that project, for that repository. */
  credentials(project: string, secretRef: string, use: CredentialUse): Promise<Readonly<Record<string, string>>>
  /** SO55: keeps a ref from going back to an older signed commit. */
  raiseWatermark(ref: VerifiedRef, signed: SignedCommit): Promise<RaisedWatermark>
}

/** Most ids that are kept, of revisions that were opened lately. One takes about 150 bytes. */
const IDS_KEPT_MAX = 200_000
const OF_A_REVISION = 100

interface Held {
  root: string
  version: string
  /** A path that could not be read is not kept. */
  ids: Map<string, string | null>
}

export function createRemoteSources(deps: RemoteSourcesDeps): ContentSources {
  return new RemoteSources(deps)
}

/** A job gets the secrets that its own repositories name, for these repositories, and no others. */
export const credentialsOf = ({ credentials }: Pick<RemoteSourcesDeps, 'credentials'>, keys: readonly SourceKey[]) => {
  const allowed = new Map<string, string>()
  const nameOf = (secretRef: string, url: string) => `${secretRef} ${url}`
  const allow = ({ project, place: { spec } }: SourceKey) => {
    if (spec.auth !== undefined) allowed.set(nameOf(spec.auth.secretRef, spec.url), project)
  }
  keys.forEach(allow)
  return {
    /** Adds a repository to the job. */
    allow,
    async read({ secretRef, ...use }: z.infer<typeof ASKED.credentials>): Promise<Readonly<Record<string, string>>> {
      const project = allowed.get(nameOf(secretRef, use.url))
      if (project === undefined) throw new AppError('credential_missing', { detail: 'the job has no such credential' })
      return credentials(project, secretRef, use)
    },
  }
}

class RemoteSources implements ContentSources {
  private readonly deps: RemoteSourcesDeps
  private readonly held = new SizedCache<Held>(IDS_KEPT_MAX, ({ ids }) => ids.size + OF_A_REVISION)
  /** Project of each repository that was asked for since the start, by uid. */
  private readonly projects = new Map<string, string>()

  constructor(deps: RemoteSourcesDeps) {
    this.deps = deps
  }

  open(key: SourceKey): ContentSource {
    this.projects.set(key.uid, key.project)
    const tags = new Map<string, string>()
    const first = new Set<string>()
    const looked = async (method: 'source.head' | 'source.fetch') => {
      const { revision, tag } = (await this.run(method, key, 'fetch', key, (commit) => first.add(commit))).value
      if (tag !== null) tags.set(revision, tag)
      return revision
    }
    return {
      head: () => looked('source.head'),
      fetch: () => looked('source.fetch'),
      tagOf: (revision) => tags.get(revision) ?? null,
      isFirstVerified: (revision) => first.has(revision),
      has: async (revision) => (await this.run('source.has', { key, revision }, 'read', key)).value.has,
      open: (revision, pick) => this.openAt(key, revision, pick),
      noteOf: async (revision) => (await this.run('source.note', { key, revision }, 'read', key)).value.note,
    }
  }

  async put(key: SourceKey, archive: string): Promise<string> {
    this.projects.set(key.uid, key.project)
    return (await this.run('source.put', { key, archive }, 'read', key)).value.revision
  }

  async removeOthers(key: SourceKey): Promise<void> {
    await this.run('sources.removeOthers', key, 'read', key)
  }

  async removeUnknown(uids: ReadonlySet<string>): Promise<void> {
    await removeUnknownFolders(this.deps.root, (uid) => uids.has(uid) || this.projects.has(uid)) // as of when the folders are known
  }

  removeUnusedBases(uids: ReadonlySet<string>): Promise<void> {
    return removeUnusedBases(this.deps.root, uids)
  }

  async forget(uid: string): Promise<void> {
    const project = this.projects.get(uid) ?? ''
    this.projects.delete(uid)
    await this.deps.workers.run({ method: 'sources.forget', order: { uid }, kind: 'read', project, subject: 'sources' })
  }

  private async openAt(key: SourceKey, revision: string, pick: SourcePick): Promise<OpenedContent> {
    const name = canonicalJson([key, revision, pick])
    const held = this.held.get(name) ?? (await this.read(key, revision, pick))
    this.held.set(name, held)
    return { root: held.root, version: held.version, tree: this.idsOf(name, held, { key, revision, pick }) }
  }

  private async read(key: SourceKey, revision: string, pick: SourcePick): Promise<Held> {
    const { root, version } = (await this.run('source.open', { key, revision, pick }, 'fetch', key)).value
    return { root, version, ids: new Map() }
  }

  private idsOf(name: string, { ids }: Held, at: Orders['source.open']): ContentIds {
    const ask = async (paths: readonly string[]) => {
      const { value } = await this.run('source.ids', { at, paths }, 'read', at.key)
      for (const [index, path] of paths.entries()) {
        const id = value.ids[index]
        if (id !== undefined && id !== false) ids.set(path, id)
      }
      const held = this.held.get(name)
      if (held !== undefined) this.held.set(name, held) // it weighs more now
    }
    return {
      async id(path) {
        if (!ids.has(path)) await ask([path])
        const id = ids.get(path)
        if (id === undefined) throw new AppError('source_refused', { detail: `${path} cannot be read` })
        return id
      },
      async ahead(paths) {
        const unknown = [...new Set(paths)].filter((path) => !ids.has(path))
        for (let from = 0; from < unknown.length; from += PATHS_AT_ONCE_MAX) await ask(unknown.slice(from, from + PATHS_AT_ONCE_MAX))
      },
    }
  }

  /** `onFirst`: told of a verified commit of a ref of which none was verified before. */
  private run<Name extends Method>(
    method: Name,
    order: Orders[Name],
    kind: JobKind,
    key: SourceKey,
    onFirst: (commit: string) => void = () => {},
  ): Promise<JobAnswer<Name>> {
    const credentials = credentialsOf(this.deps, [key])
    const verified = async (asked: unknown): Promise<{ value: AskedAnswers['verified'] }> => {
      const signed = ASKED.verified.parse(asked)
      const raised = await this.deps.raiseWatermark({ uid: key.uid, ref: refOf(key) }, signed)
      if (raised.kind === 'older') return { value: { newer: raised.newest } }
      if (raised.isFirst) onFirst(signed.commit)
      return { value: { newer: null } }
    }
    return this.deps.workers.run({
      ...{ method, order, kind, project: key.project, subject: `repository ${key.place.spec.url.replace(/\?.*$/, '')}` },
      serve: { credentials: async (asked) => ({ value: await credentials.read(ASKED.credentials.parse(asked)) }), verified },
    })
  }
}

/** Other keys or options do not change what was verified. */
function refOf({ place }: SourceKey): string {
  if (place.kind !== 'git') throw new AppError('source_refused', { detail: 'only commits of Git repositories are verified' })
  const { url, ref, semver } = place.spec
  return canonicalJson([url, semver ?? ref])
}
