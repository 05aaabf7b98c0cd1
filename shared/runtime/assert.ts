/** Fails on a bug, never on input: whoever reads the message is a developer. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`)
}

/** The default branch of a `switch` over a union: a new variant without a case does not compile. */
export function exhaustive(value: never): never {
  throw new Error(`bug: no case for ${JSON.stringify(value)}`)
}
