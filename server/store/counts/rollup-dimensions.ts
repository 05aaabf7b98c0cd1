// The counted properties: dimension, key, value.
export const ROLLUP_DIMENSIONS = [
  'placement',
  'service',
  'label',
  'object',
  'service_object',
  'image',
  'drift_hour',
  'version',
  'cluster',
] as const
export type RollupDimension = (typeof ROLLUP_DIMENSIONS)[number]

/** One thing that is counted once under a key. */
export type RollupFact = readonly [dimension: RollupDimension, key: string, value: string]
