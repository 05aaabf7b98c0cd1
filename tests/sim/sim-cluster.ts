// The Kubernetes of one site: the strict fake, which drifts, fails and is slow by the dice, and in which every write of
// ours is judged at the moment it is made.

import { agentFiles } from '../../agent/agent.ts'
import type { ApiFailure, Cluster } from '../../agent/cluster/cluster.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { deletionName } from '../../shared/kube/data-loss.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refOf } from '../../shared/kube/object.ts'
import { parseRowId, type ServiceRow, serviceRowId, serviceRowSchema } from '../../shared/model/desired.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { createFakeCluster, type FakeCluster, lagWatches } from '../support/fake-cluster.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'
import { tracedCluster } from '../support/trace.ts'
import type { World } from './history.ts'
import type { Life } from './life.ts'

const FAILURES: ReadonlyArray<ApiFailure['kind']> = ['unreachable', 'throttled', 'server_error', 'forbidden', 'conflict', 'webhook']
const NAMESPACE = 'default'

/** Objects are named after their service, so that a delete tells whose it was. */
export const objectName = (id: ServiceId, name: string): string => `${id.service}.${name}`
/** Claims hold data; nothing else here does. */
const isClaim = (name: string): boolean => name.endsWith('.v')
export const simRef = (name: string): ObjectRef =>
  isClaim(name) ? { group: '', kind: 'PersistentVolumeClaim', namespace: NAMESPACE, name } : configMapRef(name, NAMESPACE)
/** The spec of a claim never changes, so its value is an annotation. */
export const simObject = (name: string, value: string): K8sObject =>
  isClaim(name)
    ? {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: NAMESPACE, annotations: { value } },
        spec: { accessModes: ['ReadWriteOnce'] },
      }
    : configMap(name, { value })
const serviceOf = (ref: ObjectRef): ServiceId => ({ project: 'shop', service: ref.name.slice(0, ref.name.lastIndexOf('.')) })

export class SimCluster {
  readonly fake: FakeCluster
  readonly #world: World
  readonly #name: string
  /** Part of requests that fail; seconds that others take at most. */
  failing = 0
  slowMs = 0
  deletes = 0
  claimsDeleted = 0
  /** Of what only the other server of a fork had ordered. */
  deletesAfterFork = 0
  applies = 0

  constructor(world: World, name: string) {
    this.#world = world
    this.#name = name
    const uid = `00000000-0000-4000-8000-${Buffer.from(name.padEnd(6).slice(-6)).toString('hex')}`
    this.fake = createFakeCluster({ clock: world.clock, uid })
    this.fake.fail(({ verb }) => {
      if (this.failing === 0 || verb === 'info' || !world.chance(this.failing)) return null
      world.count('kube_failing')
      return { kind: world.pick(FAILURES), status: 500, reason: 'Sim', message: 'simulated' }
    })
  }

  /** What one life of an agent sees of it. `clusterId`: whose rows it may bring; `line`: the server that it listens to.
   */
  port(life: Life, dataDir: () => string, clusterId: () => string | null, line: () => string): Cluster {
    const fake = tracedCluster(this.fake, this.#world.trace, this.#name)
    const slowly = async <T>(work: () => Promise<T>): Promise<T> => {
      if (this.slowMs > 0 && this.#world.chance(0.3)) {
        this.#world.count('kube_slow')
        await this.#world.clock.sleep(this.#world.random() * this.slowMs)
      }
      return work()
    }
    return {
      info: () => life.call(() => slowly(() => fake.info())),
      discover: () => life.call(() => slowly(() => fake.discover())),
      apply: (resource, object, options) =>
        life.call(() => {
          this.#judgeApply(object, clusterId())
          return slowly(async () => {
            const answer = await fake.apply(resource, object, options)
            this.#bind(object)
            return answer
          })
        }),
      get: (resource, ref, options) => life.call(() => slowly(() => fake.get(resource, ref, options))),
      delete: (resource, ref, uid, options) =>
        life.call(() => {
          this.#judgeDelete(ref, dataDir(), line())
          return fake.delete(resource, ref, uid, options)
        }),
      mergePatch: (resource, ref, body) => life.call(() => slowly(() => fake.mergePatch(resource, ref, body))),
      watch: life.wrapWatch(fake),
    }
  }

  /** As a volume controller does. */
  #bind(object: K8sObject): void {
    const claim = object.kind === 'PersistentVolumeClaim' ? this.fake.object(refOf(object)) : null
    if (claim !== null && (claim['status'] as { phase?: string } | undefined)?.phase === 'Pending')
      this.fake.setStatus(refOf(object), { phase: 'Bound' })
  }

  #judgeApply(object: K8sObject, clusterId: string | null): void {
    this.applies++
    const value = dataValue(object)
    if (value !== null && clusterId !== null && !value.startsWith(clusterId))
      this.#world.break('foreign_row', `${this.#name} was given ${object.metadata.name} of another cluster: ${value.slice(0, 60)}`)
  }

  #judgeDelete(ref: ObjectRef, dataDir: string, line: string): void {
    this.deletes++
    const service = serviceOf(ref)
    const { orders } = this.#world
    const rows = rowsOnDisk(dataDir)
    const why =
      rows === null
        ? orders.whyNotDeleteUnseen(this.#name, service, ref.name)
        : orders.whyNotDelete(this.#name, service, ref.name, heldRow(rows, service))
    this.#world.note(`${this.#name} deletes ${ref.name}`)
    if (isClaim(ref.name)) {
      this.claimsDeleted++
      const lost = orders.whyNotLost(this.#name, service, deletionName(ref), rows === null ? null : heldRow(rows, service))
      if (lost !== null) this.#world.break('unintended_delete', `${this.#name} ${ref.name}: ${lost}`)
    }
    if (why === null) return
    if (this.#world.orders.isOfAnotherLine(this.#name, service, ref.name, line)) this.deletesAfterFork++
    else this.#world.break('unintended_delete', `${this.#name} ${ref.name}: ${why}`)
  }

  /** Somebody else's hand. */
  drift(): void {
    const world = this.#world
    const ours = this.fake.objects().filter((object) => dataValue(object) !== null)
    if (ours.length === 0) return
    const ref = simRef(world.pick(ours).metadata.name ?? '')
    world.count('drift')
    const what = world.below(3)
    const edit = (object: K8sObject) =>
      isClaim(ref.name)
        ? Object.assign(object.metadata.annotations ?? {}, { value: 'edited' })
        : Object.assign(object, { data: { value: 'edited' } })
    if (what === 0) this.fake.editAs('kubectl-edit', ref, (object) => void edit(object))
    else if (what === 1) this.fake.deleteAs('kubectl', ref)
    else this.fake.editAs('kubectl-label', ref, (object) => Reflect.deleteProperty(object.metadata.labels ?? {}, SERVICE_LABEL))
  }

  cutWatches(): void {
    this.#world.count('kube_watch_cut')
    this.fake.cutWatches({ forget: this.#world.chance(0.5) })
  }

  lagWatches(): void {
    this.#world.count('kube_watch_lag')
    lagWatches(this.#world.random, this.fake)
  }

  isOurs(name: string): boolean {
    return this.fake.object(simRef(name))?.metadata.labels?.[SERVICE_LABEL] !== undefined
  }

  /** Values of our objects by name. */
  values(): Map<string, string> {
    return new Map(
      this.fake.objects().flatMap((object) => {
        const value = dataValue(object)
        return value === null ? [] : [[object.metadata.name ?? '', value] as const]
      }),
    )
  }
}

export function dataValue(object: K8sObject): string | null {
  if (object.kind === 'PersistentVolumeClaim') return object.metadata.annotations?.['value'] ?? null
  if (object.kind !== 'ConfigMap' || object.metadata.namespace !== NAMESPACE) return null
  const data = object['data'] as Record<string, string> | undefined
  return data?.['value'] ?? null
}

/** Rows of a replica as they lie on the disk, read by nothing of the agent. Null means that it cannot be read. */
export function rowsOnDisk(dataDir: string): Array<{ cluster: string; id: string; doc: string }> | null {
  try {
    const db = openSqlite(agentFiles(dataDir).replica, { readonly: true })
    try {
      return db.query<{ cluster: string; id: string; doc: string }, []>('SELECT cluster, id, doc FROM desired ORDER BY id').all()
    } finally {
      db.close()
    }
  } catch {
    return null
  }
}

/** What a replica says of itself. */
export function headOnDisk(dataDir: string): { hash: string; count: number } | null {
  try {
    const db = openSqlite(agentFiles(dataDir).replica, { readonly: true })
    try {
      return db.query<{ hash: string; count: number }, []>('SELECT hash, count FROM replica_position').get()
    } finally {
      db.close()
    }
  } catch {
    return null
  }
}

function heldRow(rows: ReadonlyArray<{ id: string; doc: string }>, service: ServiceId): ServiceRow | null {
  const row = rows.find(({ id }) => id === serviceRowId(service))
  return row === undefined ? null : readServiceRow(row.doc)
}

export function readServiceRow(doc: string): ServiceRow | null {
  try {
    return serviceRowSchema.safeParse(JSON.parse(doc)).data ?? null
  } catch {
    return null
  }
}

export const serviceOfRow = (id: string): ServiceId | null => {
  const row = parseRowId(id)
  return row.kind === 'service' ? row.id : null
}
