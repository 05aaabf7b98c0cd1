// Events become messages: the groups of each route that may still change, in memory, and what a batch of events makes
// of them. Pure but for its own state, which is read from the outbox at the start and again after a write that failed.
// The work for an event depends on the routes that take it, never on the number of groups, events or clusters before
// it.

import type { Labels } from '../../shared/model/labels.ts'
import type { GroupField } from '../../shared/model/notifications.ts'
import { durationMs, FLEET } from '../../shared/model/resources.ts'
import { hideServices } from '../../shared/runtime/ids.ts'
import type { EventsDoc, NewNotification, NotificationRecord } from '../fleet/notification-records.ts'
import type { FleetEvent } from '../fleet/records.ts'
import { afterQuietHours } from './quiet-hours.ts'
import type { Route, Routing } from './routing.ts'
import { canEnd, ENDS, isAtLeast, severityOf } from './severity.ts'

/** Groups of one route that may still change. */
export const OPEN_MAX = 200
/** Names in one message; others are counted. */
export const MEMBERS_MAX = 10_000
/** Groups that a digest names. */
const DIGEST_MAX = 100
/** A group that nothing ends is closed after that. */
export const OPEN_MS_MAX = 7 * 24 * 3_600_000
const DIGEST = 'digest'

/** Where the event comes from, as far as messages say it. */
export interface EventFacts {
  /** Labels of its cluster. Null means none, or not needed. */
  labels: Labels | null
  /** `apps@4be19d0`. */
  after: string | null
  /** Subject and author of that commit. Null means not known. */
  commit: string | null
}

/** A record that has no id yet is written by the next plan. */
export type GroupRecord = NewNotification & { id: number | null; inFlight: boolean }

interface Group {
  /** Key of the route. */
  route: string
  key: string
  /** The key without the commit: what ends a group does not know the commit that began it. */
  lasting: string
  doc: EventsDoc
  members: Set<string>
  records: GroupRecord[]
}

export interface PlannedWrites {
  created: GroupRecord[]
  changed: GroupRecord[]
}

export class Groups {
  /** By route and key. */
  readonly #open = new Map<string, Group>()
  /** By route and lasting key. */
  readonly #lasting = new Map<string, Set<Group>>()
  /** By route. */
  readonly #ofRoute = new Map<string, Set<Group>>()
  /** When the newest groups of each route began; NT5. */
  readonly #begun = new Map<string, number[]>()
  readonly #dirty = new Set<Group>()
  readonly #updates: (project: string, sink: string) => boolean

  /** `updates`: whether a sink changes a message that it has. */
  constructor(records: readonly NotificationRecord[], updates: (project: string, sink: string) => boolean) {
    this.#updates = updates
    for (const record of records) {
      const { doc, project, route, groupKey } = record
      if (doc.type !== 'events') continue
      const routeKey = `${project}/${route}`
      const held = this.#open.get(`${routeKey} ${groupKey}`)
      const own = { ...record, inFlight: false }
      if (held !== undefined) {
        held.records.push(own)
        own.doc = held.doc
      } else {
        if (groupKey !== DIGEST) this.#begun.set(routeKey, [...(this.#begun.get(routeKey) ?? []), record.createdMs])
        this.#add({ route: routeKey, key: groupKey, lasting: lastingOf(groupKey), doc, members: new Set(doc.members), records: [own] })
      }
    }
  }

  get records(): GroupRecord[] {
    return [...this.#open.values()].flatMap(({ records }) => records)
  }

  /** One event, in the order of the stream. */
  take(event: FleetEvent, facts: EventFacts, routing: Routing, nowMs: number): void {
    for (const reason of ENDS[event.reason] ?? []) this.#end({ ...event, reason, type: 'Warning' }, facts, routing)
    for (const route of routing.routesOf(event, facts.labels)) this.#join(route, event, facts, nowMs)
  }

  /** Writes after a batch. `routes`: by key. */
  planned(routes: ReadonlyMap<string, Route>, nowMs: number): PlannedWrites {
    const writes: PlannedWrites = { created: [], changed: [] }
    for (const group of this.#dirty) {
      const route = routes.get(group.route)
      group.doc.members = [...group.members]
      for (const record of group.records) {
        this.#schedule(group, record, route, nowMs)
        if (record.id === null) {
          if (record.state === 'open') writes.created.push(record)
        } else writes.changed.push(record)
      }
      group.records = group.records.filter(({ id, state }) => id !== null || state === 'open')
      if (group.records.every(({ state }) => state === 'closed')) this.#remove(group)
    }
    this.#dirty.clear()
    return writes
  }

  /** Closes what is told and that nothing ends, or that stayed open for too long. */
  sweep(routes: ReadonlyMap<string, Route>, nowMs: number): GroupRecord[] {
    const closed: GroupRecord[] = []
    for (const group of [...this.#open.values()]) {
      if (!this.#isOver(group, routes.get(group.route), nowMs)) continue
      for (const record of group.records) {
        if (record.state === 'open') record.state = 'closed'
        record.nextMs = null
        closed.push(record)
      }
      this.#remove(group)
    }
    return closed.filter(({ id }) => id !== null)
  }

  /** After a delivery: a group of which nothing is left to tell is forgotten. */
  settled(record: GroupRecord): void {
    const group = this.#open.get(`${record.project}/${record.route} ${record.groupKey}`)
    if (group?.records.includes(record) === true && group.records.every(({ state }) => state === 'closed')) this.#remove(group)
  }

  #join(route: Route, event: FleetEvent, facts: EventFacts, nowMs: number): void {
    const routeKey = keyOfRoute(route)
    const key = keyOf(event, route.spec.group.by, facts.after)
    let group = this.#open.get(`${routeKey} ${key}`)
    if (group !== undefined && this.#isOver(group, route, nowMs)) {
      this.#remove(group)
      group = undefined
    }
    group ??= this.#begin(route, event, { key, facts, nowMs })
    const { doc, members } = group
    if (doc.digest !== undefined) {
      this.#digest(group, event)
      return
    }
    const member = memberOf(event, route.spec.group.by)
    doc.lastMs = event.atMs
    doc.message = messageFor(route, event)
    const severity = severityOf(event.type, event.reason)
    if (isAtLeast(severity, doc.severity)) doc.severity = severity
    if (members.has(member) && !doc.resolved) return
    if (doc.resolved) doc.total = 0
    doc.resolved = false
    doc.total += 1
    if (members.size < MEMBERS_MAX) members.add(member)
    else doc.unnamed += 1
    this.#dirty.add(group)
  }

  #begin(route: Route, event: FleetEvent, { key, facts, nowMs }: { key: string; facts: EventFacts; nowMs: number }): Group {
    const routeKey = keyOfRoute(route)
    const { interval, max } = route.spec.group
    const begun = (this.#begun.get(routeKey) ?? []).filter((atMs) => nowMs - atMs < durationMs(interval))
    const isDigest = begun.length >= max || (this.#ofRoute.get(routeKey)?.size ?? 0) >= OPEN_MAX
    this.#begun.set(routeKey, isDigest ? begun : [...begun, nowMs])
    const digest = isDigest ? this.#open.get(`${routeKey} ${DIGEST}`) : undefined
    if (digest !== undefined) return digest
    const { project, service, cluster, reason, atMs } = event
    const doc: EventsDoc = {
      type: 'events',
      ...{ reason, severity: severityOf(event.type, reason), project, service: isDigest ? null : service },
      after: isDigest ? null : facts.after,
      ...(isDigest || facts.commit === null ? {} : { commit: facts.commit }),
      ...{ message: messageFor(route, event), members: [], unnamed: 0, total: 0, firstMs: atMs, lastMs: atMs, resolved: false },
      ofClusters: cluster !== null && (service === null || route.spec.group.by.includes('service')),
      ...(isDigest ? { digest: {} } : {}),
    }
    const groupKey = isDigest ? DIGEST : key
    const records = route.spec.sinks.map(
      (sink): GroupRecord => ({
        ...{ id: null, project: route.project, route: route.name, sink, groupKey, state: 'open', version: 0, sentVersion: 0, attempts: 0 },
        ...{ nextMs: null, createdMs: nowMs, updatedMs: nowMs, sentMs: null, triedMs: 0, error: null, ref: null, doc, inFlight: false },
      }),
    )
    const group: Group = { route: routeKey, key: groupKey, lasting: lastingOf(groupKey), doc, members: new Set(), records }
    this.#add(group)
    return group
  }

  #digest(group: Group, event: FleetEvent): void {
    const { doc } = group
    const { reason, project, service } = event
    const counts = doc.digest ?? {}
    const name = `${reason}${project === null ? '' : ` ${project}${service === null ? '' : `/${service}`}`}`
    const key = Object.hasOwn(counts, name) || Object.keys(counts).length < DIGEST_MAX ? name : 'others'
    counts[key] = (counts[key] ?? 0) + 1
    doc.total += 1
    doc.lastMs = event.atMs
    const severity = severityOf(event.type, reason)
    if (isAtLeast(severity, doc.severity)) doc.severity = severity
    this.#dirty.add(group)
  }

  #end(event: FleetEvent, facts: EventFacts, routing: Routing): void {
    for (const route of routing.routesOf(event, facts.labels)) {
      const { by } = route.spec.group
      const lasting = `${keyOfRoute(route)} ${lastingOf(keyOf(event, by, null))}`
      for (const group of this.#lasting.get(lasting) ?? []) {
        const { doc, members } = group
        if (doc.resolved || !isEnded(group)) continue
        if (!members.delete(memberOf(event, by))) {
          if (doc.unnamed === 0) continue
          doc.unnamed -= 1
        }
        doc.resolved = members.size + doc.unnamed === 0
        this.#dirty.add(group)
      }
    }
  }

  #schedule({ doc }: Group, record: GroupRecord, route: Route | undefined, nowMs: number): void {
    record.updatedMs = nowMs
    record.doc = doc
    const mayBeSent = record.sentVersion > 0 || record.attempts > 0 || record.inFlight
    // NT6: what is over before it was told is not told; and nobody wants to hear of the end.
    if (doc.resolved && (!mayBeSent || route?.spec.resolved === false)) {
      record.state = 'closed'
      record.nextMs = null
      return
    }
    // Attempts at a dead letter do not count for the next version of the message.
    if (record.state === 'dead') Object.assign(record, { attempts: 0, triedMs: 0, nextMs: null })
    record.state = 'open'
    record.version += 1
    if (record.nextMs !== null && (record.attempts > 0 || record.sentVersion === 0)) return
    record.nextMs = this.dueOf(record, route, nowMs)
  }

  /** When the next version of it goes out. */
  dueOf(record: GroupRecord, route: Route | undefined, nowMs: number): number {
    const { wait = '30s', interval = '15m' } = route?.spec.group ?? {}
    const doc = record.doc as EventsDoc
    const gap = doc.resolved || this.#updates(record.project, record.sink) ? wait : interval
    const due = record.sentMs === null ? record.createdMs + durationMs(wait) : Math.max(nowMs, record.sentMs + durationMs(gap))
    return afterQuietHours(route?.spec.quietHours ?? [], doc.severity, due)
  }

  #isOver(group: Group, route: Route | undefined, nowMs: number): boolean {
    if (group.records.some(({ nextMs, inFlight, id }) => nextMs !== null || inFlight || id === null)) return false
    if (route === undefined) return true
    const sentMs = Math.max(0, ...group.records.map((record) => record.sentMs ?? record.updatedMs))
    if (isEnded(group)) return nowMs - sentMs > OPEN_MS_MAX
    return nowMs - sentMs > durationMs(route.spec.group.interval)
  }

  #add(group: Group): void {
    this.#open.set(`${group.route} ${group.key}`, group)
    addTo(this.#lasting, `${group.route} ${group.lasting}`, group)
    addTo(this.#ofRoute, group.route, group)
  }

  #remove(group: Group): void {
    this.#open.delete(`${group.route} ${group.key}`)
    this.#lasting.get(`${group.route} ${group.lasting}`)?.delete(group)
    if (this.#lasting.get(`${group.route} ${group.lasting}`)?.size === 0) this.#lasting.delete(`${group.route} ${group.lasting}`)
    this.#ofRoute.get(group.route)?.delete(group)
  }
}

/** Whether later events end it: it is about one reason, which another event ends. */
const isEnded = ({ doc, key }: Group): boolean => doc.digest === undefined && key.includes('reason=') && canEnd(doc.reason)

/** AZ4: the readers of a sink in a project are those of the project. */
const messageFor = (route: Route, { message }: FleetEvent): string =>
  hideServices(message, ({ project }) => route.project === FLEET || project === route.project)

export const keyOfRoute = ({ project, name }: Pick<Route, 'project' | 'name'>): string => `${project}/${name}`

function addTo<T>(map: Map<string, Set<T>>, key: string, value: T): void {
  const held = map.get(key)
  if (held === undefined) map.set(key, new Set([value]))
  else held.add(value)
}

const FIELDS: Readonly<Record<GroupField, (event: FleetEvent, after: string | null) => string | null>> = {
  reason: ({ reason }) => reason,
  project: ({ project }) => project,
  service: ({ service }) => service,
  cluster: ({ cluster }) => cluster,
  commit: (_, after) => after,
}

/** The commit is the last field, so that the rest is the beginning of the key. */
function keyOf(event: FleetEvent, by: readonly GroupField[], after: string | null): string {
  const fields = [...by.filter((field) => field !== 'commit'), ...by.filter((field) => field === 'commit')]
  return fields.map((field) => `${field}=${FIELDS[field](event, after) ?? ''}`).join(' ')
}
const lastingOf = (key: string): string => key.replace(/ ?commit=.*$/, '')

/** The number that a message shows: its clusters, otherwise its services or objects. */
function memberOf({ cluster, project, service, object }: FleetEvent, by: readonly GroupField[]): string {
  const parts = [cluster, service === null || by.includes('service') ? null : `${project}/${service}`].filter((part) => part !== null)
  return parts.length === 0 ? (object ?? '') : parts.join(' ')
}
