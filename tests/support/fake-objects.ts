// The fake cluster's store: writes with their effects (owners, generations, finalizers, namespaces, CRDs). Synchronous:
// each request is one step. Effects of the real cluster's controllers happen here in a microtask.
import type { ApiResource, Discovery } from '../../agent/cluster/cluster.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { groupOf, type K8sObject, type ManagedFieldsEntry, type ObjectRef, refKey, refOf } from '../../shared/kube/object.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { absorbStringData, mergePatched, withoutEmptyMaps, withoutNulls } from './fake-bodies.ts'
import { withDefaults } from './fake-defaults.ts'
import {
  containersOf,
  type FieldSet,
  fromFieldsV1,
  type Leaves,
  leavesOf,
  mergeApplied,
  pathOf,
  pathText,
  toFieldsV1,
  withoutFields,
} from './fake-field-sets.ts'
import {
  APISERVICE_GROUP,
  BUILT_IN,
  CRD_GROUP,
  checkFinalizers,
  checkIdentity,
  checkImmutable,
  checkObject,
  checkPatch,
  customNulls,
  denied,
  hasGeneration,
  isCustom,
  kindsOfCrd,
  notFound,
  notServed,
  Refusal,
  schemaOf,
  terminating,
  valueAt,
} from './fake-kube-kinds.ts'
import { OwnerIndex } from './fake-owners.ts'
import type { FakeWatchLog } from './fake-watch-log.ts'

const COLLECTOR = 'foregroundDeletion'

/** What etcd holds at a revision. */
export interface ObjectsSnapshot {
  readonly revision: number
  readonly objects: ReadonlyMap<string, K8sObject>
  readonly served: ReadonlyMap<string, ApiResource>
}

export class FakeObjects {
  revision = 1
  /** Why a write that would leave this object is refused. Null means that it is not. */
  admission: (object: K8sObject) => string | null = () => null
  deleteAdmission: (object: K8sObject) => string | null = () => null
  readonly #byKey = new Map<string, K8sObject>()
  readonly #served = new Map<string, ApiResource>()
  readonly #owners = new OwnerIndex()
  /** Groups that the server does not serve for now, although their CRDs and objects are there. */
  readonly gaps = new Set<string>()
  readonly #clock: Clock
  readonly #log: FakeWatchLog
  readonly #uidPrefix: string
  #uids = 0

  constructor(clock: Clock, log: FakeWatchLog, uid = '00000000-0000-4000-8000-000000000000') {
    this.#clock = clock
    this.#log = log
    this.#uidPrefix = uid.slice(0, 24)
    for (const resource of BUILT_IN) this.#served.set(servedKey(resource), resource)
    for (const name of ['kube-system', 'default']) this.#create(namespaceNamed(name), this.resourceOf(namespaceRef(name)))
  }

  identity = (): string => this.find(namespaceRef('kube-system'))?.metadata.uid ?? ''
  serves = (resource: ApiResource): boolean => this.#served.has(servedKey(resource)) && !this.gaps.has(resource.group)
  /** Stored objects are never changed, so that the maps are enough. */
  snapshot = (): ObjectsSnapshot => ({ revision: this.revision, objects: new Map(this.#byKey), served: new Map(this.#served) })

  restore({ objects, served }: ObjectsSnapshot, revision: number): void {
    this.revision = revision
    for (const [map, saved] of [
      [this.#byKey, objects],
      [this.#served, served],
    ] as ReadonlyArray<[Map<string, unknown>, ReadonlyMap<string, unknown>]>) {
      map.clear()
      for (const [key, value] of saved) map.set(key, value)
    }
  }

  find = (ref: ObjectRef): K8sObject | null => this.#byKey.get(refKey(ref)) ?? null
  all = (wanted: (object: K8sObject) => boolean = () => true) => sorted([...this.#byKey].filter(([, object]) => wanted(object)))
  /** By another API server, behind an APIService: no CRD defines it. */
  serveAggregated = (resource: ApiResource): void => void this.#served.set(servedKey(resource), resource)
  /** Moves the revision without a change, as other objects' writes do. */
  touch = (): number => ++this.revision

  discovery(): Discovery {
    const resources = [...this.#served.values()].filter(({ group }) => !this.gaps.has(group))
    const groups = new Set(resources.map(({ group }) => group))
    const aggregated = this.all().flatMap((object) =>
      groupOf(object.apiVersion) === APISERVICE_GROUP && valueAt(object, ['spec', 'service']) !== undefined
        ? [String(valueAt(object, ['spec', 'group']))]
        : [],
    )
    return { resources, staleGroups: [...new Set(aggregated)].filter((group) => !groups.has(group)).sort() }
  }

  resourceOf({ group, kind }: ObjectRef): ApiResource {
    for (const resource of this.#served.values()) if (resource.group === group && resource.kind === kind) return resource
    throw notServed()
  }

  read(resource: ApiResource, ref: ObjectRef): K8sObject | null {
    const object = this.find(ref)
    return object === null ? null : { ...object, apiVersion: apiVersionOf(resource) }
  }

  apply(
    resource: ApiResource,
    sent: K8sObject,
    { manager, force, dryRun }: { manager: string; force: boolean; dryRun: boolean },
  ): { object: K8sObject; created: boolean } {
    const applied = isCustom(resource.group) ? customNulls(sent, schemaOf(this.all(), resource)) : withoutNulls(sent)
    if (applied.kind !== resource.kind || applied.apiVersion !== apiVersionOf(resource))
      throw new Refusal(
        400,
        'BadRequest',
        `the API version or kind in the data does not match the expected one (${apiVersionOf(resource)})`,
      )
    if (resource.namespaced !== Boolean(applied.metadata.namespace)) throw notServed()
    checkPatch(applied, resource)
    delete applied['status']
    const live = this.find(refOf(applied))
    if (live !== null) checkIdentity(applied, live, resource)
    else this.#checkNamespace(resource, refOf(applied))

    const custom = isCustom(resource.group)
    const base = live ?? blank(applied)
    const wanted = leavesOf(applied, custom)
    const [owners, ours] = splitOwners(base, manager, 'Apply')
    const tracked = live === null || ours !== null || owners.length > 0
    const others = tracked ? owners : [beforeFirstApply(live, custom)]
    const conflicts = findConflicts(others, wanted, leavesOf(base, custom))
    if (conflicts.length > 0 && !force) throw conflictRefusal(conflicts)
    const lost = new Set(conflicts.map(({ key }) => key))
    const keptOwners = others.map(({ entry, fields }) => ({ entry, fields: new Set([...fields].filter((key) => !lost.has(key))) }))
    const ownedByOthers = new Set(keptOwners.flatMap(({ fields }) => [...fields]))
    const dropped = [...(ours?.fields ?? [])].filter((key) => !wanted.has(key) && !ownedByOthers.has(key))
    const merged = withoutFields(mergeApplied(base, applied, custom), dropped, new Set([...ownedByOthers, ...wanted.keys()]))
    const after = withDefaults(withoutEmptyMaps(absorbStringData(withIdentity(merged, base))))
    checkObject(after, resource)
    if (live !== null) this.#checkUpdate(live, after)
    this.checkAdmission(resource, after)

    const fields: FieldSet = new Set(wanted.keys())
    const unchanged = live !== null && sameContent(live, after) && ours !== null && sameSet(ours.fields, fields) && lost.size === 0
    if (unchanged) return { object: live, created: false }
    after.metadata.managedFields = [
      ...entryOf({ manager, operation: 'Apply', apiVersion: applied.apiVersion, fieldsV1: toFieldsV1(fields) }, this.#now()),
      ...keptOwners.flatMap(({ entry, fields: kept }) => entryOf({ ...entry, fieldsV1: toFieldsV1(kept) }, entry.time ?? this.#now())),
    ]
    if (dryRun) return { object: after, created: live === null }
    return live === null ? { object: this.#create(after, resource), created: true } : { object: this.#store(live, after), created: false }
  }

  /** Null if it is gone; otherwise the finalizers that hold it. In the foreground the garbage collector holds it. */
  delete(ref: ObjectRef, foreground = false): readonly string[] | null {
    const found = this.find(ref)
    if (found === null) return null
    const live = foreground ? this.#heldByCollector(found) : found
    const finalizers = finalizersOf(live)
    if (finalizers.length === 0) {
      this.#remove(live)
      return null
    }
    if (live.metadata.deletionTimestamp === undefined) {
      const after = structuredClone(live)
      after.metadata.deletionTimestamp = this.#now()
      after.metadata['deletionGracePeriodSeconds'] = 0
      if (after.metadata.generation !== undefined) after.metadata.generation += 1
      if (isNamespace(after)) after['status'] = { phase: 'Terminating' }
      this.#store(live, after)
      queueMicrotask(() => this.#finalizeNamespaces())
    }
    return finalizers
  }

  #heldByCollector(live: K8sObject): K8sObject {
    const held = structuredClone(live)
    held.metadata.finalizers = [...(live.metadata.finalizers ?? []), COLLECTOR]
    queueMicrotask(() => {
      const now = this.find(refOf(live))
      if (now === null || !now.metadata.finalizers?.includes(COLLECTOR)) return
      const after = structuredClone(now)
      after.metadata.finalizers = (now.metadata.finalizers ?? []).filter((name) => name !== COLLECTOR)
      this.#store(now, after)
    })
    return held
  }

  edit(manager: string, ref: ObjectRef, mutate: (object: K8sObject) => void, subresource?: string): K8sObject {
    const live = this.find(ref)
    const resource = this.resourceOf(ref)
    if (live === null) this.#checkNamespace(resource, ref)
    const before = live ?? blank(newObject(resource, ref))
    const mutated = structuredClone(before)
    mutate(mutated)
    if (subresource !== 'status') restore(mutated, before, 'status')
    const after = withDefaults(this.#owned(manager, before, withoutEmptyMaps(withIdentity(mutated, before)), subresource))
    checkObject(after, resource)
    if (live === null) return structuredClone(this.#create(after, resource))
    this.#checkUpdate(live, after)
    return structuredClone(sameContent(live, after) ? live : this.#store(live, after))
  }

  mergePatch(resource: ApiResource, ref: ObjectRef, body: Record<string, unknown>, manager: string): K8sObject {
    const live = this.find(ref)
    if (live === null) throw notFound(resource.plural, ref.name)
    const patched = mergePatched(live, body) as K8sObject
    checkIdentity(patched, live, resource)
    const entries = valueAt(body, ['metadata', 'managedFields'])
    restore(patched, live, 'status')
    const after = withDefaults(this.#owned(manager, live, withoutEmptyMaps(withIdentity(patched, live)), undefined))
    // Sent entries replace the live ones whole; the patch's own change is then tracked on top of them.
    if (Array.isArray(entries)) after.metadata.managedFields = entries as ManagedFieldsEntry[]
    checkObject(after, resource)
    this.#checkUpdate(live, after)
    this.checkAdmission(resource, after)
    const same =
      sameContent(live, after) && canonicalJson(live.metadata.managedFields ?? []) === canonicalJson(after.metadata.managedFields ?? [])
    return same ? live : this.#store(live, after)
  }

  /** `after` with what changed moved into the manager's Update entry and out of everybody else's. */
  #owned(manager: string, before: K8sObject, after: K8sObject, subresource: string | undefined): K8sObject {
    const custom = isCustom(groupOf(after.apiVersion))
    const part = subresource === 'status' ? 'status' : 'main'
    const old = leavesOf(before, custom, part)
    const now = leavesOf(after, custom, part)
    const touched = new Set([...now].flatMap(([key, { value }]) => (old.get(key)?.value === value ? [] : [key])))
    const removed = new Set([...old.keys()].filter((key) => !now.has(key)))
    if (touched.size === 0 && removed.size === 0) return after
    // An object of which nobody owns anything is not tracked until somebody applies it.
    if (this.find(refOf(before)) !== null && (before.metadata.managedFields ?? []).length === 0) return after
    const [containersBefore, containersNow] = [containersOf(old.keys()), containersOf(now.keys())]
    const moved = [...containersBefore, ...containersNow].filter((key) => containersBefore.has(key) !== containersNow.has(key))
    const lost = new Set([...touched, ...removed, ...moved])
    const [others, own] = splitOwners(before, manager, 'Update', subresource)
    const fields = new Set([...(own?.fields ?? []), ...touched].filter((key) => !removed.has(key)))
    const entry = { manager, operation: 'Update', apiVersion: after.apiVersion, ...(subresource === undefined ? {} : { subresource }) }
    after.metadata.managedFields = [
      ...others.flatMap(({ entry: other, fields: kept }) => {
        const left = new Set([...kept].filter((key) => !lost.has(key)))
        return entryOf({ ...other, fieldsV1: toFieldsV1(left) }, other.time ?? this.#now())
      }),
      ...entryOf({ ...entry, fieldsV1: toFieldsV1(fields) }, this.#now()),
    ]
    return after
  }

  #checkUpdate(live: K8sObject, after: K8sObject): void {
    checkFinalizers(live, after)
    checkImmutable(live, after)
  }

  checkAdmission(resource: ApiResource, object: K8sObject, admission = this.admission): void {
    const message = admission(object)
    if (message !== null) throw denied(resource, object.metadata.name ?? '', message)
  }

  #checkNamespace(resource: ApiResource, ref: ObjectRef): void {
    if (!resource.namespaced) return
    const namespace = this.find(namespaceRef(ref.namespace))
    if (namespace === null) throw notFound('namespaces', ref.namespace)
    if (namespace.metadata.deletionTimestamp !== undefined) throw terminating(resource.plural, ref.name, ref.namespace)
  }

  #create(object: K8sObject, resource: ApiResource): K8sObject {
    const created = structuredClone(object)
    const { metadata } = created
    this.#uids += 1
    metadata.uid = `${this.#uidPrefix}${this.#uids.toString(16).padStart(12, '0')}`
    metadata.creationTimestamp = this.#now()
    if (hasGeneration(resource)) metadata.generation = 1
    if (isNamespace(created)) {
      metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name ?? '' }
      Object.assign(created, { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } })
    }
    if (created.kind === 'PersistentVolumeClaim' && groupOf(created.apiVersion) === '') created['status'] = { phase: 'Pending' }
    const stored = this.#put(null, created)
    if (groupOf(created.apiVersion) === CRD_GROUP) this.#serveCrd(created)
    return stored
  }

  #store(before: K8sObject, after: K8sObject): K8sObject {
    if (after.metadata.deletionTimestamp !== undefined && finalizersOf(after).length === 0) {
      this.#remove(after)
      return after
    }
    if (after.metadata.generation !== undefined && specOf(before) !== specOf(after)) after.metadata.generation += 1
    const stored = this.#put(before, after)
    if (groupOf(after.apiVersion) === CRD_GROUP && specOf(before) !== specOf(after)) this.#serveCrd(after)
    return stored
  }

  #put(before: K8sObject | null, after: K8sObject): K8sObject {
    after.metadata.resourceVersion = String(this.touch())
    this.#byKey.set(refKey(refOf(after)), after)
    this.#owners.changed(before, after)
    this.#log.record(this.revision, before, after)
    return after
  }

  #remove(object: K8sObject): void {
    this.#byKey.delete(refKey(refOf(object)))
    this.#owners.changed(object, null)
    this.#log.record(this.touch(), object, null)
    if (groupOf(object.apiVersion) === CRD_GROUP) this.#unserveCrd(object)
    queueMicrotask(() => {
      this.#finalizeNamespaces()
      this.#collectGarbage(object.metadata.uid ?? '')
    })
  }

  #collectGarbage(uid: string): void {
    const find = (ref: ObjectRef) => this.find(ref)
    for (const orphan of this.#owners.orphansOf(uid, (key) => this.#byKey.get(key), find)) this.delete(refOf(orphan))
  }

  /** The namespace controller: contents go first, then the namespace, unless finalizers hold either. */
  #finalizeNamespaces(): void {
    for (const namespace of this.all((object) => isNamespace(object) && object.metadata.deletionTimestamp !== undefined)) {
      const inside = ({ metadata }: K8sObject) => metadata.namespace === namespace.metadata.name
      for (const object of this.all(inside)) this.delete(refOf(object))
      if (this.all(inside).length > 0 || valueAt(namespace, ['spec', 'finalizers']) === undefined) continue
      const after = structuredClone(namespace)
      delete after['spec']
      this.#store(namespace, after)
    }
  }

  #serveCrd(crd: K8sObject): void {
    const kinds = kindsOfCrd(crd)
    queueMicrotask(() => {
      if (this.find(refOf(crd)) === null) return
      for (const resource of kinds) this.#served.set(servedKey(resource), resource)
      const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True', reason: type, message: '' }))
      this.edit('kube-apiserver', refOf(crd), (object) => Object.assign(object, { status: { conditions } }), 'status')
    })
  }

  #unserveCrd(crd: K8sObject): void {
    for (const resource of kindsOfCrd(crd)) {
      this.#served.delete(servedKey(resource))
      for (const object of this.all()) {
        if (object.kind === resource.kind && groupOf(object.apiVersion) === resource.group) this.#remove(object)
      }
    }
  }

  #now = (): string => new Date(this.#clock.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z')
}

interface Owner {
  entry: ManagedFieldsEntry
  fields: FieldSet
}

/** Everybody else's entries, and the one of this manager, operation and subresource. */
function splitOwners(object: K8sObject, manager: string, operation: string, subresource?: string): [others: Owner[], own: Owner | null] {
  const owners = (object.metadata.managedFields ?? []).map((entry) => ({ entry, fields: fromFieldsV1(entry.fieldsV1 ?? {}) }))
  const isOwn = ({ entry }: Owner) => entry.manager === manager && entry.operation === operation && entry.subresource === subresource
  return [owners.filter((owner) => !isOwn(owner)), owners.find(isOwn) ?? null]
}

/** What was there before anybody applied belongs to this name, as on the server. */
function beforeFirstApply(live: K8sObject, custom: boolean): Owner {
  const entry = { manager: 'before-first-apply', operation: 'Update', apiVersion: live.apiVersion }
  return { entry, fields: new Set(leavesOf(live, custom).keys()) }
}

interface Conflict {
  key: string
  manager: ManagedFieldsEntry
}

function findConflicts(others: readonly Owner[], wanted: Leaves, live: Leaves): Conflict[] {
  return others.flatMap(({ entry, fields }) =>
    [...fields].flatMap((key) => {
      const sent = wanted.get(key)
      return sent !== undefined && live.get(key)?.value !== sent.value ? [{ key, manager: entry }] : []
    }),
  )
}

/** In the words of the API server, which differ for one conflict and for several. */
function conflictRefusal(conflicts: readonly Conflict[]): Refusal {
  const named = conflicts.map(({ key, manager: { manager, operation, apiVersion } }) => ({
    who: `"${manager}"${operation === 'Update' ? ` using ${apiVersion}` : ''}`,
    field: pathText(pathOf(key)),
  }))
  const causes = named.map(({ who, field }) => ({ reason: 'FieldManagerConflict', message: `conflict with ${who}`, field }))
  const [first] = named
  const one = named.length === 1 && first !== undefined
  const groups = [...new Set(named.map(({ who }) => who))].sort().map((who) => {
    const fields = named.flatMap((conflict) => (conflict.who === who ? [`- ${conflict.field}`] : []))
    return [`conflicts with ${who}:`, ...fields.sort()].join('\n')
  })
  const text = one ? `conflict with ${first.who}: ${first.field}` : groups.join('\n')
  return new Refusal(409, 'Conflict', `Apply failed with ${named.length} conflict${one ? '' : 's'}: ${text}`, { causes })
}

const servedKey = ({ group, version, kind }: ApiResource): string => `${group}/${version}/${kind}`
const apiVersionOf = ({ group, version }: ApiResource): string => (group === '' ? version : `${group}/${version}`)
const namespaceRef = (name: string): ObjectRef => ({ group: '', kind: 'Namespace', namespace: '', name })
const namespaceNamed = (name: string): K8sObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
const isNamespace = (object: K8sObject): boolean => object.kind === 'Namespace' && object.apiVersion === 'v1'
const sorted = (entries: Array<[key: string, object: K8sObject]>) =>
  entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
const sameSet = (a: FieldSet, b: FieldSet): boolean => a.size === b.size && [...a].every((key) => b.has(key))
const entryOf = (entry: ManagedFieldsEntry, time: string): ManagedFieldsEntry[] =>
  Object.keys(entry.fieldsV1 ?? {}).length === 0 ? [] : [{ ...entry, time, fieldsType: 'FieldsV1' }]

function newObject(resource: ApiResource, { namespace, name }: ObjectRef): K8sObject {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: { name, ...(namespace === '' ? {} : { namespace }) } }
}

const blank = ({ apiVersion, kind, metadata: { name, namespace } }: K8sObject): K8sObject => ({
  ...{ apiVersion, kind },
  metadata: { ...(name === undefined ? {} : { name }), ...(namespace === undefined ? {} : { namespace }) },
})

const SERVER_FIELDS = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
]

/** What the server keeps itself cannot be changed by a write. */
function withIdentity(object: K8sObject, live: K8sObject): K8sObject {
  for (const field of SERVER_FIELDS) restore(object.metadata, live.metadata, field)
  return object
}

function restore(target: Record<string, unknown>, source: Record<string, unknown>, field: string): void {
  if (source[field] === undefined) delete target[field]
  else target[field] = structuredClone(source[field])
}

function finalizersOf(object: K8sObject): readonly string[] {
  const inSpec = isNamespace(object) ? valueAt(object, ['spec', 'finalizers']) : undefined
  return [...(object.metadata.finalizers ?? []), ...(Array.isArray(inSpec) ? inSpec.map(String) : [])]
}

/** Fields that count for the generation: all but metadata and status. A Deployment's annotations count, too. */
function specOf({ metadata, status: _status, ...rest }: K8sObject): string {
  const annotations = rest.kind === 'Deployment' ? (metadata.annotations ?? {}) : {}
  return canonicalJson({ ...rest, annotations })
}

function sameContent(a: K8sObject, b: K8sObject): boolean {
  const bare = ({ metadata: { managedFields: _, resourceVersion: __, ...metadata }, ...rest }: K8sObject) =>
    canonicalJson({ ...rest, metadata })
  return bare(a) === bare(b)
}
