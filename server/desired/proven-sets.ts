// SL16: the sealed rows that each cluster may have. Keys are wrapped for no other row, whatever the shard file has: a
// row must be of the set that this process wrote last for the cluster, or of one whose placement is proven by the
// store.

import { parseRowId } from '../../shared/model/desired.ts'
import { sealMarkOf } from '../../shared/model/sealed-object.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { placedBy, proveAll, withProofs } from '../access/placement-proofs.ts'
import type { Sealing } from '../access/sealing.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { createSetReader } from './replay.ts'
import type { SealedRow } from './row-lines.ts'
import type { ServiceRevision } from './shards.ts'

export interface ProvenSets {
  /** Call when the shard file has the rows of the revision. */
  wrote(revision: ServiceRevision): void
  /** Whether the cluster may have all of these rows. It answers at once unless the store must be read. */
  has(clusterId: ClusterId, rows: readonly SealedRow[]): boolean | Promise<boolean>
}

type Objects = ServiceRevision['objects']

export interface ProvenSetsDeps {
  /** The objects of the service in the cluster, as the store has them. Null means that nothing proves it, or there are
   *  none. */
  placed(clusterId: ClusterId, service: ServiceId): Promise<Objects | null>
}

interface OpenProven {
  store: Store
  sealing: Sealing
  content: Pick<ContentStore, 'get'>
  log: Logger
}

/** The store for the rest of the server, which writes proofs, and the check of pages by it. */
export async function openProven({ store: plain, sealing, content, log }: OpenProven): Promise<{ store: Store; proven: ProvenSets }> {
  const proven = await proveAll(plain, sealing)
  if (proven > 0) log.info('placements of an earlier version have proofs now', { placements: proven })
  const placed = placedBy(plain, sealing, createSetReader(content))
  return { store: withProofs(plain, sealing), proven: createProvenSets({ placed }) }
}

/** Placements with sealed rows that are remembered. The last ones are those whose pages agents ask for. */
const PLACEMENTS_MAX = 20_000

type Marks = ReadonlySet<string>
interface OfService {
  id: ServiceId
  marks: Marks
}

export function createProvenSets({ placed }: ProvenSetsDeps): ProvenSets {
  const known = new Map<string, Marks>()
  const nameOf = (clusterId: ClusterId, service: ServiceId) => `${clusterId}/${serviceKey(service)}`
  const remember = (name: string, marks: Marks) => {
    known.delete(name)
    if (marks.size === 0) return
    known.set(name, marks)
    for (const oldest of known.keys()) {
      if (known.size <= PLACEMENTS_MAX) break
      known.delete(oldest)
    }
  }
  const fromStore = async (clusterId: ClusterId, { id, marks }: OfService): Promise<boolean> => {
    const objects = await placed(clusterId, id)
    if (objects === null) return false
    const held = marksOf(objects)
    remember(nameOf(clusterId, id), held)
    return isWithin(marks, held)
  }
  return {
    wrote(revision) {
      const { clusterId, objects, unproven } = revision
      if (unproven === true) known.delete(nameOf(clusterId, revision))
      else remember(nameOf(clusterId, revision), marksOf(objects))
    },
    has(clusterId, rows) {
      const asked: OfService[] = []
      for (const ofService of byService(rows)) {
        const held = known.get(nameOf(clusterId, ofService.id))
        if (held === undefined) asked.push(ofService)
        else if (!isWithin(ofService.marks, held)) return false
      }
      if (asked.length === 0) return true
      return Promise.all(asked.map((ofService) => fromStore(clusterId, ofService))).then((found) => !found.includes(false))
    },
  }
}

const textOf = ({ id, mark: { key, mac } }: SealedRow): string => `${id}\n${key}\n${mac}`

// Clusters of a commit share sets and rows: each pair of them is compared once.
const ofObjects = new WeakMap<Objects, Marks>()
const ofRows = new WeakMap<readonly SealedRow[], readonly OfService[]>()
const within = new WeakMap<Marks, WeakSet<Marks>>()

function marksOf(objects: Objects): Marks {
  const made = ofObjects.get(objects)
  if (made !== undefined) return made
  const marks = new Set<string>()
  for (const [id, doc] of objects) {
    const mark = sealMarkOf(doc)
    if (mark !== null) marks.add(textOf({ id, mark }))
  }
  ofObjects.set(objects, marks)
  return marks
}

function byService(rows: readonly SealedRow[]): readonly OfService[] {
  const made = ofRows.get(rows)
  if (made !== undefined) return made
  const services = new Map<string, { id: ServiceId; marks: Set<string> }>()
  for (const row of rows) {
    const parsed = parseRowId(row.id)
    const id = parsed.kind === 'object' ? parsed.id : { project: '', service: '' } // no cluster is given that one
    const ofService = services.get(serviceKey(id)) ?? { id, marks: new Set() }
    services.set(serviceKey(id), ofService)
    ofService.marks.add(textOf(row))
  }
  const list = [...services.values()]
  ofRows.set(rows, list)
  return list
}

function isWithin(some: Marks, all: Marks): boolean {
  if (within.get(all)?.has(some) === true) return true
  if (!some.isSubsetOf(all)) return false
  const sets = within.get(all) ?? new WeakSet<Marks>()
  within.set(all, sets.add(some))
  return true
}
