// Ways to break the sync on purpose, each a change of source text that a real mistake could make, with the histories in
// which it must show. The text is replaced while it is loaded (mutate.ts), nothing on the disk changes.
import type { NetworkFault } from './fault-kinds.ts'
import type { SimOptions } from './simulate.ts'

export interface Mutation {
  file: string
  from: string
  to: string
  /** Within so many histories it must have been found. */
  histories: number
  /** Of a rare one: near the first history that meets it. Absent means 1. */
  firstSeed?: number
  options: Omit<SimOptions, 'seed' | 'dir'>
}

const BUSY = { publish: 30, wait: 10, operate: 5, weather: 6, 'start agent': 8, 'start server': 8 }
const WORST: readonly NetworkFault[] = ['forged_page', 'drop_answer']

export const MUTATIONS = {
  'the cursor is written outside the transaction of its rows': {
    file: 'agent/replica/replica-file.ts',
    from: '      return { changedIds: writeTransaction(this.db, () => this.#mergeInTransaction(rows, head, wraps)) }',
    to: '      this.#hold(head)\n      return { changedIds: writeTransaction(this.db, () => this.#mergeInTransaction(rows, head, wraps)) }',
    histories: 20,
    options: { weights: BUSY, network: WORST },
  },
  'rows are not compared with the hash of the checkpoint': {
    file: 'agent/replica/replica-file.ts',
    from: '    if (hashText(sum) !== hello.to.hash) throw new Differs(',
    to: "    if (hashText(sum) === 'never') throw new Differs(",
    histories: 40,
    options: { weights: BUSY, network: WORST },
  },
  'a service whose row is missing is pruned': {
    file: 'agent/replica/revision-read.ts',
    from: "  if (doc === null) return { kind: 'absent' }",
    to: `  if (doc === null) {
    const removal = { policy: 'prune', by: '', atMs: 1, why: '' } as const
    const row = parseServiceRow(JSON.stringify({ commit: 'none', digest: '', count: 0, sync: {}, removal }))
    if (row !== null) return { kind: 'complete', revision: { ...service, row, objects: new Map() } }
  }
  if (doc === null) return { kind: 'absent' }`,
    histories: 20,
    options: { weights: { ...BUSY, vanish: 8 }, network: WORST },
  },
  'a status row counts whatever its rev': {
    file: 'server/store/status/status-rows.ts',
    from: 'held === undefined || row.rev > held.rev',
    to: 'true',
    histories: 60,
    firstSeed: 9,
    options: {
      weights: { ...BUSY, drift: 20, publish: 15, kube: 4 },
      network: ['reorder', 'delay_request', 'reorder'],
    },
  },
  'a page is applied from the first of its parts': {
    file: 'agent/sync/pull.ts',
    from: "      if (staged.have + 1 < staged.transfer.parts) return { kind: 'part_staged' }",
    to: '',
    histories: 20,
    options: { weights: { ...BUSY, 'publish large': 6 }, network: ['cut_answer'] },
  },
  'kept rows stay in the old file and the page is merged into it': {
    file: 'agent/replica/new-file.ts',
    from: '  const file = openReplicaFile(path, { ...options, building: true })',
    to: `  if (old !== null) {
    old.file.db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    copyFileSync(old.path, path)
  }
  const file = openReplicaFile(path, { ...options, building: true })`,
    histories: 40,
    options: { weights: { ...BUSY, 'lost shard': 6, 'rotate key': 1 }, network: WORST },
  },
  'a removal takes claims along that nobody confirmed': {
    file: 'agent/reconcile/plan/prune/deletion.ts',
    from: "holding.kind === 'nothing' || isOpen(candidate)",
    to: "holding.kind === 'nothing' || cause === 'removal' || isOpen(candidate)",
    histories: 20,
    options: { weights: { ...BUSY, publish: 60 } },
  },
  'a copy of a disk takes the claim of its origin for its own': {
    file: 'agent/reconcile/claim/claim-keeper.ts',
    from: ' && written.place === place',
    to: '',
    histories: 40,
    firstSeed: 505,
    options: { weights: { ...BUSY, 'two agents': 8, 'stop clone': 4 } },
  },
} as const satisfies Record<string, Mutation>

export type MutationName = keyof typeof MUTATIONS
export const MUTATION_NAMES = Object.keys(MUTATIONS) as MutationName[]

/** Further changes without which the first is not what it says. */
export const ALSO: Partial<Record<MutationName, { from: string; to: string }>> = {
  'kept rows stay in the old file and the page is merged into it': {
    from: "import { existsSync, rmSync } from 'node:fs'",
    to: "import { copyFileSync, existsSync, rmSync } from 'node:fs'",
  },
}
