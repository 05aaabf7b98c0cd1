// A service in the replica: complete, or not enforceable (RV1).
import { setDigest } from '../../shared/kube/canonical.ts'
import { objectRowPrefix, parseRowId, type ServiceRow, serviceRowId, serviceRowSchema } from '../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { servicePart } from '../messages/service-messages.ts'
import type { ServiceRead } from './replica.ts'
import type { ReplicaFile } from './replica-file.ts'

export function readService(file: Pick<ReplicaFile, 'doc' | 'rows'>, service: ServiceId): ServiceRead {
  const doc = file.doc(serviceRowId(service))
  if (doc === null) return { kind: 'absent' }
  const read = parseServiceRow(doc)
  if (typeof read === 'string') return { kind: 'incomplete', why: read }
  const row = read
  const prefix = objectRowPrefix(service)
  const objects = file.rows(prefix, `${prefix.slice(0, -1)}0`)
  const why = incompleteness(row, objects)
  return why === null ? { kind: 'complete', revision: { ...service, row, objects: new Map(objects) } } : { kind: 'incomplete', why }
}

/** RC34: there is no row of it any more, or its row is a removal order. */
export function isLeaving(file: Pick<ReplicaFile, 'doc'>, service: ServiceId): boolean {
  const doc = file.doc(serviceRowId(service))
  if (doc === null) return true
  const row = parseServiceRow(doc)
  return typeof row !== 'string' && row.removal !== undefined
}

/** Null when the objects are exactly those that the row names. */
function incompleteness(row: ServiceRow, objects: ReadonlyArray<readonly [id: string, doc: string]>): string | null {
  if (row.removal !== undefined) return objects.length === 0 ? null : servicePart('removal_with_objects', { count: objects.length })
  if (objects.length !== row.count) return servicePart('objects_missing', { have: objects.length, count: row.count })
  return setDigest(objects) === row.digest ? null : servicePart('objects_differ')
}

/** A text says what cannot be read. */
function parseServiceRow(doc: string): ServiceRow | string {
  try {
    const parsed = serviceRowSchema.safeParse(JSON.parse(doc))
    if (parsed.success) return parsed.data
    const members = [...new Set(parsed.error.issues.map(({ path }) => String(path[0] ?? '')))].filter((member) => member !== '').sort()
    return members.length === 0 ? servicePart('row_unreadable') : servicePart('fields_unreadable', { fields: members.join(', ') })
  } catch {
    return servicePart('row_unreadable')
  }
}

export function servicesOf(ids: Iterable<string>): ServiceId[] {
  const services = new Map<string, ServiceId>()
  let known = '\n' // begins no id
  for (const id of ids) {
    if (id.startsWith(known)) continue // rows of a service come together
    const row = parseRowId(id)
    if (row.kind !== 'service' && row.kind !== 'object') continue
    services.set(serviceKey(row.id), row.id)
    known = objectRowPrefix(row.id)
  }
  return [...services].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, id]) => id)
}
