// Chooses the wait of the next poll. Pure. The wait grows while polls end without interruption and shrinks when a
// proxy, NAT or firewall interrupts or drops one. The interrupted wait is remembered and tried again rarely, because
// networks change.

export const WAIT_SECONDS_MIN = 5
/** Up to twice the usual wait a server still shows an agent as online. */
export const WAIT_SECONDS_LIMIT = 110
export const WAIT_SECONDS_LIMIT_METERED = 900
const GROWTH = 1.5
/** After so many clean polls at the limit that a cut has set, a little more is tried. */
const CLEAN_POLLS_TO_TRY_MORE = 50

export interface PollWait {
  seconds: number
  /** The longest wait that ended without interruption. */
  goodSeconds: number
  /** The limit learned from an interruption; null without one. */
  cutLimit: number | null
  cleanAtLimit: number
}

export const beginWait = (seconds: number): PollWait => ({ seconds, goodSeconds: seconds, cutLimit: null, cleanAtLimit: 0 })

/** A poll ended with changes or at the end of its wait. */
export function afterClean(wait: PollWait, waitedFully: boolean, limit: number): PollWait {
  if (!waitedFully) return wait
  const goodSeconds = Math.max(wait.goodSeconds, wait.seconds)
  if (wait.cutLimit === null || wait.seconds < wait.cutLimit) {
    const seconds = Math.min(limit, wait.cutLimit ?? limit, Math.ceil(wait.seconds * GROWTH))
    return { ...wait, goodSeconds, seconds: Math.max(seconds, Math.min(wait.seconds, limit)) }
  }
  const cleanAtLimit = wait.cleanAtLimit + 1
  if (cleanAtLimit < CLEAN_POLLS_TO_TRY_MORE) return { ...wait, goodSeconds, cleanAtLimit }
  const seconds = Math.min(limit, Math.ceil(wait.seconds * 1.25))
  return { seconds, goodSeconds, cutLimit: seconds, cleanAtLimit: 0 }
}

/** The connection ended after `tookMs` of silence. */
export function afterCut(wait: PollWait, tookMs: number): PollWait {
  const seconds = Math.max(WAIT_SECONDS_MIN, Math.min(wait.seconds, Math.floor((tookMs / 1000) * 0.8)))
  return { seconds, goodSeconds: Math.min(wait.goodSeconds, seconds), cutLimit: seconds, cleanAtLimit: 0 }
}

/** No answer at all, not even at the end: the link is dead, or a box drops silent connections that early. If a
 *  shorter wait had succeeded, it stays in use. */
export function afterSilence(wait: PollWait): PollWait {
  if (wait.seconds <= wait.goodSeconds) return wait
  return { ...wait, seconds: wait.goodSeconds, cutLimit: wait.goodSeconds, cleanAtLimit: 0 }
}
