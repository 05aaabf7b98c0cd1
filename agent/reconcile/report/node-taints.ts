// Names the taints that keep a Pod from the nodes that its nodeSelector allows. The scheduler of Kubernetes 1.36
// reports only that nodes have taints, and a cordoned node and a full disk look the same there. Pure.
import { type Fields, fields, list, text } from '../../../shared/kube/health-object.ts'
import type { K8sObject } from '../../../shared/kube/object.ts'
import { explanation } from '../../messages/explanation-messages.ts'

/** Words of schedulers for nodes whose taints the Pod does not tolerate. A cordoned node has a taint, too. */
const BY_TAINTS = /untolerated taint|node\(s\) were unschedulable/
export const isByTaints = (said: string): boolean => BY_TAINTS.test(said)

const REPELS: ReadonlySet<string> = new Set(['NoSchedule', 'NoExecute'])
const KEY = /^[\w./-]{1,317}$/
const SHOWN_MAX = 5
const CHARS_MAX = 250

/** Reads nodes one after the other. */
export class TaintFindings {
  readonly #labels: Array<[string, unknown]>
  readonly #tolerations: readonly Fields[]
  /** Terms of a required affinity are not evaluated, so nothing is known of the nodes that it allows. */
  readonly #hasAffinity: boolean
  readonly #nodesByKey = new Map<string, number>()

  constructor(pod: K8sObject) {
    const spec = fields(pod['spec'])
    this.#labels = Object.entries(fields(spec['nodeSelector']))
    this.#tolerations = list(spec['tolerations'])
    const affinity = fields(fields(spec['affinity'])['nodeAffinity'])
    this.#hasAffinity = affinity['requiredDuringSchedulingIgnoredDuringExecution'] !== undefined
  }

  add(node: K8sObject): void {
    if (this.#hasAffinity) return
    const { labels = {} } = node.metadata
    if (!this.#labels.every(([key, value]) => labels[key] === value)) return
    const taints = list(fields(node['spec'])['taints']).filter((taint) => REPELS.has(text(taint['effect'])) && !this.#tolerates(taint))
    for (const key of new Set(taints.map((taint) => text(taint['key']))))
      if (KEY.test(key)) this.#nodesByKey.set(key, (this.#nodesByKey.get(key) ?? 0) + 1)
  }

  /** `untolerated taints: dedicated on 2 nodes`; '' if no node that the Pod may use has one. */
  explain(): string {
    const sorted = [...this.#nodesByKey].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1))
    if (sorted.length === 0) return ''
    const shown = sorted.slice(0, SHOWN_MAX).map(([key, count]) => explanation('taint', { key, count }))
    return explanation(sorted.length > SHOWN_MAX ? 'most_taints' : 'taints', { taints: shown.join(', ') }).slice(0, CHARS_MAX)
  }

  #tolerates({ key, value, effect }: Fields): boolean {
    return this.#tolerations.some((one) => {
      const operator = text(one['operator']) || 'Equal'
      if (text(one['effect']) !== '' && one['effect'] !== effect) return false
      if (text(one['key']) === '') return operator === 'Exists'
      // An operator that this version does not know may tolerate the taint: nothing wrong is said of it.
      return one['key'] === key && (operator !== 'Equal' || text(one['value']) === text(value))
    })
  }
}
