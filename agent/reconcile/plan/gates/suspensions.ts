// Suspensions: orders on the server to leave services unchanged. They arrive with the rows and are stored with the
// agent's state, so that they count without a network and a replica.
import { z } from 'zod'
import {
  parseSuspensionRowId,
  type SuspendedScope,
  type Suspension,
  suspensionSchema,
  widthOf,
} from '../../../../shared/model/suspension.ts'
import { type ServiceId, serviceKey } from '../../../../shared/runtime/ids.ts'
import { servicePart } from '../../../messages/service-messages.ts'

/** Row id and document. */
export type SuspensionRows = ReadonlyArray<readonly [id: string, doc: string]>
export type ActiveSuspension = Suspension & { suspended: SuspendedScope }

export const SUSPENSIONS_FACT = 'hold/server'
const keptRows = z.array(z.tuple([z.string(), z.string()])).catch([])

/** Suspensions from the server. If several concern a service, the widest counts. */
export class Suspensions {
  readonly #text: string
  /** Suspension of the whole cluster. */
  readonly whole: ActiveSuspension | null
  readonly #services: ReadonlyMap<string, ActiveSuspension>

  constructor(rows: SuspensionRows) {
    this.#text = JSON.stringify(rows)
    const found = rows.flatMap(([id, doc]): ActiveSuspension[] => {
      const suspended = parseSuspensionRowId(id)
      return suspended === null ? [] : [{ ...readDocument(doc), suspended }]
    })
    const services = new Map<string, ActiveSuspension>()
    let whole: ActiveSuspension | null = null
    for (const one of found.sort((a, b) => widthOf(a.suspended) - widthOf(b.suspended))) {
      const { service } = one.suspended
      if (service === null) whole ??= one
      else if (!services.has(serviceKey(service))) services.set(serviceKey(service), one)
    }
    this.whole = whole
    this.#services = services
  }

  of(id: ServiceId): ActiveSuspension | null {
    return this.whole ?? (this.#services.size === 0 ? null : (this.#services.get(serviceKey(id)) ?? null))
  }

  isSame(rows: SuspensionRows): boolean {
    return this.#text === JSON.stringify(rows)
  }
}

/** In their stored form. */
export const keptSuspensions = (fact: unknown): Suspensions => new Suspensions(keptRows.parse(fact ?? []))

/** SU5: a document that this version cannot read suspends all the same. */
function readDocument(doc: string): Suspension {
  try {
    const read = suspensionSchema.safeParse(JSON.parse(doc))
    if (read.success) return read.data
  } catch {}
  return { by: servicePart('the_server'), why: servicePart('no_readable_suspension'), sinceMs: 0 }
}
