// One piece of work for all concurrent callers. Its result is forgotten when it is done, also after a failure: later
// calls start again.

/** Runs `make` unless it runs for that key already; all concurrent callers get its one result, or its one error. */
export function createInFlight<T>(): (key: string, make: () => Promise<T>) => Promise<T> {
  const making = new Map<string, Promise<T>>()
  return (key, make) => {
    const before = making.get(key)
    if (before !== undefined) return before
    const made = make().finally(() => making.delete(key))
    making.set(key, made)
    return made
  }
}
