// Under which keys each kind of row is counted. Pure: a change adds the facts of the new row and takes those of the old
// one, a recomputation sums the facts of all rows.

import type { Labels } from '../../../shared/model/labels.ts'
import type { PlacementWords } from '../../../shared/model/placement-words.ts'
import type { ClusterStatus } from '../../../shared/model/status.ts'
import { serviceKey } from '../../../shared/runtime/ids.ts'
import { readNames, type Tables } from '../tables.ts'
import type { RollupFact } from './rollup-dimensions.ts'

export const HOUR_MS = 3_600_000
/** As text, hours are in the order of time for the next hundred thousand years. */
const HOUR_DIGITS = 9

/** `Synced/Healthy`. */
export const wordsText = ({ sync, health }: { sync: string; health: string }): string => `${sync}/${health}`
export const labelText = (key: string, value: string): string => `${key}=${value}`
export const hourText = (atMs: number): string => String(Math.floor(atMs / HOUR_MS)).padStart(HOUR_DIGITS, '0')
const labelTexts = (labels: Labels): string[] => Object.entries(labels).map(([key, value]) => labelText(key, value))

/** A row of kind object that was not removed. */
export function objectFacts(
  name: Pick<Tables['names'], 'project' | 'service'>,
  state: Pick<Tables['states'], 'sync' | 'health' | 'images'>,
): RollupFact[] {
  const words = wordsText(state)
  const images = state.images === null ? [] : readNames(state.images)
  return [['object', '', words], ['service_object', serviceKey(name), words], ...images.map((image): RollupFact => ['image', image, ''])]
}

/** A row of kind drift: its state has the action as `reason`, its `since_ms` is when it was detected. */
export const driftFacts = (sinceMs: number, state: Pick<Tables['states'], 'reason'>): RollupFact[] => [
  ['drift_hour', hourText(sinceMs), state.reason],
]

/** A row of kind cluster. */
export const versionFacts = (doc: Pick<ClusterStatus, 'agentVersion' | 'kubernetesVersion'>): RollupFact[] => [
  ['version', 'agent', doc.agentVersion],
  ['version', 'kubernetes', doc.kubernetesVersion],
]

/** A service in a cluster; `words` null: nothing of it is left there. */
export function placementFacts(placement: {
  project: string
  service: string
  labels: Labels
  words: PlacementWords | null
}): RollupFact[] {
  if (placement.words === null) return []
  const words = wordsText(placement.words)
  return [
    ['placement', '', words],
    ['service', serviceKey(placement), words],
    ...labelTexts(placement.labels).map((label): RollupFact => ['label', label, words]),
  ]
}

export const clusterFacts = (labels: Labels): RollupFact[] => [
  ['cluster', '', 'clusters'],
  ...labelTexts(labels).map((label): RollupFact => ['label', label, 'clusters']),
]
