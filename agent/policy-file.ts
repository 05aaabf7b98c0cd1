// The policy of the site: a file that a person at the site writes (`--policy`), read again when it changes. A file that
// cannot be read keeps the last good policy, so that a typing error allows nothing more. At the start there is none to
// keep, and the agent refuses to start.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { parseYamlDocuments } from '../shared/adapters/yaml.ts'
import { explainIssues } from '../shared/model/explain.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import { AppError, type Problem } from '../shared/runtime/error.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { describeError } from '../shared/runtime/loop.ts'
import { sitePart } from './messages/site-messages.ts'
import { type SitePolicy, sitePolicySchema } from './reconcile/snapshot/permits.ts'

/** How often the file is read; a ConfigMap in a pod is replaced without any event that could be relied on. */
const READ_EVERY_MS = 2_000
const FILE_BYTES_MAX = 1_024 * 1_024

export interface PolicyReport {
  file: string
  policy: SitePolicy
  /** Why the file of now is not in force. Null means that it is. */
  problem: string | null
}

export class PolicyFile {
  readonly #path: string
  readonly #log: Logger
  #text: string
  #policy: SitePolicy
  #problem: string | null = null

  /** Throws AppError `bad_options` for a file that cannot be read as a policy. */
  constructor(path: string, log: Logger) {
    this.#path = path
    this.#log = log
    try {
      this.#text = readText(path)
    } catch (error) {
      throw new AppError('bad_options', { doing: 'read --policy', detail: describeError(error) }, { cause: error })
    }
    const read = parsePolicy(this.#text, path)
    if (read.kind === 'wrong') throw new AppError('bad_options', { doing: `read --policy ${path}`, problems: read.problems })
    this.#policy = read.policy
  }

  /** The same object as long as its content is the same. */
  policy(): SitePolicy {
    return this.#policy
  }

  report(): PolicyReport {
    return { file: this.#path, policy: this.#policy, problem: this.#problem }
  }

  /** LX4: until the signal. `changed`: there is another policy, or another problem with the file. */
  async follow(clock: Pick<Clock, 'sleep'>, signal: AbortSignal, changed: (isPolicy: boolean) => void): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(READ_EVERY_MS, signal)
      if (signal.aborted) return
      const before = { policy: this.#policy, problem: this.#problem }
      this.#readAgain()
      if (before.policy !== this.#policy || before.problem !== this.#problem) changed(before.policy !== this.#policy)
    }
  }

  #readAgain(): void {
    let text: string
    try {
      text = readText(this.#path)
    } catch (error) {
      this.#keep(describeError(error))
      return
    }
    if (text === this.#text && this.#problem === null) return
    const read = parsePolicy(text, this.#path)
    if (read.kind === 'wrong') {
      this.#keep(read.problems.map(({ path, message }) => `${path} ${message}`).join('; '))
      return
    }
    this.#problem = null
    if (text === this.#text) return
    this.#text = text
    this.#policy = read.policy
    this.#log.info('local policy read', { file: this.#path, rules: policyText(read.policy) })
  }

  #keep(problem: string): void {
    if (problem !== this.#problem)
      this.#log.error('local policy cannot be read; the last valid one stays in use', { file: this.#path, error: problem })
    this.#problem = problem
  }
}

/** Reads no more than the greatest allowed size of a policy. */
function readText(path: string): string {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    if (size > FILE_BYTES_MAX) throw new Error(`${path} is larger than ${FILE_BYTES_MAX} bytes`)
    const bytes = Buffer.alloc(size)
    return bytes.subarray(0, readSync(file, bytes, 0, size, 0)).toString('utf8')
  } finally {
    closeSync(file)
  }
}

/** An empty file is a mistake, and not a policy that allows everything: that is `{}`. */
export function parsePolicy(text: string, file: string): { kind: 'policy'; policy: SitePolicy } | { kind: 'wrong'; problems: Problem[] } {
  const parsed = parseYamlDocuments(text, { file })
  if (parsed.problems.length > 0) return { kind: 'wrong', problems: parsed.problems }
  const [document] = parsed.documents
  if (document === undefined || parsed.documents.length > 1)
    return { kind: 'wrong', problems: [{ path: file, message: sitePart('policy_documents', { count: parsed.documents.length }) }] }
  const checked = sitePolicySchema.safeParse(document.value)
  if (checked.success) return { kind: 'policy', policy: checked.data }
  const found = explainIssues(sitePolicySchema, document.value, checked.error)
  return { kind: 'wrong', problems: found.map(({ path, message }) => ({ path: `${file}: ${path}`, message })) }
}

/** `namespaces web-*; deny prune`. */
export function policyText(policy: SitePolicy): string {
  const listOf = (value: unknown): string => (Array.isArray(value) ? value.join(', ') || 'none' : JSON.stringify(value))
  return (
    Object.entries(policy)
      .map(([rule, value]) => `${rule} ${listOf(value)}`)
      .join('; ') || sitePart('policy_allows_all')
  )
}
