// PU3: rows of a push → those that are taken and those that are refused, each with a code. Pure. A row of a kind this
// server does not know, of the wrong form or with a rev of another incarnation is refused alone.

import { INTEGER_BOUND } from '../../shared/crdt/position.ts'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { IMAGES_MAX, isStatusKind, STATUS_SCHEMAS, type StatusKind, SYNC_WORDS } from '../../shared/model/status.ts'
import { STATUS_DOC_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { type InventoryRange, inRange, REV_INCARNATION, type RejectCode, type StatusRow } from '../../shared/protocol/status.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { StatusWrite } from '../fleet/records.ts'
import { isStorable, mayBeUnstorable, storableDoc } from '../store/status/storable-text.ts'

export interface SortedRows {
  taken: StatusWrite[]
  reject: Array<{ key: string; code: RejectCode }>
}

export function sortStatusRows(rows: readonly unknown[], incarnation: number): SortedRows {
  const sorted: SortedRows = { taken: [], reject: [] }
  for (const row of rows) {
    const judged = judge(row, incarnation)
    if ('code' in judged) sorted.reject.push(judged)
    else sorted.taken.push(judged)
  }
  return sorted
}

/** PU4: what a push says that it is the whole of. One whose rows do not lie in its range says two things at once, and
 *  neither is believed. */
export function inventoryOf(complete: boolean | InventoryRange | undefined, rows: readonly StatusWrite[]): boolean | InventoryRange {
  if (complete === undefined || typeof complete === 'boolean') return complete ?? false
  const { after, upTo } = complete
  if (after !== null && upTo !== null && after >= upTo) throw new AppError('bad_request', { detail: 'the range of the inventory is empty' })
  const outside = rows.filter(({ kind, key }) => !inRange(`${kind}/${key}`, complete)).length
  if (outside > 0) throw new AppError('bad_request', { detail: `${outside} rows lie outside the range of the inventory` })
  return complete
}

function judge(value: unknown, incarnation: number): StatusWrite | { key: string; code: RejectCode } {
  if (!isRow(value)) return { key: keyOf(value), code: 'bad_document' }
  const { kind, key, rev, doc } = value
  if (!isStatusKind(kind)) return { key, code: 'unknown_kind' }
  if (Math.floor(rev / REV_INCARNATION) !== incarnation) return { key, code: 'bad_rev' }
  if (!isKey(key) || !KEY_FORMS[kind].test(key)) return { key, code: 'bad_document' }
  if (doc === null) return { kind, key, rev, doc: null }
  if (kind === 'object' && isPlainObjectStatus(doc)) return { kind, key, rev, doc }
  const json = JSON.stringify(doc) ?? ''
  if (Buffer.byteLength(json) > STATUS_DOC_BYTES_MAX) return { key, code: 'too_large' }
  const parsed = STATUS_SCHEMAS[kind].safeParse(mayBeUnstorable(json) ? storableDoc(doc) : doc)
  return parsed.success ? { kind, key, rev, doc: withImages(parsed.data) } : { key, code: 'bad_document' }
}

/** As `statusRowSchema`, without a copy: a push has thousands of rows. */
function isRow(value: unknown): value is StatusRow {
  if (value === null || typeof value !== 'object') return false
  const { kind, key, rev } = value as Record<string, unknown>
  return (
    isText(kind, 1, 32) && isText(key, 1, 1_024) && Number.isSafeInteger(rev) && (rev as number) > 0 && (rev as number) <= INTEGER_BOUND
  )
}

const isText = (value: unknown, min: number, max: number): value is string =>
  typeof value === 'string' && value.length >= min && value.length <= max
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

/**
 * Whether the schema and the checks after it would take it as it is. Most rows of a push are of this form, and the
 * schema takes five times as long. Its texts are too short for STATUS_DOC_BYTES_MAX, however they are written. The
 * schema decides about every other document, such as one of a newer agent.
 */
function isPlainObjectStatus(doc: unknown): boolean {
  if (doc === null || typeof doc !== 'object') return false
  const { sync, health, reason, message, sinceMs, images } = doc as Record<string, unknown>
  if (!syncWords.has(sync) || !healthWords.has(health) || !isCount(sinceMs)) return false
  if (!isText(reason, 0, 128) || !isText(message, 0, 4_096) || !isStorable(reason) || !isStorable(message)) return false
  const areImages =
    Array.isArray(images) && images.length <= IMAGES_MAX && images.every((image) => typeof image === 'string' && isImage(image))
  return (images === undefined || areImages) && Object.keys(doc).length === (images === undefined ? 5 : 6)
}

const syncWords: ReadonlySet<unknown> = new Set(SYNC_WORDS)
const healthWords: ReadonlySet<unknown> = new Set(HEALTH_WORDS)

/** Each image is a key that everybody's counts are kept under. */
const IMAGE_CHARS_SHOWN = 255
/** Host, path, tag, digest, as OCI has them but for what may stand beside what: a stricter one takes several times as
 *  long to say no. */
const IMAGE = new RegExp(
  [
    '^(?:(?:[a-zA-Z0-9][-.a-zA-Z0-9]*|\\[[0-9a-fA-F:.]+\\])(?::[0-9]{1,5})?/)?',
    '[a-z0-9][-._a-z0-9]*(?:/[a-z0-9][-._a-z0-9]*)*',
    '(?::[a-zA-Z0-9_][-.a-zA-Z0-9_]{0,127})?(?:@[a-z0-9][-+._a-z0-9]*:[-=_a-zA-Z0-9]+)?$',
  ].join(''),
)
const isImage = (image: string): boolean => image.length <= IMAGE_CHARS_SHOWN && IMAGE.test(image)

/** PU10: what no node could pull is no image of anything. */
function withImages<T extends object>(doc: T): T {
  if (!('images' in doc) || !Array.isArray(doc.images) || doc.images.every(isImage)) return doc
  return { ...doc, images: doc.images.filter(isImage) }
}

/** No name in Kubernetes has any of these, and a database may not take them. */
const CONTROL_CHARACTERS = /\p{Cc}/u
/** An index of PostgreSQL takes no key of three times as many. */
const KEY_BYTES_MAX = 1_024
const isKey = (key: string): boolean => !CONTROL_CHARACTERS.test(key) && key.isWellFormed() && Buffer.byteLength(key) <= KEY_BYTES_MAX

/** Two keys never mean the same: rows are counted, and their words remembered, by the service that the key names. */
const SERVICE = '[a-z0-9][-a-z0-9]{0,62}/[a-z0-9][-a-z0-9]{0,62}'
const KEY_FORMS: Readonly<Record<StatusKind, RegExp>> = {
  cluster: /^cluster$/,
  facts: /^cluster$/,
  site: /^cluster$/,
  agent: /^metrics$/,
  service: new RegExp(`^${SERVICE}$`),
  object: new RegExp(`^${SERVICE}/.`),
  drift: new RegExp(`^${SERVICE}/.`),
  event: /^/,
}

function keyOf(value: unknown): string {
  const key = value !== null && typeof value === 'object' && 'key' in value ? value.key : ''
  return typeof key === 'string' ? key.slice(0, 1_024) : ''
}
