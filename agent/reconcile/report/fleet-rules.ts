// The HealthRules that this cluster's agent was given with its rows, compiled. The CEL library is loaded with the first
// of them.
import { compileFleetRule } from '../../../shared/adapters/cel.ts'
import type { FleetRule } from '../../../shared/kube/fleet-rule.ts'
import { parseRowId } from '../../../shared/model/desired.ts'
import { type HealthRuleSpec, healthRuleRowSchema } from '../../../shared/model/health-rules.ts'
import { FLEET } from '../../../shared/model/resources.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { explanation } from '../../messages/explanation-messages.ts'

export type RuleRows = ReadonlyArray<readonly [id: string, doc: string]>

/** Objects that other rules judge from now on. `project` is empty for the services of all projects. */
export interface Rejudged {
  group: string
  kind: string
  project: string
}

interface Held {
  doc: string
  project: string
  rule: FleetRule
}

const NONE: readonly FleetRule[] = []

export class FleetRules {
  #held: ReadonlyMap<string, Held> = new Map()
  /** By project: its own rules and those of the fleet, each in the order of their names. */
  readonly #byProject = new Map<string, readonly FleetRule[]>()

  /** HR2: those of the project are asked before those of the fleet. */
  of(project: string): readonly FleetRule[] {
    if (this.#held.size === 0) return NONE
    const known = this.#byProject.get(project)
    if (known !== undefined) return known
    const all = [...this.#held.values()]
    const rulesOf = (wanted: string) => all.filter((held) => held.project === wanted).map(({ rule }) => rule)
    const rules = [...rulesOf(project), ...rulesOf(FLEET)]
    this.#byProject.set(project, rules)
    return rules
  }

  isSame(rows: RuleRows): boolean {
    return rows.length === this.#held.size && rows.every(([id, doc]) => this.#held.get(id)?.doc === doc)
  }

  /** Resolves when these are the rules in force. `rows` are sorted by their ids. */
  async take(rows: RuleRows, log: Logger): Promise<Rejudged[]> {
    const before = this.#held
    const held = new Map<string, Held>()
    for (const [id, doc] of rows) {
      const known = before.get(id)
      const read = known?.doc === doc ? known : await readRule(id, doc)
      if (read === null) log.warn('a health rule cannot be read: upgrade the agent', { row: id })
      else held.set(id, read)
    }
    this.#held = held
    this.#byProject.clear()
    const changed = [...before, ...held].filter(
      ([id, { rule }]) => before.get(id)?.rule !== held.get(id)?.rule || held.get(id)?.rule !== rule,
    )
    const rejudged = changed.map(([, { rule, project }]): Rejudged => ({ group: rule.group, kind: rule.kind, project }))
    return [...new Map(rejudged.map((one) => [`${one.group}/${one.kind}/${one.project}`, one])).values()]
  }
}

/** Null when the row does not even say which kind it is for. */
async function readRule(rowId: string, doc: string): Promise<Held | null> {
  const row = parseRowId(rowId)
  const spec = parseSpec(doc)
  if (row.kind !== 'healthrule' || spec === null || (spec.group === '' && spec.kind === 'Secret')) return null
  const { project, name } = row
  const id = project === FLEET ? name : `${project}/${name}`
  const compiled = await compileFleetRule(id, spec)
  return { doc, project, rule: 'why' in compiled ? tooNew(id, spec, compiled.why) : compiled }
}

function parseSpec(doc: string): HealthRuleSpec | null {
  try {
    return (healthRuleRowSchema.safeParse(JSON.parse(doc)).data as HealthRuleSpec | undefined) ?? null
  } catch {
    return null
  }
}

/** A server that knows more functions took the rule: an object that cannot be judged is never healthy. */
function tooNew(id: string, { group, kind, versions }: HealthRuleSpec, why: string): FleetRule {
  const when = () => ({ kind: 'error' as const, why: explanation('rule_too_new', { why }) })
  return { id, group, kind, versions: versions ?? null, verdicts: { healthy: { when, message: null } } }
}
