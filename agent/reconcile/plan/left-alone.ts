// Objects that an option keeps unmanaged: their report, and their effect on others (none).
import type { ObjectStatus } from '../../../shared/model/status.ts'
import { objectStatus } from '../../messages/object-messages.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import type { Problem } from '../snapshot/situation.ts'
import type { Wanted } from '../snapshot/wanted.ts'

type Standing = Pick<ObjectStatus, 'sync' | 'health' | 'reason' | 'message'>

const IGNORED: Standing = { sync: 'Synced', health: 'Healthy', ...objectStatus('Ignored') }
const LEFT_ALONE: Standing = { sync: 'Synced', health: 'Healthy', ...objectStatus('ExistingKept') }

/** AO6: the report of an object that is not managed. Null means that it is. */
export function leftAlone(wanted: Wanted | undefined, entry: InventoryEntry | undefined, problem: Problem | undefined): Standing | null {
  const touch = wanted?.options?.touch
  if (touch === 'never') return IGNORED
  return touch === 'ifAbsent' && problem === undefined && (entry?.appliedDoc ?? null) === null ? LEFT_ALONE : null
}

/** AO6: nothing of the revision waits for it. */
export const isApart = ({ options, onlyIfAbsent }: Wanted, appliedDoc: string | null): boolean =>
  options?.touch === 'never' || (appliedDoc === null && (onlyIfAbsent || options?.touch === 'ifAbsent'))

/** AO6: every applied state is the wanted one. */
export const isKeptAsMade = ({ options }: Wanted): boolean => options?.touch === 'ifAbsent'
