// Annotations by which an object says whether it may be deleted when its manifest goes: those of the tools that people
// come from, and ours.
import { ARGO_OPTIONS, PLURAL_OPTIONS, parseSyncOptions } from './sync-options.ts'

type Annotations = Readonly<Record<string, string>>

/** `removal`: only when the whole service goes. */
type Deed = 'prune' | 'removal'

/** Ours: `disabled` keeps an object; `allowed` lets a Namespace, CRD or claim be pruned without a person's yes. */
export const PRUNE_ANNOTATION = 'skerry.dev/prune'

const hasOption = (option: string) => (value: string) => parseSyncOptions(value).has(option)
const is = (wanted: string) => (value: string) => value === wanted

/** Annotations of other tools that keep an object. */
const KEEP_MARKS: ReadonlyArray<readonly [key: string, matches: (value: string) => boolean, deed?: Deed]> = [
  [ARGO_OPTIONS, hasOption('prune=false')],
  [PLURAL_OPTIONS, hasOption('prune=false')],
  ['kustomize.toolkit.fluxcd.io/prune', is('disabled')],
  ['helm.sh/resource-policy', (value) => value.split(',').some((option) => option.trim().toLowerCase() === 'keep')],
  ['cli-utils.sigs.k8s.io/on-remove', is('keep')],
  ['client.lifecycle.config.k8s.io/deletion', is('detach')],
  [ARGO_OPTIONS, hasOption('delete=false'), 'removal'],
  [PLURAL_OPTIONS, hasOption('delete=false'), 'removal'],
]

const OURS_AND_MORE = `${PRUNE_ANNOTATION} and another annotation`
/** One of the texts of the table, so that it costs no memory for each object. */
const KEPT_IN_REMOVAL = ' (when the service is removed)'

/**
 * The key of the first annotation that keeps an object from being deleted, or null. Argo's `Delete=false` applies to
 * removals only; see `keepsFrom`.
 */
export function keepMark(annotations: Annotations | undefined): string | null {
  if (annotations === undefined) return null
  const isOurs = annotations[PRUNE_ANNOTATION] === 'disabled'
  for (const [key, matches, deed] of KEEP_MARKS) {
    const value = annotations[key]
    if (value === undefined || !matches(value)) continue
    if (isOurs) return OURS_AND_MORE
    return deed === 'removal' ? key + KEPT_IN_REMOVAL : key
  }
  return isOurs ? PRUNE_ANNOTATION : null
}

/** The namespace that we make for a service says by itself that it is kept: is there anybody else's word? */
export const isKeptByOthers = (mark: string | null): boolean => mark !== null && mark !== PRUNE_ANNOTATION

export const keepsFrom = (deed: Deed, mark: string | null): boolean =>
  mark !== null && (deed === 'removal' || !mark.endsWith(KEPT_IN_REMOVAL))

export const allowsPrune = (annotations: Annotations | undefined): boolean => annotations?.[PRUNE_ANNOTATION] === 'allowed'
