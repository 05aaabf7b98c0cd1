/** Fails on a bug, never on input: only developers read the message. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`)
}

/** The default branch of a `switch` over a union: a new variant without a case does not compile. */
export function exhaustive(value: never): never {
  throw new Error(`bug: no case for ${JSON.stringify(value)}`)
}
