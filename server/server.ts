// The control plane, put together: stores, shards, ingest, the doors; started in an order in which nothing is served
// before it is true, and stopped in reverse.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { NativeGuard } from '../shared/adapters/native-guard.ts'
import { versionInfo } from '../shared/adapters/version-info.ts'
import { COMMIT, VERSION } from '../shared/runtime/build-info.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import { AppError } from '../shared/runtime/error.ts'
import type { ClusterId } from '../shared/runtime/ids.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { describeError } from '../shared/runtime/loop.ts'
import { isLoopback } from '../shared/runtime/loopback.ts'
import { createPace } from '../shared/runtime/pace.ts'
import type { Random } from '../shared/runtime/random.ts'
import type { RecordSpan } from '../shared/runtime/spans.ts'
import { createWatchdog } from '../shared/runtime/watchdog.ts'
import { createAgentIndex, refreshAgents } from './access/agent-index.ts'
import { createApiTokens, writeTokenFile } from './access/api-tokens.ts'
import { createAuditTrail } from './access/audit-trail.ts'
import { createConfigKeys } from './access/config-keys.ts'
import { createConfigs } from './access/configs.ts'
import { createKnocks } from './access/knocks.ts'
import { watchLiveness } from './access/liveness-watch.ts'
import { createSignIn } from './access/oidc/sign-in.ts'
import { createSecretRotation } from './access/rotate-secrets.ts'
import { loadSealing } from './access/sealing.ts'
import { loadSecretBox } from './access/secret-box.ts'
import { createSeenMarks } from './access/seen-marks.ts'
import { loadServerKeys } from './access/server-keys.ts'
import { createSessions } from './access/sessions.ts'
import { NO_SOPS_KEYS } from './access/sops-keys.ts'
import { AUDIT_DAYS_DEFAULT, keepAuditShort } from './actions/audit-retention.ts'
import { createFleetActions } from './actions/fleet-actions.ts'
import type { FleetActions } from './actions/port.ts'
import { createRemovalPlans } from './actions/removal-plans.ts'
import { createRestoreActions } from './actions/restore-actions.ts'
import { createRestoreGate, recordAhead } from './actions/restore-gate.ts'
import { createSealActions } from './actions/seal-actions.ts'
import { createApp } from './app.ts'
import { createAsks } from './ask/asks.ts'
import { createBackups } from './backup/archive/backups.ts'
import { KEYS, STORE } from './backup/manifest.ts'
import { refuseUnfinishedRestore } from './backup/restore-mark.ts'
import { recordRestore } from './backup/restored-note.ts'
import type { RenderPlace } from './control/render-place.ts'
import { openWorkers, WORKER_MEMORY_MIB_DEFAULT } from './control/workers/open-workers.ts'
import { keepCaughtUp } from './desired/catch-up.ts'
import { raiseEpochs } from './desired/epochs.ts'
import { maintainShards } from './desired/maintenance.ts'
import { createPageSeal } from './desired/page-seal.ts'
import { openProven } from './desired/proven-sets.ts'
import { replayShards } from './desired/replay.ts'
import { rewriteShard } from './desired/rewrite-shard.ts'
import { createShards, SHARD_COUNT } from './desired/shard-files.ts'
import { discardStale } from './desired/stale-shards.ts'
import { keepTombstonesFew } from './desired/tombstones.ts'
import { createAgentRoutes } from './http/agent-routes.ts'
import { networkOf } from './http/caller-address.ts'
import { createDrain, DRAIN_MS_MAX } from './http/drain.ts'
import { followOpenFiles, type Listener, listen } from './http/listener.ts'
import { listenForScrapes, type MetricsListener, type MetricsSource } from './http/metrics-routes.ts'
import { followTlsFiles, readTlsPair } from './http/tls-files.ts'
import { createWebhook, WEBHOOKS, webhookMark, webhookSecret } from './http/webhook.ts'
import { createIngest } from './ingest/ingest-loop.ts'
import { createObjectOwners } from './ingest/object-owners.ts'
import { createPreviews } from './ingest/render/previews.ts'
import { createRenderNow } from './ingest/render/render-now.ts'
import { createNotifier } from './notify/notifier.ts'
import { createOutboundGuard } from './notify/outbound.ts'
import { createFleetGauges } from './observe/fleet-gauges.ts'
import { createServerMetrics, withJobMetrics, withRequestMetrics } from './observe/server-metrics.ts'
import { CACHE_DISK_BYTES_MAX, createCacheFiles } from './render/cache/files.ts'
import { createRenderCache } from './render/cache/renders.ts'
import type { ServerOptions } from './server-options.ts'
import { removeLeftSecrets } from './sources/folders.ts'
import { maintainContent } from './store/content/content-collect.ts'
import { contentFilesIn } from './store/content/content-files.ts'
import { createFileContentStore } from './store/content/file-content-store.ts'
import { refuseLostStore } from './store/engines/store-guard.ts'
import { openPostgresStore, openSqliteStore } from './store/kysely-store.ts'
import { migrationLog } from './store/schema/bring-forward.ts'
import type { Store } from './store/store.ts'
import { keepUp, RETENTION } from './store/upkeep/upkeep.ts'
import { type Supervisor, supervise } from './supervise.ts'
import { createFileValues } from './values/file-values.ts'
import { createKubernetesValues } from './values/kubernetes-values.ts'
import { createValueKeeper } from './values/value-keeper.ts'
import { createVaultValues } from './values/vault-values.ts'

export interface ServerDeps {
  clock: Clock
  random: Random
  log: Logger
  guard?: NativeGuard
  /** Absent means that traces are off. */
  recordSpan?: RecordSpan
  /** Frees unused memory, in the background. */
  freeMemory?(): void
}

export interface RunningServer {
  url: string
  /** Null unless this start made one; the store has its hash. */
  firstAdminToken: string | null
  /** Where the first admin token is written. */
  adminTokenFile: string
  /** Resolves when it can do nothing any more: another server has its database. */
  failed: Promise<AppError>
  stop(): Promise<void>
}

const newId = () => randomBytes(16).toString('hex')
const newAskId = () => randomBytes(16).toString('base64url')

export const libraryDirOf = (dataDir: string): string => join(dataDir, 'lib')

/** Pages for so many agents leave their own size again as garbage, which the engine by itself keeps until the next such
 *  commit. */
const MANY_CLUSTERS = 1_000
/** By then the agents have fetched their pages. */
const FREE_MEMORY_AFTER_MS = 500

/** Longer than the deadlines inside one reconciliation of a repository or service together. */
const STUCK_AFTER_MS = 900_000
/** A backup is ended after 12 hours. */
const BACKUP_STUCK_AFTER_MS = 13 * 3_600_000

/** A server before this one that is about to end: until its connections are gone, the database is in use. */
const STORE_PATIENCE_MS = 15_000

export async function startServer(options: ServerOptions, deps: ServerDeps): Promise<RunningServer> {
  refuseUnfinishedRestore(options.dataDir)
  if (options.store == null) refuseLostStore(join(options.dataDir, STORE), existsSync(join(options.dataDir, KEYS[0])))
  const { promise: failed, resolve: onTaken } = Promise.withResolvers<AppError>()
  const { clock, random, log } = deps
  const storeOptions = { clock, random, tell: migrationLog(log, clock), recount: options.recount ?? false }
  const only = { patienceMs: STORE_PATIENCE_MS, onTaken }
  const store =
    options.store == null
      ? await openSqliteStore(join(options.dataDir, STORE), storeOptions)
      : await openPostgresStore({ ...options.store, only }, storeOptions)
  try {
    return { ...(await startOn(store, options, deps)), failed }
  } catch (error) {
    await store.close() // its connections would keep the process
    throw error
  }
}

async function startOn(
  plain: Store,
  options: ServerOptions,
  { clock, random, log, guard, recordSpan, freeMemory }: ServerDeps,
): Promise<Omit<RunningServer, 'failed'>> {
  const at = (name: string) => join(options.dataDir, name)
  const tls = options.tls == null ? null : readTlsPair(options.tls) // before anything is opened
  const stopping = new AbortController()
  await recordRestore(options.dataDir, plain)
  const keys = loadServerKeys(at('keys'))
  const secrets = loadSecretBox(at('keys'))
  const sealing = loadSealing(at('keys'))
  // A fleet that has clusters may have rows in clear, and agents that cannot open sealed ones: a person begins.
  if (sealing.current() === null && (await plain.listClusters()).length === 0 && sealing.begin()) sealing.isClean(clock.nowMs())
  const content = createFileContentStore(at('content'), clock)
  const { store, proven } = await openProven({ store: plain, sealing, content, log })
  const configKeys = createConfigKeys(secrets, options.keyService ?? null)
  const configs = createConfigs(store, configKeys)
  const agents = await createAgentIndex(store)
  const opened = createShards({
    dir: at('shards'),
    shardCount: SHARD_COUNT,
    sign: keys.sign,
    epochOf: agents.epochOf,
    seal: createPageSeal({ sealing, recipientOf: (clusterId) => agents.ofCluster(clusterId)?.recipient ?? null }),
    ...{ proven, newId, libraryDir: libraryDirOf(options.dataDir), clock, log },
    ...(guard === undefined ? {} : { guard }),
  })
  const { shards } = opened
  const metrics = createServerMetrics()
  const pace = createPace(clock)
  const rotation = await createSecretRotation({ store, keys: configKeys, clock, pace, log, stopping: stopping.signal })
  await discardStale({ store, opened, log, onAhead: recordAhead(store, clock) })
  await raiseEpochs({ store, opened, log })
  await agents.refresh()
  agents.onChanged((clusterId) => {
    shards.endTransfers(clusterId) // RV3
    shards.wake(clusterId) // its agent learns at once what became of it
  })
  await replayShards({ store, content, shards, log, pace })

  const restoreGate = await createRestoreGate({ store, keys, shards, clock, log })
  const knocks = createKnocks(clock)
  const publish = { store, content, shards, pace }
  const restore = createRestoreActions({
    store,
    publish,
    gate: restoreGate,
    knocks,
    refreshAgents: () => agents.refresh(),
    onSettled: () =>
      void ingest.clustersChanged().catch((error: unknown) => log.warn('cannot read services', { error: describeError(error) })),
    clock,
    log,
  })

  const onPublished = (clusters: number) => {
    metrics.add('skerry_published_clusters_total', clusters, {})
    if (clusters >= MANY_CLUSTERS) void clock.sleep(FREE_MEMORY_AFTER_MS, stopping.signal).then(() => freeMemory?.())
  }
  const macOf = (text: string) => keys.mac('render', Buffer.from(text)).toString('hex')
  const files = createCacheFiles({ dir: at('renders'), seal: secrets, clock, bytesMax: CACHE_DISK_BYTES_MAX })
  const cache = createRenderCache({ mac: macOf, files })
  removeLeftSecrets(at('git'))
  const place: RenderPlace = options.rendering ?? { mode: 'bubblewrap', programs: { renderers: new Map(), searchPath: [] } }
  const { sopsKeys = NO_SOPS_KEYS } = options
  const { workers, sources, renders, rendersForPeople, rendersToCompare, checkPatches, renderTexts } = openWorkers(
    {
      ...{ sourcesDir: at('git'), renderDir: at('render'), slots: availableParallelism(), env: options.env ?? {} },
      place,
      sourceAddresses: options.sourceAddresses ?? '',
      count: options.workers ?? 1,
      memoryMib: options.workerMemoryMib ?? WORKER_MEMORY_MIB_DEFAULT,
    },
    {
      store,
      answers: cache.answers,
      credentials: configs.credentials,
      measured: (pool) => withJobMetrics(pool, metrics, clock),
      ...{ sealing, sopsKeys, macOf, clock, log },
    },
  )
  const build = `${VERSION} ${COMMIT}`
  const rendering = { config: configs.read, configOf: configs.boundTo, cache, renders, sealing, build, sopsVersion: sopsKeys.version }
  const watchdog = createWatchdog({ clock, log, stuckAfterMs: STUCK_AFTER_MS })
  const ingest = createIngest({
    watch: watchdog.watch,
    ...{ store, content, shards, sources, rendering, onPublished, clock, random, log, stopping: stopping.signal },
    traceSalt: keys.fingerprint,
    ...(recordSpan === undefined ? {} : { recordSpan }),
  })
  const rewriting = {
    ...{ store, content, opened, newId, pace, log, libraryDir: libraryDirOf(options.dataDir) },
    onEpochsRaised: () => agents.refresh(),
  }
  const seals = createSealActions({
    ...{ store, sealing, shards, clock, pace, log, backupsMs: () => backups.state().keptMs ?? [] },
    files: contentFilesIn(at('content'), clock),
    rendersDir: at('renders'),
    renderAll: () => ingest.clustersChanged(),
    async rewriteShards(each) {
      for (let index = 0; index < SHARD_COUNT && !stopping.signal.aborted; index++) {
        await rewriteShard(rewriting, index, 'compacted')
        each()
      }
    },
  })
  const addresses = createOutboundGuard(options.sourceAddresses ?? '', options.env ?? {})
  const notifier = createNotifier({
    ...{ store, configs, renderTexts, clock, random, log, clockOf: watchdog.clockOf },
    onAttempt: (type, result) => metrics.add('skerry_notification_deliveries_total', 1, { type, result }),
    addresses,
    instance: keys.fingerprint.slice(0, 8),
    url: () => url,
  })
  const reports = createFleetActions({ store, content, shards, ingest, clock, log, onClusterDeleted })
  const values = createValueKeeper({
    ...{ store, keys: configKeys, clock, random, log },
    readers: {
      vault: createVaultValues({ configs, addresses, clock }),
      kubernetesSecret: options.valueSecrets === undefined ? null : createKubernetesValues(options.valueSecrets, fetch),
      file: options.valueFiles === undefined ? null : createFileValues(options.valueFiles),
    },
    onChanged: (key) => reports.onChanged([{ ...key, labelsOnly: false }]),
  })
  const actions: FleetActions = {
    ...reports,
    onChanged: (keys, confirmed) => {
      const names = keys.flatMap(({ kind, name }) => (kind === 'Cluster' ? [name] : []))
      if (names.length > 0) void refreshAgents(agents, names, { clock, random, log, signal: stopping.signal }) // they may have been revoked
      if (keys.some(({ kind }) => kind === 'NotificationSink' || kind === 'NotificationRoute')) notifier.changed()
      values.changed(keys)
      const others = keys.filter(({ agentOnly }) => agentOnly !== true)
      if (others.length > 0) reports.onChanged(others, confirmed)
    },
  }
  const drain = createDrain(clock, random)
  const seen = createSeenMarks(store, clock, log)
  const asks = createAsks({ sign: keys.sign, epochOf: agents.epochOf, wake: shards.wake.bind(shards), newId: newAskId, clock })
  const agentRoutes = createAgentRoutes({
    join: { store, agents, keys, clock, randomBytes, log, onJoined: reports.onJoined },
    sessions: createSessions({ keys, agents, store, clock, randomBytes, salt: randomBytes(16), onUnknown: knocks.note }),
    shards,
    store,
    onStatus: (agent, changed) => {
      metrics.add('skerry_status_rows_total', changed.length, {})
      restoreGate.onStatus(agent.clusterId, changed)
      reports.onStatus(agent, changed)
    },
    onSeen: (clusterId, waitSeconds) => {
      seen.seen(clusterId, waitSeconds)
      asks.seen(clusterId)
    },
    asks,
    restoreGate,
    drain,
    clock,
    log,
  })
  const tokens = createApiTokens({ store, clock, log })
  const signIn = options.signIn && createSignIn(options.signIn, { store, secrets, url: () => url, clock, log, stopping: stopping.signal })
  const { adminTokenFile = at('admin-token') } = options
  const trail = createAuditTrail({ store, networkOf, clock, log })

  const backups = createBackups({
    dataDir: options.dataDir,
    plan: options.backups ?? null,
    clock: watchdog.clockOf('backups', BACKUP_STUCK_AFTER_MS),
    log,
  })
  const readFleet = createFleetGauges({
    ...{ store, metrics, clock, series: options.metrics?.series ?? 'all' },
    failingLoops: () => loops?.failing() ?? [],
    stuckCount: watchdog.stuckCount,
    openQuestions: asks.open,
    backups: backups.state,
  })
  const scrapes: MetricsSource = async () => {
    await readFleet()
    return metrics.answer()
  }

  const owners = createObjectOwners({ store, content, renderer: ingest })
  const app = createApp({
    store,
    trail,
    tokens,
    ...(signIn === undefined ? {} : { signIn }),
    url: () => url,
    actions,
    removals: createRemovalPlans({ store, content, owners, clock }),
    readTimesOf: (project, name) => ingest.readTimesOf(project, name),
    behindOf: (clusterId) => shards.behind.of(clusterId),
    clock,
    logger: log,
    serverKeys: keys,
    secrets: configKeys,
    ...{ rotation, seals, checkPatches, notifier, owners },
    renders: createRenderNow({ store, configs, sealing, ingest, rendersForPeople, macOf }),
    previews: createPreviews({
      ...{ store, content, sources, config: configs.read, build, macOf: secrets.macOf, newId, clock, log },
      ...{ renders: rendersToCompare, sopsVersion: sopsKeys.version },
      facts: (clusters) => ingest.factsOf(clusters),
      site: (clusters) => ingest.siteOf(clusters),
      stopping: stopping.signal,
    }),
    isConfined: place.mode === 'bubblewrap',
    restore,
    asks,
    onQuestion: (kind, result) => metrics.add('skerry_questions_total', 1, { kind, result }),
    webhook: async (project, name) => {
      const repository = await store.getResource({ kind: 'Repository', project, name })
      if (repository === null) return null
      return { url: webhookUrl(project, name), secret: webhookMark(keys, repository.uid, await store.webhookNumber(repository.uid)) }
    },
    newWebhookSecret: async (project, name) => {
      const key = { kind: 'Repository', project, name } as const
      const repository = await store.getResource(key)
      if (repository === null) return null
      const number = await store.nextWebhookNumber(key, repository.uid)
      return { url: webhookUrl(project, name), secret: webhookSecret(keys, repository.uid, number) }
    },
    version: () => ({ ...versionInfo() }),
    ...(options.requestsPerSecond === undefined ? {} : { requestsPerSecond: options.requestsPerSecond }),
    https: tls !== null || (options.externalUrl ?? '').startsWith('https:'),
    addressOf: (request) => http?.addressOf(request) ?? null,
    ready: () => !stopping.signal.aborted,
    stuck: () => [...watchdog.problems(), ...backups.problems()],
    failingLoops: () => loops?.failing() ?? [],
    stopping: stopping.signal,
    metrics: scrapes,
    webhookHandler: createWebhook({
      store,
      keys,
      repositoryChanged: (project, name) => actions.onChanged([{ kind: 'Repository', project, name }]),
      addressOf: (request) => http?.addressOf(request) ?? null,
    }),
  })
  const closeFiles = async () => {
    shards.close()
    await store.close()
  }
  let http: Listener | undefined
  let scraped: MetricsListener | undefined
  let loops: Supervisor | undefined
  let firstAdminToken: string | null
  let url = ''
  try {
    const { hostname, port, socket, trustedProxies = [], trustsSocket = false } = options
    const place = socket ?? { hostname, port }
    http = await listen(
      { place, tls, trustedProxies, trustsSocket, log },
      withRequestMetrics({ agents: agentRoutes, others: app.fetch }, metrics, clock),
    )
    url = options.externalUrl?.replace(/\/+$/, '') ?? http.origin
    if (signIn !== undefined && signIn.providers.size > 0) refusePlainSignIn(url)
    if (options.metrics?.listen !== undefined) scraped = listenForScrapes(options.metrics.listen, scrapes, log)
    firstAdminToken = await tokens.createFirst((token) => writeTokenFile(adminTokenFile, token)) // last: it expires, and a start that fails needs none
  } catch (error) {
    await http?.stop(true)
    await scraped?.stop()
    shards.close() // else the next start would take them for those of a crash
    throw error
  }
  const of = (loop: string) => ({ clock: watchdog.clockOf(loop), random, log })
  const maintenance = {
    ...{ ...rewriting, ...of('shard-maintenance') },
    shardCount: SHARD_COUNT,
  }
  const collection = { files: contentFilesIn(at('content'), clock), referenced: store.referencedContent, ...of('content-collection'), pace }
  const auditRetention = { store, keys, days: options.auditDays ?? AUDIT_DAYS_DEFAULT, ...of('audit-retention') }
  const upkeep = { upkeep: store.upkeep, retention: options.retention ?? RETENTION, ...of('store-retention') }
  const { tls: tlsPaths } = options
  const { useTls, checkFiles } = http
  loops = supervise(
    {
      ...(tlsPaths == null || tls === null
        ? {}
        : { 'tls-files': (signal) => followTlsFiles({ paths: tlsPaths, current: tls, use: useTls, clock, log }, signal) }),
      ingest: () => ingest.run(),
      'open-files': (signal) => followOpenFiles({ checkFiles }, clock, signal),
      notifications: (signal) => notifier.run(signal),
      'config-values': (signal) => values.run(signal),
      watchdog: (signal) => watchdog.run(signal),
      backups: (signal) => backups.loop(signal),
      'audit-denials': (signal) => trail.run(signal),
      ...(signIn === undefined ? {} : { 'sign-in': (signal: AbortSignal) => signIn.run(signal) }),
      'last-contacts': (signal) => seen.run(signal),
      liveness: (signal) => watchLiveness({ store, clock: watchdog.clockOf('liveness') }, signal),
      'shard-maintenance': (signal) => maintainShards(maintenance, signal),
      'shard-catch-up': (signal) => keepCaughtUp({ store, content, shards, pace, ...of('shard-catch-up') }, signal),
      'removed-services': (signal) => keepTombstonesFew({ store, shards, pace, ...of('removed-services') }, signal),
      'content-collection': (signal) => maintainContent(collection, signal),
      'store-log': (signal) => store.upkeep.attend(log, signal),
      'audit-retention': (signal) => keepAuditShort(auditRetention, signal),
      'store-retention': (signal) => keepUp(upkeep, signal),
    },
    { clock, random, log },
    stopping.signal,
  )
  void rotation.resume().catch((error: unknown) => log.error('secrets of Configs cannot be read', { error: describeError(error) }))
  store.queries.warm()
  if (scraped !== undefined) log.info('metrics ready', { url: scraped.url })
  log.info('server ready', { url, fingerprint: keys.fingerprint })

  function webhookUrl(project: string, name: string): string {
    return `${url}${WEBHOOKS}/${project}/${name}`
  }
  async function onClusterDeleted(clusterId: ClusterId): Promise<void> {
    const agent = agents.ofCluster(clusterId)
    if (agent !== null) await agents.refreshAgent(agent.agentId)
  }
  return {
    url,
    firstAdminToken,
    adminTokenFile,
    stop: async () => {
      stopping.abort()
      await scraped?.stop()
      const workersClosed = workers.close() // what they are at says nothing any more
      await drain.start(shards.wakeAll.bind(shards))
      const written = new AbortController()
      await Promise.race([http.stop().finally(() => written.abort()), clock.sleep(DRAIN_MS_MAX, written.signal)])
      await http.stop(true) // what is slower than that
      await loops?.ended
      await rotation.settled()
      await workersClosed
      await closeFiles()
      log.info('server stopped')
    },
  }
}

/** SI7: over plain http anybody on the way could read a session cookie. */
function refusePlainSignIn(url: string): void {
  const parsed = new URL(url)
  if (parsed.protocol === 'https:' || isLoopback(parsed.hostname)) return
  throw new AppError('bad_options', {
    detail: `sign-in needs https, and browsers would reach this server at ${url}`,
    remedy: 'Set --external-url to the https:// address of this server, or omit --oidc-config.',
  })
}
