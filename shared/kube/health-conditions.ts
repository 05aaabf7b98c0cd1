// The shapes in which controllers say how they are doing, as parts of a rule: conditions that are to be True, a word in
// a field. The tables of known kinds are made of these. Words that a rule does not name are read as health-words.ts has
// them.
import { byConditions, byCounters, byWord, causeOf, failedBy, generalHealth, waitsFor } from './health-general.ts'
import {
  at,
  type Condition,
  conditionsIn,
  degraded,
  HEALTHY,
  type Health,
  list,
  oneLine,
  progressing,
  type Reading,
  type Rule,
  suspended,
  text,
} from './health-object.ts'
import { camelCase } from './health-words.ts'

export const notReported = (what: string): Health => progressing('NotReported', `its controller has not reported ${what} yet`)

interface ConditionWords {
  /**
   * The meaning of False: a failure unless its reason is `patient`, a delay unless its reason is `failed`, or, by
   * default, as its reason and message say.
   */
  falseIs?: 'Degraded' | 'Progressing'
  /** Reasons of a False that end by themselves. */
  patient?: readonly string[]
  /** Reasons of a False that do not end by themselves. */
  failed?: readonly string[]
}

/**
 * The condition `type` is True. A known kind has it as soon as its controller has read the object: without it the
 * object is Progressing.
 */
export function isTrue(type: string, { falseIs, patient = [], failed = [] }: ConditionWords = {}): Rule {
  return ({ condition }) => {
    const found = condition(type)
    if (found === undefined) return notReported(`condition ${type}`)
    if (found.status === 'True') return HEALTHY
    if (found.status !== 'False' || patient.includes(found.reason)) return waitsFor(found)
    const isFailure = falseIs === 'Degraded' || failed.includes(found.reason) || (falseIs === undefined && causeOf(found) === 'failing')
    return isFailure ? failedBy(found) : waitsFor(found)
  }
}

/**
 * Ready is the summary, and the other conditions explain it, as for an unknown kind; but Ready always exists once the
 * controller has read the object.
 */
export const readySummary: Rule = (reading) => {
  const found = byConditions(reading.conditions, reading.generation)
  if (found !== null && (found.word === 'Degraded' || reading.condition('Ready') !== undefined)) return found
  return notReported('condition Ready')
}

/**
 * All conditions together, as for an unknown kind; but one of them always exists once the controller has read the
 * object.
 */
export const conditionsTogether: Rule = (reading) =>
  byConditions(reading.conditions, reading.generation) ?? notReported('a condition that tells how it is')

/** The whole status, as for an unknown kind; but a known kind without any report is not healthy after a grace time. */
export const statusTogether: Rule = (reading) => {
  const health = generalHealth(reading)
  const isSilent = health.reason === 'NotReported' || (health.word === 'Healthy' && Object.keys(reading.status).length === 0)
  return isSilent ? notReported('a status') : health
}

/** A condition that is trouble while it is True. */
export function unlessTrue(types: readonly string[], rule: Rule): Rule {
  return (reading) => {
    for (const type of types) {
      const found = reading.condition(type)
      if (found?.status === 'True') return failedBy(found)
    }
    return rule(reading)
  }
}

/** A condition that is trouble while it is False. */
export function unlessFalse(types: readonly string[], rule: Rule): Rule {
  return (reading) => {
    for (const type of types) {
      const found = reading.condition(type)
      if (found?.status === 'False') return causeOf(found) === 'stopped' ? stoppedBy(found) : failedBy(found)
    }
    return rule(reading)
  }
}

/** A condition by which a person stopped it. */
export function unlessStopped(type: string, rule: Rule): Rule {
  return (reading) => {
    const found = reading.condition(type)
    return found?.status === 'True' ? stoppedBy(found) : rule(reading)
  }
}
const stoppedBy = ({ type, status, message }: Condition): Health => suspended(oneLine(message) || `condition ${type} is ${status}`)

/** Every existing condition is True; the first one that is not gives the message. */
export const allTrue: Rule = ({ conditions }) => {
  if (conditions.length === 0) return notReported('a condition')
  const wrong = conditions.find(({ status }) => status === 'False') ?? conditions.find(({ status }) => status !== 'True')
  if (wrong === undefined) return HEALTHY
  return wrong.status === 'False' ? failedBy(wrong) : waitsFor(wrong)
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

/** A word in the status. A word that is not named here is a failure where the vocabulary says so, else it is on its
 *  way, and so is none. */
export function byPhase({ at: path = ['phase'], message = ['message'], healthy, ...words }: PhaseWords): Rule {
  const where = `status.${path.join('.')}`
  const { degraded: bad = [], suspended: stopped = [] } = words
  return ({ status, kind }) => {
    const word = text(at(status, ...path))
    if (word === '') return notReported(where)
    const why = oneLine(text(at(status, ...message)))
    const said = why === '' ? `${where} is ${word}` : `${where} is ${word}: ${why}`
    if (healthy.includes(word)) return HEALTHY
    if (bad.includes(word)) return degraded(camelCase(word), said)
    if (stopped.includes(word)) return suspended(said)
    const unnamed = byWord(word, where, why, kind)
    return unnamed?.word === 'Degraded' ? unnamed : progressing(camelCase(word), said)
  }
}

/** A text in the status that is there only when something is wrong for good. */
export function unlessSaid(path: readonly string[], message: readonly string[], reason: string, rule: Rule): Rule {
  return (reading) => {
    const word = text(at(reading.status, ...path))
    return word === '' ? rule(reading) : degraded(reason, oneLine(text(at(reading.status, ...message)) || word))
  }
}

/** The result of the first rule, unless that is Healthy: then that of the second one. */
export function bothOf(first: Rule, second: Rule): Rule {
  return (reading) => {
    const found = first(reading)
    return found.word === 'Healthy' ? second(reading) : found
  }
}

/** Operators of OpenShift's kind: Degraded, then Progressing, then Available. */
export const availableProgressingDegraded: Rule = unlessTrue(['Degraded', 'Failing'], (reading) => {
  const moving = reading.condition('Progressing')
  return moving?.status === 'True' ? waitsFor(moving) : isTrue('Available')(reading)
})

/** As many ready as `spec.replicas` asks for; `readyReplicas` is absent while it is 0. */
export const replicasReady: Rule = ({ spec, status }) =>
  byCounters({ ...status, readyReplicas: status['readyReplicas'] ?? 0 }, { replicas: spec['replicas'] ?? 1 }) ?? HEALTHY

/** Each list of conditions below `status.<name>[]`: the parents of a route, the listeners of a gateway. */
export const conditionLists = (reading: Reading, name: string): Condition[][] =>
  list(reading.status[name]).map(({ conditions }) => conditionsIn(conditions))

/** For kinds whose API promises that each condition names the generation that it was made for: an older one says
 *  nothing about this spec. */
export function whenSeen(types: readonly string[], rule: Rule): Rule {
  return (reading) => {
    const { generation = 0 } = reading
    const old = reading.conditions.find((entry) => types.includes(entry.type) && entry.generation !== null && entry.generation < generation)
    if (old === undefined) return rule(reading)
    return progressing('GenerationNotObserved', `condition ${old.type} is for generation ${old.generation}, not for ${generation} yet`)
  }
}
