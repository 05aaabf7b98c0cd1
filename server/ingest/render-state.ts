// The record of a service's last render. Pure.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { FailedRevision, FailingClusters, ReleaseNote, RenderState, StoredError } from '../fleet/records.ts'
import { type FailedCluster, gatherFailing } from '../fleet/unrendered.ts'
import { goodRenders, type RenderError, type Rendering, releaseDigest } from './render/rendering.ts'

const sameError = (a: RenderError | null, b: RenderError): boolean =>
  a !== null && a.code === b.code && a.message === b.message && canonicalJson(a.problems) === canonicalJson(b.problems)

const sameFailing = (before: StoredError | null, failing: FailingClusters[]): boolean =>
  canonicalJson(before?.failing ?? []) === canonicalJson(failing)

/** RL1: whether two errors are one fault. The number of clusters in the message does not count, or each cluster that
 *  joins or leaves would make an event. */
export const sameFault = (a: RenderError | null, b: RenderError): boolean =>
  a !== null && sameError({ ...a, message: withoutCount(a.message) }, { ...b, message: withoutCount(b.message) })
const withoutCount = (message: string): string => message.replace(/^in \d+ of \d+ clusters \([^)]*\): /, '')

/** Kept of each render; how many more there are is in the last of them. */
const WARNINGS_MAX = 20
const PROBLEMS_MAX = 50
const NAMED_MAX = 3

/** The state to store after a render; the very same object when nothing about it changed. */
export function nextRenderState(
  before: RenderState,
  generation: number,
  rendering: Rendering,
  nowMs: number,
  nameOf: (clusterId: ClusterId) => string = (clusterId) => clusterId,
  failing: FailingClusters[] = [],
  /** It is the revision that is there, also where its digest now is of fewer variants. */
  isSameRevision = false,
): RenderState {
  switch (rendering.kind) {
    case 'no_content':
      return before
    case 'failed': {
      if (before.generation === generation && sameError(before.error, rendering.error) && sameFailing(before.error, failing)) return before
      // Commit, digest and count stay those of the last good render: it is what is in force.
      return { ...before, generation, error: storedError(rendering.error, before.error, nowMs, failing, failedAt(rendering)) }
    }
    case 'good': {
      const renders = goodRenders(rendering)
      // RD10. It does not render for none, and there is none: nothing was made of that commit.
      if (renders.length === 0) return doubtfulState(before, generation, rendering.warnings)
      const digest = isSameRevision ? before.digest : (releaseDigest(renders) ?? before.digest)
      const { commit } = rendering.release
      const error = failingError(rendering, nameOf)
      const release = releaseNote(rendering, isSameRevision ? (before.release?.variants ?? 1) : 0)
      const isSameError = error === null ? before.error === null : sameError(before.error, error) && sameFailing(before.error, failing)
      const isSame = before.generation === generation && before.digest === digest && isSameError
      if (isSame && noteText(before.release) === noteText(release)) return before
      return {
        commit,
        generation,
        digest,
        objectCount: Math.max(0, ...renders.map(({ count, hooks }) => count - hooks)),
        renderedMs: nowMs,
        error: error === null ? null : storedError(error, before.error, nowMs, failing, failedAt(rendering)),
        ...(release === undefined ? {} : { release }),
      }
    }
  }
}

function doubtfulState(before: RenderState, generation: number, doubts: readonly Problem[]): RenderState {
  const warnings = fewest(doubts, WARNINGS_MAX)
  const noted = warnings.length > 0 || before.release !== undefined
  const release = noted ? { variants: 1, revisions: {}, tools: {}, ...before.release, warnings } : undefined
  const isSame = before.generation === generation && before.error === null && noteText(before.release) === noteText(release)
  return isSame ? before : { ...before, generation, error: null, ...(release === undefined ? {} : { release }) }
}

/** RL3: it renders, and what is in force is what was there before. */
export function waitingState(before: RenderState, generation: number): RenderState {
  return before.error === null && before.generation === generation ? before : { ...before, generation, error: null }
}

/** `least`: variants that the revision has at least. */
function releaseNote(rendering: Extract<Rendering, { kind: 'good' }>, least: number): ReleaseNote | undefined {
  const { tools, revisions } = rendering.release
  const variants = Math.max(least, new Set(goodRenders(rendering).map(({ digest }) => digest)).size)
  const warnings = fewest(rendering.warnings, WARNINGS_MAX)
  const isPlain = Object.keys(tools).length === 0 && Object.keys(revisions).length <= 1
  if (variants <= 1 && isPlain && warnings.length === 0) return undefined
  return { variants, revisions: isPlain ? {} : revisions, tools, warnings }
}

/** Read versions are left out: a commit that changes nothing is not written. */
const noteText = (note: ReleaseNote | undefined): string =>
  canonicalJson(note === undefined ? null : [note.variants, note.tools, note.warnings])

/** RL1: of a service that renders for some of its clusters only. Null means that it does for all of them. */
export function failingError(rendering: Rendering, nameOf: (clusterId: ClusterId) => string): RenderError | null {
  if (rendering.kind !== 'good') return null
  const failing: Array<{ name: string; error: RenderError }> = []
  for (const [clusterId, render] of rendering.clusters)
    if (render.kind === 'failed') failing.push({ name: nameOf(clusterId), error: render.error })
  const [first, ...rest] = failing.sort((a, b) => (a.name < b.name ? -1 : 1))
  if (first === undefined) return null
  const named = failing.slice(0, NAMED_MAX).map(({ name }) => name)
  const more = failing.length - named.length
  const code = rest.every(({ error }) => error.code === first.error.code) ? first.error.code : 'render_failed'
  const clusters = `${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`
  const messages = new Set(failing.map(({ error }) => error.message))
  const message = `in ${failing.length} of ${rendering.clusters.size} clusters (${clusters}): ${first.error.message}${messages.size === 1 ? '' : ', among others'}`
  const problems = new Map(failing.flatMap(({ error }) => error.problems.map((problem) => [canonicalJson(problem), problem] as const)))
  const { remedy } = first.error
  return {
    code,
    message,
    problems: fewest([...problems.values()], PROBLEMS_MAX),
    ...(remedy === undefined || code !== first.error.code ? {} : { remedy }),
  }
}

/** RL7: for whom there is no render, and whether they have a revision that stays. */
export function failingClusters(
  rendering: Rendering,
  asked: readonly { clusterId: ClusterId; name: string }[],
  holds: (clusterId: ClusterId) => boolean,
): FailingClusters[] {
  const failed = asked.flatMap(({ clusterId, name }): FailedCluster[] => {
    const error = errorIn(rendering, clusterId)
    return error === null ? [] : [{ cluster: name, holds: holds(clusterId), error }]
  })
  return gatherFailing(failed)
}

function errorIn(rendering: Rendering, clusterId: ClusterId): RenderError | null {
  if (rendering.kind === 'failed') return rendering.clusters?.get(clusterId) ?? rendering.error
  const one = rendering.kind === 'good' ? rendering.clusters.get(clusterId) : undefined
  return one?.kind === 'failed' ? one.error : null
}

function failedAt(rendering: Exclude<Rendering, { kind: 'no_content' }>): FailedRevision | undefined {
  const commit = rendering.kind === 'failed' ? rendering.commit : rendering.release.commit
  const { author = null, subject } = rendering.written ?? {}
  return commit === null || commit === '' ? undefined : { commit, author, ...(subject === undefined ? {} : { subject }) }
}

/** `sinceMs` counts from the first failure of the same code; `at` is the revision of the first failure that is the same
 *  fault. */
export function storedError(
  error: RenderError,
  before: StoredError | null,
  nowMs: number,
  failing: FailingClusters[] = [],
  failed?: FailedRevision,
): StoredError {
  const { code, message, problems, remedy } = error
  const at = sameFault(before, error) ? (before?.at ?? failed) : failed
  return {
    code,
    message,
    problems: [...problems],
    sinceMs: before?.code === code ? before.sinceMs : nowMs,
    ...(remedy === undefined ? {} : { remedy }),
    ...(failing.length === 0 ? {} : { failing }),
    ...(at === undefined ? {} : { at }),
  }
}

function fewest(problems: readonly Problem[], max: number): Problem[] {
  if (problems.length <= max) return [...problems]
  return [...problems.slice(0, max - 1), { path: '', message: `and ${problems.length - max + 1} more` }]
}
