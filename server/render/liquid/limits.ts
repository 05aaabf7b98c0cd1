// The cost of a template, counted and not timed: the same template with the same inputs fails or succeeds on every
// machine.

export const TEMPLATE_BYTES_MAX = 1024 * 1024
/** Characters within outputs and tags: what parsing costs. */
export const TEMPLATE_CODE_MAX = 256 * 1024
export const TEMPLATE_OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** About a microsecond each: a node that is rendered, a name that is looked up, 64 characters or members that a filter
 *  gets. */
export const TEMPLATE_WORK_MAX = 300_000
/** Characters and members of lists that a render makes, all together. */
export const TEMPLATE_MEMORY_MAX = 16 * 1024 * 1024
/** Blocks within blocks, through partials too. */
export const TEMPLATE_DEPTH_MAX = 100
/** Different ones of one template; then the rest is skipped. */
export const TEMPLATE_ERRORS_MAX = 50

/** A message for the author of a template, without any value of an input. */
export class TemplateRefusal extends Error {}

/** Nothing of the template is rendered any further. */
export class TemplateStop extends TemplateRefusal {}

/** Counts the work of all templates of one render. */
export class Meter {
  private work = 0
  private output = 0
  private depth = 0
  /** Members of mappings, and of all that is in a value: counted once. */
  private readonly members = new WeakMap<object, number>()
  private readonly weights = new WeakMap<object, number>()

  /** For another text: output and depth start again. */
  begin(): void {
    this.output = 0
    this.depth = 0
  }

  /** Throws `TemplateStop` past 300,000. */
  charge(work: number): void {
    this.work += work
    if (this.work > TEMPLATE_WORK_MAX)
      throw new TemplateStop(`needs more than ${TEMPLATE_WORK_MAX} steps, with the templates before it; a loop is too long`)
  }

  /** `other`: of what it is held against, for work that grows with both. */
  chargeFor(value: unknown, other = 0): void {
    const size = sizeOf(value)
    this.charge(1 + size / 64 + (size * other) / 2_048)
  }

  /** For listing the names of a mapping; other values cost nothing. It counts as reading all of them. */
  chargeMembers(value: unknown): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    const count = this.members.get(value) ?? Object.keys(value).length
    this.members.set(value, count)
    this.charge(count)
  }

  /** For taking a value with all its content, `each` time a member or 16 characters. It counts as reading all of it. */
  chargeWhole(value: unknown, each: number): void {
    this.charge(this.weightOf(value, 0) * each)
  }

  private weightOf(value: unknown, depth: number): number {
    if (typeof value === 'string') return 1 + value.length / 16
    if (typeof value !== 'object' || value === null) return 1
    const held = this.weights.get(value)
    if (held !== undefined) return held
    if (depth > TEMPLATE_DEPTH_MAX) throw new TemplateRefusal(`is more than ${TEMPLATE_DEPTH_MAX} levels deep`)
    let weight = 1
    for (const [name, member] of Object.entries(value)) weight += name.length / 16 + this.weightOf(member, depth + 1)
    this.weights.set(value, weight)
    // Counting is work, too.
    this.charge(1)
    return weight
  }

  write(text: string): void {
    this.output += Buffer.byteLength(text)
    if (this.output > TEMPLATE_OUTPUT_BYTES_MAX) throw new TemplateStop(`writes more than ${TEMPLATE_OUTPUT_BYTES_MAX / 1024 / 1024} MiB`)
  }

  enter(): void {
    this.depth += 1
    if (this.depth > TEMPLATE_DEPTH_MAX)
      throw new TemplateStop(`blocks and partials are more than ${TEMPLATE_DEPTH_MAX} levels deep; does a partial render itself?`)
  }
  leave(): void {
    this.depth -= 1
  }
}

/** Characters of a text, members of a list; 0 of all else. */
export const sizeOf = (value: unknown): number => (typeof value === 'string' || Array.isArray(value) ? value.length : 0)
