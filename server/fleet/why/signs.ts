// Signs of causes in what agents report of objects: a reason, words of a kubelet, a scheduler or an API server. The
// first sign that fits decides. Pure.
import { LAST_LOG_LINES } from '../../../shared/model/why.ts'
import { APPLY_SIGNS } from './apply-signs.ts'
import { POD_SIGNS } from './pod-signs.ts'

export interface Sign {
  cause: string
  /** `$1` is the first group of `words`. */
  summary: string
  /** Reasons of the object. Absent means any. */
  reasons?: readonly string[]
  /** In reason and message. Absent means that the reason decides. */
  words?: RegExp
  /** How near it is to the root: a failed quota is the reason why Pods are missing, and never the other way round. */
  depth: number
  next: string
}

export interface Seen {
  reason: string
  message: string
}

export interface Read {
  sign: Sign
  summary: string
  next: string
}

export const SIGNS: readonly Sign[] = [...APPLY_SIGNS, ...POD_SIGNS]

/** Null means that nothing is known of it. */
export function readSign({ reason, message }: Seen): Read | null {
  const [said] = message.split(LAST_LOG_LINES, 1)
  const text = `${reason}: ${said}`
  for (const sign of SIGNS) {
    if (sign.reasons !== undefined && !sign.reasons.includes(reason)) continue
    const found = sign.words === undefined ? [] : sign.words.exec(text)
    if (found === null) continue
    const filled = (template: string) => template.replaceAll(/\$(\d)/g, (_, group: string) => found[Number(group)] ?? '')
    return { sign, summary: filled(sign.summary), next: filled(sign.next) }
  }
  return null
}
