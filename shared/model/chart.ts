// The fleet as a chart: one small row for each cluster, so that thousands of them come in one answer. Names, words and
// times; details are read for one cluster at a time.
import { z } from 'zod'
import { HEALTH_WORDS } from '../kube/health-object.ts'
import { SYNC_WORDS } from './status.ts'
import { livenessSchema } from './views.ts'

/** In the place of a label key: the server chooses one. */
export const ANY_LABEL = '*'
/** Clusters of one answer. */
export const CHART_LIMIT = 10_000
/** Clusters that one request may name. */
export const CHART_IDS_MAX = 500

const count = z.number().int().nonnegative()

export const chartClusterSchema = z.object({
  /** As the change feed names it. */
  id: z.string(),
  name: z.string(),
  /** Value of the label that was asked for. Null means that the cluster does not have it. */
  group: z.string().nullable(),
  liveness: livenessSchema,
  /** Worst words of its services. Null means that no service is placed there. */
  sync: z.enum(SYNC_WORDS).catch('Unknown').nullable(),
  health: z.enum(HEALTH_WORDS).catch('Unknown').nullable(),
  services: count,
  /** Services that are not Synced and Healthy. */
  bad: count,
  /** Objects that drifted and were not put back. */
  drifts: count,
  /** On the server, by a person: all services of the cluster. */
  suspended: z.boolean(),
  /** A person at the site holds the cluster. */
  held: z.boolean(),
})
export type ChartCluster = z.infer<typeof chartClusterSchema>

/** The same rows by field, each with one value of each cluster. A browser reads them in a third of the time. */
export const chartColumnsSchema = z.object({
  id: z.array(z.string()),
  name: z.array(z.string()),
  group: z.array(z.string().nullable()),
  word: z.array(livenessSchema.shape.word),
  lastSeenMs: z.array(livenessSchema.shape.lastSeenMs),
  sync: z.array(chartClusterSchema.shape.sync),
  health: z.array(chartClusterSchema.shape.health),
  services: z.array(count),
  bad: z.array(count),
  drifts: z.array(count),
  suspended: z.array(z.boolean()),
  held: z.array(z.boolean()),
})
export type ChartColumns = z.infer<typeof chartColumnsSchema>

export const chartViewSchema = z.object({
  /** Position in the feed of changes: follow it from here on. */
  position: z.number().int(),
  by: z.string().nullable(),
  /** Label keys of the fleet by the number of clusters that have them, most first. */
  labels: z.array(z.object({ key: z.string(), clusters: count, values: count })),
  /** Empty if columns were asked for. */
  items: z.array(chartClusterSchema),
  columns: chartColumnsSchema.optional(),
  continue: z.string().nullable(),
})
export type ChartView = z.infer<typeof chartViewSchema>
