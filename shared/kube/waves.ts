// In which phase and wave of a revision an object goes, as its own annotations and those of Argo CD, Plural and Helm
// say it. Of several tools' annotations the first one counts, in the order of the lists below. Keys are promises: never
// rename one.
import { wordsIn } from './sync-options.ts'

/** `sync` is where ordinary objects are. A hook is run in its phases, once in each. */
export const PHASES = ['pre-sync', 'sync', 'post-sync', 'sync-fail', 'pre-delete', 'post-delete'] as const
export type Phase = (typeof PHASES)[number]
/** When the object of a hook is deleted: before its next run, after it succeeded, after it failed. */
export const HOOK_POLICIES = ['before-hook-creation', 'hook-succeeded', 'hook-failed'] as const
export type HookPolicy = (typeof HOOK_POLICIES)[number]

/** On the object of a hook: which run it is of. */
export const HOOK_RUN_ANNOTATION = 'skerry.dev/hook-run'

const WAVE_KEYS = ['skerry.dev/wave', 'deployment.plural.sh/sync-wave', 'argocd.argoproj.io/sync-wave', 'helm.sh/hook-weight'] as const

/** `null`: a word that the tool knows and that has no meaning here. `skip`: it keeps the object from being applied at
 *  all. */
type Meaning = Phase | 'skip' | 'ordinary' | null

const OWN_WORDS: Readonly<Record<string, Meaning>> = {
  'pre-sync': 'pre-sync',
  sync: 'sync',
  'post-sync': 'post-sync',
  'sync-fail': 'sync-fail',
  'pre-delete': 'pre-delete',
  'post-delete': 'post-delete',
  skip: 'skip',
}
const ARGO_WORDS: Readonly<Record<string, Meaning>> = {
  PreSync: 'pre-sync',
  Sync: 'sync',
  PostSync: 'post-sync',
  SyncFail: 'sync-fail',
  PreDelete: 'pre-delete',
  PostDelete: 'post-delete',
  Skip: 'skip',
}
/** Plural's `sync` is where ordinary objects are. */
const PLURAL_WORDS: Readonly<Record<string, Meaning>> = { ...OWN_WORDS, sync: 'ordinary' }
const HELM_WORDS: Readonly<Record<string, Meaning>> = {
  'pre-install': 'pre-sync',
  'pre-upgrade': 'pre-sync',
  'post-install': 'post-sync',
  'post-upgrade': 'post-sync',
  'pre-delete': 'pre-delete',
  'post-delete': 'post-delete',
  // CRDs come before all else anyway.
  'crd-install': 'ordinary',
  'pre-rollback': null,
  'post-rollback': null,
  test: null,
  'test-success': null,
  'test-failure': null,
}

const HOOK_KEYS: ReadonlyArray<readonly [key: string, words: Readonly<Record<string, Meaning>>]> = [
  ['skerry.dev/hook', OWN_WORDS],
  ['argocd.argoproj.io/hook', ARGO_WORDS],
  ['deployment.plural.sh/sync-hook', PLURAL_WORDS],
  ['helm.sh/hook', HELM_WORDS],
]

const OWN_POLICIES: Readonly<Record<string, HookPolicy>> = {
  'before-hook-creation': 'before-hook-creation',
  'hook-succeeded': 'hook-succeeded',
  'hook-failed': 'hook-failed',
}
const ARGO_POLICIES: Readonly<Record<string, HookPolicy>> = {
  BeforeHookCreation: 'before-hook-creation',
  HookSucceeded: 'hook-succeeded',
  HookFailed: 'hook-failed',
}
/** Older versions of Plural's agent had the short words. */
const PLURAL_POLICIES: Readonly<Record<string, HookPolicy>> = { ...OWN_POLICIES, succeeded: 'hook-succeeded', failed: 'hook-failed' }
const POLICY_KEYS: ReadonlyArray<readonly [key: string, words: Readonly<Record<string, HookPolicy>>]> = [
  ['skerry.dev/hook-delete-policy', OWN_POLICIES],
  ['argocd.argoproj.io/hook-delete-policy', ARGO_POLICIES],
  ['deployment.plural.sh/sync-hook-delete-policy', PLURAL_POLICIES],
  ['helm.sh/hook-delete-policy', OWN_POLICIES],
]

export type Order =
  | { kind: 'ordinary'; wave: number }
  | { kind: 'hook'; wave: number; phases: readonly Phase[]; policies: readonly HookPolicy[] }
  /** Neither applied nor deleted. */
  | { kind: 'skipped' }
  | { kind: 'malformed'; message: string }

const PLAIN: Order = { kind: 'ordinary', wave: 0 }
const DEFAULT_POLICIES: readonly HookPolicy[] = ['before-hook-creation']

type Annotations = Readonly<Record<string, string>> | undefined

/** OR3, HK1: the wave and the hook phases that the annotations name. */
export function orderOf(annotations: Annotations): Order {
  if (annotations === undefined) return PLAIN
  const wave = waveOf(annotations)
  if (typeof wave === 'string') return { kind: 'malformed', message: wave }
  const [key, words] = first(annotations, HOOK_KEYS) ?? []
  if (key === undefined || words === undefined) return wave === 0 ? PLAIN : { kind: 'ordinary', wave }
  const meanings = meaningsOf(annotations, key, words)
  if (typeof meanings === 'string') return { kind: 'malformed', message: meanings }
  if (meanings.has('skip')) return { kind: 'skipped' }
  const isOrdinary = meanings.has('ordinary')
  if (!PHASES.some((phase) => meanings.has(phase))) return isOrdinary ? { kind: 'ordinary', wave } : { kind: 'skipped' }
  // An object that is ordinary and a hook besides, as Plural can say it, is run in the sync phase too.
  const phases = PHASES.filter((phase) => meanings.has(phase) || (phase === 'sync' && isOrdinary))
  const policies = policiesOf(annotations)
  return typeof policies === 'string' ? { kind: 'malformed', message: policies } : { kind: 'hook', wave, phases, policies }
}

const WAVE = /^[+-]?\d{1,9}$/

/** The wave, or what is wrong with it. */
function waveOf(annotations: Readonly<Record<string, string>>): number | string {
  for (const key of WAVE_KEYS) {
    const text = annotations[key]
    if (text === undefined) continue
    const trimmed = text.trim()
    // `-0` is 0.
    if (WAVE.test(trimmed)) return Number(trimmed) + 0
    return `its annotation ${key} is ${JSON.stringify(text)}; expected a whole number such as "-1" or "10"`
  }
  return 0
}

const first = <T>(
  annotations: Readonly<Record<string, string>>,
  keys: ReadonlyArray<readonly [string, T]>,
): readonly [string, T] | undefined => keys.find(([key]) => annotations[key] !== undefined)

function meaningsOf(
  annotations: Readonly<Record<string, string>>,
  key: string,
  words: Readonly<Record<string, Meaning>>,
): Set<Meaning> | string {
  const meanings = new Set<Meaning>()
  for (const word of wordsIn(annotations[key] ?? '')) {
    const meaning = Object.hasOwn(words, word) ? words[word] : undefined
    if (meaning === undefined) return unknownWord(key, word, words)
    meanings.add(meaning)
  }
  return meanings.size === 0 ? unknownWord(key, '', words) : meanings
}

function policiesOf(annotations: Readonly<Record<string, string>>): readonly HookPolicy[] | string {
  const [key, words] = first(annotations, POLICY_KEYS) ?? []
  if (key === undefined || words === undefined) return DEFAULT_POLICIES
  const policies = new Set<HookPolicy>()
  for (const word of wordsIn(annotations[key] ?? '')) {
    const policy = Object.hasOwn(words, word) ? words[word] : undefined
    if (policy === undefined) return unknownWord(key, word, words)
    policies.add(policy)
  }
  return policies.size === 0 ? DEFAULT_POLICIES : HOOK_POLICIES.filter((policy) => policies.has(policy))
}

const unknownWord = (key: string, word: string, words: Readonly<Record<string, unknown>>): string =>
  `its annotation ${key} says ${JSON.stringify(word)}; expected some of ${Object.keys(words).join(', ')}`

/** OR5: the wave of what was applied, for a prune. Looked for as text first: most documents name none. */
export function waveOfDocument(doc: string | null): number {
  if (doc === null || !WAVE_KEYS.some((key) => doc.includes(`"${key}"`))) return 0
  const parsed: unknown = JSON.parse(doc)
  const annotations = (parsed as { metadata?: { annotations?: Record<string, string> } }).metadata?.annotations
  const wave = annotations === undefined ? 0 : waveOf(annotations)
  return typeof wave === 'number' ? wave : 0
}

export const isHookDocument = (doc: string): boolean => doc.includes(`"${HOOK_RUN_ANNOTATION}"`)
