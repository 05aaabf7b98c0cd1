// The vocabulary of health: which words in a condition's type, a reason, a phase or a message mean failure, movement,
// success or a stop. Data first, then the functions that read it. The lists follow the Kubernetes API conventions and
// the words that controllers commonly use. A kind that uses a word in another sense has a rule of its own.

const setOf = (words: string): ReadonlySet<string> => new Set(words.trim().split(/\s+/))

/** The meaning of a phrase for its object. `unmet`: a bad state without a cause. Null means that it has no known word.
 */
export type Sense = 'failing' | 'stopped' | 'moving' | 'unmet' | 'done' | null
/** A phrase with words of several senses has the first of these. */
const STRENGTH: Readonly<Record<Exclude<Sense, null>, number>> = { failing: 5, stopped: 4, moving: 3, unmet: 2, done: 1 }

const WORDS: Readonly<Record<Exclude<Sense, null>, ReadonlySet<string>>> = {
  failing: setOf(`
    abnormal abort aborted ambiguous backoff bad blocked broken canceled cancelled cannot conflict conflicted conflicting conflicts corrupt corrupted crash crashed crashing crashloop critical dead
    degraded denied deny disconnected diverged down duplicate duplicated err error errored errors evicted exceeded exception exhausted expired fail failed failing fails failure failures
    fatal fault faulted faulty forbidden illegal impossible inaccessible incompatible inconsistent incorrect insufficient interrupted invalid kill killed limitreached lost malformed mismatch mismatched misconfiguration
    misconfigured missing noncompliant nonexistent offline oom orphan orphaned outofsync overloaded panic prohibited red refused rejected revoked rolledback stalled stuck terminal terminated throwable timedout timeout unable
    unauthenticated unauthorized undefined unexpected unexpectedly unhealthy unreachable unrecognized unrecoverable unresolvable unresolved unschedulable unsuccessful unsupported violated
    violation violations warn`),
  stopped: setOf('disabled hibernated hibernating hibernation paused shutdown stopped suspend suspended'),
  /** Other words that end in "ing" are, too. */
  moving: setOf(
    'delayed inprogress init initial initialization partial partially pending progress queued requested retry scheduled start started submitted wait yet',
  ),
  /** `unsynced` and its like are, too. */
  unmet: setOf('imbalanced incomplete notready outdated stale throttled unavailable unbalanced uncertain unfinished unready'),
  done: setOf(`
    accepted active admitted alive applied approved attached available bound complete completed compliant configured connected created current deployed done enabled established exist
    existing exists finished fulfilled green healthy initialized installed insync issued joined listening live mounted normal ok online open operating operational pass passed programmed
    promoted propagated provisioned published reachable ready reconciled registered resolved running satisfied serving stable streaming subscribed succeeded success successful successfully synced synchronized up
    updated uptodate valid validated verified working`),
}
/** A phrase that is nothing but this word. */
const ALONE: Readonly<Record<string, Sense>> = { new: 'moving', unknown: 'moving', warning: 'failing', yellow: 'moving' }
/** Ends in "ing" and names a thing. */
const NOUNS_IN_ING = setOf(
  'binding bindings building cloning everything mapping monitoring networking nothing ping routing settings something staging string thing tracking warning',
)
const NEGATIONS = setOf('no non not without')
/** "NotFound" is a failure, "NotReady" is not one yet. */
const FAILING_WHEN_NEGATED = setOf(`
  allowed authorized capacity compatible compliant enough exist exists found leader matched matches matching permitted possible quorum reachable recognized resolvable resolved satisfied
  schedulable space such supported valid`)
/** "WaitingForFailedNodes" waits: the words after the first one name what it waits for. */
const WAITING_FIRST = setOf('awaiting pending wait waiting')
/** Two words that are known as one. */
const PAIRS = setOf('backoff crashloop inprogress insync limitreached notready outof outofsync rolledback timedout upto uptodate')

const PHRASE_WORDS_MAX = 16
const PHRASE_CHARS_MAX = 160

/** `CrashLoopBackOff` → crashloop, backoff; `HEALTH_ERR` → health, err. Only the beginning of a long text counts. */
export function wordsOf(phrase: string): string[] {
  const words: string[] = []
  const end = Math.min(phrase.length, PHRASE_CHARS_MAX)
  let start = -1
  for (let at = 0; at <= end && words.length < PHRASE_WORDS_MAX; at++) {
    const isPart = at < end && isLetter(phrase.charCodeAt(at))
    if (start >= 0 && (!isPart || beginsWord(phrase, at, end))) {
      addWord(words, phrase.slice(start, at).toLowerCase())
      start = -1
    }
    if (start < 0 && isPart) start = at
  }
  return words
}

function addWord(words: string[], word: string): void {
  const last = words.at(-1)
  if (last !== undefined && PAIRS.has(last + word)) words[words.length - 1] = last + word
  else words.push(word)
}

const isUpper = (code: number): boolean => code >= 65 && code <= 90
const isLower = (code: number): boolean => code >= 97 && code <= 122
/** An apostrophe belongs to its word: "doesn't". */
const isLetter = (code: number): boolean => isUpper(code) || isLower(code) || code === 39

/** At a capital after a small letter (`notReady`), and at the last capital of a run before a small letter
 *  (`ACMEAccount`). */
function beginsWord(phrase: string, at: number, end: number): boolean {
  if (!isUpper(phrase.charCodeAt(at))) return false
  const before = phrase.charCodeAt(at - 1)
  return isLower(before) || (isUpper(before) && at + 1 < end && isLower(phrase.charCodeAt(at + 1)))
}

const REASON_CHARS_MAX = 80
/** `in progress` → `InProgress`: a reason that tools can match on. */
export const camelCase = (phrase: string): string =>
  phrase
    .slice(0, PHRASE_CHARS_MAX)
    .split(/[^A-Za-z0-9]/)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('')
    .slice(0, REASON_CHARS_MAX) || 'Unnamed'

/** Controllers repeat few types and reasons in many objects. Emptied when full, so that foreign texts cannot make it
 *  grow. */
function remembered<Value>(compute: (text: string) => Value): (text: string) => Value {
  const known = new Map<string, Value>()
  return (text) => {
    if (text.length > 64) return compute(text)
    let value = known.get(text)
    if (value === undefined) {
      if (known.size >= 1_024) known.clear()
      value = compute(text)
      known.set(text, value)
    }
    return value
  }
}

/** The meaning of a reason, a phase or the beginning of a message. */
export const senseOf: (phrase: string) => Sense = remembered((phrase) => {
  const words = wordsOf(phrase)
  const [first = '', second] = words
  if (second === undefined && Object.hasOwn(ALONE, first)) return ALONE[first] ?? null
  if (WAITING_FIRST.has(first)) return 'moving'
  let found: Sense = null
  let isNegated = false
  for (const word of words) {
    const sense = isNegated ? senseOfNegated(word) : senseOfWord(word)
    if (sense === 'failing') return sense
    if (sense !== null && (found === null || STRENGTH[sense] > STRENGTH[found])) found = sense
    isNegated = NEGATIONS.has(word) || word.endsWith("n't")
  }
  return found
})

function senseOfWord(word: string): Sense {
  if (WORDS.failing.has(word)) return 'failing'
  if (WORDS.stopped.has(word)) return 'stopped'
  if (WORDS.unmet.has(word)) return 'unmet'
  if (WORDS.done.has(word)) return 'done'
  if (word.startsWith('un') && WORDS.done.has(word.slice(2))) return 'unmet'
  return WORDS.moving.has(word) || (word.length > 4 && word.endsWith('ing') && !NOUNS_IN_ING.has(word)) ? 'moving' : null
}

function senseOfNegated(word: string): Sense {
  if (FAILING_WHEN_NEGATED.has(word)) return 'failing'
  if (WORDS.failing.has(word)) return 'done'
  return WORDS.done.has(word) ? 'unmet' : null
}

/**
 * The role of a condition's type. `good` is to be True and `bad` to be False; `moving` and `stopped` hold while True.
 * Null if its status says nothing about health.
 */
type Role = 'good' | 'bad' | 'moving' | 'stopped' | null
export interface TypeMeaning {
  role: Role
  /** A False of it is a refusal rather than a delay: the controller has looked and said no. */
  refuses: boolean
  /** A True of it is one step on the way: it does not tell that the object has arrived. */
  isStep: boolean
}

/** Good as the last word of a type: `ControlPlaneReady`, `RemoteSynced`. */
const GOOD_LAST = setOf(`
  accepted accessible admitted allocated applied approved attached authenticated authorized availability available bootstrapped bound complete completed compliant configured connected
  converged created deployed done enforced established executed exists finished formed found functional granted healthy imported initialized installed issued joined launched loaded met
  mounted online operational passed populated prepared programmed propagated provisioned published pulled reachable readiness ready reconciled registered released rendered replicated
  resolved satisfied scheduled serving signed succeeded success successful sync synced synchronized trusted uploaded uptodate valid validated verified`)
/** Good as the first word of a type: `ResolvedRefs`. */
const GOOD_FIRST = setOf('accepted resolved valid validated')
const REFUSING = setOf(
  'accepted admitted applied authenticated authorized compliant enforced healthy reconciled released resolved succeeded success successful synced synchronized valid validated verified',
)
const STEPS = setOf(
  'allocated approved attached bound configured created finished found granted initialized issued joined launched loaded mounted prepared pulled registered rendered scheduled',
)
/** Bad in a reason, but too general for a type. */
const NOT_BAD_IN_TYPES = setOf('dead down err kill lost missing offline red warn')
/** Bad in a type, but not in a reason: `MemoryPressure`, `Fallback`. */
const BAD_IN_TYPES = setOf('fallback pressure problem unhealthy')
const PARTIAL = setOf('partial partially')
const MOVING_TYPES = setOf(`
  creating deleting deploying draining initializing inprogress installing migrating pending preparing progressing provisioning rebalancing reconciling recovering remediating removing
  resizing restarting restoring rolling starting stopping syncing terminating uninstalling updating upgrading waiting`)

export const meaningOf: (type: string) => TypeMeaning = remembered((type) => {
  const name = type.slice(type.lastIndexOf('/') + 1)
  const words = wordsOf(name)
  const [first = '', last = ''] = [words[0], words.at(-1)]
  return { role: roleOf(name, words), refuses: REFUSING.has(last) || GOOD_FIRST.has(first), isStep: STEPS.has(last) }
})

function roleOf(name: string, words: readonly string[]): Role {
  const [first = '', last = ''] = [words[0], words.at(-1)]
  // `PartiallyReady`: not everywhere.
  if (last === 'notready' || PARTIAL.has(first)) return 'bad'
  if (words.some((word) => NEGATIONS.has(word))) {
    // `NoErrors` is good, `NoMatchingInstance` and `NotAccepted` are bad.
    if (words.some((word) => WORDS.failing.has(word) || word.startsWith('warning'))) return 'good'
    return senseOf(name) === 'failing' || GOOD_LAST.has(last) ? 'bad' : null
  }
  if (words.some((word) => (WORDS.failing.has(word) && !NOT_BAD_IN_TYPES.has(word)) || BAD_IN_TYPES.has(word))) return 'bad'
  if (GOOD_LAST.has(last) || GOOD_FIRST.has(first)) return 'good'
  if (WORDS.stopped.has(last)) return 'stopped'
  return words.some((word) => MOVING_TYPES.has(word)) ? 'moving' : null
}

/** `NewReplicaSetAvailable`: a Progressing that has arrived. */
const ARRIVED = setOf('available complete completed finished healthy ready reconciled running succeeded')
export const hasArrived = (reason: string): boolean => ARRIVED.has(wordsOf(reason).at(-1) ?? '')

/** Kinds that run to an end, by the last word of their name: `Running` and `Initialized` mean that they are on the way.
 */
const RUNS_TO_AN_END = setOf(`
  analysis backup benchmark build check checkpoint clone experiment export import job maintenance migration operation playbook probe rebalance release request restart restore run scan task
  test upgrade workflow`)
const namesARun = (kind: string): boolean => RUNS_TO_AN_END.has(wordsOf(kind).at(-1) ?? '')
const NOT_AN_END = setOf('accepted active admitted approved created initialized live queued registered running scheduled started')

/** The meaning of a phase or state of an object of this kind. */
export function senseOfState(word: string, kind: string): Sense {
  const sense = senseOf(word)
  return sense === 'done' && namesARun(kind) && NOT_AN_END.has(wordsOf(word).at(-1) ?? '') ? 'moving' : sense
}

const ENDS = setOf('complete completed done ended finished')
/** `Completed`: it has ended, well or not. */
export const hasEnded = (word: string): boolean => ENDS.has(wordsOf(word).at(-1) ?? '')

const SCHEDULES = setOf('cron schedule scheduled')
/** Kinds that make other objects at given times, and report no more than when. */
export const namesASchedule = (kind: string): boolean => wordsOf(kind).some((word) => SCHEDULES.has(word))
