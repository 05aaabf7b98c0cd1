// The inputs of a health rule, and the words of its answer.
import type { K8sObject } from './object.ts'

export const HEALTH_WORDS = ['Healthy', 'Progressing', 'Degraded', 'Suspended', 'Missing', 'Unknown'] as const
export type HealthWord = (typeof HEALTH_WORDS)[number]

export interface Health {
  word: HealthWord
  /** CamelCase: what tools match on. */
  reason: string
  /** For people, in the controller's own words where it has any. */
  message: string
  /** It becomes another health at that time, without a change of the object (HE17). */
  settles?: { atMs: number; health: Health }
}

/** One value for all: four thousand objects hold it. */
export const HEALTHY: Health = { word: 'Healthy', reason: 'Healthy', message: '' }
/** Healthy, and something about it that a person may want to know. */
export const healthyWith = (reason: string, message: string): Health => ({ word: 'Healthy', reason, message })
/** Controllers often leave the message out. */
const spoken = (reason: string, message: string): string => message || `its controller reports only ${reason}`
export const progressing = (reason: string, message: string): Health => ({ word: 'Progressing', reason, message: spoken(reason, message) })
export const degraded = (reason: string, message: string): Health => ({ word: 'Degraded', reason, message: spoken(reason, message) })
export const suspended = (message: string): Health => ({ word: 'Suspended', reason: 'Suspended', message })

export type Fields = Record<string, unknown>
export interface Condition {
  type: string
  status: string
  reason: string
  message: string
  /** Unparsed; the rules that need it parse it. */
  changedAt: string
  /** Null if it does not say for which generation it holds. */
  generation: number | null
  /** Error, Warning, Info; '' where the API has none (Cluster API, Azure and others have). */
  severity: string
}
export interface Reading {
  kind: string
  spec: Fields
  status: Fields
  annotations: Fields
  labels: Fields
  generation: number | undefined
  conditions: readonly Condition[]
  condition(type: string): Condition | undefined
  nowMs: number
  /** `sync.waitForAddress`. */
  waitForAddress: boolean
  /** Its kind has a status subresource; null if the API server was not asked. */
  hasStatus: boolean | null
  /** Another object of its kind has a status in this cluster. */
  siblingsReport: boolean
  /** When it was created. */
  createdMs: number
  /** When its status was last written, in whole seconds. Null means that managedFields does not say. */
  statusMs: number | null
  /** When anybody wrote anything of it last, in whole seconds. Null means that managedFields does not say. */
  changedMs: number | null
}
export type Rule = (reading: Reading) => Health

/** Facts about an object from outside of it. */
export interface ReadingContext {
  /** `sync.waitForAddress`. */
  waitForAddress?: boolean
  /** From discovery: its kind has a status subresource. Absent means not known. */
  hasStatus?: boolean | undefined
  /** Another object of its kind has a status in this cluster: its controller reports. */
  siblingsReport?: boolean | undefined
}

export function readObject(
  object: K8sObject,
  nowMs: number,
  { waitForAddress = false, hasStatus, siblingsReport = false }: ReadingContext = {},
): Reading {
  const status = fields(object['status'])
  // Read when a rule asks: most objects have none, and each event of each object comes through here.
  let parsed: readonly Condition[] | null = null
  const conditions = () => {
    parsed ??= conditionsIn(status['conditions'])
    return parsed
  }
  return {
    kind: object.kind,
    spec: fields(object['spec']),
    status,
    annotations: fields(object.metadata.annotations),
    labels: fields(object.metadata.labels),
    generation: object.metadata.generation,
    get conditions() {
      return conditions()
    },
    condition: (type) => conditions().find((entry) => entry.type === type),
    nowMs,
    waitForAddress,
    hasStatus: hasStatus ?? null,
    siblingsReport,
    get createdMs() {
      const createdMs = Date.parse(text(object.metadata['creationTimestamp']))
      return Number.isNaN(createdMs) ? nowMs : createdMs
    },
    get statusMs() {
      return newestOf((object.metadata.managedFields ?? []).filter(({ subresource }) => subresource === 'status'))
    },
    get changedMs() {
      return newestOf(object.metadata.managedFields ?? [])
    },
  }
}

function newestOf(entries: ReadonlyArray<{ time?: unknown }>): number | null {
  const times = entries.map(({ time }) => Date.parse(text(time))).filter((ms) => !Number.isNaN(ms))
  return times.length === 0 ? null : Math.max(...times)
}

export const conditionsIn = (value: unknown): Condition[] =>
  list(value).map((entry) => ({
    type: text(entry['type']),
    status: statusWord(entry['status']),
    reason: text(entry['reason']),
    message: text(entry['message']),
    severity: text(entry['severity']),
    changedAt: text(entry['lastTransitionTime']),
    generation: typeof entry['observedGeneration'] === 'number' ? entry['observedGeneration'] : null,
  }))

/** The conventions ask for `True`, `False` or `Unknown`; some controllers write a boolean, or small letters. */
function statusWord(value: unknown): string {
  const word = typeof value === 'boolean' ? String(value) : text(value)
  return STATUS_WORDS[word.toLowerCase()] ?? word
}
const STATUS_WORDS: Readonly<Record<string, string>> = { true: 'True', false: 'False', unknown: 'Unknown' }

export const fields = (value: unknown): Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : {}
export const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fields) : [])
export const text = (value: unknown): string => (typeof value === 'string' ? value : '')
export const count = (value: unknown, absent = 0): number => (typeof value === 'number' ? value : absent)
/** `at(status, 'ceph', 'health')` */
export const at = (from: Fields, ...path: string[]): unknown => path.reduce<unknown>((found, name) => fields(found)[name], from)

const TEXT_CHARS_MAX = 400
/** A controller's own text on one line, and not too much of it. */
export function oneLine(said: string): string {
  const line = said
    .slice(0, TEXT_CHARS_MAX + 1)
    .replaceAll(/[\r\n\t]/g, ' ')
    .trim()
  return line.length > TEXT_CHARS_MAX ? `${line.slice(0, TEXT_CHARS_MAX)}…` : line
}

/** HE17: so long an object that tells nothing yet counts as Progressing. */
export const STATUS_GRACE_MS = 120_000

const NOT_REPORTED = 'NotReported'
/** HE17: the controller reports for other objects of this kind, so that it will for this one, or ignores it. */
export const AWAITED: Health = progressing(
  NOT_REPORTED,
  'its controller has not reported a status, although it reports one for other objects of this kind; check that its class, namespace or labels select it',
)
/** True for a health that the first report about another object of the kind turns into `AWAITED`. */
export const isSilence = ({ word, reason, settles }: Health): boolean =>
  reason === NOT_REPORTED && (word === 'Healthy' || settles !== undefined)

export const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || value === 0 || (typeof value === 'object' && Object.keys(value).length === 0)
/** Only zero values: the status of a controller that has not read the object. */
export const isEmptyStatus = (status: Fields): boolean => {
  for (const key in status) if (!isEmpty(status[key])) return false
  return true
}

/**
 * HE17: its controller has reported nothing that the agent understands: Progressing for a grace time, then Healthy with
 * a note. A kind without a status subresource never reports anything.
 */
export function unreported(
  { hasStatus, siblingsReport, createdMs, nowMs }: Reading,
  reason = NOT_REPORTED,
  message = 'its controller has not reported a status',
): Health {
  if (hasStatus === false) return HEALTHY
  if (siblingsReport && reason === NOT_REPORTED) return AWAITED
  const waiting = progressing(reason, message)
  if (hasStatus === null) return waiting
  // An agent's clock may be years behind the API server's.
  const atMs = Math.min(createdMs, nowMs) + STATUS_GRACE_MS
  const health = healthyWith(
    reason,
    `${message}; counts as healthy after ${STATUS_GRACE_MS / 1_000} s; write a health rule for a better result`,
  )
  return nowMs >= atMs ? health : { ...waiting, settles: { atMs, health } }
}
