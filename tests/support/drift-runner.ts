// Runs cases of the drift corpus: one agent on one real API server, a namespace and a service for each case, many
// beside each other. What the agent asked is counted at its own Cluster port; that nothing more was written is asked of
// the API server's audit log.
import type { ApiResource, Cluster, WatchEvent } from '../../agent/cluster/cluster.ts'
import { objectPath } from '../../agent/cluster/discovery.ts'
import { isNewer } from '../../agent/cluster/resource-version.ts'
import { sentObject } from '../../agent/reconcile/snapshot/wanted.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refKey, refOf, versionOf } from '../../shared/kube/object.ts'
import type { DriftStatus } from '../../shared/model/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { createDriftSite, type DriftCase, type DriftSite } from './drift-site.ts'
import type { KubeCluster } from './kube-cluster.ts'
import { connect } from './real-cluster.ts'
import { createReconcileKit, type ReconcileKit, type RowOptions } from './reconcile-kit.ts'
import { renderFiles } from './render-files.ts'
import { until } from './watch-probe.ts'

const USER_AGENT = 'skerry-agent/corpus'

interface Write {
  verb: 'apply' | 'delete' | 'patch'
  ref: ObjectRef
}

/** What the agent asked, and how far its watches have told it. */
interface Watched {
  cluster: Cluster
  writes: Write[]
  /** Newest resourceVersion that a watch brought, by refKey; '' after a removal. */
  seen: Map<string, string>
  /** Nothing comes out of any watch meanwhile. */
  hold(during: () => Promise<unknown>): Promise<void>
}

function watchOver(cluster: Cluster): Watched {
  const writes: Write[] = []
  const seen = new Map<string, string>()
  let held = Promise.resolve()
  const note = (event: WatchEvent) => {
    if (event.kind === 'present' || event.kind === 'changed')
      seen.set(refKey(refOf(event.object)), event.object.metadata.resourceVersion ?? '')
    if (event.kind === 'removed') seen.set(refKey(refOf(event.object)), '')
  }
  // What met a newer state of the object changed nothing, and is asked again.
  const noted = async <R extends { kind: string; failure?: { kind: string } }>(write: Write, request: Promise<R>): Promise<R> => {
    writes.push(write)
    const answer = await request
    if (answer.failure?.kind === 'conflict') writes.splice(writes.indexOf(write), 1)
    return answer
  }
  const wrapped: Cluster = {
    ...cluster,
    apply: (resource, object, options) => noted({ verb: 'apply', ref: refOf(object) }, cluster.apply(resource, object, options)),
    delete: (resource, ref, ...rest) => noted({ verb: 'delete', ref }, cluster.delete(resource, ref, ...rest)),
    mergePatch: (resource, ref, ...rest) => noted({ verb: 'patch', ref }, cluster.mergePatch(resource, ref, ...rest)),
    async *watch(resource, options) {
      for await (const event of cluster.watch(resource, options)) {
        await held
        // Lists for one question go the same way and tell the agent's picture nothing.
        if (options.labelSelector === SERVICE_LABEL) note(event)
        yield event
      }
    },
  }
  const hold = async (during: () => Promise<unknown>) => {
    const released = Promise.withResolvers<void>()
    held = Promise.all([held, released.promise]).then(() => {})
    try {
      await during()
    } finally {
      released.resolve()
    }
  }
  return { cluster: wrapped, writes, seen, hold }
}

export interface Outcome {
  /** `apply ConfigMap a`, of the first pass and after the deed. */
  first: string[]
  after: string[]
  drifts: Array<{ target: string; status: DriftStatus }>
  /** Everything that is not as the case says; empty: it passed. */
  wrong: string[]
}

export interface DriftAgent {
  /** Null means that this Kubernetes does not serve what it needs. */
  run(one: DriftCase, ns: string): Promise<Outcome | null>
  /** Ends the agent and starts it anew on the same state; answers what it wrote by itself. */
  restart(services: readonly string[]): Promise<string[]>
  /** Of all cases together, by the API server's own log; the claim is not counted. */
  loggedWrites(): number
  /** Has work left that it cannot do, and says so. */
  isStuck(ns: string): boolean
  countedWrites(): number
  stop(): Promise<void>
}

const idOf = (ns: string): ServiceId => ({ project: 'corpus', service: ns })
const textOf = ({ verb, ref }: Write) => `${verb} ${ref.kind} ${ref.namespace}/${ref.name}`
const isOf = (ns: string, { namespace, name }: ObjectRef) => namespace === ns || name.includes(ns)

export async function startDriftAgent(server: KubeCluster): Promise<DriftAgent> {
  const rest = await connect(server, USER_AGENT)
  const watched = watchOver(rest)
  const kit = createReconcileKit({ cluster: watched.cluster, clock: systemClock })
  const turns = countTurns(kit)
  let resources: readonly ApiResource[] = []
  const discover = async () => {
    resources = (await rest.discover()).resources
  }
  await discover()
  kit.start()
  const agent = { server, kit, watched, turns, resources: () => resources, discover }
  return {
    run: (one, ns) => runCase(agent, one, ns),
    async restart(services) {
      const from = watched.writes.length
      await kit.stop()
      kit.start()
      for (const ns of services) await quiet(agent, ns)
      return watched.writes.slice(from).filter(isCounted).map(textOf)
    },
    isStuck: (ns) => kit.service(idOf(ns))?.sync !== 'Synced',
    countedWrites: () => watched.writes.filter(isCounted).length,
    loggedWrites: () =>
      server
        .auditLines({ userAgent: USER_AGENT, verbs: ['create', 'update', 'patch', 'delete'] })
        .filter(
          ({ stage, objectRef, responseStatus }) =>
            stage === 'ResponseComplete' &&
            responseStatus?.code !== 409 &&
            !isClaimOrEvent(objectRef?.resource, objectRef?.namespace, objectRef?.name),
        ).length,
    async stop() {
      await kit.stop()
      rest.close()
    },
  }
}

const isClaimOrEvent = (resource = '', namespace = '', name = '') =>
  resource === 'events' || namespace === 'skerry-system' || (resource === 'namespaces' && name === 'skerry-system')
const isCounted = ({ ref }: Write) =>
  !isClaimOrEvent(ref.kind === 'Event' ? 'events' : ref.kind === 'Namespace' ? 'namespaces' : '', ref.namespace, ref.name)

/** Each turn ends by reporting its service. */
function countTurns({ state }: ReconcileKit): Map<string, number> {
  const turns = new Map<string, number>()
  const report = state.report.bind(state)
  state.report = (rows, turn) => {
    report(rows, turn)
    for (const { kind, key } of rows) if (kind === 'service') turns.set(key, (turns.get(key) ?? 0) + 1)
  }
  return turns
}

interface Agent {
  server: KubeCluster
  kit: ReconcileKit
  watched: Watched
  turns: Map<string, number>
  resources(): readonly ApiResource[]
  discover(): Promise<void>
}

/** Two turns that are asked for now: the second began after everything that the watches had brought. */
async function quiet({ kit, turns }: Agent, ns: string): Promise<void> {
  const key = serviceKey(idOf(ns))
  for (let n = 0; n < 2; n += 1) {
    const before = turns.get(key) ?? 0
    kit.reconciler.revisionsChanged([idOf(ns)])
    await until(`a turn of ${ns}`, () => (turns.get(key) ?? 0) > before)
  }
}

function render(manifest: string, ns: string): K8sObject[] {
  const files = new Map([['all.yaml', Buffer.from(manifest.replaceAll('$NS', ns))]])
  const rendered = renderFiles({ ...idOf(ns), files, namespace: ns, path: 'all', commit: 'c' })
  if (rendered.kind === 'failed') throw new Error(`${rendered.message} ${JSON.stringify(rendered.problems)}`)
  return [...rendered.objects.values()].map((doc) => JSON.parse(doc) as K8sObject)
}

async function runCase(agent: Agent, one: DriftCase, ns: string): Promise<Outcome | null> {
  const outcome: Outcome = { first: [], after: [], drifts: [], wrong: [] }
  if (one.needs !== undefined && !agent.resources().some(({ kind }) => kind === one.needs)) return null
  try {
    await play(agent, one, ns, outcome)
  } catch (error) {
    outcome.wrong.push(error instanceof Error ? error.message : String(error))
  }
  return outcome
}

async function play(agent: Agent, one: DriftCase, ns: string, outcome: Outcome): Promise<void> {
  const { kit, watched } = agent
  const id = idOf(ns)
  const desire = (manifest: string, options: RowOptions | undefined) => {
    const objects = render(manifest, ns)
    kit.desire(objects, { namespace: ns, ...options }, id)
    return objects
  }
  const settled = async () => {
    await quiet(agent, ns)
    await until(`${ns} is ${one.firstReason ?? 'Synced'}: ${JSON.stringify(kit.service(id))}`, () => stands(kit, id, one.firstReason))
    await quiet(agent, ns)
  }
  const site = createDriftSite(ns, {
    ...agent,
    desire: (...args) => void desire(...args),
    quiet: () => quiet(agent, ns),
    heard: (object) => told(agent, [object], ns),
    unnoticed: watched.hold,
  })
  await one.before?.(site)
  let from = watched.writes.length
  const writes = () =>
    watched.writes
      .slice(from)
      .filter((write) => isCounted(write) && isOf(ns, write.ref))
      .map(textOf)
  const objects = desire(one.manifest, one.options)
  await settled()
  await agent.discover()
  outcome.first = writes()
  const expected = one.firstWrites ?? objects.length
  if (outcome.first.length !== expected) outcome.wrong.push(`first pass: ${expected} writes expected, got ${outcome.first.join(', ')}`)
  const driftsBefore = new Set(drifts(agent, ns).map(({ target }) => target))
  for (const target of driftsBefore) outcome.wrong.push(`drift of ${target} before anybody did anything`)

  from = watched.writes.length
  await one.deed(site)
  await told(agent, objects, ns)
  if (one.writes > 0) await until('the writes', () => writes().length >= one.writes).catch(() => {})
  await told(agent, objects, ns)
  await quiet(agent, ns)
  outcome.after = writes()
  if (outcome.after.length !== one.writes) outcome.wrong.push(`${one.writes} writes expected, got ${outcome.after.join(', ') || 'none'}`)
  outcome.drifts = drifts(agent, ns)
  judgeDrift(one, ns, outcome)
  await judgeLive(agent, one, site, objects, outcome)
}

const stands = (kit: ReconcileKit, id: ServiceId, reason?: string): boolean => {
  const status = kit.service(id)
  return reason === undefined ? status?.sync === 'Synced' : status?.reason === reason
}

/** The agent's watches have brought what the API server holds of each object. */
async function told(agent: Agent, objects: readonly K8sObject[], ns: string): Promise<void> {
  for (const object of objects) {
    const key = keyOf(agent, object)
    const isApplied = agent.kit.state.inventory(idOf(ns)).some(({ ref, appliedDoc }) => refKey(ref) === key && appliedDoc !== null)
    if (!isApplied) continue // nothing of it is watched
    await until(`the watch tells of ${ns} ${key}`, async () => {
      const live = await read(agent, object)
      const seen = agent.watched.seen.get(key)
      if (live === null || live.metadata.labels?.[SERVICE_LABEL] === undefined) return seen === ''
      const { resourceVersion = '' } = live.metadata
      return seen === resourceVersion || isNewer(seen ?? '', resourceVersion)
    })
  }
}

const resourceFor = ({ resources }: Agent, object: K8sObject): ApiResource | undefined => {
  const { group, kind } = refOf(object)
  return resources().find((one) => one.group === group && one.kind === kind && one.version === versionOf(object.apiVersion))
}

function keyOf(agent: Agent, object: K8sObject): string {
  const ref = refOf(object)
  return refKey(resourceFor(agent, object)?.namespaced === false ? { ...ref, namespace: '' } : ref)
}

async function read(agent: Agent, object: K8sObject, send: { body?: unknown } = {}): Promise<K8sObject | null> {
  const resource = resourceFor(agent, object)
  if (resource === undefined) return null
  const { server, token, caPem } = agent.server
  const path = objectPath(resource, object.metadata.namespace ?? '', object.metadata.name ?? '')
  const query = send.body === undefined ? '' : '?fieldManager=skerry&force=true&dryRun=All'
  const answer = await fetch(server + path + query, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/apply-patch+yaml' },
    tls: { ca: caPem },
    ...(send.body === undefined ? {} : { method: 'PATCH', body: JSON.stringify(send.body) }),
  })
  if (answer.status === 404) return null
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as K8sObject
}

function drifts({ kit }: Agent, ns: string): Outcome['drifts'] {
  const id = idOf(ns)
  return kit.state.inventory(id).flatMap(({ ref }) => {
    const status = kit.drift(refKey(ref), id)
    return status === null ? [] : [{ target: `${ref.kind}/${ref.name}`, status }]
  })
}

function judgeDrift({ drift }: DriftCase, ns: string, { drifts: found, wrong }: Outcome): void {
  const target = drift?.target.replaceAll('$NS', ns)
  for (const one of found) if (one.target !== target) wrong.push(`drift that is none: ${one.target} ${JSON.stringify(one.status)}`)
  if (drift === null) return
  const status = found.find((one) => one.target === target)?.status
  if (status === undefined) {
    wrong.push(`no drift of ${target} was seen`)
    return
  }
  const { action = 'healed', paths, manager, deleted = false, count = 1 } = drift
  if ((status.deleted ?? false) !== deleted) wrong.push(`deleted is ${status.deleted}`)
  if (status.count !== count) wrong.push(`the drift was counted ${status.count} times`)
  if (status.action !== action) wrong.push(`drift is ${status.action}, not ${action}`)
  if (paths !== undefined && status.paths.join() !== [...paths].sort().join()) wrong.push(`paths are ${status.paths.join(' ')}`)
  if (manager !== undefined && status.manager !== manager) wrong.push(`the manager is ${status.manager}`)
}

/** The API server is the judge: what was applied, applied again, would change nothing. */
async function judgeLive(agent: Agent, one: DriftCase, site: DriftSite, objects: readonly K8sObject[], { wrong }: Outcome): Promise<void> {
  for (const [target, expected] of Object.entries(one.live ?? {})) {
    const live = await site.get(target)
    if (expected === null ? live !== null : live === null) wrong.push(`${target} is ${live === null ? 'gone' : 'there'}`)
    else if (expected !== null) wrong.push(...differences(expected, live, target.replaceAll('$NS', site.ns)))
  }
  if (one.same === false) return
  const inventory = new Map(agent.kit.state.inventory(idOf(site.ns)).map((entry) => [refKey(entry.ref), entry]))
  for (const object of objects) {
    const { appliedDoc: sent = null, commit = null, revision = null } = inventory.get(keyOf(agent, object)) ?? {}
    if (sent === null) {
      wrong.push(`${object.kind}/${object.metadata.name} was not applied`)
      continue
    }
    // Controllers may write their status in between.
    await until(`${object.kind}/${object.metadata.name} is what Git says`, async () => {
      const live = await read(agent, object)
      const again = await read(agent, object, { body: sentObject({ doc: sent, commit, revision }) })
      return live !== null && live.metadata.resourceVersion === again?.metadata.resourceVersion && live.metadata.uid === again?.metadata.uid
    }).catch((error: Error) => wrong.push(error.message))
  }
}

/** Of the members that `expected` names. Lists are compared whole. */
function differences(expected: unknown, live: unknown, at: string): string[] {
  if (expected === null || typeof expected !== 'object' || Array.isArray(expected))
    return Bun.deepEquals(expected, live) ? [] : [`${at} is ${JSON.stringify(live)}, not ${JSON.stringify(expected)}`]
  return Object.entries(expected).flatMap(([name, value]) =>
    differences(value, (live as Record<string, unknown> | null | undefined)?.[name], `${at}.${name}`),
  )
}
