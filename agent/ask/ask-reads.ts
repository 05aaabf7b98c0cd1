// The reads of questions at the API server: kinds by discovery, objects, lists. A refusal names the missing right.
import { setImmediate } from 'node:timers/promises'
import { type K8sObject, type ObjectRef, refKey, refText } from '../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster, Discovery, WatchScope } from '../cluster/cluster.ts'
import { listOnce } from '../cluster/list-once.ts'
import { answerNote, questionRefusal } from '../messages/question-messages.ts'
import { AskRefused } from './ask-desk.ts'

/** Requests of questions to the API server at once: enforcement has 32. */
export const READS_AT_ONCE_MAX = 6
export const LIST_OBJECTS_MAX = 20_000

export interface AskReadsDeps {
  cluster: Cluster
  /** Discovery of the reconciler; null means not read yet. */
  discovery(): Discovery | null
}

export class AskReads {
  readonly #deps: AskReadsDeps
  #free = READS_AT_ONCE_MAX
  readonly #waiting: Array<() => void> = []
  /** Many people look at the same object. */
  readonly #gets = new Map<string, ReturnType<Cluster['get']>>()

  constructor(deps: AskReadsDeps) {
    this.#deps = deps
  }

  async resource({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): Promise<ApiResource> {
    const found = await this.find({ group, kind })
    if (found !== null) return found
    const name = group === '' ? kind : `${kind} of ${group}`
    throw new AskRefused(questionRefusal('object_not_found.kind', { kind: name }))
  }

  /** The version that the server prefers. Null means that the kind is not served. */
  async find({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): Promise<ApiResource | null> {
    const of = (discovery: Discovery | null) =>
      discovery?.resources.find((one) => one.group === group && one.kind === kind && one.verbs.includes('get')) ?? null
    return of(this.#deps.discovery()) ?? of(await this.turn(() => this.#deps.cluster.discover()))
  }

  /** Throws AskRefused when there is no such object. */
  async object(ref: ObjectRef, { metadataOnly = false } = {}): Promise<K8sObject> {
    const found = await this.objectOrNull(ref, { metadataOnly })
    if (found === null) throw new AskRefused(questionRefusal('object_not_found', { object: refText(ref) }))
    return found
  }

  async objectOrNull(ref: ObjectRef, { metadataOnly = false } = {}): Promise<K8sObject | null> {
    const resource = await this.resource(ref)
    const got = await this.#get(resource, ref, metadataOnly)
    if (got.kind === 'failed')
      throw refusedBy(got.failure, answerNote('get', { object: refText(ref) }), {
        verb: 'get',
        resource: resource.plural,
        group: ref.group,
      })
    return got.kind === 'found' ? got.object : null
  }

  /** Questions that wait for the same read share it: it begins after all of them were asked. */
  #get(resource: ApiResource, ref: ObjectRef, metadataOnly: boolean): ReturnType<Cluster['get']> {
    const key = `${refKey(ref)} ${metadataOnly}`
    const waiting = this.#gets.get(key)
    if (waiting !== undefined) return waiting
    const got = this.turn(async () => {
      await setImmediate() // questions that came together
      this.#gets.delete(key)
      return this.#deps.cluster.get(resource, ref, { metadataOnly })
    })
    this.#gets.set(key, got)
    return got
  }

  /** For reads beside the question: it is answered also if this one fails. */
  async objectIfReadable(ref: ObjectRef, options: { metadataOnly?: boolean } = {}): Promise<K8sObject | null | 'unreadable'> {
    try {
      return await this.objectOrNull(ref, options)
    } catch (error) {
      if (error instanceof AskRefused) return 'unreadable'
      throw error
    }
  }

  /** Returns null if the agent may not list the kind. `why` is a note for the caller, also about objects that are left
   *  out. */
  async list(
    kind: Pick<ObjectRef, 'group' | 'kind'>,
    scope: Omit<WatchScope, 'isList'> & { metadataOnly?: boolean },
  ): Promise<{ items: K8sObject[]; why: string | null } | { items: null; why: string }> {
    const resource = await this.find(kind)
    if (resource === null) return { items: [], why: null }
    const items: K8sObject[] = []
    let isCut = false
    const failure = await this.turn(() =>
      listOnce(this.#deps.cluster, resource, scope, (object) => {
        if (items.length < LIST_OBJECTS_MAX) items.push(object)
        else isCut = true
      }),
    )
    if (failure === null) return { items, why: isCut ? answerNote('list_cut', { most: LIST_OBJECTS_MAX, plural: resource.plural }) : null }
    return {
      items: null,
      why: refusedBy(failure, answerNote('list', { plural: resource.plural }), {
        verb: 'list',
        resource: resource.plural,
        group: kind.group,
      }).message,
    }
  }

  /** One at a time of a few, in order. */
  async turn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}

export function refusedBy(failure: ApiFailure, doing: string, needed: { verb: string; resource: string; group: string }): AskRefused {
  const { kind, message } = failure
  if (kind !== 'forbidden') {
    const code = kind === 'not_found' ? 'object_not_found.read' : 'question_failed.read'
    return new AskRefused(questionRefusal(code, { doing, failure: message }))
  }
  const { verb, resource } = needed
  const group = needed.group === '' ? answerNote('core_group') : needed.group
  return new AskRefused(questionRefusal('agent_forbidden', { doing, verb, resource, group }))
}
