// Plans the rows of one service for every cluster from its present state. Pure, sorted and repeatable: planned again
// after its own plan was carried out, it has nothing left to do.
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { type Bounds, boundsIn, defaultAccount, nothingAllowed } from '../../shared/model/bounds.ts'
import { confirmationToken, type RemovalOrder, type ServiceRow } from '../../shared/model/desired.ts'
import type { Labels } from '../../shared/model/labels.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { atOnce, inSteps, type Pace, paced, type Steps } from '../../shared/runtime/pace.ts'
import { withTrace } from '../../shared/runtime/trace-id.ts'
import { questionText } from '../messages/confirmation-messages.ts'
import { type GuardVerdict, guardRemovals } from './guard.ts'
import type { Handover } from './handover.ts'
import { isDestination, type NamedProject } from './project-rules.ts'
import type { Confirmation, DesiredService } from './records.ts'
import { lastAllowed } from './sync-plan.ts'
import { isTarget, leftByNewTargets, placedByText, readPlacedBy, type TargetCluster, targetsOf, withDestinations } from './targeting.ts'

/** The render for one cluster. Null if none can be published (RL1): the cluster keeps its row, or does not join. */
export interface PlannedRender {
  digest: string
  count: number
  /** RL5: names the facts of the cluster at that time. Absent means that the render read none. */
  factsKey?: string
  /** RL6: names all that it was made of. Absent means no program took part. */
  renderedFrom?: string
}

export interface PlanInput {
  id: ServiceId
  spec: ServiceSpec
  /** A person deleted it. */
  deleting: boolean
  /** The person, if still known. */
  deletedBy: string | null
  /**
   * Null means that there is no good render of the current content and spec. Then no cluster joins, changes or leaves
   * (TG6); a deletion continues.
   */
  render: (Origin & { in(clusterId: ClusterId): PlannedRender | null }) | null
  clusters: readonly TargetCluster[]
  /** Null or absent: the project has no boundary. */
  project?: NamedProject | null
  /** All rows of the service, tombstones too. */
  current: readonly DesiredService[]
  /** Clusters whose agents report that a removal order was carried out, with the time of that order. */
  removed: ReadonlyMap<ClusterId, number>
  /** By subject; open ones and confirmed ones. */
  confirmations: ReadonlyMap<string, Confirmation>
  /**
   * RM1: names that came with the change that removes the service, by cluster. Absent means none. They count in this
   * reconciliation only.
   */
  dataConfirmed?: ReadonlyMap<ClusterId, readonly string[]>
  /**
   * Objects that are handed over to other services with the next revision of a cluster, or with its removal. Absent:
   * none.
   */
  handover?(row: DesiredService, deed: 'revision' | 'removal'): Handover[]
  /** RL5: whether its render lacks something that the row names. Asked only where that may be because of facts. */
  loses(row: DesiredService): boolean
  nowMs: number
  /** Facts about clusters that are not among `clusters`. Absent means that these are all clusters. */
  elsewhere?: Elsewhere
}

export interface Elsewhere {
  /** Clusters that have the service, without those with a removal order. */
  holders: number
  /** Removal orders without a confirmation. */
  unasked: number
  /** The origin of a cluster's digest. Null if no cluster has this digest. */
  originOf(digest: string): Origin | null
}

/** Where a digest comes from. */
export type Origin = Pick<ServiceRow, 'commit' | 'trace'>

export interface PlannedPublish {
  clusterId: ClusterId
  /** For messages. */
  cluster: string
  doc: ServiceRow | null
  /** With the objects of the render, or with none. */
  objects: 'rendered' | 'none'
  placedBy: string
  factsKey?: string
  renderedFrom?: string
  /** `settled`: the same objects under other settings, such as a prune that was confirmed. */
  what: 'placed' | 'updated' | 'settled' | 'removal_ordered' | 'removed'
}

export type PlannedConfirmation = Omit<Confirmation, 'id' | 'createdMs' | 'confirmedMs' | 'confirmedBy'>

export interface ServicePlan {
  publishes: PlannedPublish[]
  open: PlannedConfirmation[]
  /** Subjects. */
  close: string[]
  /** The service was deleted and no cluster has anything of it: its resource goes. */
  finished: boolean
}

export const removeSubject = ({ project, service }: ServiceId): string => `remove_service/${project}/${service}`
export const leaveSubject = ({ project, service }: ServiceId): string => `leave_targets/${project}/${service}`
/** RL3: the subject of the confirmation of another tool version. */
export const releaseSubject = ({ project, service }: ServiceId): string => `release/${project}/${service}`
export const pruneSubject = (clusterId: ClusterId, { project, service }: ServiceId): string => `prune/${clusterId}/${project}/${service}`

interface Holder {
  row: DesiredService
  doc: ServiceRow
  cluster: TargetCluster
}

/** The plan at once, for small fleets. */
export const planService = (input: PlanInput): ServicePlan => atOnce(planSteps(input))

/** The same plan. Ten thousand clusters take tens of milliseconds, in which no poll would be answered. */
export const planServicePaced = (input: PlanInput, pace: Pace): Promise<ServicePlan> => paced(planSteps(input), pace)

function* planSteps(input: PlanInput): Steps<ServicePlan> {
  const plan: ServicePlan = { publishes: [], open: [], close: [], finished: false }
  const rows = new Map(input.current.map((row) => [row.clusterId, row]))
  yield
  const holders = holdersOf(rows, input.clusters)
  yield
  const frozen = input.render === null && !input.deleting
  const targets = input.deleting ? [] : targetsOf(withDestinations(input.spec.targets, input.project), input.clusters)
  yield
  const targeted = new Set(targets.map(({ clusterId }) => clusterId))
  const leaving = frozen ? [] : holders.filter(({ doc, cluster }) => doc.removal === undefined && !targeted.has(cluster.clusterId))

  const ordered = input.deleting ? 0 : holders.filter(({ doc, cluster }) => isUnasked(doc) && !targeted.has(cluster.clusterId)).length

  yield
  const verdict = decideRemovals(input, holders, { leaving, ordered, targets: targets.length }, plan)
  yield
  if (verdict.kind === 'go') {
    const orderedDoc = removalDocs(input, verdict)
    const confirming = sharedBy((names: readonly string[]) => sharedBy((doc: ServiceRow) => withConfirmed(doc, names)))
    const handing = sharedBy((handover: readonly Handover[]) => sharedBy((doc: ServiceRow) => withHandover(doc, handover)))
    yield* inSteps(leaving, (holder) => {
      const handover = input.handover?.(holder.row, 'removal') ?? NOTHING_HANDED_OVER
      const names = input.dataConfirmed?.get(holder.row.clusterId) ?? NOTHING_CONFIRMED
      plan.publishes.push(removalOrder(holder, confirming(names)(handing(handover)(orderedDoc(holder.doc)))))
    })
  }
  yield* inSteps(holders, (holder) => {
    if (holder.doc.removal !== undefined && !targeted.has(holder.cluster.clusterId)) finishRemoval(input, holder, plan)
  })

  if (input.render !== null) {
    // A cluster that may not leave yet is still served, and keeps the note of its targets: the reason to wait is
    // unchanged.
    const kept = verdict.kind === 'wait' && !input.deleting ? leaving : []
    const placedBy = placedByText(input.spec.targets)
    const { render } = input
    const wanted = sharedBy((bounds: Bounds | undefined) =>
      sharedBy((digest: string) =>
        sharedBy((count: number) => wantedDocs(input.spec, bounds, { digest, count }, originOf(input, render, digest, holders))),
      ),
    )
    const boundsOf = boundsByLabels(input.project)
    const allowed = syncsAllowed(input, targets, plan)
    yield* inSteps(targets, (cluster) =>
      place(input, wanted(boundsOf(cluster.labels)), cluster, rows.get(cluster.clusterId), placedBy, allowed, plan),
    )
    // PJ3: where its project has no destination for it, it keeps what it has, and gets nothing new.
    yield* inSteps(kept, ({ cluster, row }) => {
      if (input.project == null || isDestination(input.project, cluster.labels))
        place(input, wanted(boundsOf(cluster.labels)), cluster, row, row.placedBy, allowed, plan)
    })
  }
  yield
  // Judged after this plan: the last cluster's answer is the last event that causes a reconciliation.
  const gone = new Set(plan.publishes.flatMap(({ clusterId, what }) => (what === 'removed' ? [clusterId] : [])))
  plan.finished = input.deleting && holders.every(({ cluster }) => gone.has(cluster.clusterId))
  plan.publishes.sort((a, b) => (a.cluster < b.cluster ? -1 : a.cluster > b.cluster ? 1 : 0))
  return plan
}

/** Clusters with the same bounds share one object. */
function boundsByLabels(project: NamedProject | null | undefined): (labels: Labels) => Bounds | undefined {
  if (project == null) return () => undefined
  const byText = sharedBy((text: string) => JSON.parse(text) as Bounds)
  const known = sharedBy((labels: Labels) => byText(canonicalJson(boundsIn(project.spec, labels) ?? nothingAllowed)))
  return known
}

/** TG17: whether a person confirmed this digest in a cluster. A digest that no cluster wants is never confirmed. */
function syncsAllowed({ confirmations, render }: PlanInput, targets: readonly TargetCluster[], plan: ServicePlan): SyncsAllowed {
  const asked = [...confirmations.values()].filter(({ kind }) => kind === 'sync')
  const digests = new Set(asked.length === 0 ? [] : targets.map(({ clusterId }) => render?.in(clusterId)?.digest))
  const allowed = new Map<string, Set<string>>()
  for (const { subject, token, names, confirmedMs } of asked) {
    if (confirmedMs === null && digests.has(token)) continue
    plan.close.push(subject)
    if (digests.has(token)) allowed.set(token, new Set([...(allowed.get(token) ?? []), ...names]))
  }
  return (digest, cluster) => allowed.get(digest)?.has(cluster) ?? false
}

type SyncsAllowed = (digest: string, cluster: string) => boolean

function holdersOf(rows: ReadonlyMap<ClusterId, DesiredService>, clusters: readonly TargetCluster[]): Holder[] {
  const holders: Holder[] = []
  for (const cluster of clusters) {
    const row = rows.get(cluster.clusterId)
    if (row !== undefined && row.doc !== null) holders.push({ row, doc: row.doc, cluster })
  }
  return holders.sort((a, b) => (a.cluster.name < b.cluster.name ? -1 : 1))
}

/** The author of removal orders without a confirmation. */
const BY_ITSELF = 'skerry'
export const isUnasked = ({ removal }: ServiceRow): boolean => removal?.by === BY_ITSELF

type Decision = { kind: 'go'; by: string; why: string } | { kind: 'wait' }

/** Opens what waits for a person, closes what no longer does. */
function decideRemovals(
  input: PlanInput,
  holders: readonly Holder[],
  { leaving, ordered, targets }: { leaving: readonly Holder[]; ordered: number; targets: number },
  plan: ServicePlan,
): Decision {
  const { id, deleting, confirmations } = input
  const kind = deleting ? 'remove_service' : 'leave_targets'
  const subject = deleting ? removeSubject(id) : leaveSubject(id)
  const other = deleting ? leaveSubject(id) : removeSubject(id)
  if (confirmations.has(other)) plan.close.push(other)
  const placedTargets = sharedBy(readPlacedBy) // most clusters were placed by the same
  const verdict: GuardVerdict = guardRemovals({
    cause: deleting ? 'service_deleted' : 'left_targets',
    protect: input.spec.protect,
    holders: holders.filter(({ doc }) => doc.removal === undefined).length + (input.elsewhere?.holders ?? 0),
    leaving: leaving.length,
    ordered: ordered + (input.elsewhere?.unasked ?? 0),
    leftOut: deleting || input.project == null ? 0 : leaving.filter(({ cluster }) => isTarget(cluster.labels, input.spec.targets)).length,
    leftByNewTargets: leaving.filter(({ row, cluster }) => leftByNewTargets(row.placedBy, cluster.labels, placedTargets)).length,
    targets,
  })
  const frozen = input.render === null && !deleting
  const why = questionText(deleting ? 'service_deleted' : 'left_targets')
  const names = leaving.map(({ cluster }) => cluster.name)
  const held = confirmations.get(subject)
  // Earlier orders were carried out meanwhile. Asking goes on, or the next clusters would leave without a question.
  const asked = !deleting && held !== undefined && leaving.length > 0 && held.names.every((name) => names.includes(name))
  if (verdict.kind === 'pass' && !asked) {
    if (!frozen && held !== undefined) plan.close.push(subject)
    return { kind: 'go', by: (deleting ? input.deletedBy : null) ?? BY_ITSELF, why }
  }
  const token = sha256Hex(canonicalJson([kind, input.spec.deletionPolicy, ...names])).slice(0, 32)
  if (held?.token === token && held.confirmedMs !== null) {
    plan.close.push(subject)
    return { kind: 'go', by: held.confirmedBy ?? 'unknown', why: questionText('confirmed', { why }) }
  }
  // Asked once: the numbers in its reason may age, the names may not.
  if (held?.token !== token)
    plan.open.push({
      kind,
      subject,
      project: id.project,
      service: id.service,
      cluster: null,
      token,
      names,
      why: verdict.kind === 'wait' ? verdict.why : (held?.why ?? why),
    })
  return { kind: 'wait' }
}

/** Clusters with equal documents share one document: of ten thousand clusters, the next steps see only a few. */
function removalDocs({ spec, nowMs }: PlanInput, { by, why }: { by: string; why: string }): (held: ServiceRow) => ServiceRow {
  const removal: RemovalOrder = { policy: spec.deletionPolicy === 'prune' ? 'delete' : 'orphan', by, atMs: nowMs, why }
  return sharedBy(({ pruneConfirmed: _, confirmed: __, factsOnly: ___, restored, ...rest }: ServiceRow) => {
    // RP2: labels, targets and deletions are of the backup, too: only a person's own order is of today.
    return { ...rest, removal, ...(restored === true && by === BY_ITSELF ? { restored } : {}) }
  })
}

function removalOrder({ row, cluster }: Holder, doc: ServiceRow): PlannedPublish {
  return {
    clusterId: cluster.clusterId,
    cluster: cluster.name,
    doc,
    objects: 'none',
    placedBy: row.placedBy,
    what: 'removal_ordered',
  }
}

function sharedBy<K, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>()
  return (key) => {
    const known = made.get(key)
    if (known !== undefined) return known
    const value = make(key)
    made.set(key, value)
    return value
  }
}

/** TG8: the order stays until the agent says that it was carried out: this one, not one before it. */
function finishRemoval(input: PlanInput, holder: Holder, plan: ServicePlan): void {
  const { row, doc, cluster } = holder
  if (doc.removal === undefined || input.removed.get(cluster.clusterId) !== doc.removal.atMs) {
    confirmRemoval(input, holder, plan)
    return
  }
  plan.publishes.push({
    clusterId: cluster.clusterId,
    cluster: cluster.name,
    doc: null,
    objects: 'none',
    placedBy: row.placedBy,
    what: 'removed',
  })
}

/** RM1: an order carries the confirmed names. RP2: an order from a backup deletes only after its own confirmation. */
function confirmRemoval({ id, confirmations, dataConfirmed }: PlanInput, { row, doc, cluster }: Holder, plan: ServicePlan): void {
  const subject = pruneSubject(cluster.clusterId, id)
  const confirmation = confirmations.get(subject)
  const isAnswered = confirmation !== undefined && confirmation.confirmedMs !== null && isFor(confirmation, doc)
  const { restored, ...rest } = doc
  const names = [...(isAnswered ? confirmation.names : []), ...(dataConfirmed?.get(cluster.clusterId) ?? [])]
  const isNew = names.some((name) => doc.confirmed?.includes(name) !== true)
  if (!isAnswered && !isNew) return
  if (isAnswered) plan.close.push(subject)
  const about = restored !== true ? rest : isAnswered ? { ...rest, pruneConfirmed: doc.digest } : doc
  plan.publishes.push({
    clusterId: cluster.clusterId,
    cluster: cluster.name,
    doc: { ...about, confirmed: namesWith(doc.confirmed, names) },
    objects: 'none',
    placedBy: row.placedBy,
    what: 'settled',
  })
}

/** An agent without RM1 asks about an order under the digest of its revision. */
const isFor = ({ token }: Confirmation, doc: ServiceRow): boolean =>
  token === confirmationToken(doc) || (doc.restored === true && token === doc.digest)

const namesWith = (before: readonly string[] | undefined, names: readonly string[]): string[] =>
  [...new Set([...(before ?? []), ...names])].sort()

/** RV2: the last commit that changed the digest, also for a cluster that joins later. */
function originOf({ elsewhere }: PlanInput, render: Origin, digest: string, holders: readonly Holder[]): Origin {
  const same = holders.find(({ doc }) => doc.removal === undefined && doc.digest === digest)
  return same?.doc ?? elsewhere?.originOf(digest) ?? render
}

const withConfirmed = (doc: ServiceRow, names: readonly string[]): ServiceRow =>
  names.length === 0 || doc.removal?.policy !== 'delete' ? doc : { ...doc, confirmed: namesWith([], names) }

/** A person's confirmation of this digest in a cluster. */
interface Yes {
  /** The names that were shown (PR4). Null means nothing. */
  prune: readonly string[] | null
  sync: boolean
}

/** `settled`: it is what the cluster holds. */
type WantedDocs = (
  held: ServiceRow | null,
  yes: Yes & { factsOnly: boolean },
  handover: readonly Handover[],
) => { doc: ServiceRow; settled: boolean }

/** PR8: what one revision hands over goes with the next. */
function withHandover(doc: ServiceRow, handover: readonly Handover[]): ServiceRow {
  if (handover.length > 0) return { ...doc, handover: [...handover] }
  if (doc.handover === undefined) return doc // shared by many clusters
  const { handover: _, ...rest } = doc
  return rest
}

function wantedDocs(spec: ServiceSpec, bounds: Bounds | undefined, { digest, count }: PlannedRender, origin: Origin): WantedDocs {
  const account = spec.sync.serviceAccount ?? defaultAccount(bounds ?? {})
  const sync = account === undefined ? spec.sync : { ...spec.sync, serviceAccount: account }
  const make = (said: Yes & { factsOnly: boolean }, handover: readonly Handover[]) => (held: ServiceRow | null) => {
    const before = held?.removal === undefined ? held : null
    const isKept = before?.pruneConfirmed === digest
    const yes = said.prune !== null || isKept
    // No names are known of a whole revision that an older server confirmed.
    const names = isKept && before.confirmed === undefined ? undefined : namesWith(isKept ? before.confirmed : [], said.prune ?? [])
    const synced = spec.sync.mode !== 'manual' ? undefined : said.sync ? digest : lastAllowed(before)
    const { commit, trace } = before?.digest === digest ? before : origin
    const plain: ServiceRow = {
      commit,
      ...withTrace(trace),
      digest,
      count,
      ...(spec.namespace === undefined ? {} : { namespace: spec.namespace }),
      sync,
      ...(bounds === undefined ? {} : { bounds: bounds as ServiceRow['bounds'] & object }),
      protect: spec.protect,
      ...(spec.ignore === undefined ? {} : { ignore: spec.ignore }),
      ...(spec.health === undefined ? {} : { health: spec.health }),
      ...(spec.dependsOn === undefined ? {} : { dependsOn: spec.dependsOn }),
      ...(yes ? { pruneConfirmed: digest, ...(names === undefined ? {} : { confirmed: names }) } : {}),
      ...(synced === undefined ? {} : { synced }),
      // RP2: as long as it is the revision of the backup, and nobody confirmed it.
      ...(held?.restored === true && held.digest === digest && !yes ? { restored: true } : {}),
      ...(said.factsOnly && !yes ? { factsOnly: true } : {}),
    }
    const doc = withHandover(plain, handover)
    return { doc, settled: held !== null && canonicalJson(doc) === canonicalJson(held) }
  }
  // Most clusters hand over the same and confirmed nothing: each text is made once, and looked up as one string.
  const textOf = sharedBy((handover: readonly Handover[]) => canonicalJson({ handover, names: null }))
  const byText = sharedBy((text: string) => {
    const { handover, names } = JSON.parse(text) as { handover: Handover[]; names: string[] | null }
    return sharedBy((sync: boolean) => sharedBy((factsOnly: boolean) => sharedBy(make({ prune: names, sync, factsOnly }, handover))))
  })
  return (held, { prune, sync, factsOnly }, handover) =>
    byText(prune === null ? textOf(handover) : canonicalJson({ handover, names: prune }))(sync)(factsOnly)(held)
}

const NOTHING_HANDED_OVER: readonly Handover[] = []
const NOTHING_CONFIRMED: readonly string[] = []

/**
 * A row's note about facts: whether what is lost may be lost because of them, and the facts for which its objects were
 * made.
 */
interface FactsNote {
  factsOnly: boolean
  factsKey: string | undefined
}

/**
 * RL5: with the facts that it had, nothing is lost to them. With other facts, the removals of a person and those by
 * facts are indistinguishable: a person decides.
 */
function factsNote(
  { loses }: Pick<PlanInput, 'loses'>,
  row: DesiredService | undefined,
  { digest, factsKey }: PlannedRender,
  confirmed: boolean,
): FactsNote {
  const plain = { factsOnly: false, factsKey }
  const before = row?.doc?.removal === undefined ? row?.doc : null
  // A render that reads no facts loses no objects because of them: a person removed the missing ones.
  if (row === undefined || before == null || factsKey === undefined || confirmed || before.pruneConfirmed === digest) return plain
  if (before.factsOnly === true) {
    if (before.digest === digest) return { factsOnly: true, factsKey: row.factsKey }
    if (loses(row)) return { factsOnly: true, factsKey: undefined } // what was lost under two kinds of facts does not come back with the first
    return row.factsKey === factsKey ? plain : { factsOnly: true, factsKey: row.factsKey }
  }
  if (before.digest === digest || row.factsKey === undefined || row.factsKey === factsKey || !loses(row)) return plain
  return { factsOnly: true, factsKey: row.factsKey }
}

function place(
  input: PlanInput,
  wanted: (digest: string) => (count: number) => WantedDocs,
  cluster: TargetCluster,
  row: DesiredService | undefined,
  placedBy: string,
  allowed: SyncsAllowed,
  plan: ServicePlan,
): void {
  const { id, confirmations } = input
  const render = input.render?.in(cluster.clusterId) ?? null
  if (render === null) return
  const { digest, count, renderedFrom } = render
  const held = row?.doc ?? null
  const confirmation = confirmations.size === 0 ? undefined : confirmations.get(pruneSubject(cluster.clusterId, id))
  const confirmed = confirmation?.token === digest && confirmation.confirmedMs !== null
  const isSame = held !== null && held.removal === undefined && held.digest === digest
  const handover = isSame ? held.handover : held && row && input.handover?.(row, 'revision')
  const { factsOnly, factsKey } = factsNote(input, row, render, confirmed)
  const yes = { prune: confirmed ? (confirmation?.names ?? []) : null, sync: allowed(digest, cluster.name), factsOnly }
  const { doc, settled } = wanted(digest)(count)(held, yes, handover ?? NOTHING_HANDED_OVER)
  if (confirmation !== undefined && (confirmed || confirmation.token !== digest)) plan.close.push(confirmation.subject)
  if (settled && row?.unproven !== true && row?.placedBy === placedBy && row.factsKey === factsKey && row.renderedFrom === renderedFrom)
    return
  const what = held === null ? 'placed' : isSame ? 'settled' : 'updated'
  plan.publishes.push({
    clusterId: cluster.clusterId,
    cluster: cluster.name,
    doc,
    objects: 'rendered',
    placedBy,
    what,
    ...(factsKey === undefined ? {} : { factsKey }),
    ...(renderedFrom === undefined ? {} : { renderedFrom }),
  })
}
