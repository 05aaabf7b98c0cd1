// What is true in a history of pruning: commits, the server's log of rows with its hand-overs, and the judge who looks
// at every DELETE as it reaches the API server.

import type { DesiredRevision } from '../../agent/replica/replica.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { deletionName } from '../../shared/kube/data-loss.ts'
import { otherOwner } from '../../shared/kube/foreign-owners.ts'
import { keepMark, keepsFrom } from '../../shared/kube/keep-marks.ts'
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../shared/kube/object.ts'
import { confirmationToken, objectRowId, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'

export const SERVICES: readonly ServiceId[] = ['a', 'b', 'c'].map((service) => ({ project: 'web', service }))
export const NAMES: readonly string[] = [...Array.from({ length: 10 }, (_, i) => `m${i}`), 'v0', 'v1', 'd0', 'n0', 'k0']

/** By its name: configuration, claims that hold data, a workload that may never be healthy, a Namespace and a CRD in
 *  which others may have objects. */
export function objectOf(name: string, value: string): K8sObject {
  const metadata = { name, namespace: 'default' }
  if (name.startsWith('n')) return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
  if (name.startsWith('k')) return crdNamed(name)
  if (name.startsWith('v')) return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: { accessModes: ['ReadWriteOnce'] } }
  if (name.startsWith('d')) {
    const template = { metadata: { labels: { app: name } }, spec: { containers: [] } }
    return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { selector: { matchLabels: { app: name } }, template } }
  }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value } }
}
const GROUP = 'sim.example'
function crdNamed(plural: string): K8sObject {
  const names = { plural, singular: plural, kind: plural.toUpperCase(), listKind: `${plural.toUpperCase()}List` }
  const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }]
  const metadata = { name: `${plural}.${GROUP}` }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata,
    spec: { group: GROUP, scope: 'Cluster', names, versions },
  }
}

/** What somebody else puts into the Namespace, or makes of the CRD's kind. */
export const strangerIn = (name: string, at: number): K8sObject =>
  name.startsWith('n')
    ? { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `stranger-${at}`, namespace: name } }
    : { apiVersion: `${GROUP}/v1`, kind: name.toUpperCase(), metadata: { name: `stranger-${at}` } }
export const isContainer = (name: string): boolean => /^[nk]/.test(name)
const isInside = (name: string, { metadata, kind }: K8sObject): boolean =>
  name.startsWith('n') ? metadata.namespace === name : kind === name.toUpperCase()

export const refOfName = (name: string): ObjectRef => refOf(objectOf(name, ''))
export const keyOfName = (name: string): string => refKey(refOfName(name))

/** Service → name → value. A service that is missing has no row; one that is null is being removed. */
export type Commit = ReadonlyMap<string, ReadonlyMap<string, string> | 'remove'>

export interface LogEntry {
  id: ServiceId
  /** Null means that the row goes. */
  revision: DesiredRevision | null
  /** Which commit it says. */
  commit: number
}

export interface Verdict {
  what: string
}

export interface RowSettings {
  pruneConfirmed?: boolean
  /** RM1: which names a person confirmed on the server; `null`: it is an older one, which confirms revisions. */
  confirmed?: readonly string[] | null
  pruneWhen?: 'healthy' | 'applied'
  handovers: boolean
}

export class PruneWorld {
  readonly commits: Commit[] = [new Map()]
  readonly log: LogEntry[] = []
  /** What the server holds: the last of the log for each service. */
  readonly published = new Map<string, LogEntry>()

  namesAt(commit: number): Set<string> {
    const names = new Set<string>()
    for (const wanted of this.commits[commit]?.values() ?? []) if (wanted !== 'remove') for (const name of wanted.keys()) names.add(name)
    return names
  }

  /** PR8: the server has both revisions before it. */
  publish(
    id: ServiceId,
    commit: number,
    { pruneConfirmed = false, confirmed = null, pruneWhen = 'healthy', handovers }: RowSettings,
  ): void {
    const key = serviceKey(id)
    const wanted = this.commits[commit]?.get(key)
    const before = this.published.get(key)
    if (wanted === undefined) {
      if (before !== undefined) this.#append({ id, revision: null, commit })
      return
    }
    const names: ReadonlyMap<string, string> = wanted === 'remove' ? new Map() : wanted
    const objects = new Map([...names].map(([name, value]) => [objectRowId(id, refOfName(name)), canonicalJson(objectOf(name, value))]))
    const digest = setDigest(objects)
    const handover = handovers ? this.#handover(id, commit, names, before) : []
    const row: ServiceRow = serviceRowSchema.parse({
      commit: String(commit),
      digest,
      count: objects.size,
      sync: { pruneWhen },
      ...(pruneConfirmed && wanted !== 'remove' ? { pruneConfirmed: digest } : {}),
      ...(confirmed === null || (!pruneConfirmed && wanted !== 'remove')
        ? {}
        : { confirmed: confirmed.map((name) => deletionName(refOfName(name))) }),
      ...(handover.length > 0 ? { handover } : {}),
      ...(wanted === 'remove'
        ? { removal: { policy: confirmed === null ? 'prune' : 'delete', by: 'test', atMs: commit, why: 'test' } }
        : {}),
    })
    this.#append({ id, revision: { ...id, row, objects }, commit })
  }

  #append(entry: LogEntry): void {
    this.log.push(entry)
    this.published.set(serviceKey(entry.id), entry)
  }

  #handover(
    id: ServiceId,
    commit: number,
    names: ReadonlyMap<string, string>,
    before: LogEntry | undefined,
  ): NonNullable<ServiceRow['handover']> {
    const held = before?.revision
    if (!held) return []
    const carried = held.row.handover ?? []
    const lost = NAMES.filter(
      (name) =>
        !names.has(name) &&
        (held.objects.has(objectRowId(id, refOfName(name))) || carried.some(({ object }) => object === keyOfName(name))),
    )
    return lost.flatMap((name) => {
      return [...(this.commits[commit] ?? [])].flatMap(([key, wanted]) => {
        if (key === serviceKey(id) || wanted === 'remove' || !wanted.has(name)) return []
        const taker = this.published.get(key)?.revision
        const to = parseServiceKey(key)
        const isNamed = taker?.objects.has(objectRowId(to, refOfName(name))) === true && taker.row.removal === undefined
        return [{ object: keyOfName(name), ...to, ...(taker && !isNamed ? { after: taker.row.digest } : {}) }]
      })
    })
  }
}

/** What the judge knows at the moment of a DELETE. */
export interface Scene {
  world: PruneWorld
  /** By service: what the agent's replica holds; 'incomplete' with the last revision that was whole. */
  replica: ReadonlyMap<string, LogEntry | 'incomplete'>
  /** The last whole revision of each that this life of the agent could have read. */
  inForce: ReadonlyMap<string, LogEntry>
  verified: boolean
  current: boolean
  /** Digests that a person confirmed at the site, in this life and before, and that are the service's since. */
  confirmedHere: ReadonlySet<string>
  confirmed: ReadonlyMap<string, ReadonlySet<string>>
  /** UIDs of what the agent applied, and for which service last. */
  applied: ReadonlyMap<string, string>
  live(name: string): K8sObject | null
  /** Everything that is in the cluster. */
  all(): readonly K8sObject[]
  /** Service that the mark on it names. */
  ownerOf(object: K8sObject): string | null
  isHealthy(name: string): boolean
  /** Deleted for a digest so far, since the reconciler came to it. */
  deletedFor: Map<string, Set<string>>
}

/** Null means that anybody would have wanted this delete. */
export function judgeDelete(name: string, uid: string, scene: Scene): string | null {
  const { world, replica, verified, current, confirmedHere, applied } = scene
  const object = scene.live(name)
  if (object === null || object.metadata.uid !== uid) return null // the precondition refuses it
  const appliedFor = applied.get(uid)
  if (appliedFor === undefined) return 'it was made by somebody else'
  if (!verified) return 'the replica is not verified'
  // Somebody took the mark away: it is still the service's that applied it.
  const key = scene.ownerOf(object) ?? appliedFor
  const held = replica.get(key)
  if (held === undefined) return 'its service has no row'
  if (held === 'incomplete') return 'its service’s revision is incomplete'
  const { revision } = held
  if (!revision) return 'its service has no row'
  if (revision.objects.has(objectRowId(held.id, refOfName(name)))) return 'its revision names it'
  const isRemoval = revision.row.removal !== undefined
  const digestKey = `${key} ${confirmationToken(revision.row)}`
  // A person looked at the very list.
  const saidYes = confirmedHere.has(digestKey)
  if (!current && !saidYes) return 'the replica may be an older one'
  for (const [other, entry] of scene.inForce) {
    if (other === key || !entry.revision || entry.revision.row.removal !== undefined || replica.get(other) === undefined) continue
    if (saidYes && replica.get(other) === 'incomplete') continue
    if (entry.revision.objects.has(objectRowId(entry.id, refOfName(name)))) return `${other} names it`
  }
  if (!saidYes && isWantedSince(world, name, droppedAt(world, key, name, held.commit)))
    return 'it moved: since the commit that its service is at, some service has wanted it'
  const annotations = object.metadata.annotations
  if (keepsFrom(isRemoval ? 'removal' : 'prune', keepMark(annotations))) return 'a keep mark is on it'
  if (otherOwner(object.metadata, refOfName(name)) !== null) return 'another tool’s mark is on it'
  return isRemoval ? judgeLoss(name, key, revision.row, scene) : judgeGuards(name, key, held, scene)
}

/** RM1, RM3, PR4: null means that nothing is lost by it, or a person confirmed its very name. */
function judgeLoss(name: string, key: string, row: ServiceRow, { confirmed, all }: Scene): string | null {
  const isRemoval = row.removal !== undefined
  if (!/^[vnk]/.test(name)) return null
  const isInRow = row.pruneConfirmed === row.digest
  const said = [...(isRemoval || isInRow ? (row.confirmed ?? []) : []), ...(confirmed.get(`${key} ${confirmationToken(row)}`) ?? [])]
  if (said.includes(deletionName(refOfName(name))) || (isInRow && row.confirmed === undefined)) return null
  if (name.startsWith('v')) return 'it holds data, and nobody confirmed its name'
  if (!isRemoval) return 'it takes other objects along, and nobody confirmed its name'
  const inside = all().filter((object) => isInside(name, object) && object.metadata.deletionTimestamp === undefined)
  return inside.length === 0 ? null : `${inside.length} objects of others are in it, and nobody confirmed its name`
}

/** The commit by which the service lost it: what people meant then is what counts. */
function droppedAt(world: PruneWorld, key: string, name: string, commit: number): number {
  for (let at = commit; at > 0; at -= 1) {
    const before = world.commits[at - 1]?.get(key)
    if (before !== undefined && before !== 'remove' && before.has(name)) return at
  }
  return commit
}

function isWantedSince(world: PruneWorld, name: string, commit: number): boolean {
  for (let at = commit; at < world.commits.length; at += 1) if (!world.namesAt(at).has(name)) return false
  return true
}

function judgeGuards(name: string, key: string, { id, revision }: LogEntry, scene: Scene): string | null {
  const { confirmed, deletedFor, isHealthy, live, ownerOf } = scene
  if (revision === null) return null
  const digestKey = `${key} ${confirmationToken(revision.row)}`
  const gone = deletedFor.get(digestKey) ?? new Set<string>()
  const owned = NAMES.filter((other) => {
    const object = live(other)
    return object !== null && ownerOf(object) === key
  })
  const doomed = owned.filter((other) => !revision.objects.has(objectRowId(id, refOfName(other))))
  const all = new Set([...doomed, ...gone, name])
  const total = new Set([...owned, ...gone, name]).size
  deletedFor.set(digestKey, gone.add(name))
  const lost = judgeLoss(name, key, revision.row, scene)
  if (lost !== null) return lost
  if (revision.row.pruneConfirmed === revision.row.digest || confirmed.has(digestKey)) return null
  if (revision.objects.size === 0) return 'its revision is empty, and nobody confirmed that'
  // Some of what is doomed may be let go instead: well past the line, so that the judge is never the one who is wrong.
  if (gone.size > 5 && gone.size * 100 > total * 60 && all.size * 100 > total * 60)
    return 'more than the guard allows, and nobody confirmed that'
  if (revision.row.sync.pruneWhen === 'healthy') {
    const sick = NAMES.find((other) => revision.objects.has(objectRowId(id, refOfName(other))) && live(other) !== null && !isHealthy(other))
    if (sick !== undefined) return `${sick} is not healthy`
  }
  return null
}
