// Two managers that correct each other without end are a load on the API server and reach no result. After a few rounds
// Skerry waits longer and longer and names the other manager. It never gives in, and never stops the rest.

/** More corrections of one object than this within `WINDOW_MS` are a fight. */
export const CORRECTIONS_MAX = 5
export const WINDOW_MS = 60_000
const FIRST_WAIT_MS = 10_000
const LONGEST_WAIT_MS = 300_000
/** Without a correction for this long the fight is over. */
export const CALM_MS = 600_000

/** Corrections of one object: when, and how often it had to wait already. */
export interface Contest {
  correctedMs: readonly number[]
  rounds: number
  untilMs: number
}
export const NO_CONTEST: Contest = { correctedMs: [], rounds: 0, untilMs: 0 }

export type Verdict = { kind: 'correct'; contest: Contest } | { kind: 'contested'; contest: Contest }

/** The same fight after a change of the date. */
export const movedContest = ({ correctedMs, rounds, untilMs }: Contest, byMs: number): Contest => ({
  correctedMs: correctedMs.map((atMs) => atMs + byMs),
  rounds,
  untilMs: untilMs === 0 ? 0 : untilMs + byMs,
})

/** DR4: asked when an object has drifted again. */
export function judgeContest(contest: Contest, nowMs: number): Verdict {
  const last = contest.correctedMs.at(-1)
  const calm = last === undefined || Math.abs(nowMs - last) >= CALM_MS // also when the clock was set back
  const current = calm ? NO_CONTEST : contest
  if (nowMs < current.untilMs) return { kind: 'contested', contest: current }
  const recent = current.correctedMs.filter((atMs) => nowMs - atMs < WINDOW_MS)
  const waited = current.untilMs > 0 && last !== undefined && last < current.untilMs
  if (!waited && (recent.length >= CORRECTIONS_MAX || current.rounds > 0)) {
    const untilMs = nowMs + Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(current.rounds, 10))
    return { kind: 'contested', contest: { ...current, rounds: current.rounds + 1, untilMs } }
  }
  const correctedMs = [...recent, nowMs].slice(-CORRECTIONS_MAX)
  return { kind: 'correct', contest: { ...current, correctedMs } }
}

/** In the order in which they were judged last. */
export interface Contests extends Iterable<[string, Contest]> {
  set(key: string, contest: Contest): unknown
  delete(key: string): unknown
}

/** Records the judgement. Ended fights are removed here, oldest first: an agent that corrects one object after the
 *  other for months holds ten minutes of them. */
export function noteContests(all: Contests, judged: ReadonlyMap<string, Contest>, nowMs: number): void {
  for (const [key, contest] of judged) {
    all.delete(key)
    all.set(key, contest)
  }
  for (const [key, { correctedMs, untilMs }] of all) {
    const last = correctedMs.at(-1) ?? 0
    if (nowMs < untilMs || Math.abs(nowMs - last) < CALM_MS) return
    all.delete(key)
  }
}
