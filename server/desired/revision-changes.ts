// The changes of a revision to the rows of a shard: rows that are written and deleted, and their effect on the
// cluster's hash and count. Pure. A commit that reaches thousands of clusters is the same difference in each, so it is
// computed once for the pair of sets.
import { addHash, removeHash, rowHash } from '../../shared/crdt/row-hash.ts'
import { serviceRowId } from '../../shared/model/desired.ts'
import type { ServiceRevision } from './shards.ts'

type Rows = ReadonlyMap<string, string>

export interface Changes {
  /** Sorted by id; `doc: null` deletes. Each of them changes something (RV4). */
  changes: ReadonlyArray<{ id: string; doc: string | null }>
  /** The addend to the cluster's hash, modulo 2^128. */
  sum: bigint
  /** The addend to its number of rows. */
  count: number
}

export function diffRows(held: Rows, wanted: Rows): Changes {
  const changes: Array<{ id: string; doc: string | null }> = []
  let sum = 0n
  for (const [id, doc] of held) {
    if (wanted.has(id)) continue
    changes.push({ id, doc: null })
    sum = removeHash(sum, rowHash(id, doc))
  }
  for (const [id, doc] of wanted) {
    const old = held.get(id)
    if (old === doc) continue
    changes.push({ id, doc })
    if (old !== undefined) sum = removeHash(sum, rowHash(id, old))
    sum = addHash(sum, rowHash(id, doc))
  }
  return { changes: changes.sort((a, b) => (a.id < b.id ? -1 : 1)), sum, count: wanted.size - held.size }
}

/** From the rows that were read: those of this service, its own row among them. */
export function changesFromHeld(revision: ServiceRevision, held: Rows): Changes {
  const wanted = new Map(revision.objects)
  if (revision.serviceDoc !== null) wanted.set(serviceRowId(revision), revision.serviceDoc)
  return diffRows(held, wanted)
}

/** From what the fleet store had before it. */
export function changesFromBefore(revision: ServiceRevision, before: Pick<ServiceRevision, 'serviceDoc' | 'objects'>): Changes {
  const objects = objectChanges(before.objects, revision.objects)
  const service = serviceChange(serviceRowId(revision), before.serviceDoc, revision.serviceDoc)
  if (joined === null || joined.objects !== objects || joined.service !== service) {
    const changes = [...objects.changes, ...service.changes] // `object/…` sorts before `service/…`
    joined = { objects, service, both: { changes, sum: addHash(objects.sum, service.sum), count: objects.count + service.count } }
  }
  return joined.both
}

/** Also the same for most clusters of a commit: the last one is kept. */
let joined: { objects: Changes; service: Changes; both: Changes } | null = null

/** About how many rows there are to write, or to read. */
export const rowsToWrite = ({ objects, before }: ServiceRevision): number =>
  1 + (before === undefined ? objects.size : objectChanges(before.objects, objects).changes.length)

const known = new WeakMap<Rows, WeakMap<Rows, Changes>>()

function objectChanges(held: Rows, wanted: Rows): Changes {
  const ofHeld = known.get(held) ?? new WeakMap<Rows, Changes>()
  known.set(held, ofHeld)
  const changes = ofHeld.get(wanted) ?? diffRows(held, wanted)
  ofHeld.set(wanted, changes)
  return changes
}

const rowOf = (id: string, doc: string | null): Rows => new Map(doc === null ? [] : [[id, doc]])

/** The last one, as above. */
let last: { id: string; before: string | null; after: string | null; changes: Changes } | null = null

function serviceChange(id: string, before: string | null, after: string | null): Changes {
  if (last === null || last.id !== id || last.before !== before || last.after !== after)
    last = { id, before, after, changes: diffRows(rowOf(id, before), rowOf(id, after)) }
  return last.changes
}
