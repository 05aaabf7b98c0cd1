// One write transaction of statuses: the store's transaction, the numbers of names and states in it, and what its rows
// add to the counts.

import type { ReportedService } from '../../../shared/model/placement-words.ts'
import { clusterStatusSchema, type ServiceStatus } from '../../../shared/model/status.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { ClusterId } from '../../../shared/runtime/ids.ts'
import { parseServiceKey } from '../../../shared/runtime/ids.ts'
import { createPace, type Pace } from '../../../shared/runtime/pace.ts'
import { type PlacementReport, placementsReported } from '../counts/placement-counts.ts'
import { driftFacts, objectFacts, versionFacts } from '../counts/rollup-facts.ts'
import { CHANGE_KEYS_MAX } from '../feed/change-log.ts'
import type { StoreDb, Tx } from '../store-db.ts'
import type { Dictionary, DictionaryWork } from './dictionary.ts'
import type { EventBounds } from './event-bounds.ts'
import type { RowKind } from './status-columns.ts'

/**
 * Rows in one piece of work, after which other work of this thread may run. The transaction continues: it has the store
 * to itself, and reads have connections of their own.
 */
export const ROWS_A_TURN = 256

/** The counted part of a row. */
export interface CountedState {
  state_id: number | null
  since_ms: number | null
  /** Read for kind cluster only. */
  doc: string | null
}

export class StatusTx {
  readonly tx: Tx
  readonly dictionary: DictionaryWork
  readonly eventBounds: EventBounds
  /** After each piece. */
  readonly pace: Pace
  /** By state, then service. */
  readonly #objects = new Map<number, Map<string, number>>()
  #drifts: Array<{ stateId: number; sinceMs: number; n: number }> = []

  constructor(tx: Tx, dictionary: DictionaryWork, eventBounds: EventBounds, pace: Pace) {
    this.tx = tx
    this.dictionary = dictionary
    this.eventBounds = eventBounds
    this.pace = pace
  }

  /** `n`: 1 for a row that is there now, -1 for one that was. */
  count({ kind, key }: { kind: RowKind; key: string }, { state_id, since_ms, doc }: CountedState, n: 1 | -1): void {
    if (kind === 'cluster') {
      const said = doc === null ? null : clusterStatusSchema.safeParse(JSON.parse(doc))
      if (said?.success) this.tx.rollups.add(versionFacts(said.data), n)
    }
    if (state_id === null) return
    this.dictionary.countState(state_id, n)
    if (kind === 'drift') this.#drifts.push({ stateId: state_id, sinceMs: since_ms ?? 0, n })
    if (kind !== 'object') return
    // Most objects of a service say the same: their facts are made once.
    const ofState = this.#objects.get(state_id) ?? new Map<string, number>()
    if (ofState.size === 0) this.#objects.set(state_id, ofState)
    const service = serviceOf(key)
    ofState.set(service, (ofState.get(service) ?? 0) + n)
  }

  /** Once, at the end. */
  async write(): Promise<void> {
    const states = await this.dictionary.statesOf(new Set([...this.#objects.keys(), ...this.#drifts.map(({ stateId }) => stateId)]))
    for (const [stateId, services] of this.#objects) {
      const state = states.get(stateId)
      if (state !== undefined)
        for (const [service, n] of services) if (n !== 0) this.tx.rollups.add(objectFacts(parseServiceKey(service), state), n)
    }
    for (const { stateId, sinceMs, n } of this.#drifts) {
      const state = states.get(stateId)
      if (state !== undefined) this.tx.rollups.add(driftFacts(sinceMs, state), n)
    }
    await this.dictionary.write(this.pace)
  }
}

/** The parts that write statuses: the store, its names and states, and the pace. */
export interface StatusWriter {
  db: StoreDb
  dictionary: Dictionary
  eventBounds: EventBounds
  clock: Clock
}

/** `db.write` for what touches statuses. */
export async function writeStatuses<T>(
  { db, dictionary, eventBounds, clock }: StatusWriter,
  work: (status: StatusTx) => Promise<T>,
): Promise<T> {
  const { result, names } = await db.write(
    async (tx) => {
      eventBounds.begin()
      const status = new StatusTx(tx, await dictionary.open(tx), eventBounds, createPace(clock))
      const result = await work(status)
      await status.write()
      return { result, names: status.dictionary }
    },
    { alone: true },
  )
  dictionary.keep(names)
  eventBounds.keep()
  return result
}

/** The new state of a row. With `doc: null` it is gone. */
export interface Report {
  clusterId: ClusterId
  kind: string
  key: string
  doc: unknown
}

/** The words of placements follow what their agents say. Returns which of them there are. */
export async function noteReports({ tx }: StatusTx, reports: readonly Report[]): Promise<ReadonlySet<string>> {
  const ofServices = reports.flatMap(({ clusterId, kind, key, doc }): PlacementReport[] =>
    kind === 'service' ? [{ clusterId, ...parseServiceKey(key), status: reportedService(doc) }] : [],
  )
  return ofServices.length > 0 ? placementsReported(tx, ofServices) : new Set()
}

/** Reports were checked on arrival; those of a test may not have been. */
function reportedService(doc: unknown): ReportedService | null {
  const said = doc as Partial<ServiceStatus> | null
  return said?.sync === undefined || said.health === undefined ? null : (said as ServiceStatus)
}

export function noteChange({ tx }: StatusTx, clusterId: ClusterId, rows: ReadonlyArray<{ kind: string; key: string }>): void {
  if (rows.length === 0) return
  const keys = rows.length > CHANGE_KEYS_MAX ? null : rows.map(({ kind, key }) => `${kind}/${key}`)
  tx.changes.add({ topic: 'status', cluster: clusterId, keys })
}

/** `<project>/<service>` of the key of a service or of what belongs to one. */
export function serviceOf(key: string): string {
  const second = key.indexOf('/', key.indexOf('/') + 1)
  return second < 0 ? key : key.slice(0, second)
}
