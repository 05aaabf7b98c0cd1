// Notifications, put together: follows the event stream, plans messages, delivers them. The cursor over the stream and
// the messages that a batch of events makes are committed together; nothing is added to the transaction that writes an
// event. Without a route and a sink it does nothing at all.

import { commitText, writtenByOf } from '../../shared/model/commits.ts'
import type { NotificationTestAnswer } from '../../shared/model/notification-views.ts'
import {
  type NotificationSinkSpec,
  notificationRouteSpecSchema,
  notificationSinkSpecSchema,
  type SinkType,
  sinkTypeOf,
} from '../../shared/model/notifications.ts'
import { serviceSpecSchema, sourcesOf } from '../../shared/model/resources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createPace, type Pace } from '../../shared/runtime/pace.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { Configs } from '../access/configs.ts'
import type { CommitDoc, NotificationRecord } from '../fleet/notification-records.ts'
import type { FleetEvent, ResourceKind, StoredResource } from '../fleet/records.ts'
import { configProject } from '../ingest/config-users.ts'
import type { AddressGuard } from '../sources/address/guard.ts'
import type { Store } from '../store/store.ts'
import { CommitWatch } from './forges/commit-watch.ts'
import { forgeStatus, forgeTest } from './forges/forge.ts'
import { type EventFacts, type GroupRecord, Groups, keyOfRoute } from './groups.ts'
import { type MessageDeps, messageOf, pageOf } from './message.ts'
import { type Channel, type DeliveryResult, Outbox, REQUEST_MS_MAX, stored } from './outbox.ts'
import { createRouting, endsSomething, type Route, type Routing } from './routing.ts'
import { credentialUrl, isForge, SINKS, updatesMessages } from './sinks/registry.ts'
import { type Sending, type Sent, SinkError } from './sinks/sink.ts'

export interface NotifierDeps extends MessageDeps {
  store: Pick<
    Store,
    | 'notifications'
    | 'changes'
    | 'listEvents'
    | 'listResources'
    | 'getResource'
    | 'findClusters'
    | 'renderState'
    | 'isPublished'
    | 'rollups'
    | 'queries'
    | 'commitsOf'
  >
  configs: Pick<Configs, 'read' | 'credentials'>
  addresses: AddressGuard
  clock: Clock
  /** The clock of a part that runs beside the others. Absent means that all have `clock`. */
  clockOf?(part: string): Clock
  random: Random
  log: Logger
  /** Told of each attempt to deliver a message, with the type of its sink. */
  onAttempt?(type: SinkType, result: DeliveryResult): void
}

export interface Notifier {
  run(signal: AbortSignal): Promise<void>
  /** A route, a sink or a cluster was written or deleted. */
  changed(): void
  /** Sends a test message now, past the outbox. */
  test(sink: StoredResource): Promise<NotificationTestAnswer>
  /** Sends a dead letter again; false: it is none. */
  retry(id: number): Promise<boolean>
}

/** Events of one plan. */
const EVENTS = 500
/** Between two plans: a storm of events is a few plans, not thousands. */
const PLAN_PAUSE_MS = 250
/** Without a message to write, the cursor is kept after so many events. */
const CURSOR_EVENTS = 5_000
const SWEEP_MS = 30_000
const PAGE = 500
/** Between two messages to a chat: Slack takes one a second in a channel. */
const CHAT_PAUSE_MS = 1_000
/** Routes and sinks that count. */
const RESOURCES_MAX = 1_000
/** Newest statuses of a sink: a start does not tell again what was told. */
const TOLD_MAX = 2_000

interface KnownSink {
  spec: NotificationSinkSpec
}

export function createNotifier(deps: NotifierDeps): Notifier {
  let wake = new AbortController()
  let running: Running | null = null
  return {
    async run(signal) {
      while (!signal.aborted) {
        wake = new AbortController()
        const current = await Running.load(deps)
        if (current.isIdle) {
          await idle(deps.clock, AbortSignal.any([signal, wake.signal]))
          continue
        }
        running = current
        try {
          await current.run(AbortSignal.any([signal, wake.signal]), signal)
        } finally {
          running = null
        }
      }
    },
    changed: () => wake.abort(),
    test: (sink) => testSink(deps, sink),
    async retry(id) {
      const record = await deps.store.notifications.get(id)
      if (record === null || record.state !== 'dead') return false
      const again: NotificationRecord = { ...record, state: 'open', attempts: 0, triedMs: 0, nextMs: deps.clock.nowMs() }
      await deps.store.notifications.settle(again)
      if (running !== null) wake.abort() // it is read with all others
      return true
    },
  }
}

const IDLE_MS = 3_600_000
async function idle(clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await clock.sleep(IDLE_MS, signal)
}

/** Between two changes of routes and sinks. */
class Running {
  readonly #deps: NotifierDeps
  readonly #routes: ReadonlyMap<string, Route>
  readonly #routing: Routing
  readonly #sinks: ReadonlyMap<string, KnownSink>
  readonly #groups: Groups
  readonly #commits: CommitWatch
  readonly #outbox: Outbox
  readonly #followClock: Clock
  #cursor: number
  /** As the store has it. */
  #keptCursor: number
  #sweptMs: number

  static async load(deps: NotifierDeps): Promise<Running> {
    const routes = (await readAll(deps.store, 'NotificationRoute')).map(
      ({ project, name, spec }): Route => ({ project, name, spec: notificationRouteSpecSchema.parse(JSON.parse(spec)) }),
    )
    const sinks = new Map(
      (await readAll(deps.store, 'NotificationSink')).map(({ project, name, spec }) => [
        `${project}/${name}`,
        { spec: notificationSinkSpecSchema.parse(JSON.parse(spec)) },
      ]),
    )
    const { notifications } = deps.store
    // Nobody wanted the events that came before the first route.
    if (routes.length === 0) await notifications.skipToNewest()
    const told: NotificationRecord[] = []
    for (const [key, { spec }] of sinks) {
      const slash = key.indexOf('/')
      const place = { project: key.slice(0, slash), sink: key.slice(slash + 1) }
      if (isForge(sinkTypeOf(spec))) told.push(...(await notifications.list({ ...place, limit: TOLD_MAX })))
    }
    return new Running(deps, { routes, sinks, cursor: await notifications.cursor(), pending: await notifications.pending(), told })
  }

  private constructor(
    deps: NotifierDeps,
    known: {
      routes: readonly Route[]
      sinks: ReadonlyMap<string, KnownSink>
      cursor: number
      pending: readonly NotificationRecord[]
      told: readonly NotificationRecord[]
    },
  ) {
    const { routes, sinks, cursor, pending, told } = known
    this.#deps = deps
    this.#routes = new Map(routes.map((route) => [keyOfRoute(route), route]))
    this.#routing = createRouting(routes)
    this.#sinks = sinks
    this.#cursor = cursor
    this.#keptCursor = cursor
    this.#sweptMs = deps.clock.nowMs()
    this.#groups = new Groups(pending, (project, sink) => {
      const known = sinks.get(`${project}/${sink}`)
      return known !== undefined && updatesMessages(known.spec)
    })
    const clockOf = (part: string) => deps.clockOf?.(part) ?? deps.clock
    this.#followClock = clockOf('notifications')
    this.#commits = new CommitWatch({ ...deps, clock: clockOf('commit statuses') }, sinks, [
      ...told.filter(({ state }) => state !== 'open').reverse(),
      ...pending,
    ])
    this.#outbox = new Outbox({
      store: deps.store.notifications,
      records: () => [...this.#groups.records, ...this.#commits.records],
      channel: (record) => this.#channel(record),
      dueOf: (record) =>
        record.doc.type === 'commit'
          ? this.#commits.dueOf(record, deps.clock.nowMs())
          : this.#groups.dueOf(record, this.#routes.get(`${record.project}/${record.route}`), deps.clock.nowMs()),
      onSettled: (record) => this.#groups.settled(record),
      onAttempt: ({ project, sink }, result) => {
        const known = sinks.get(`${project}/${sink}`)
        if (known !== undefined) deps.onAttempt?.(sinkTypeOf(known.spec), result)
      },
      ...{ clock: clockOf('notification deliveries'), random: deps.random, log: deps.log },
    })
  }

  /** Nothing to follow, and nothing to deliver. */
  get isIdle(): boolean {
    return this.#routes.size === 0 && this.#groups.records.length === 0 && this.#commits.isIdle
  }

  /** `stopping`: the server stops; without it, open deliveries end by themselves. */
  async run(signal: AbortSignal, stopping: AbortSignal): Promise<void> {
    const failed = new AbortController()
    const until = AbortSignal.any([signal, failed.signal])
    const parts = [
      this.#routes.size === 0 ? Promise.resolve() : this.#follow(until),
      this.#commits.run(until, () => this.#outbox.poke()),
      this.#outbox.run(until, stopping),
    ]
    for (const part of parts) part.catch(() => failed.abort())
    const ended = await Promise.allSettled(parts)
    await this.#keepCursor()
    for (const one of ended) if (one.status === 'rejected') throw one.reason
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { store } = this.#deps
    const position = await store.changes.position()
    await this.#plan(signal)
    const topics = new Set(['event'] as const)
    for await (const _ of store.changes.follow(position, { signal, topics, idleMs: SWEEP_MS })) {
      await this.#plan(signal)
      await this.#sweep()
      await this.#followClock.sleep(PLAN_PAUSE_MS, signal)
    }
  }

  /** Plans all events after the cursor. */
  async #plan(signal: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps
    const pace = createPace(clock)
    while (!signal.aborted) {
      const events = await store.listEvents({ after: this.#cursor, limit: EVENTS })
      const last = events.at(-1)
      if (last === undefined) return
      const facts = await this.#factsOf(events, pace)
      for (const event of events) {
        this.#groups.take(event, facts(event), this.#routing, clock.nowMs())
        await pace()
      }
      const { created, changed } = this.#groups.planned(this.#routes, clock.nowMs())
      this.#cursor = last.id
      if (created.length + changed.length > 0 || last.id - this.#keptCursor >= CURSOR_EVENTS) await this.#write(created, changed)
      if (events.length < EVENTS) return
    }
  }

  async #write(created: readonly GroupRecord[], changed: readonly GroupRecord[]): Promise<void> {
    const ids = await this.#deps.store.notifications.plan({
      cursor: { from: this.#keptCursor, to: this.#cursor },
      created: created.map(({ inFlight: _, id: __, ...record }) => record),
      changed: changed.map(stored),
    })
    if (ids === null) throw new Error('another process plans notifications of this store')
    this.#keptCursor = this.#cursor
    for (const [index, record] of created.entries()) record.id = ids[index] ?? null
    this.#outbox.poke()
  }

  async #keepCursor(): Promise<void> {
    if (this.#cursor !== this.#keptCursor) await this.#write([], [])
  }

  /**
   * The facts that messages need beside the event, read once for the whole batch, and only for events that some route
   * takes.
   */
  async #factsOf(events: readonly FleetEvent[], pace: Pace) {
    const { store } = this.#deps
    const names = this.#routing.readsLabels ? [...new Set(events.flatMap(({ cluster }) => cluster ?? []))] : []
    const found = names.length === 0 ? [] : await store.findClusters({ names })
    const labels = new Map(found.map((cluster) => [cluster.name, cluster.labels]))
    const labelsOf = ({ cluster }: FleetEvent) => (cluster === null ? null : (labels.get(cluster) ?? null))
    const commits = new Map<string, Pick<EventFacts, 'after' | 'commit'>>()
    for (const event of events) {
      const { project, service, reason } = event
      const key = commitKey(event)
      if (project === null || service === null || commits.has(key) || endsSomething(event)) continue
      if (this.#routing.routesOf(event, labelsOf(event)).length === 0) continue
      commits.set(key, await this.#commitOf(project, service, reason))
      await pace()
    }
    return (event: FleetEvent): EventFacts => ({ labels: labelsOf(event), ...(commits.get(commitKey(event)) ?? NO_COMMIT) })
  }

  /** The commit that the service has, or that cannot be rendered. */
  async #commitOf(project: string, service: string, reason: string): Promise<Pick<EventFacts, 'after' | 'commit'>> {
    const { store } = this.#deps
    const { commit: rendered, error } = await store.renderState({ project, service })
    const commit = reason === RENDER_FAILED ? (error?.at?.commit ?? rendered) : rendered
    const resource = commit === null ? null : await store.getResource({ kind: 'Service', project, name: service })
    if (commit === null || resource === null) return NO_COMMIT
    const [source] = sourcesOf(serviceSpecSchema.parse(JSON.parse(resource.spec)))
    if (source === undefined) return NO_COMMIT
    const short = /^[0-9a-f]{40,64}$/.test(commit) ? commit.slice(0, 7) : commit.slice(0, 40)
    const note = (await store.commitsOf(project, [commit])).get(commit)
    return { after: `${source.repository}@${short}`, commit: commitText(writtenByOf(note)) }
  }

  async #sweep(): Promise<void> {
    const { store, clock } = this.#deps
    const nowMs = clock.nowMs()
    if (nowMs - this.#sweptMs < SWEEP_MS) return
    this.#sweptMs = nowMs
    const closed = this.#groups.sweep(this.#routes, nowMs)
    if (closed.length > 0) await this.#write([], closed)
    await store.notifications.prune()
  }

  #channel({ project, sink, route }: GroupRecord): Channel | null {
    const known = this.#sinks.get(`${project}/${sink}`)
    if (known === undefined) return null
    const { spec } = known
    return {
      paused: spec.paused === true,
      pauseMs: spec.slack !== undefined || spec.teams !== undefined || spec.discord !== undefined ? CHAT_PAUSE_MS : 0,
      send: async (record, version, signal) => {
        const sending = { spec, ref: record.ref, secrets: await secretsOf(this.#deps, project, spec), signal, ...this.#around() }
        const type = sinkTypeOf(spec)
        const { doc } = record
        if (doc.type === 'commit') return forgeStatus(spec, commitMessage(doc, this.#deps.url()), sending)
        if (isForge(type)) throw new SinkError(`the sink ${sink} takes commit statuses only`, { retryable: false })
        const template = this.#routes.get(`${project}/${route}`)?.spec.template
        return SINKS[type](await messageOf({ ...record, doc: structuredClone(doc) }, version, template, this.#deps), sending)
      },
    }
  }

  #around() {
    return { addresses: this.#deps.addresses, nowMs: this.#deps.clock.nowMs() }
  }
}

const RENDER_FAILED = 'RenderFailed'
const NO_COMMIT = { after: null, commit: null }
const commitKey = ({ project, service, reason }: FleetEvent): string => `${project}/${service}${reason === RENDER_FAILED ? ' failed' : ''}`

const commitMessage = (doc: CommitDoc, url: string) => ({ ...doc, url: pageOf(doc, url) })

async function readAll(store: Pick<Store, 'listResources'>, kind: ResourceKind): Promise<StoredResource[]> {
  const found: StoredResource[] = []
  let after: string | undefined
  do {
    const page = await store.listResources(kind, { limit: PAGE, ...(after === undefined ? {} : { after }) })
    found.push(...page.items)
    after = page.next ?? undefined
  } while (after !== undefined && found.length < RESOURCES_MAX)
  return found
}

/** CG8: a secret goes only to the host that its Config is bound to. An address that is itself a secret needs no
 *  binding. */
async function secretsOf(
  { configs }: Pick<NotifierDeps, 'configs'>,
  project: string,
  spec: NotificationSinkSpec,
): Promise<Readonly<Record<string, string>>> {
  const config = spec.auth?.secretRef
  if (config === undefined) return {}
  const url = credentialUrl(spec)
  if (url !== null) return configs.credentials(configProject(project), config, { url })
  const opened = await configs.read(configProject(project), config)
  if (opened !== null) return opened.secrets
  throw new AppError('credential_missing', { detail: `Config ${config} does not exist in project ${configProject(project)}` })
}

async function testSink(deps: NotifierDeps, { project, spec: written }: StoredResource): Promise<NotificationTestAnswer> {
  const { clock, random, addresses } = deps
  const spec = notificationSinkSpecSchema.parse(JSON.parse(written))
  const startMs = clock.monotonicMs()
  const answer = (delivered: boolean, detail: string): NotificationTestAnswer => ({
    delivered,
    detail,
    durationMs: clock.monotonicMs() - startMs,
  })
  try {
    const signal = AbortSignal.timeout(REQUEST_MS_MAX)
    const sending: Sending = { spec, secrets: await secretsOf(deps, project, spec), ref: null, addresses, signal, nowMs: clock.nowMs() }
    const sent = await sendTest(deps, spec, sending, `test-${Math.floor(random() * 1e9)}`)
    return answer(true, sent.detail)
  } catch (error) {
    if (!(error instanceof SinkError) && !(error instanceof AppError)) throw error
    return answer(false, error.message)
  }
}

async function sendTest(deps: NotifierDeps, spec: NotificationSinkSpec, sending: Sending, id: string): Promise<Sent> {
  const type = sinkTypeOf(spec)
  if (isForge(type)) return forgeTest(spec, sending)
  const groupId = `skerry-${deps.instance}-${id}`
  const nowMs = deps.clock.nowMs()
  const message = {
    ...({ groupId, dedupeKey: `${groupId}.1`, version: 1, severity: 'info', reason: 'Test', resolved: false } as const),
    ...{ title: 'Test message from Skerry', text: 'The sink works.', project: null, service: null, after: null },
    ...{ members: [], active: 0, total: 0, firstMs: nowMs, lastMs: nowMs, url: `${deps.url()}/` },
  }
  const sent = await SINKS[type](message, sending)
  // An alert that is only a test does not stay open.
  if (type === 'pagerduty' || type === 'opsgenie')
    await SINKS[type]({ ...message, version: 2, resolved: true }, { ...sending, ref: sent.ref })
  return sent
}
