// One line on the terminal that says how far long work is, and is gone when the work is done.
import type { Clock } from '../../shared/runtime/clock.ts'

export interface ProgressLine {
  /** `of` 0: it cannot be counted. */
  show(what: string, done: number, of: number): void
  clear(): void
}

const SHOWN_MS = 100

/** `write` null: no progress is shown. */
export function createProgressLine(write: ((text: string) => void) | null, clock: Pick<Clock, 'nowMs'>): ProgressLine {
  let shownMs = 0
  let shown = ''
  const put = (text: string) => {
    if (text === shown) return
    shown = text
    write?.(`\r\u001b[K${text}`)
  }
  return {
    show(what, done, of) {
      const news = !shown.startsWith(what)
      if (!news && clock.nowMs() - shownMs < SHOWN_MS) return
      shownMs = clock.nowMs()
      put(of === 0 ? `${what}…` : `${what}: ${done} of ${of}`)
    },
    clear: () => put(''),
  }
}
