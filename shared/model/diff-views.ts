// A comparison of proposed content of a service with its current content, before anything is committed or written.
import { z } from 'zod'
import { problemSchema } from '../runtime/error.ts'
import { nameSchema } from '../runtime/ids.ts'

const count = z.number().int()

/** Body of a request with uploaded files. */
export const DIFF_BODY_BYTES_MAX = 24 * 1024 * 1024
/** Base64 text of one archive. */
export const ARCHIVE_TEXT_MAX = 20 * 1024 * 1024

const contentSchema = z.union([
  z
    .strictObject({
      archive: z
        .string()
        .max(ARCHIVE_TEXT_MAX)
        .regex(/^[A-Za-z0-9+/]+={0,2}$/, 'expected base64'),
    })
    .describe('Files of the whole repository: base64 of a tar archive, compressed with gzip or not.'),
  z.strictObject({ ref: z.string().min(1).max(255) }).describe('Branch, tag, refs/… or full commit id of the Git repository.'),
])

export const diffRequestSchema = z.strictObject({
  cluster: nameSchema.optional().describe('Only for this cluster. Default: every cluster that the service has or would have.'),
  selector: z.string().max(2_000).optional().describe('Only for clusters with these labels, such as env=prod,region in (eu,us).'),
  content: z.record(nameSchema, contentSchema).optional().describe('Proposed content, by the name of the repository.'),
  service: z.unknown().optional().describe('Proposed Service resource. Default: the service as it is.'),
})
export type DiffRequest = z.infer<typeof diffRequestSchema>

const clusters = z.object({ count, first: z.array(z.string()) })
const document = z.record(z.string(), z.unknown())

/** `before` and `after` are null in an object that is created or deleted, or where the answer is too large. */
const diffObjectSchema = z.object({
  action: z.enum(['create', 'change', 'delete']),
  name: z.string(),
  before: document.nullable(),
  after: document.nullable(),
})
export type DiffObject = z.infer<typeof diffObjectSchema>

export const diffViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  /** Clusters that were compared, and those in which something differs. */
  clusters: z.object({ compared: count, differing: count, failing: count }),
  /** Names of objects, each counted once however many clusters have it. */
  objects: z.object({ create: count, change: count, delete: count }),
  /** Clusters with the same difference, most clusters first. */
  groups: z.array(
    z.object({
      clusters,
      /** Whether these clusters keep, gain or lose the service. */
      placement: z.enum(['kept', 'added', 'removed']),
      objects: z.array(diffObjectSchema),
    }),
  ),
  /** Clusters for which the proposed content does not render. */
  failing: z.array(z.object({ clusters, error: z.string(), problems: z.array(problemSchema) })),
  warnings: z.array(problemSchema),
  /** Limits of the comparison, in sentences. */
  notes: z.array(z.string()),
})
export type DiffView = z.infer<typeof diffViewSchema>
