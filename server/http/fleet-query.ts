// The query of a fleet address: its parameters by name, all wrong ones reported at once with the nearest valid name,
// and the token with which a list continues. A token belongs to its filter and order; its content may change.
import { z } from 'zod'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { explainIssues } from '../../shared/model/explain.ts'
import { type LabelSelector, parseSelectorText } from '../../shared/model/labels.ts'
import { SYNC_WORDS } from '../../shared/model/status.ts'
import { CLUSTER_SORTS, LIVENESS_WORDS, OBJECT_SORTS, PLACEMENT_SORTS } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import { imageTest } from '../fleet/image-filter.ts'
import { WORDS_MAX } from '../store/queries/fleet-filter.ts'
import type { Position } from '../store/queries/fleet-queries.ts'
import { continueQuery, limitQuery } from './query.ts'

const text = (max: number) => z.string().min(1).max(max).optional()
const listOf = <const W extends readonly [string, ...string[]]>(words: W) => z.array(z.enum(words)).min(1).optional()
/** Joined by commas, or one after the other. */
const LISTS = ['sync', 'health', 'liveness']

const SELECTOR_EXPECTED = 'expected key=value, key!=value, key in (a,b), key notin (a,b), key or !key, joined by commas'
const labelSelector = z
  .string()
  .max(4_096)
  .optional()
  .transform((value, context): LabelSelector | undefined => {
    if (value === undefined || value === '') return undefined
    const selector = parseSelectorText(value)
    if (selector !== null) return selector
    context.addIssue({ code: 'custom', message: SELECTOR_EXPECTED })
    return z.NEVER
  })
export const searchQuery = z
  .string()
  .max(512)
  .optional()
  .transform((value, context): string[] | undefined => {
    const words = [...new Set((value ?? '').toLowerCase().split(/\s+/).filter(Boolean))]
    if (words.length > WORDS_MAX) context.addIssue({ code: 'custom', message: `at most ${WORDS_MAX} words` })
    return words.length === 0 ? undefined : words
  })

/** A part of a reference, or a name with the version to compare with. */
const imageFilter = text(512).refine(
  (value) => value === undefined || imageTest(value) !== null,
  'expected a part of an image reference, or NAME<VERSION with <, <=, > or >=, such as web<1.4',
)

const paged = { limit: limitQuery, continue: continueQuery }
const ofClusters = { cluster: nameSchema.optional(), labelSelector, project: nameSchema.optional(), service: nameSchema.optional() }
const words = { sync: listOf(SYNC_WORDS), health: listOf(HEALTH_WORDS) }

export const objectParameters = z.strictObject({
  ...ofClusters,
  kind: text(253),
  /** '' is the core group. */
  group: z.string().max(253).optional(),
  namespace: z.string().max(253).optional(),
  name: text(512),
  ...words,
  reason: text(128),
  image: imageFilter,
  drift: z.literal('open').optional(),
  search: searchQuery,
  sort: z.enum(OBJECT_SORTS).default('cluster'),
  ...paged,
})
export const placementParameters = z.strictObject({
  ...ofClusters,
  ...words,
  /** Beginning of a commit or a digest. */
  revision: z
    .string()
    .regex(/^[0-9a-f]{4,64}$/, 'expected at least 4 hex digits of a commit or a digest')
    .optional(),
  search: searchQuery,
  sort: z.enum(PLACEMENT_SORTS).default('cluster'),
  ...paged,
})
export const clusterParameters = z.strictObject({
  labelSelector,
  liveness: listOf(LIVENESS_WORDS),
  /** The version of the agent or of Kubernetes, or the beginning of one. */
  version: text(64),
  search: searchQuery,
  sort: z.enum(CLUSTER_SORTS).default('name'),
  ...paged,
})

/** Reads the parameters of an address that `schema` knows. Throws with all problems. */
export function readParameters<T extends z.ZodType>(schema: T, request: Request): z.infer<T> {
  const input: Record<string, string | string[]> = {}
  // A parameter that comes twice is a list of both.
  for (const [name, value] of new URL(request.url).searchParams)
    input[name] = Object.hasOwn(input, name) ? `${input[name]},${value}` : value
  for (const name of LISTS) if (typeof input[name] === 'string') input[name] = input[name].split(',').map((word) => word.trim())
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const problems = explainIssues(schema, input, parsed.error).map(({ path, message }) => ({
    path,
    message: message.replace(/^unknown field/, 'unknown parameter'),
  }))
  throw new AppError('bad_request', { detail: 'invalid parameters', problems })
}

const position = z.array(z.union([z.string().max(1_024), z.int(), z.null()])).max(5)
const token = z.tuple([z.string(), position])

/** Identifies a query without its page. */
const queryMark = (query: object): string => sha256Hex(canonicalJson(query)).slice(0, 16)

export const writeToken = (query: object, at: Position | null): string | null =>
  at === null ? null : Buffer.from(JSON.stringify([queryMark(query), at])).toString('base64url')

/** Orders that begin with a number: a time, or the place of a word. */
const BY_NUMBER: readonly string[] = ['newest', 'oldest', 'health', 'seen', 'clusters']

/** `sort`: of the query. A token made by hand gets an error of its own, whatever a database would say to it. */
export function readToken(query: object, sort: string, value: string | undefined): Position | undefined {
  if (value === undefined || value === '') return undefined
  const read = token.safeParse(parseJson(Buffer.from(value, 'base64url').toString()))
  const isOfSort = (at: Position) => (typeof at[0] === 'number') === BY_NUMBER.includes(sort)
  if (read.success && read.data[0] === queryMark(query) && isOfSort(read.data[1])) return read.data[1]
  throw new AppError('bad_request', {
    detail: read.success ? 'continue belongs to another query' : 'continue is not a token of a list',
    remedy: 'Request the first page again, without it; filters and order stay the same from page to page.',
    problems: [{ path: 'continue', message: 'expected the value from the previous page, with the same filters and sort' }],
  })
}

function parseJson(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}
