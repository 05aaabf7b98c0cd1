// Commits become desired rows. A poll, a webhook, a changed resource or a cluster that joined starts the work. A
// repository reconciliation reads commits; a service reconciliation renders, plans and publishes. This file decides
// nothing, and a failure never stops the others.
import { setImmediate } from 'node:timers/promises'
import { durationMs, placeOf, placeTexts, repositorySpecSchema, serviceSpecSchema, sourcesOf } from '../../shared/model/resources.ts'
import { type BackoffLimits, backoffMs } from '../../shared/runtime/backoff.ts'
import type { ErrorCode } from '../../shared/runtime/error.ts'
import { type ClusterId, parseServiceKey, type ServiceId } from '../../shared/runtime/ids.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { type Watch, watched } from '../../shared/runtime/watchdog.ts'
import { publishRevisions } from '../desired/publisher.ts'
import type { StatusWrite, StoredResource } from '../fleet/records.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'
import { FairSlots } from '../render/sandbox/fair-slots.ts'
import { actAsSystem } from '../store/audit/caller.ts'
import { type ClusterChange, ClusterChanges } from './cluster-changes.ts'
import { createKnownFacts, type KnownFacts } from './cluster-facts.ts'
import type { ContentSources } from './content-port.ts'
import { DueQueue } from './due-queue.ts'
import { FactsChanges } from './facts-changes.ts'
import { HealthRuleRows } from './health-rule-rows.ts'
import type { Ingest } from './ingest-port.ts'
import { KeyedQueue } from './keyed-queue.ts'
import { KnownSpecs } from './known-specs.ts'
import { PassExtents } from './pass-scope.ts'
import { firstLookMs, HANDS, Hosts, hostOf, nextLookMs } from './poll-times.ts'
import { resourcesOf } from './projects.ts'
import { PublishGroup } from './publish-group.ts'
import { rankServices } from './publish-order.ts'
import {
  isRepositoryKey,
  isYoungKey,
  projectOf,
  type QueueKey,
  type RepositoryKey,
  repositoryKey,
  type ServiceKeyText,
  serviceKeyText,
  serviceKeyTextOf,
  type YoungKey,
  youngKey,
} from './queue-keys.ts'
import { ReadTimes, type RepositoryReadTimes } from './read-times.ts'
import { RemoteBases, type RemoteBasesDeps } from './remote-bases.ts'
import { ServiceRenderer, type ServiceRendererDeps } from './render/service-render.ts'
import { passRepository, type RepositoryPass } from './repository-pass.ts'
import { passService, type ServicePass, type ServicePassDeps } from './service-pass.ts'
import { SiteConfigRows } from './site-config-rows.ts'
import { SuspensionRows } from './suspension-rows.ts'

/** `stopping` should also cut the requests of the sources short. */
export type IngestDeps = Omit<ServicePassDeps, 'renderer'> & {
  sources: ContentSources
  rendering: Omit<ServiceRendererDeps, 'store' | 'content' | 'sources' | 'facts' | 'site' | 'bases' | 'clock' | 'log' | 'signal'> &
    Pick<RemoteBasesDeps, 'configOf'>
  random: Random
  /** Told of each reconciliation. Absent means that nobody watches. */
  watch?: Watch
  stopping: AbortSignal
}

/** Services that are reconciled at once after a commit: for each, the list of all clusters is in memory meanwhile. */
const REVISED_AT_ONCE = 8
const SERVICES_AT_ONCE = 4
/**
 * For a service reconciliation that failed for an internal reason: store, disk. An error of an input is a state and is
 * not retried.
 */
const RETRY: BackoffLimits = { baseMs: 1_000, capMs: 60_000 }
/** Codes of a host that does not answer. */
const SILENT: readonly ErrorCode[] = ['git_unreachable', 'source_unreachable']
/** SO35: the other side may ask for so much time at most. */
const RETRY_AFTER_MAX_MS = 3_600_000

export function createIngest(deps: IngestDeps): Ingest {
  return new IngestLoop(deps)
}

class IngestLoop implements Ingest {
  private readonly deps: IngestDeps & ServicePassDeps
  private readonly queue: DueQueue<QueueKey>
  /** As far as their specs were read. */
  private readonly hosts = new Map<RepositoryKey, string>()
  private readonly heard = new Hosts()
  private readonly looks = new ReadTimes<RepositoryKey>()
  private readonly repositories: KeyedQueue<RepositoryKey>
  private readonly revising: FairSlots
  private readonly services: KeyedQueue<ServiceKeyText>
  private readonly publishing: PublishGroup
  /** Failures in a row. */
  private readonly attempts = new Map<string, number>()
  private readonly expectChange = new Set<RepositoryKey>()
  /** IN7b: a failure may have come after their commit was stored: their services may not have been reconciled since. */
  private readonly unrevised = new Set<RepositoryKey>()
  /** The UIDs of earlier repositories, to clean up after deleted ones. */
  private readonly uids = new Map<RepositoryKey, string>()
  private readonly confirmed = new Map<ServiceKeyText, ReadonlyMap<ClusterId, readonly string[]>>()
  private readonly specs = new KnownSpecs()
  private readonly extents = new PassExtents<ServiceKeyText>()
  private readonly young = new Map<YoungKey, ReadonlySet<ClusterId>>()
  private readonly clusterChanges: ClusterChanges
  private readonly rules: HealthRuleRows
  private readonly bases: RemoteBases
  private readonly suspensions: SuspensionRows
  private readonly siteConfigs: SiteConfigRows
  private readonly facts: KnownFacts
  private readonly factsChanges: FactsChanges
  /** Services whose last render read no facts of any cluster. */
  private readonly factless = new Set<ServiceKeyText>()

  constructor(deps: IngestDeps) {
    this.facts = createKnownFacts(deps.store, deps.clock)
    const share = { projectOf, clock: deps.clock }
    const groups = {
      of: (key: RepositoryKey) => this.hosts.get(key) ?? null,
      mayStart: (host: string, asked: ReadonlyMap<string, number>) => this.heard.mayAsk(host, asked),
    }
    const read = this.readRepository.bind(this)
    this.repositories = new KeyedQueue<RepositoryKey>(HANDS, read, { groups, share })
    this.revising = new FairSlots(REVISED_AT_ONCE, deps.clock)
    const revise = async (key: ServiceKeyText, release: () => void) => {
      await this.reviseService(key, release).finally(() => {
        release()
        this.publishing.passEnded()
      })
    }
    this.services = new KeyedQueue<ServiceKeyText>(SERVICES_AT_ONCE, revise, { share })
    const { store, content, sources, clock, random, log, stopping: signal } = deps
    const { configOf, ...rendering } = deps.rendering
    this.bases = new RemoteBases({
      ...{ sources, store, configOf, clock, random, log, stopping: signal },
      wake: (id) => void this.passWhole(serviceKeyTextOf(id)).catch(() => {}), // entered in the queue again
    })
    const facts = (clusters: readonly ClusterId[]) => this.facts.of(clusters)
    this.rules = new HealthRuleRows(deps)
    this.suspensions = new SuspensionRows(deps)
    this.siteConfigs = new SiteConfigRows({ ...deps, services: () => this.list('Service') })
    const site = (clusters: readonly ClusterId[]) => this.facts.siteOf(clusters)
    this.publishing = new PublishGroup({
      publish: (publications) => publishRevisions({ ...deps, pace: createPace(clock) }, publications),
      clock,
      underWay: () => this.services.handed(),
      stopping: signal,
    })
    this.deps = {
      ...deps,
      factsOf: facts,
      rules: this.rules,
      publish: this.publishing.publish.bind(this.publishing),
      renderer: new ServiceRenderer({ ...rendering, store, content, sources, bases: this.bases, clock, log, facts, site, signal }),
    }
    this.queue = new DueQueue(deps.clock)
    this.clusterChanges = new ClusterChanges({
      ...{ store, clock },
      services: () => this.list('Service'),
      passIn: (id, clusterIds) => settled([this.passIn(serviceKeyTextOf(id), clusterIds)]),
      onUnknown: () => void this.enterAll('Service'), // else nobody would look before the next change
      ignoresLabels: (id, spec) => this.deps.renderer.ignoresLabels(id, spec),
      dependsOnFacts: (id) => !this.factless.has(serviceKeyTextOf(id)),
    })
    this.factsChanges = new FactsChanges({ ...deps, pass: (clusters) => this.clusterChanges.factsChanged(clusters) })
  }

  async run(): Promise<void> {
    const { stopping } = this.deps
    void this.rules.changed()
    void this.suspensions.changed()
    void this.siteConfigs.changed()
    this.recallConfirmed(await this.deps.store.confirmedData())
    // Changes while the server was down: labels, specs, confirmations, statuses.
    for (const kind of ['Repository', 'Service'] as const) await this.enterAll(kind)
    while (!stopping.aborted) {
      for (const key of this.queue.takeDue()) this.start(key)
      await this.queue.wait(stopping)
    }
    await this.repositories.idle()
    await this.bases.idle()
    await this.services.idle()
  }

  healthRulesChanged(clusterNames?: readonly string[]): Promise<void> {
    return clusterNames === undefined ? this.rules.changed() : this.rules.joined(clusterNames)
  }

  suspensionsChanged(clusterNames?: readonly string[]): Promise<void> {
    return this.suspensions.changed(clusterNames)
  }

  siteConfigsChanged({ service, clusters }: { service?: ServiceId; clusters?: readonly string[] }): Promise<void> {
    if (service !== undefined) return this.siteConfigs.serviceChanged(service)
    return clusters === undefined ? this.siteConfigs.changed() : this.siteConfigs.clustersChanged(clusters)
  }

  async repositoryChanged(project: string, name: string): Promise<void> {
    const key = repositoryKey({ project, name })
    this.expectChange.add(key)
    this.looks.due(key, this.deps.clock.nowMs())
    await this.findHost(key, project, name)
    await this.repositories.run(key)
  }

  /** IN9a: before it waits for a hand, so that it waits among the repositories of its present host. */
  private async findHost(key: RepositoryKey, project: string, name: string): Promise<void> {
    try {
      const repository = await this.deps.store.getResource({ kind: 'Repository', project, name })
      if (repository === null) this.hosts.delete(key)
      else this.hosts.set(key, hostOf(placeTexts(repositorySpecSchema.parse(JSON.parse(repository.spec))).url))
    } catch {} // the look itself meets that as well, tells of it and is tried again
  }

  serviceChanged(id: ServiceId): Promise<void> {
    return this.passWhole(serviceKeyTextOf(id))
  }

  private passWhole(key: ServiceKeyText): Promise<void> {
    this.extents.addFleet(key)
    return this.services.run(key)
  }

  private passIn(key: ServiceKeyText, clusterIds: Iterable<ClusterId>): Promise<void> {
    this.extents.addClusters(key, clusterIds)
    return this.services.run(key)
  }

  /** On disk first: a server that is killed before the reconciliation asks nobody again. */
  async dataConfirmed(confirmed: ConfirmedData): Promise<void> {
    await this.deps.store.noteConfirmedData(confirmed)
    this.recallConfirmed(confirmed)
  }

  private recallConfirmed(confirmed: ConfirmedData): void {
    for (const [key, clusters] of confirmed)
      this.confirm(`service/${parseServiceKey(key).project}/${parseServiceKey(key).service}`, clusters)
  }

  private confirm(key: ServiceKeyText, clusters: ReadonlyMap<ClusterId, readonly string[]>): void {
    const known = this.confirmed.get(key) ?? new Map<ClusterId, readonly string[]>()
    const both = [...clusters].map(([clusterId, names]) => [clusterId, [...(known.get(clusterId) ?? []), ...names]] as const)
    this.confirmed.set(key, new Map([...known, ...both]))
  }

  async clustersChanged(changes?: readonly ClusterChange[]): Promise<void> {
    if (changes !== undefined) return this.clusterChanges.changed(changes)
    const services = await this.list('Service').catch((error: unknown) => {
      void this.enterAll('Service')
      throw error
    })
    await settled(services.map((service) => this.passWhole(serviceKeyText(service))))
  }

  clusterDeleted(clusterId: ClusterId, services: readonly ServiceId[]): Promise<void> {
    return this.clusterChanges.deleted(clusterId, services)
  }

  readTimesOf(project: string, name: string): RepositoryReadTimes | null {
    return this.looks.of(repositoryKey({ project, name }))
  }

  readonly factsOf: Ingest['factsOf'] = (clusters) => this.facts.of(clusters)
  readonly siteOf: Ingest['siteOf'] = (clusters) => this.facts.siteOf(clusters)
  readonly helmValues: Ingest['helmValues'] = (...asked) => this.deps.renderer.helmValues(...asked)
  readonly originOf: Ingest['originOf'] = (...asked) => this.deps.renderer.originOf(...asked)
  readonly render: Ingest['render'] = (...asked) => this.deps.renderer.render(...asked)
  readonly renderBy: Ingest['renderBy'] = (by) => this.deps.renderer.renderBy(by)
  readonly rendersNaming: Ingest['rendersNaming'] = (objects) => this.deps.renderer.rendersNaming(objects)

  statusReported(clusterId: ClusterId, rows: readonly StatusWrite[]): void {
    if (this.facts.reported(clusterId, rows)) this.factsChanges.changed(clusterId)
  }

  /** As due now, as soon as the store can be read. */
  private async enterAll(kind: 'Repository' | 'Service'): Promise<void> {
    const { clock, log, random, stopping } = this.deps
    for (let attempt = 0; !stopping.aborted; attempt++) {
      try {
        const found = await this.list(kind)
        if (kind === 'Repository') await this.removeUnknown(found)
        for (const [index, one] of found.entries()) {
          if (kind === 'Service') this.queue.soonest(serviceKeyText(one), clock.nowMs())
          else this.enter(repositoryKey(one), await this.firstLook(one, index, found.length))
        }
        return
      } catch (error) {
        const retryInMs = backoffMs(attempt, RETRY, random)
        log.warn('cannot read the queue', { kind, attempt, retryInMs, error: describeError(error) })
        await clock.sleep(retryInMs, stopping)
      }
    }
  }

  private enter(key: RepositoryKey, waitMs: number): void {
    this.looks.due(key, this.queue.soonest(key, this.deps.clock.nowMs() + waitMs))
  }

  /** A leftover is harmless: the next start finds it again. */
  private async removeUnknown(known: readonly StoredResource[]): Promise<void> {
    const { sources, log } = this.deps
    await sources.removeUnknown(new Set(known.map(({ uid }) => uid))).catch((error: unknown) => {
      log.warn('cannot remove content of deleted repositories', { error: describeError(error) })
    })
  }

  /** IN9a: spreads the first reads after a start. */
  private async firstLook(repository: StoredResource, index: number, count: number): Promise<number> {
    const { project, name, uid } = repository
    const spec = repositorySpecSchema.parse(JSON.parse(repository.spec))
    this.uids.set(repositoryKey(repository), uid)
    this.hosts.set(repositoryKey(repository), hostOf(placeTexts(spec).url))
    const { commit } = await this.deps.store.repositoryState(project, name)
    const source = this.deps.sources.open({ uid, project, place: placeOf(spec) })
    const hasContent = commit !== null && (await source.has(commit).catch(() => false))
    return firstLookMs(hasContent, durationMs(spec.poll), index, count)
  }

  private start(key: QueueKey): void {
    const run = isRepositoryKey(key) ? this.repositories.run(key) : isYoungKey(key) ? this.passYoung(key) : this.passWhole(key)
    run.catch(() => {}) // entered in the queue again by whoever failed
  }

  private passYoung(key: YoungKey): Promise<void> {
    const clusters = this.young.get(key) ?? []
    this.young.delete(key)
    return this.passIn(serviceKeyTextOf(parseServiceKey(key.slice('young/'.length))), clusters)
  }

  private readRepository(key: RepositoryKey, release: () => void): Promise<void> {
    return this.guarded(key, async () => {
      const [, project = '', name = ''] = key.split('/')
      this.services.expect(project)
      const expectChange = this.expectChange.delete(key)
      const repository = await this.deps.store.getResource({ kind: 'Repository', project, name })
      if (repository === null) return this.forgetRepository(key, project, name)
      const pass = await this.askRepository(key, repository, expectChange)
      release() // what follows asks nobody, and may take long
      this.followBases(repository)
      if (pass.kind === 'changed' || this.unrevised.has(key))
        await this.revising.run({ project, subject: key }, () => this.reviseServicesOf(repository, pass))
      this.unrevised.delete(key)
      if (pass.kind !== 'failed') this.countSuccess(key)
    })
  }

  private followBases({ project, name, spec }: StoredResource): void {
    const pollMs = durationMs(repositorySpecSchema.parse(JSON.parse(spec)).poll)
    this.bases.follow(project, name, pollMs)
  }

  private async askRepository(key: RepositoryKey, repository: StoredResource, expectChange: boolean): Promise<RepositoryPass> {
    const { clock, random } = this.deps
    await this.forgetOther(key, repository.uid)
    this.uids.set(key, repository.uid)
    const spec = repositorySpecSchema.parse(JSON.parse(repository.spec))
    const host = hostOf(placeTexts(spec).url)
    this.hosts.set(key, host)
    const pollMs = durationMs(spec.poll)
    const pass = await passRepository(this.deps, repository, { expectChange, isUnrevised: this.unrevised.has(key) })
    this.heard.note(host, pass.kind !== 'failed' || !SILENT.includes(pass.error.code))
    // Spread, so that repositories of one host are not polled together. After a failure the first retry is early.
    const waitMs =
      pass.kind === 'failed'
        ? backoffMs(this.countFailure(key), { baseMs: 2_000, capMs: pollMs }, random, bounded(pass.error.retryAfterMs))
        : nextLookMs(pollMs, random)
    const nowMs = clock.nowMs()
    this.queue.set(key, nowMs + waitMs)
    this.looks.ended(key, nowMs, this.expectChange.has(key) ? nowMs : nowMs + waitMs)
    return pass
  }

  /** Without a change that is known: all that take something of it. */
  private async reviseServicesOf({ project, name }: StoredResource, pass: RepositoryPass): Promise<void> {
    const clusters = await this.deps.store.listClusters()
    const all = this.specs.of(project, await this.list('Service', project))
    const { renderer } = this.deps
    const users = all.filter(({ id, spec }) => sourcesOf(spec).some(({ repository }) => repository === name) || renderer.isLacking(id))
    const changed = pass.kind === 'changed' ? await renderer.changedBy(users, name, pass.source, pass.commit) : null
    const concerned = changed === null ? users : users.filter((_, index) => changed[index])
    for (const rank of await rankServices(this.deps, concerned, clusters, SERVICES_AT_ONCE))
      await settled(rank.map(({ id }) => this.passWhole(serviceKeyTextOf(id))))
  }

  private async reviseService(key: ServiceKeyText, release: () => void): Promise<void> {
    const { clock, random } = this.deps
    await setImmediate() // a pass may have nothing to wait for, and hundreds of them follow one another
    const id = parseServiceKey(key.slice('service/'.length))
    const extent = this.extents.take(key)
    if (extent !== 'fleet' && extent.size === 0) return
    const dataConfirmed = this.confirmed.get(key)
    this.confirmed.delete(key)
    const options = {
      release,
      ...(extent === 'fleet' ? {} : { clusters: extent }),
      ...(dataConfirmed === undefined ? {} : { dataConfirmed }),
    }
    const wasFactless = this.factless.delete(key) // while nobody knows where it looks now, it is looked at again when facts change
    const pass = this.guarded(key, () => passService(this.deps, id, options))
    const { retry, factless, againAtMs, young } = await pass.catch((error: unknown) => {
      if (dataConfirmed !== undefined) this.confirm(key, dataConfirmed)
      throw error
    })
    if (dataConfirmed !== undefined) await this.deps.store.dropConfirmedData(id, [...dataConfirmed.keys()])
    if (factless && (extent === 'fleet' || wasFactless)) this.factless.add(key)
    if (againAtMs !== null) this.queue.soonest(key, againAtMs)
    if (young !== null) this.lookAgain(id, young)
    if (retry === null) return void this.countSuccess(key)
    this.queue.soonest(key, clock.nowMs() + backoffMs(this.countFailure(key), RETRY, random, bounded(retry.afterMs)))
  }

  private lookAgain(id: ServiceId, { clusters, untilMs }: NonNullable<ServicePass['young']>): void {
    const key = youngKey(id)
    this.young.set(key, new Set([...(this.young.get(key) ?? []), ...clusters]))
    this.queue.soonest(key, untilMs)
  }

  /** Forgets an earlier repository of that name, which was deleted before it was read. */
  private async forgetOther(key: RepositoryKey, uid: string): Promise<void> {
    const { sources, log } = this.deps
    const before = this.uids.get(key)
    if (before === undefined || before === uid) return
    await sources.forget(before).catch((error: unknown) => {
      log.warn('cannot remove content of a deleted repository', { key, error: describeError(error) })
    })
  }

  private async forgetRepository(key: RepositoryKey, project: string, name: string): Promise<void> {
    this.queue.drop(key)
    const uid = this.uids.get(key)
    if (uid !== undefined) await this.deps.sources.forget(uid)
    for (const service of await this.list('Service', project)) {
      const spec = serviceSpecSchema.parse(JSON.parse(service.spec))
      if (sourcesOf(spec).some(({ repository }) => repository === name)) this.start(serviceKeyText(service))
    }
    for (const held of [this.uids, this.hosts, this.attempts, this.unrevised, this.looks]) held.delete(key)
  }

  /** An internal failure: reported once with its wait, and retried. */
  private async guarded<T>(key: RepositoryKey | ServiceKeyText, act: () => Promise<T>): Promise<T> {
    try {
      return await actAsSystem(key, () => watched(this.deps.watch, `ingest of ${key}`, act))
    } catch (error) {
      const attempt = this.countFailure(key)
      const retryInMs = backoffMs(attempt, RETRY, this.deps.random)
      this.deps.log.warn('ingest run failed', { key, attempt, retryInMs, error: describeError(error) })
      if (isRepositoryKey(key)) {
        this.enter(key, retryInMs)
        this.unrevised.add(key)
      } else this.queue.soonest(key, this.deps.clock.nowMs() + retryInMs)
      throw error
    }
  }

  private countFailure(key: string): number {
    const attempt = this.attempts.get(key) ?? 0
    this.attempts.set(key, attempt + 1)
    return attempt
  }

  private countSuccess(key: string): void {
    this.attempts.delete(key)
  }

  private list(kind: 'Repository' | 'Service', project?: string): Promise<StoredResource[]> {
    return Array.fromAsync(resourcesOf(this.deps.store, kind, project))
  }
}

const bounded = (retryAfterMs: number | undefined): number | undefined =>
  retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, RETRY_AFTER_MAX_MS)

/** Each run reports its own failure. */
const settled = async (runs: ReadonlyArray<Promise<void>>): Promise<void> => {
  await Promise.allSettled(runs)
}
