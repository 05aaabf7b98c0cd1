// One repository: what does its ref name now, and is that commit here? The last content stays in use while the other
// side cannot be read.
import { placeOf, placeTexts, repositorySpecSchema } from '../../shared/model/resources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { traceIdOf } from '../../shared/runtime/trace-id.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { refuseSource } from '../fleet/project-rules.ts'
import type { RepositoryState, StoredResource } from '../fleet/records.ts'
import { news, warning } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'
import type { ContentSource, ContentSources } from './content-port.ts'
import { type CorrelationDeps, traceOfCommit } from './correlation.ts'
import { readProject } from './projects.ts'
import { renderErrorOf } from './render/rendering.ts'
import { storedError } from './render-state.ts'

export interface RepositoryPassDeps extends CorrelationDeps {
  store: Pick<Store, 'getResource' | 'repositoryState' | 'setRepositoryState' | 'appendEvents' | 'noteCommit'>
  sources: ContentSources
  clock: Clock
  log: Logger
  /** The server stops: what fails from now on says nothing about the repository. */
  stopping: AbortSignal
}

export type RepositoryPass =
  | { kind: 'unchanged' }
  /** Readable at this commit now, and it was not before. */
  | { kind: 'changed'; source: ContentSource; commit: string }
  | { kind: 'failed'; error: AppError }

export interface RepositoryPassOptions {
  /** A webhook or a person reported a change, so the commit is fetched without asking for its name first. */
  expectChange: boolean
  /**
   * Not every service was reconciled since its commit was stored: that counts as a change, also if the commit is the
   * same.
   */
  isUnrevised: boolean
}

/** One look at a repository, noted in the store with what came of it. */
export async function passRepository(
  deps: RepositoryPassDeps,
  repository: StoredResource,
  { expectChange, isUnrevised }: RepositoryPassOptions,
): Promise<RepositoryPass> {
  const { store, sources } = deps
  const { project, name, uid } = repository
  const spec = repositorySpecSchema.parse(JSON.parse(repository.spec))
  const { url } = placeTexts(spec)
  const before = await store.repositoryState(project, name)
  const startMs = deps.clock.nowMs()
  try {
    const boundary = await readProject(store, project)
    const refusal = boundary === null ? null : refuseSource(boundary, url)
    if (refusal !== null) throw new AppError('project_refused', { detail: refusal })
    const place = { uid, project, place: placeOf(spec) }
    // A leftover is harmless, and a later reconciliation finds it again.
    await sources.removeOthers(place).catch((error: unknown) => {
      deps.log.warn('cannot remove content of an earlier URL of a repository', {
        project,
        repository: name,
        error: describeError(error),
      })
    })
    const source = sources.open(place)
    const held = before.commit !== null && (await source.has(before.commit))
    const asked = expectChange || !held ? null : await source.head()
    const commit = asked !== null && asked === before.commit ? asked : await source.fetch()
    const tag = source.tagOf?.(commit) ?? (commit === before.commit ? before.tag : null)
    if (commit !== before.commit) await noteCommit(deps, repository, source, commit)
    await record(deps, repository, before, { kind: 'read', commit, tag, url, startMs })
    if (before.commit !== null && source.isFirstVerified?.(commit)) await tellWatermark(deps, repository, commit)
    return held && commit === before.commit && !isUnrevised ? { kind: 'unchanged' } : { kind: 'changed', source, commit }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (deps.stopping.aborted) return { kind: 'unchanged' }
    await record(deps, repository, before, { kind: 'failed', error, url, startMs })
    return { kind: 'failed', error }
  }
}

/** SO55: only from now on older signed commits are refused. A repository that was read before had none to compare with:
 *  it was not verified until now, or another ref was, or an earlier version of the server forgot it. */
async function tellWatermark({ store, clock }: RepositoryPassDeps, { project, name }: StoredResource, commit: string): Promise<void> {
  const event = fleetEvent(clock.nowMs(), news('VerificationBegan', { repository: name, commit }), { project })
  await store.appendEvents([{ ...event, object: `Repository/${name}` }])
}

/** An unknown author does not delay it. */
async function noteCommit(
  { store, clock }: RepositoryPassDeps,
  { project, name }: StoredResource,
  source: ContentSource,
  commit: string,
): Promise<void> {
  const note = (await source.noteOf?.(commit).catch(() => null)) ?? null
  if (note !== null) await store.noteCommit({ project, repository: name, commit, ...note, seenMs: clock.nowMs() })
}

type Outcome = { url: string; startMs: number } & (
  | { kind: 'read'; commit: string; tag: string | null }
  | { kind: 'failed'; error: AppError }
)

/** A poll that finds nothing new writes nothing. */
async function record(
  deps: RepositoryPassDeps,
  { project, name }: StoredResource,
  before: RepositoryState,
  outcome: Outcome,
): Promise<void> {
  const { store, clock, log } = deps
  const nowMs = clock.nowMs()
  if (outcome.kind === 'read') {
    const { commit, tag, startMs } = outcome
    if (before.commit === commit && before.tag === tag && before.error === null) return
    await store.setRepositoryState(project, name, { commit, tag, fetchedMs: nowMs, error: null })
    const trace = traceOfCommit(deps, project, commit)
    log.info('repository read', { project, repository: name, commit, ...(tag === null ? {} : { tag }), trace })
    const attributes = { 'skerry.project': project, 'skerry.repository': name, 'skerry.commit': commit }
    if (before.commit !== commit) deps.recordSpan?.({ name: 'ingest', trace, startMs, endMs: clock.nowMs(), isRoot: true, attributes })
    if (before.error === null) return
    await store.appendEvents([
      {
        ...fleetEvent(nowMs, news('RepositoryRecovered', { repository: name, url: outcome.url }), { project }),
        object: `Repository/${name}`,
      },
    ])
    return
  }
  const error = storedError(renderErrorOf(outcome.error), before.error, nowMs)
  if (before.error?.code === error.code && before.error.message === error.message) return
  await store.setRepositoryState(project, name, { ...before, error })
  deps.recordSpan?.({
    // No commit was read, so the failure is a trace of its own.
    ...{ name: 'ingest', trace: traceIdOf(deps.traceSalt ?? '', [project, name, 'failed', String(nowMs)]), isRoot: true },
    ...{ startMs: outcome.startMs, endMs: nowMs, error: error.code },
    attributes: { 'skerry.project': project, 'skerry.repository': name },
  })
  log.warn('repository cannot be read', { project, repository: name, code: error.code, detail: error.message })
  await store.appendEvents([
    {
      ...fleetEvent(nowMs, warning('RepositoryFailed', { repository: name, failure: error.message }), {
        project,
      }),
      object: `Repository/${name}`,
    },
  ])
}
