// The form of a catalogue of texts that a user reads: each has a code, typed arguments, the text, and the next step
// where the user has to act. The code of a status or event is its reason; `Reason.variant` is another text of the same
// reason, and a code in snake_case has none. `agent/messages` and `server/messages` have the tables.

/** Arguments are plain values, no lists, so that the documentation can print any text with placeholders. */
type Text = string | ((args: never) => string)
export interface Entry {
  text: Text
  /** The step of the user, or of the agent by itself. */
  next?: Text
}
export type Table = Readonly<Record<string, Entry>>
type ArgsOf<T> = T extends (args: infer A) => string ? A : unknown
type Both<E extends Entry> = ArgsOf<E['text']> & ArgsOf<E['next']>
export type Args<E extends Entry> = unknown extends Both<E> ? [] : [args: Both<E>]
export type Code<T> = keyof T & string

export type ReasonOf<C extends string> = C extends `${infer R}.${string}` ? R : C
export interface Said<R extends string = string> {
  reason: R
  message: string
}

export interface Parts {
  text: string
  next?: string
}

export const reasonOf = <C extends string>(code: C): ReasonOf<C> => code.split('.', 1)[0] as ReasonOf<C>

export const wordsOf = (text: Text, args: unknown): string => (typeof text === 'string' ? text : text(args as never))

/** Returns the function that gives the text of a code, and its next step apart. */
export function partsOf<const T extends Table>(table: T): <C extends Code<T>>(code: C, ...args: Args<T[C]>) => Parts {
  return (code, ...args) => {
    const { text, next } = table[code] as Entry
    const what = wordsOf(text, args[0])
    return next === undefined ? { text: what } : { text: what, next: wordsOf(next, args[0]) }
  }
}

/** The same as one text: the next step follows after a semicolon. */
export function textsOf<const T extends Table>(table: T): <C extends Code<T>>(code: C, ...args: Args<T[C]>) => string {
  return (code, ...args) => {
    const { text, next } = table[code] as Entry
    const what = wordsOf(text, args[0])
    return next === undefined ? what : `${what}; ${wordsOf(next, args[0])}`
  }
}

/** As `textsOf`, with the reason of the code. */
export function statusesOf<const T extends Table>(table: T): <C extends Code<T>>(code: C, ...args: Args<T[C]>) => Said<ReasonOf<C>> {
  const textOf = textsOf(table)
  const reasons = new Map(Object.keys(table).map((code) => [code, reasonOf(code)]))
  return <C extends Code<T>>(code: C, ...args: Args<T[C]>) => ({
    reason: reasons.get(code) as ReasonOf<C>,
    message: textOf(code, ...args),
  })
}

/** As `statusesOf`, for events of one type. */
export function eventsOf<const K extends string, const T extends Table>(type: K, table: T) {
  const statusOf = statusesOf(table)
  return <C extends Code<T>>(code: C, ...args: Args<T[C]>) => ({ type, ...statusOf(code, ...args) })
}

/** The first of a list, and the number of the others. */
export const andMore = (shown: readonly string[], total: number): string =>
  shown.join(', ') + (total > shown.length ? ` and ${total - shown.length} more` : '')

/** With its number. */
export const objectCount = (count: number): string => `${count} ${count === 1 ? 'object' : 'objects'}`
