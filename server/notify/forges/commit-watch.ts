// Commit statuses: follows the services of the repositories that a sink names, and plans one message for each commit
// and service, which changes as the fleet does. A look costs what the counts of the changed services cost, whatever the
// number of clusters.

import { type NotificationSinkSpec, sinkTypeOf } from '../../../shared/model/notifications.ts'
import { serviceSpecSchema, sourcesOf } from '../../../shared/model/resources.ts'
import { serviceStatusSchema } from '../../../shared/model/status.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import type { CommitDoc, NotificationRecord } from '../../fleet/notification-records.ts'
import type { StoredError } from '../../fleet/records.ts'
import type { Change } from '../../store/feed/change-feed.ts'
import type { Store } from '../../store/store.ts'
import type { GroupRecord } from '../groups.ts'
import { stored } from '../outbox.ts'
import { isForge } from '../sinks/registry.ts'
import { commitState } from './commit-state.ts'

export interface CommitWatchDeps {
  store: Pick<Store, 'notifications' | 'changes' | 'listResources' | 'renderState' | 'isPublished' | 'rollups' | 'queries'>
  clock: Clock
}

/** Between two looks: many clusters report at the same time. */
const LOOK_MS = 3_000
const IDLE_MS = 60_000
/** Between two statuses of a commit that is under way. */
export const PROGRESS_MS = 30_000
const PAGE = 500
/** Services that are followed. */
const SERVICES_MAX = 5_000
/** Clusters in which a hook may have failed that are looked at. */
const HOOKS_READ = 20
const HOOK_FAILED = 'HookFailed'

interface Watched {
  project: string
  service: string
  sinks: string[]
}

export class CommitWatch {
  readonly #deps: CommitWatchDeps
  /** Sinks by project and repository. */
  readonly #sinks: ReadonlyMap<string, string[]>
  /** By project, sink and service: the commit that the fleet shall have. */
  readonly #records = new Map<string, GroupRecord>()
  /** Others that are still to be delivered. */
  readonly #earlier = new Set<GroupRecord>()
  #services = new Map<string, Watched>()
  /** By service: the digest that is published in all clusters. */
  readonly #published = new Map<string, string>()
  /** Services to look at. */
  readonly #dirty = new Set<string>()
  #allDirty = false

  constructor(deps: CommitWatchDeps, sinks: ReadonlyMap<string, { spec: NotificationSinkSpec }>, pending: readonly NotificationRecord[]) {
    this.#deps = deps
    const bySource = new Map<string, string[]>()
    for (const [key, { spec }] of sinks) {
      const type = sinkTypeOf(spec)
      const source = isForge(type) ? spec[type]?.source : undefined
      if (source === undefined) continue
      const slash = key.indexOf('/')
      const place = `${key.slice(0, slash)}/${source}`
      bySource.set(place, [...(bySource.get(place) ?? []), key.slice(slash + 1)])
    }
    this.#sinks = bySource
    for (const record of pending) {
      if (record.doc.type !== 'commit') continue
      const own = { ...record, inFlight: false }
      const key = recordKey(record.sink, record.doc)
      const before = this.#records.get(key)
      if (before !== undefined) this.#earlier.add(before)
      this.#records.set(key, own)
    }
  }

  get isIdle(): boolean {
    return this.#sinks.size === 0 && this.#records.size === 0
  }

  get records(): GroupRecord[] {
    for (const record of this.#earlier) if (record.nextMs === null && !record.inFlight) this.#earlier.delete(record)
    return [...this.#records.values(), ...this.#earlier]
  }

  dueOf({ sentMs, doc }: GroupRecord, nowMs: number): number {
    if (sentMs === null || (doc as CommitDoc).state !== 'pending') return nowMs
    return Math.max(nowMs, sentMs + PROGRESS_MS)
  }

  async run(signal: AbortSignal, poke: () => void): Promise<void> {
    if (this.#sinks.size === 0) return
    const { store } = this.#deps
    const position = await store.changes.position()
    await this.#readServices()
    await this.#look([...this.#services.keys()], poke)
    const failed = new AbortController()
    const until = AbortSignal.any([signal, failed.signal])
    const parts = [this.#follow(position, until), this.#lookLoop(until, poke)]
    for (const part of parts) part.catch(() => failed.abort())
    for (const one of await Promise.allSettled(parts)) if (one.status === 'rejected') throw one.reason
  }

  async #follow(position: number, signal: AbortSignal): Promise<void> {
    const topics = new Set(['status', 'desired', 'render', 'resource'] as const)
    for await (const batch of this.#deps.store.changes.follow(position, { signal, topics, idleMs: IDLE_MS })) {
      if (batch.kind === 'gone') this.#allDirty = true
      if (batch.kind !== 'changes') continue
      for (const change of batch.items) {
        if (change.topic === 'resource' && change.name?.startsWith('Service/') === true) await this.#readServices()
        this.#gather(change)
      }
    }
  }

  async #lookLoop(signal: AbortSignal, poke: () => void): Promise<void> {
    while (!signal.aborted) {
      await this.#deps.clock.sleep(LOOK_MS, signal)
      const keys = this.#allDirty ? [...this.#services.keys()] : [...this.#dirty]
      this.#dirty.clear()
      this.#allDirty = false
      if (keys.length > 0 && !signal.aborted) await this.#look(keys, poke)
    }
  }

  /** Notes the watched services that a change is about. */
  #gather({ topic, project, name, keys }: Change): void {
    const add = (key: string) => this.#services.has(key) && this.#dirty.add(key)
    if (topic === 'status') {
      if (keys === null) this.#allDirty = true
      for (const key of keys ?? []) if (key.startsWith('service/')) add(key.slice('service/'.length))
    } else if (topic === 'resource') {
      if (name?.startsWith('Service/') === true) add(`${project}/${name.slice('Service/'.length)}`)
    } else if (name === null) this.#allDirty = true
    else add(`${project}/${name}`)
  }

  async #readServices(): Promise<void> {
    const found = new Map<string, Watched>()
    const projects = new Set([...this.#sinks.keys()].map((place) => place.slice(0, place.indexOf('/'))))
    for (const project of projects) {
      let after: string | undefined
      do {
        const page = await this.#deps.store.listResources('Service', { project, limit: PAGE, ...(after === undefined ? {} : { after }) })
        for (const { name, spec, deletingMs } of page.items) {
          const [source] = sourcesOf(serviceSpecSchema.parse(JSON.parse(spec)))
          const sinks = source === undefined ? undefined : this.#sinks.get(`${project}/${source.repository}`)
          if (sinks !== undefined && deletingMs === null) found.set(`${project}/${name}`, { project, service: name, sinks })
        }
        after = page.next ?? undefined
      } while (after !== undefined && found.size < SERVICES_MAX)
    }
    this.#services = found
  }

  /** One look at these services: their commits, and how far the fleet is. */
  async #look(keys: readonly string[], poke: () => void): Promise<void> {
    const { store, clock } = this.#deps
    const rendered: Array<Watched & { sha: string; error: StoredError | null; published: boolean }> = []
    for (const key of keys) {
      const watched = this.#services.get(key)
      if (watched === undefined) continue
      const { commit, digest, error } = await store.renderState(watched)
      const sha = error?.at?.commit ?? commit
      if (sha === null || !/^[0-9a-f]{40,64}$/.test(sha)) continue // a chart version is no commit
      rendered.push({ ...watched, sha, error, published: digest !== null && (await this.#isPublished(watched, digest)) })
    }
    // After that: counts of before a publication would be those of the commit before.
    const counts = await store.rollups.ofKeys('service', rendered.map(serviceKey))
    const created: GroupRecord[] = []
    const changed: GroupRecord[] = []
    for (const { project, service, sinks, sha, error, published } of rendered) {
      const own = counts.get(`${project}/${service}`) ?? {}
      const mayHaveFailed = published && error === null && (own['OutOfSync/Degraded'] ?? 0) > 0
      const hookFailedIn = mayHaveFailed ? await this.#failedHook({ project, service }) : null
      const doc: CommitDoc = { type: 'commit', project, service, sha, ...commitState({ counts: own, error, published, hookFailedIn }) }
      for (const sink of sinks) this.#note(sink, doc, { created, changed, nowMs: clock.nowMs() })
    }
    if (created.length + changed.length === 0) return
    const rows = created.map(({ inFlight: _, id: __, ...record }) => record)
    const ids = (await store.notifications.plan({ created: rows, changed: changed.map(stored) })) ?? []
    for (const [index, record] of created.entries()) record.id = ids[index] ?? null
    poke()
  }

  async #isPublished(id: ServiceId, digest: string): Promise<boolean> {
    const key = serviceKey(id)
    if (this.#published.get(key) === digest) return true
    const isPublished = await this.#deps.store.isPublished(id, digest)
    if (isPublished) this.#published.set(key, digest)
    return isPublished
  }

  /** A cluster that holds the revision, and a hook of it failed there. */
  async #failedHook(id: ServiceId): Promise<string | null> {
    const query = { ...id, sync: ['OutOfSync'], health: ['Degraded'], sort: 'health', limit: HOOKS_READ } as const
    const { items } = await this.#deps.store.queries.answer({ kind: 'placements', query }).catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error
      this.#dirty.add(serviceKey(id)) // the next look asks again; until then nothing is known of a hook
      return { items: [] }
    })
    for (const item of items) {
      if (!('desired' in item)) continue
      const { data: status } = serviceStatusSchema.safeParse(item.status)
      if (status?.reason === HOOK_FAILED && status.received?.digest === item.desired.doc?.digest) return item.cluster.name
    }
    return null
  }

  #note(
    sink: string,
    doc: CommitDoc,
    { created, changed, nowMs }: { created: GroupRecord[]; changed: GroupRecord[]; nowMs: number },
  ): void {
    const key = recordKey(sink, doc)
    const held = this.#records.get(key)
    const heldDoc = held?.doc as CommitDoc | undefined
    if (held !== undefined && heldDoc?.sha === doc.sha) {
      if (heldDoc.description === doc.description && heldDoc.state === doc.state) return
      held.doc = doc
      held.version += 1
      held.updatedMs = nowMs
      if (held.state !== 'open') Object.assign(held, { state: 'open', attempts: 0, triedMs: 0, nextMs: null })
      if (held.attempts === 0) held.nextMs = this.dueOf(held, nowMs)
      if (held.id !== null && !created.includes(held)) changed.push(held)
      return
    }
    if (held !== undefined) {
      // The fleet has another commit now: what is to come of this one stays as it was told.
      if (held.nextMs === null) held.state = 'closed'
      else this.#earlier.add(held)
      if (held.id !== null) changed.push(held)
    }
    const record: GroupRecord = {
      ...{ id: null, project: doc.project, route: '', sink, groupKey: `commit ${doc.service} ${doc.sha}`, state: 'open', version: 1 },
      ...{
        sentVersion: 0,
        attempts: 0,
        nextMs: nowMs,
        createdMs: nowMs,
        updatedMs: nowMs,
        sentMs: null,
        triedMs: 0,
        error: null,
        ref: null,
        doc,
      },
      inFlight: false,
    }
    this.#records.set(key, record)
    created.push(record)
  }
}

const recordKey = (sink: string, { project, service }: Pick<CommitDoc, 'project' | 'service'>): string => `${project}/${sink} ${service}`
