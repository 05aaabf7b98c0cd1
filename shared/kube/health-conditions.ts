// The few shapes in which controllers say how they are doing: conditions that are to be true, a word in a field. Rules of custom kinds are made of these.
import {
  at,
  type Condition,
  conditionsIn,
  count,
  degraded,
  HEALTHY,
  type Health,
  type Look,
  list,
  progressing,
  type Rule,
  suspended,
  text,
} from './health-look.ts'

const said = ({ message }: Condition, otherwise: string): string => message || otherwise

/** Kinds without a rule, of groups that the API server does not serve itself. Without a condition there is nothing to wait for. */
export function byConditions(look: Look): Health {
  // Crossplane's claims and composites live in groups of their users; Synced and Ready together tell them.
  const synced = look.condition('Synced')
  if (synced?.status === 'False' && look.condition('Ready') !== undefined)
    return degraded(synced.reason || 'NotSynced', said(synced, 'it is not synced'))
  for (const type of ['Ready', 'Available', 'Established']) {
    const condition = look.condition(type)
    if (condition === undefined) continue
    if (condition.status === 'True') return HEALTHY
    return progressing(condition.reason || `Not${type}`, said(condition, `condition ${type} is ${condition.status}`))
  }
  return HEALTHY
}

interface ConditionWords {
  /** `False` is a failure, unless its reason is one of `patient`; else it is on the way. */
  falseIs?: 'Degraded' | 'Progressing'
  /** Reasons of a `False` that end by themselves. */
  patient?: readonly string[]
  /** Reasons of a `False` that do not, where `False` is otherwise on the way. */
  failed?: readonly string[]
}

/** The named condition is `True`. Known kinds always have it once their controller has looked: without it they are on the way. */
export function isTrue(type: string, { falseIs = 'Progressing', patient = [], failed = [] }: ConditionWords = {}): Rule {
  return ({ condition }) => {
    const found = condition(type)
    if (found === undefined) return progressing('NotReported', `its controller has not said ${type} yet`)
    if (found.status === 'True') return HEALTHY
    const message = said(found, `condition ${type} is ${found.status}`)
    const bad = found.status === 'False' && (falseIs === 'Degraded' ? !patient.includes(found.reason) : failed.includes(found.reason))
    return bad ? degraded(found.reason || `Not${type}`, message) : progressing(found.reason || `Not${type}`, message)
  }
}

/** A condition that means trouble when it is `True`. */
export function unlessTrue(types: readonly string[], rule: Rule): Rule {
  return (look) => {
    for (const type of types) {
      const found = look.condition(type)
      if (found?.status === 'True') return degraded(found.reason || type, said(found, `condition ${type} is True`))
    }
    return rule(look)
  }
}

/** A condition that means trouble when it is `False`. */
export function unlessFalse(types: readonly string[], rule: Rule): Rule {
  return (look) => {
    for (const type of types) {
      const found = look.condition(type)
      if (found?.status === 'False') return degraded(found.reason || `Not${type}`, said(found, `condition ${type} is False`))
    }
    return rule(look)
  }
}

/** Every condition that is there is `True`; the first one that is not speaks. */
export const allTrue: Rule = ({ conditions }) => {
  if (conditions.length === 0) return progressing('NotReported', 'its controller has not looked at it yet')
  const wrong = conditions.find(({ status }) => status === 'False') ?? conditions.find(({ status }) => status !== 'True')
  if (wrong === undefined) return HEALTHY
  const message = said(wrong, `condition ${wrong.type} is ${wrong.status}`)
  return wrong.status === 'False'
    ? degraded(wrong.reason || `Not${wrong.type}`, message)
    : progressing(wrong.reason || `Not${wrong.type}`, message)
}

export interface PhaseWords {
  /** Where the word stands below `status`. */
  at?: readonly string[]
  /** Where its explanation stands below `status`. */
  message?: readonly string[]
  healthy: readonly string[]
  degraded?: readonly string[]
  suspended?: readonly string[]
}

/** A word in the status. One that nobody knows, and none, is on the way. */
export function byPhase({
  at: path = ['phase'],
  message = ['message'],
  healthy,
  degraded: bad = [],
  suspended: stopped = [],
}: PhaseWords): Rule {
  const where = `status.${path.join('.')}`
  return ({ status }) => {
    const word = text(at(status, ...path))
    if (word === '') return progressing('NotReported', `${where} is not set yet`)
    const why = text(at(status, ...message)) || `${where} is ${word}`
    if (healthy.includes(word)) return HEALTHY
    if (bad.includes(word)) return degraded(reasonOf(word), why)
    return stopped.includes(word) ? suspended(`${where} is ${word}`) : progressing(reasonOf(word), why)
  }
}

/** `in progress` → `InProgress`. */
export const reasonOf = (word: string): string =>
  word
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('') || 'Unnamed'

/** `spec.<field>` is true: somebody stopped it. */
export function unlessSpec(field: string, rule: Rule): Rule {
  return (look) => (look.spec[field] === true ? suspended(`spec.${field} is true`) : rule(look))
}

/** A condition that says that it was stopped on purpose. */
export function unlessStopped(type: string, rule: Rule): Rule {
  return (look) => {
    const found = look.condition(type)
    return found?.status === 'True' ? suspended(said(found, `condition ${type} is True`)) : rule(look)
  }
}

/** A text in the status that is there only when something is wrong for good. */
export function unlessSaid(path: readonly string[], message: readonly string[], reason: string, rule: Rule): Rule {
  return (look) => {
    const word = text(at(look.status, ...path))
    if (word === '') return rule(look)
    return degraded(reason, text(at(look.status, ...message)) || word)
  }
}

/** Operators of OpenShift's kind: Degraded, then Progressing, then Available. */
export const availableProgressingDegraded: Rule = (look) => {
  const moving = look.condition('Progressing')
  return unlessTrue(['Degraded'], (seen) =>
    moving?.status === 'True' ? progressing(moving.reason || 'Progressing', said(moving, 'it is progressing')) : isTrue('Available')(seen),
  )(look)
}

/** As many ready as `spec.replicas` asks for. */
export const replicasReady: Rule = ({ spec, status }) => {
  const [wanted, ready] = [count(spec['replicas'], 1), count(status['readyReplicas'])]
  return ready >= wanted ? HEALTHY : progressing('LessReady', `${ready} of ${wanted} replicas are ready`)
}

/** Each of a list of conditions in the status (parents of a route, ancestors of a policy). */
export const conditionLists = (look: Look, name: string): Condition[][] =>
  list(look.status[name]).map(({ conditions }) => conditionsIn(conditions, look.nowMs))

/** For kinds whose API promises that each condition names the generation that it was made for: an older one says nothing of this spec. */
export function whenSeen(types: readonly string[], rule: Rule): Rule {
  return (look) => {
    const { generation = 0 } = look
    const old = look.conditions.find((entry) => types.includes(entry.type) && entry.generation !== null && entry.generation < generation)
    if (old === undefined) return rule(look)
    return progressing('GenerationNotObserved', `condition ${old.type} is of generation ${old.generation}, not of ${generation} yet`)
  }
}
