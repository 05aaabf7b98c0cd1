// How each service wants the health of its objects evaluated: its own rules, those of its project and of the fleet, and
// whether to wait for addresses. Health is computed when an object changes, and the object is not kept: after a change
// of these choices the affected objects are read once each. The choices are stored as facts, so that a restart knows
// them before its watches begin and reads nothing.
import { z } from 'zod'
import { compileServiceHealth } from '../../../shared/adapters/cel.ts'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { HealthOptions } from '../../../shared/kube/health.ts'
import type { CompiledRule } from '../../../shared/kube/health-rule.ts'
import { groupOf, versionOf } from '../../../shared/kube/object.ts'
import { type ServiceHealth, serviceHealthSchema } from '../../../shared/model/health-rules.ts'
import { type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { explanation } from '../../messages/explanation-messages.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { remember } from '../apply/remember.ts'
import type { Site, Storage } from '../ports.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import type { Owner } from '../snapshot/watch/live-object.ts'
import { FleetRules, type Rejudged } from './fleet-rules.ts'

const FACT = 'health/choice'
const choiceSchema = z.object({ waitForAddress: z.boolean(), rules: z.array(serviceHealthSchema) })
type Choice = z.infer<typeof choiceSchema>
const NONE: Choice = { waitForAddress: false, rules: [] }

/** Kinds whose health an address is part of. */
const ADDRESSED: ReadonlySet<string> = new Set(['/Service', 'networking.k8s.io/Ingress', 'gateway.networking.k8s.io/Gateway'])

export class HealthChoices {
  readonly #options = new Map<string, HealthOptions>()
  readonly #choices = new Map<string, Choice>()
  readonly #fleetRules = new FleetRules()
  /** With the rules of the fleet, by service; made on request. */
  readonly #joined = new Map<string, HealthOptions>()
  #reading: Promise<void> = Promise.resolve()

  /** Undefined if the usual options apply. */
  of(owner: Owner): HealthOptions | undefined {
    if (owner.kind !== 'service') return undefined
    const fleetRules = this.#fleetRules.of(owner.project)
    if (fleetRules.length === 0) return this.#options.size === 0 ? undefined : this.#options.get(serviceKey(owner))
    const key = serviceKey(owner)
    const known = this.#joined.get(key)
    if (known !== undefined) return known
    const joined = { waitForAddress: false, rules: [], ...this.#options.get(key), fleetRules }
    this.#joined.set(key, joined)
    return joined
  }

  /** The choices from before this process. */
  async load(state: AgentState): Promise<void> {
    for (const id of state.services()) {
      const kept = choiceSchema.safeParse(state.facts(id, FACT).get(FACT))
      if (kept.success) await this.#choose(id, kept.data)
    }
  }

  /**
   * HR6: the received rows may hold other rules. `rejudge` is called with the objects that they judge, once the rules
   * are in force.
   */
  rulesCame({ replica, log }: Pick<Site & Storage, 'replica' | 'log'>, rejudge: (changed: Rejudged) => void): Promise<void> {
    const look = async () => {
      const rows = replica.healthRules()
      if (rows === null || this.#fleetRules.isSame(rows)) return
      const changed = await this.#fleetRules.take(rows, log)
      this.#joined.clear()
      log.info('health rules read', { rules: rows.length, changed: changed.length })
      for (const one of changed) rejudge(one)
    }
    this.#reading = this.#reading
      .then(look)
      .catch((error: unknown) => log.error('health rules cannot be read', { error: describeError(error) }))
    return this.#reading
  }

  /** HR6: resolves when the rules that arrived before are in force. */
  rulesRead(): Promise<void> {
    return this.#reading
  }

  /** HE9. Resolves when the choice is in force; the affected objects are Progressing until they were read. */
  async follow(model: ServiceModel, { state, kinds, watches }: Site & Storage): Promise<void> {
    const { row, key, id } = model
    if (row === null || row.removal !== undefined) return
    const next: Choice = { waitForAddress: row.sync.waitForAddress ?? false, rules: row.health ?? [] }
    const before = this.#choices.get(key) ?? NONE
    if (canonicalJson(before) === canonicalJson(next)) return
    await this.#choose(id, next)
    const isDefault = canonicalJson(next) === canonicalJson(NONE)
    remember(model, { state }, new Map([[FACT, isDefault ? null : next]]))
    const concerned = kindsOf(before, next)
    for (const [objectKey, { ref, apiVersion }] of model.inventory) {
      if (!concerned.has(`${ref.group}/${ref.kind}`)) continue
      const lookup = kinds.findAny(ref.group, versionOf(apiVersion), ref.kind)
      if (lookup.kind === 'served' && watches.judgeAgain(lookup.resource, ref)) model.queue.touch(objectKey)
    }
  }

  /** The service is gone, and with it its choices. */
  forget(id: ServiceId): void {
    this.#choices.delete(serviceKey(id))
    this.#options.delete(serviceKey(id))
    this.#joined.delete(serviceKey(id))
  }

  async #choose(id: ServiceId, choice: Choice): Promise<void> {
    const key = serviceKey(id)
    const rules = await Promise.all(choice.rules.map(compile))
    this.#choices.set(key, choice)
    this.#joined.delete(key)
    if (rules.length === 0 && !choice.waitForAddress) this.#options.delete(key)
    else this.#options.set(key, { waitForAddress: choice.waitForAddress, rules })
  }
}

/** A server with more functions accepted it: an expression that cannot be evaluated is never healthy. */
async function compile(rule: ServiceHealth): Promise<CompiledRule> {
  const compiled = await compileServiceHealth(rule)
  if (typeof compiled !== 'string') return compiled
  const current = () => ({ kind: 'error' as const, why: explanation('rule_too_new', { why: compiled }) })
  return { group: groupOf(rule.apiVersion), kind: rule.kind, current, inProgress: null, failed: null }
}

function kindsOf(before: Choice, next: Choice): Set<string> {
  const rules = [...before.rules, ...next.rules].map(({ apiVersion, kind }) => `${groupOf(apiVersion)}/${kind}`)
  return new Set(before.waitForAddress === next.waitForAddress ? rules : [...rules, ...ADDRESSED])
}
