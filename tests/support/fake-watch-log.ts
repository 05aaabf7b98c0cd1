// The fake cluster's memory of changes: what watches follow, resume from, and lose when it forgets (410 in the real
// one).
import type { ApiResource, WatchEvent } from '../../agent/cluster/cluster.ts'
import { groupOf, type K8sObject } from '../../shared/kube/object.ts'

interface Change {
  revision: number
  before: K8sObject | null
  after: K8sObject | null
}

const CHANGES_MAX = 20_000

export class FakeWatchLog {
  #changes: Change[] = []
  /** Positions before this one are forgotten. */
  #oldest = 0
  #wakers = new Set<() => void>()
  #isDeaf = false

  /** What happens during `work` reaches no watch, and no position shows that something is missing. */
  withoutEvents<T>(work: () => T): T {
    this.#isDeaf = true
    try {
      return work()
    } finally {
      this.#isDeaf = false
    }
  }

  /** Changes after this revision never happened. */
  rollBack(revision: number): void {
    this.#changes = this.#changes.filter((change) => change.revision <= revision)
    this.#oldest = Math.min(this.#oldest, revision)
  }

  record(revision: number, before: K8sObject | null, after: K8sObject | null): void {
    if (this.#isDeaf) return
    this.#changes.push({ revision, before, after })
    if (this.#changes.length > CHANGES_MAX) this.#oldest = this.#changes.shift()?.revision ?? 0
    this.wake()
  }

  remembers = (position: number): boolean => position >= this.#oldest

  forget(revision: number): void {
    this.#changes = []
    this.#oldest = revision
  }

  after = (position: number): readonly Change[] => {
    // Watches stand near the end, so the search begins there.
    let index = this.#changes.length
    while (index > 0 && (this.#changes[index - 1]?.revision ?? 0) > position) index -= 1
    return this.#changes.slice(index)
  }

  wake(): void {
    const wakers = this.#wakers
    this.#wakers = new Set()
    for (const waker of wakers) waker()
  }

  /** Resolves at the next change, cut or abort. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve()
      const done = () => {
        signal.removeEventListener('abort', done)
        this.#wakers.delete(done)
        resolve()
      }
      signal.addEventListener('abort', done, { once: true })
      this.#wakers.add(done)
    })
  }
}

/** What a watch with these selectors sees of one change. An object that lost its label is sent as it was before, with
 *  the new revision. */
export function watchEventOf({ before, after, revision }: Change, matches: (object: K8sObject) => boolean): WatchEvent | null {
  if (after !== null && matches(after)) return { kind: 'changed', object: structuredClone(after) }
  if (before === null || !matches(before)) return null
  const object = structuredClone(before)
  object.metadata.resourceVersion = String(revision)
  return { kind: 'removed', object }
}

interface Selectors {
  labelSelector?: string
  fieldSelector?: string
  namespace?: string
}

export function matcher(resource: ApiResource, { labelSelector, fieldSelector, namespace }: Selectors): (object: K8sObject) => boolean {
  const labels = (labelSelector ?? '').split(/,(?![^(]*\))/).filter((part) => part.trim() !== '')
  const fields = (fieldSelector ?? '').split(/(?<!\\),/).filter((part) => part !== '')
  return (object) =>
    object.kind === resource.kind &&
    groupOf(object.apiVersion) === resource.group &&
    (namespace === undefined || object.metadata.namespace === namespace) &&
    labels.every((part) => matchesLabel(part.trim(), object.metadata.labels ?? {})) &&
    fields.every((part) => matchesField(part.trim(), object))
}

function matchesLabel(requirement: string, labels: Readonly<Record<string, string>>): boolean {
  const set = /^(\S+) (in|notin) \(([^)]*)\)$/.exec(requirement)
  if (set !== null) {
    const [, key = '', operator, list = ''] = set
    const among = list.split(',').some((value) => value.trim() === labels[key])
    return operator === 'in' ? among : !among
  }
  const equality = /^([^!=\s]+)\s*(!=|==|=)\s*(\S*)$/.exec(requirement)
  if (equality !== null) {
    const [, key = '', operator, value] = equality
    return operator === '!=' ? labels[key] !== value : labels[key] === value
  }
  return requirement.startsWith('!') ? !(requirement.slice(1) in labels) : requirement in labels
}

function matchesField(requirement: string, object: K8sObject): boolean {
  const [field, ...values] = requirement.split(/(?<!\\)=/)
  const value = values.join('=').replace(/\\([\\,=])/g, '$1')
  const { metadata, kind } = object
  if (field === 'metadata.name') return metadata.name === value
  if (field === 'metadata.namespace') return metadata.namespace === value
  const [of = '', part = ''] = field?.split('.') ?? []
  if (kind === 'Event' && of === 'involvedObject' && ['uid', 'kind', 'name', 'namespace'].includes(part))
    return (object['involvedObject'] as Record<string, string> | undefined)?.[part] === value
  if (kind === 'Event' && field === 'type') return object['type'] === value
  throw new Error(`the fake cluster knows no field selector ${field}`)
}
