// When work runs: at most once a second, however often it is asked for, or in slices.
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

/** Resolves in a task of its own: what a person does between two slices of work is answered at once. A timer would add
 *  its least delay to each. */
export const nextTask = (): Promise<void> =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })
