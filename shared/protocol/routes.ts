// Paths and limits of the agent API. Each limit has a test at its edge.
export const AGENT_API = '/agent/v1'
export const ROUTES = {
  join: `${AGENT_API}/join`,
  session: `${AGENT_API}/session`,
  desired: `${AGENT_API}/desired`,
  buckets: `${AGENT_API}/desired/buckets`,
  status: `${AGENT_API}/status`,
} as const

/** Largest id and document of a row, in UTF-8 bytes. The document's bound is above what an API server takes (1.5 MiB of
 *  etcd). */
export const ROW_ID_BYTES_MAX = 1_024
export const ROW_DOC_BYTES_MAX = 3 * 1_024 * 1_024
/** Largest page, uncompressed: an agent stops reading past it. */
export const PAGE_BYTES_MAX = 256 * 1_024 * 1_024
/** Most rows of a page: what an agent merges in one transaction. */
export const PAGE_ROWS_MAX = 250_000
/** Largest part of a page on the wire (PL3): what a bad link has to bring over in one go. */
export const PART_BYTES_MAX = 256 * 1_024
/** Bodies that the server takes from an agent, inflated. */
export const JOIN_BODY_BYTES_MAX = 64 * 1_024
/** The limit of a session request. An agent that comes back sends only a nonce and a signature. */
export const SESSION_BODY_BYTES_MAX = 2 * 1_024
/** A head proof and 256 sums. */
export const REFETCH_BODY_BYTES_MAX = 16 * 1_024
export const STATUS_BODY_BYTES_MAX = 4 * 1_024 * 1_024
export const STATUS_ROWS_MAX = 5_000
export const STATUS_DOC_BYTES_MAX = 64 * 1_024
/** Seconds that a poll may wait; more is cut to it. */
export const WAIT_SECONDS_MAX = 900
export const WAIT_SECONDS_DEFAULT = 55
/** Answers and bodies below this stay uncompressed: zstd would not pay. */
export const COMPRESS_BYTES_MIN = 512
