// Calls something at most once a second, however often it is asked for.
const PAUSE_MS = 1_000

export function createPauser(run: () => void): { soon(): void; stop(): void } {
  let timer: ReturnType<typeof setTimeout> | null = null
  let lastMs = 0
  return {
    soon() {
      if (timer !== null) return
      timer = setTimeout(
        () => {
          timer = null
          lastMs = Date.now()
          run()
        },
        Math.max(0, lastMs + PAUSE_MS - Date.now()),
      )
    },
    stop() {
      if (timer !== null) clearTimeout(timer)
      timer = null
    },
  }
}
