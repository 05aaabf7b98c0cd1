// Health of a kind without a rule of its own, read from what controllers commonly write: conditions, nested conditions,
// words, yes-or-no fields, counters and error fields. Each answer names its field and the controller's own text.
// Bounded: the first entries of each list, one level below the status. The vocabulary is in health-words.ts.
import {
  type Condition,
  conditionsIn,
  degraded,
  type Fields,
  fields,
  HEALTHY,
  type Health,
  isEmpty,
  isEmptyStatus,
  list,
  oneLine,
  progressing,
  type Reading,
  suspended,
  text,
  unreported,
} from './health-object.ts'
import { camelCase, hasArrived, hasEnded, meaningOf, namesASchedule, type Sense, senseOf, senseOfState, wordsOf } from './health-words.ts'

const CONDITIONS_MAX = 64
const FIELDS_MAX = 64
const ENTRIES_MAX = 64

/** Null if this part of the status says nothing. */
type Finding = Health | null

/** HE12: a stop asked for, an empty status, conditions, then the worst of all that the status says. */
export function generalHealth(reading: Reading): Health {
  const { status, spec, kind } = reading
  const stopped = stopAskedFor(reading)
  if (stopped !== null) return stopped
  if (isEmptyStatus(status)) return unreported(reading)
  const conditions = byConditions(reading.conditions, reading.generation)
  if (conditions?.word === 'Degraded' || conditions?.word === 'Suspended') return conditions
  const words = byWords(status, kind, 'status')
  const main = mainWord(status, kind)
  if (reading.condition('Ready')?.status === 'True' && conditions?.word === 'Healthy') {
    // A Ready that is True outweighs counters, old errors and side words, but neither a word of failure nor a main word
    // that is on its way.
    if (words?.word === 'Degraded' || words?.word === 'Suspended') return words
    return main?.health?.word === 'Progressing' ? main.health : HEALTHY
  }
  const found = worst([conditions, words, byErrors(status, words), byFlags(status, main), byCounters(status, spec), byNested(reading)])
  // An unknown word in a main field outweighs healthy side fields: one stage of several succeeded.
  const isVague = found?.word === 'Healthy' && conditions === null && main !== null && main.health === null
  if (found !== null && !isVague) return found
  const omitted = byOmitted(status, spec)
  if (omitted !== null) return omitted
  // A controller that has seen this generation, or has begun to fire, and has no more to say of it.
  if (Object.keys(status).every((key) => key === 'observedGeneration' || isEmpty(status[key]))) return HEALTHY
  if (namesASchedule(kind) && main === null && isEmpty(status['active'])) return HEALTHY
  const why =
    main === null ? 'its status has no information about its health' : `${main.where} is ${oneLine(main.said)}, which no rule knows`
  return unreported(reading, 'NotUnderstood', why)
}

const WORST_FIRST = ['Degraded', 'Suspended', 'Progressing', 'Healthy'] as const
function worst(findings: readonly Finding[]): Finding {
  for (const word of WORST_FIRST) {
    const found = findings.find((finding) => finding?.word === word)
    if (found) return found
  }
  return null
}

const STOP_FIELDS = ['suspend', 'suspended', 'paused', 'pause'] as const
/** `spec.suspend`, `spec.paused`, an annotation `<domain>/paused`. */
export function stopAskedFor({ spec, annotations }: Pick<Reading, 'spec' | 'annotations'>): Finding {
  for (const field of STOP_FIELDS) if (spec[field] === true) return suspended(`spec.${field} is true`)
  for (const key in annotations) {
    const isStop = key.endsWith('/paused') || key.endsWith('/pause-reconciliation')
    if (isStop && annotations[key] === 'true') return suspended(`the annotation ${key} is true`)
  }
  return null
}

const REASON = /^[A-Z][A-Za-z0-9]{0,79}$/
/** Tools match on it, so a reason that is a sentence is replaced by the condition's own name. */
function reasonOf({ type, status, reason }: Condition): string {
  if (REASON.test(reason)) return reason
  const name = camelCase(type.slice(type.lastIndexOf('/') + 1))
  return status === 'True' ? name : `Not${name}`
}
function messageOf({ type, status, message }: Condition): string {
  const said = oneLine(message)
  return said === '' ? `condition ${type} is ${status || 'not set'}` : `condition ${type} is ${status || 'not set'}: ${said}`
}
export const failedBy = (condition: Condition): Health => degraded(reasonOf(condition), messageOf(condition))
export const waitsFor = (condition: Condition): Health => progressing(reasonOf(condition), messageOf(condition))

/** The reason of a condition in a bad state. Cluster API and others add a severity. */
export function causeOf({ severity, reason, message }: Condition): Sense {
  if (severity === 'Error') return 'failing'
  if (severity === 'Info') return 'moving'
  const sense = senseOf(reason)
  return sense === 'failing' || sense === 'moving' || sense === 'stopped' ? sense : (senseOf(message) ?? sense)
}

/** HE13: the conditions of one object, parent, ancestor or listener. */
export function byConditions(all: readonly Condition[], generation: number | undefined): Finding {
  const conditions = all.length > CONDITIONS_MAX ? all.slice(0, CONDITIONS_MAX) : all
  let ready: Condition | null = null
  let moving: Condition | null = null
  let bad: Condition | null = null
  /** False for a failure, and its type tells nothing. */
  let unclear: Condition | null = null
  let isCleared = false
  const good: Condition[] = []
  for (const condition of conditions) {
    const { role } = meaningOf(condition.type)
    const isTrue = condition.status === 'True'
    if (condition.type === 'Ready') ready ??= condition
    else if (role === 'good') good.push(condition)
    else if (role === 'stopped' && isTrue) return suspended(messageOf(condition))
    else if (role === 'bad') {
      if (isTrue) bad ??= condition
      else if (condition.status === 'False') isCleared = true
    } else if (role === 'moving' && !isTrue && senseOf(condition.reason) === 'stopped') return suspended(messageOf(condition))
    // A movement that ended in a failure: Progressing is False with ProgressDeadlineExceeded.
    else if (role === 'moving' && !isTrue && senseOf(condition.reason) === 'failing') bad ??= condition
    else if (role === 'moving' && condition.status !== 'False') moving ??= condition
    else if (role === null && condition.status === 'False' && senseOf(condition.reason) === 'failing') unclear ??= condition
  }
  if (bad !== null) return failedBy(bad)
  for (const condition of ready === null ? good : [ready]) {
    if (isBehind(condition, generation)) return behind(condition, generation)
  }
  if (ready !== null) return byReady(ready, conditions)
  const refused = good.find(isRefused) ?? unclear ?? undefined
  if (refused !== undefined) return failedBy(refused)
  const waiting = good.find(({ status }) => status === 'False') ?? good.find(({ status }) => status !== 'True')
  if (waiting !== undefined) return waitsFor(waiting)
  if (moving !== null && !hasArrived(moving.reason)) return waitsFor(moving)
  return good.some(({ type }) => !meaningOf(type).isStep) || (isCleared && good.length === 0) ? HEALTHY : null
}

const isBehind = (condition: Condition, generation: number | undefined): boolean =>
  condition.generation !== null && generation !== undefined && condition.generation < generation
const behind = ({ type, generation: seen }: Condition, generation: number | undefined): Health =>
  progressing('GenerationNotObserved', `condition ${type} is for generation ${seen}, not for ${generation} yet`)

/** False for a cause that does not end by itself, or for none that is named although the type is a verdict. */
function isRefused(condition: Condition): boolean {
  if (condition.status !== 'False') return false
  const cause = causeOf(condition)
  const isExplained = condition.reason !== '' || condition.message !== ''
  return cause === 'failing' || (cause !== 'moving' && isExplained && meaningOf(condition.type).refuses)
}

function byReady(ready: Condition, all: readonly Condition[]): Health {
  if (ready.status === 'True') {
    // The last reconciliation failed, while what was made before still runs (Crossplane).
    const unsynced = all.find(({ type, status }) => type === 'Synced' && status === 'False')
    return unsynced === undefined ? HEALTHY : failedBy(unsynced)
  }
  if (ready.status !== 'False') return waitsFor(ready)
  if (causeOf(ready) === 'failing') return failedBy(ready)
  const part = all.find((entry) => {
    if (entry.status !== 'False' || entry.type === 'Ready') return false
    const { role } = meaningOf(entry.type)
    return role === 'good' ? causeOf(entry) === 'failing' : role === null && senseOf(entry.reason) === 'failing'
  })
  return part === undefined ? waitsFor(ready) : failedBy(part)
}

const PRIMARY_WORDS = ['phase', 'state', 'status', 'health', 'stage'] as const
const WORD_FIELDS: ReadonlySet<string> = new Set([
  'compliant',
  'conclusion',
  'health',
  'outcome',
  'phase',
  'result',
  'stage',
  'state',
  'status',
  'verdict',
])
const WORD_ENDINGS = ['Health', 'Phase', 'Stage', 'State', 'Status'] as const
const isWordField = (key: string): boolean => WORD_FIELDS.has(key) || WORD_ENDINGS.some((ending) => key.endsWith(ending))

interface MainWord {
  where: string
  said: string
  health: Finding
}
/** The first of the main fields in the status; `health` is null for an unknown word. */
function mainWord(status: Fields, kind: string): MainWord | null {
  const key = PRIMARY_WORDS.find((name) => text(status[name]) !== '')
  if (key === undefined) return null
  const [where, said] = [`status.${key}`, text(status[key])]
  return { where, said, health: byWord(said, where, whyOf(status), kind) }
}

/** HE14: `status.phase`, `status.healthStatus` and their like. */
export function byWords(from: Fields, kind: string, where: string): Finding {
  const findings: Finding[] = []
  for (const key of Object.keys(from).slice(0, FIELDS_MAX)) {
    const word = from[key]
    if (typeof word === 'string' && word !== '' && isWordField(key)) findings.push(byWord(word, `${where}.${key}`, whyOf(from), kind))
  }
  return worst(findings)
}

const WHY_FIELDS = [
  'message',
  'reason',
  'error',
  'errorMessage',
  'errorDescription',
  'phaseReason',
  'failureMessage',
  'statusMessage',
] as const
function whyOf(from: Fields): string {
  for (const key of WHY_FIELDS) if (text(from[key]) !== '') return oneLine(text(from[key]))
  return ''
}

/** Null if the word is unknown. */
export function byWord(word: string, where: string, why: string, kind: string): Finding {
  const said = why === '' ? `${where} is ${oneLine(word)}` : `${where} is ${oneLine(word)}: ${why}`
  const reason = camelCase(word)
  const sense = senseOfState(word, kind)
  if (sense === 'failing') return degraded(reason, said)
  if (sense === 'moving' || sense === 'unmet') return progressing(reason, said)
  return sense === 'stopped' ? suspended(said) : sense === 'done' ? HEALTHY : null
}

/** Fields that are there only when something is wrong, beside those that end in one of `ERROR_WORDS` (`lastSyncError`,
 *  `problems`). */
const ERROR_FIELDS: ReadonlySet<string> = new Set([
  'errMsg',
  'errorDescription',
  'errorMessage',
  'errorReason',
  'failureMessage',
  'failureReason',
])
const ERROR_WORDS: ReadonlySet<string> = new Set(['err', 'error', 'errors', 'failure', 'failures', 'problem', 'problems'])

/** HE15: an error field that is not empty means Degraded. */
function byErrors(status: Fields, words: Finding, where = 'status'): Finding {
  for (const key of Object.keys(status).slice(0, FIELDS_MAX)) {
    const value = status[key]
    if (isEmpty(value) || (typeof value !== 'string' && typeof value !== 'object')) continue
    const [first, last] = [wordsOf(key)[0], wordsOf(key).at(-1) ?? '']
    // `failedNamespaces` lists what failed; `failedAt` does not.
    const isError = ERROR_FIELDS.has(key) || ERROR_WORDS.has(last) || (first === 'failed' && typeof value === 'object')
    if (!isError) continue
    // The last error may be over.
    if (isPast(key) && words?.word === 'Healthy') continue
    const one: unknown = Array.isArray(value) ? value[0] : value
    const said = text(one) || text(fields(one)['message']) || text(fields(one)['reason'])
    return degraded('Error', `${where}.${key}: ${oneLine(said) || 'not empty'}`)
  }
  return null
}

const GOOD_FLAGS: ReadonlySet<string> = new Set(['accepted', 'applied', 'readyToUse', 'reconciled', 'synced', 'valid'])
const GOOD_FLAG_WORDS: ReadonlySet<string> = new Set(['available', 'healthy', 'initialized', 'provisioned', 'ready'])
const OUTCOME_FLAGS: ReadonlySet<string> = new Set(['pass', 'passed', 'succeeded', 'success', 'successful'])
/** HE15: `status.ready: false`, `status.NoMatchingInstances: true`, and `status.passed: false` of what has ended. */
function byFlags(status: Fields, main: MainWord | null): Finding {
  const ended = main !== null && hasEnded(main.said)
  let unmet: string | null = null
  let isMet = false
  for (const key of Object.keys(status).slice(0, FIELDS_MAX)) {
    const value = status[key]
    if (typeof value !== 'boolean') continue
    if (value && senseOf(key) === 'failing') return degraded(camelCase(key), `status.${key} is true`)
    const isOutcome = OUTCOME_FLAGS.has(key)
    if (isOutcome && !value && ended) return degraded(`Not${camelCase(key)}`, `status.${key} is false`)
    if (!isOutcome && !GOOD_FLAGS.has(key) && !GOOD_FLAG_WORDS.has(wordsOf(key).at(-1) ?? '')) continue
    if (value) isMet = true
    else unmet ??= key
  }
  if (unmet !== null) return progressing(`Not${camelCase(unmet)}`, `status.${unmet} is false`)
  return isMet ? HEALTHY : null
}

const HAVE = ['ready', 'available', 'updated', 'healthy'] as const
/** Say how many serve. */
const SERVING = ['ready', 'available', 'healthy', 'unavailable', 'unready', 'unhealthy'] as const
const WANT = ['desired', 'expected'] as const
const LACK = ['unavailable', 'unready', 'unhealthy'] as const
const FRACTION = /^(\d{1,9})\/(\d{1,9})$/
/** The noun of `readyReplicas`; '' for another word. */
const nounAfter = (key: string, prefixes: readonly string[]): string => {
  for (const prefix of prefixes) {
    const code = key.startsWith(prefix) ? key.charCodeAt(prefix.length) : 0
    if (code >= 65 && code <= 90) return key.slice(prefix.length)
  }
  return ''
}

/** HE16: `readyReplicas` of `replicas`, `availableNodes` of `expectedNodes`, `tasksReady: 2/3`. */
export function byCounters(status: Fields, spec: Fields): Finding {
  let isMet = false
  for (const key of Object.keys(status).slice(0, FIELDS_MAX)) {
    const value = status[key]
    if (typeof value === 'string') {
      const [, some, all] = (value.length < 20 && FRACTION.exec(value)) || []
      if (some === undefined) continue
      if (Number(some) < Number(all)) return progressing('LessReady', `status.${key} is ${value}`)
      isMet = true
    }
    if (typeof value !== 'number') continue
    const wantedNoun = value > 0 ? nounAfter(key, WANT) : ''
    if (value > 0 && nounAfter(key, LACK) !== '') return progressing('LessReady', `status.${key} is ${value}`)
    if (wantedNoun !== '' && [...HAVE, 'current', 'number'].every((prefix) => status[prefix + wantedNoun] === undefined)) {
      return progressing('LessReady', `status.${key} is ${value}, and none is reported yet`)
    }
    const noun = nounAfter(key, HAVE)
    if (noun === '') continue
    const plain = noun.slice(0, 1).toLowerCase() + noun.slice(1)
    const wanted = [spec[plain], status[`desired${noun}`], status[`expected${noun}`], status[`total${noun}`], status[plain]].find(
      (entry) => typeof entry === 'number',
    )
    if (typeof wanted !== 'number') continue
    if (value < wanted) return progressing('LessReady', `${value} of ${wanted} ${plain} are ${key.slice(0, -noun.length)}`)
    isMet = true
  }
  const unready = byUnready(status, spec)
  if (unready !== null) return unready
  const [has, asked] = [status['replicas'], spec['replicas']]
  if (typeof has === 'number' && typeof asked === 'number' && has < asked)
    return progressing('LessReplicas', `${has} of ${asked} replicas exist`)
  return isMet ? HEALTHY : null
}

/** Go leaves a counter out that is zero. `updatedReplicas` and `replicas` without a word of how many are ready: none
 *  is. */
function byUnready(status: Fields, spec: Fields): Finding {
  for (const key of Object.keys(status).slice(0, FIELDS_MAX)) {
    const noun = nounAfter(key, ['updated', 'current'])
    if (noun === '' || typeof status[key] !== 'number' || SERVING.some((prefix) => status[prefix + noun] !== undefined)) continue
    const plain = noun.slice(0, 1).toLowerCase() + noun.slice(1)
    // `currentReplicas` beside `spec.replicas` alone is the only counter of some scalers.
    const wanted = status[plain] ?? (key.startsWith('updated') ? spec[plain] : undefined)
    if (typeof wanted === 'number' && wanted > 0) return progressing('LessReady', `0 of ${wanted} ${plain} are ready`)
  }
  return null
}

/** The same where nothing else tells how the object is. Only a scale subresource needs a selector: such a kind may
 *  count no more than replicas. */
function byOmitted(status: Fields, spec: Fields): Finding {
  const [has, asked] = [status['replicas'], spec['replicas']]
  if (typeof asked !== 'number' || asked <= 0 || SERVING.some((prefix) => status[`${prefix}Replicas`] !== undefined)) return null
  if (text(status['selector']) !== '' || text(status['labelSelector']) !== '') return null
  return progressing('LessReady', `0 of ${typeof has === 'number' ? has : asked} replicas are ready`)
}

const PAST: ReadonlySet<string> = new Set(['history', 'last', 'previous'])
/** `lastRun`: what it holds may be over. */
const isPast = (key: string): boolean => PAST.has(wordsOf(key)[0] ?? '')

/** HE13: one level down: `status.parents[]`, `status.listeners[]`, `status.conditionedStatus`, a map by controller. */
function byNested({ status, kind, generation }: Reading): Finding {
  const findings: Finding[] = []
  for (const key of Object.keys(status).slice(0, FIELDS_MAX)) {
    const value = status[key]
    if (key === 'conditions' || value === null || typeof value !== 'object') continue
    const entries = Array.isArray(value)
      ? list(value.slice(0, ENTRIES_MAX))
      : [fields(value), ...list(Object.values(value).slice(0, ENTRIES_MAX))]
    for (const entry of entries) {
      // A single condition, or conditions under another name.
      const isCondition = typeof entry['type'] === 'string' && typeof entry['status'] === 'string'
      const nested = isCondition ? [entry] : entry['conditions']
      if (Array.isArray(nested)) findings.push(byConditions(conditionsIn(nested), generation))
      if (!isCondition) findings.push(byWords(entry, kind, `status.${key}`), byCounters(entry, {}))
    }
    if (!Array.isArray(value) && !isPast(key)) findings.push(byErrors(fields(value), null, `status.${key}`))
  }
  return worst(findings)
}
