// The annotations of a manifest that control how its object is applied: Skerry's own, and those of tools that people
// come from. Read from the desired manifest, never from the live object, so that only Git decides.
import { editDistance } from '../runtime/edit-distance.ts'
import { compareText } from './order.ts'
import { ARGO_OPTIONS, PLURAL_OPTIONS, wordsIn } from './sync-options.ts'

export interface ApplyOptions {
  /**
   * Fields that others wrote are taken over before the apply, so that all fields without an entry in Git are removed.
   */
  replace: boolean
  /** When the API server refuses because a field is immutable: delete, wait until it is gone, create. `foreign`: said
   *  in another tool's word, which does not reach kinds that hold data or other objects. */
  recreate: 'never' | 'foreign' | 'own'
  /** `ifAbsent`: made when it is not there, and never touched after. `never`: not applied at all. */
  touch: 'always' | 'ifAbsent' | 'never'
}

export const APPLY_PLAINLY: ApplyOptions = Object.freeze({ replace: false, recreate: 'never', touch: 'always' })

export const APPLY_ANNOTATION = 'skerry.dev/sync-options'

type Change = Partial<ApplyOptions>

const OUR_WORDS: Readonly<Record<string, Change>> = {
  Replace: { replace: true },
  Force: { recreate: 'own' },
  IfNotPresent: { touch: 'ifAbsent' },
  Ignore: { touch: 'never' },
}

const SYNC_OPTIONS: Readonly<Record<string, Change>> = { 'replace=true': { replace: true }, 'force=true': { recreate: 'foreign' } }

/** Words of others as they mean them there. All their other words (Validate, ServerSideApply,
 *  SkipDryRunOnMissingResource, …) ask for what is so anyway, or are read where they belong (keep-marks.ts). In lower
 *  case: their tools do not agree on it. */
const FOREIGN: ReadonlyArray<readonly [key: string, words: Readonly<Record<string, Change>>]> = [
  [ARGO_OPTIONS, SYNC_OPTIONS],
  [PLURAL_OPTIONS, SYNC_OPTIONS],
  ['kustomize.toolkit.fluxcd.io/force', { enabled: { recreate: 'foreign' }, true: { recreate: 'foreign' } }],
  ['kustomize.toolkit.fluxcd.io/ssa', { ifnotpresent: { touch: 'ifAbsent' }, ignore: { touch: 'never' } }],
  ['kustomize.toolkit.fluxcd.io/reconcile', { disabled: { touch: 'never' } }],
]

export type ApplyOptionsRead = { kind: 'options'; options: ApplyOptions } | { kind: 'wrong'; message: string }

/** Every combination is one value for all objects that have it. */
const known = new Map<string, ApplyOptions>()
function shared({ replace, recreate, touch }: ApplyOptions): ApplyOptions {
  if (!replace && recreate === 'never' && touch === 'always') return APPLY_PLAINLY
  const key = `${replace} ${recreate} ${touch}`
  const before = known.get(key)
  if (before !== undefined) return before
  const options = Object.freeze({ replace, recreate, touch })
  known.set(key, options)
  return options
}

/** AO1, AO2: our word wins over a foreign one; of several, the one that does less. */
export function readApplyOptions(annotations: Readonly<Record<string, string>> | undefined): ApplyOptionsRead {
  if (annotations === undefined) return { kind: 'options', options: APPLY_PLAINLY }
  let options = APPLY_PLAINLY
  for (const [key, meanings] of FOREIGN) {
    const value = annotations[key]
    if (value !== undefined) for (const word of wordsIn(value)) options = joined(options, meanings[word.toLowerCase()])
  }
  for (const word of wordsIn(annotations[APPLY_ANNOTATION] ?? '')) {
    if (!Object.hasOwn(OUR_WORDS, word)) {
      const names = Object.keys(OUR_WORDS)
      const message = `the annotation ${APPLY_ANNOTATION} has no option ${JSON.stringify(word.slice(0, 60))}; did you mean ${nearest(word, names)}? It knows ${names.join(', ')}`
      return { kind: 'wrong', message }
    }
    options = joined(options, OUR_WORDS[word])
  }
  return { kind: 'options', options: shared(options) }
}

const TOUCH_ORDER: ReadonlyArray<ApplyOptions['touch']> = ['always', 'ifAbsent', 'never']

function joined(options: ApplyOptions, change: Change | undefined): ApplyOptions {
  if (change === undefined) return options
  const touch = change.touch ?? 'always'
  return {
    replace: options.replace || change.replace === true,
    recreate: change.recreate ?? options.recreate,
    touch: TOUCH_ORDER.indexOf(touch) > TOUCH_ORDER.indexOf(options.touch) ? touch : options.touch,
  }
}

function nearest(word: string, names: readonly string[]): string {
  // Another tool's spelling (`Replace=true`) is nearest to the name in it.
  const plain = word.toLowerCase().replace(/=.*$/, '').slice(0, 60)
  const [first] = names
    .map((name) => ({ name, steps: editDistance(plain, name.toLowerCase()) }))
    .sort((a, b) => a.steps - b.steps || compareText(a.name, b.name))
  return first?.name ?? ''
}
