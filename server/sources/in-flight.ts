// One piece of work for all who ask for it at the same time. When it is done it is forgotten, also when it failed: whoever asks then asks anew.

/** Runs `make` unless it runs for that key already; all who ask meanwhile get its one answer, or its one error. */
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
