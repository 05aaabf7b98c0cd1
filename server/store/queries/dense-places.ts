// Places for numbers that databases give out and never take back: what is held for each of them is as long as there are
// such numbers, not as the greatest one.

export class DensePlaces {
  readonly #places = new Map<number, number>()

  get size(): number {
    return this.#places.size
  }

  /** Always the same for the same number; one that was not seen before gets the next. */
  of(number: number): number {
    const held = this.#places.get(number)
    if (held !== undefined) return held
    const place = this.#places.size
    this.#places.set(number, place)
    return place
  }

  /** A mark for each, at its place. */
  marks(numbers: readonly number[], mark: number): Uint16Array {
    const places = numbers.map((number) => this.of(number))
    const marks = new Uint16Array(this.size)
    for (const place of places) marks[place] = mark
    return marks
  }
}
