// Fields that others add inside an object of ours. They are no drift and stay; `sync.driftAdditions: report` lists the
// paths.
import type { K8sObject } from '../../../../shared/kube/object.ts'
import { compareText } from '../../../../shared/kube/order.ts'
import { andMore } from '../../../../shared/runtime/messages.ts'
import { objectPart } from '../../../messages/object-messages.ts'
import { fieldText, itemText, shownPaths } from './drift.ts'
import { type OtherFields, treesOf } from './other-fields.ts'
import { childOf, type FieldsNode } from './owned-fields.ts'

const SHOWN_MAX = 10
/** The cluster's own components: their additions are normal. */
const SYSTEM: ReadonlySet<string> = new Set([
  'kube-controller-manager',
  'kube-apiserver',
  'kube-scheduler',
  'kubelet',
  'cloud-controller-manager',
])

/** DR11: paths and managers, sorted; '' if there are none. `applied`: the sent document. */
export function additionsText(applied: string, others: readonly OtherFields[] | null): string {
  if (others === null) return ''
  const object = JSON.parse(applied) as K8sObject
  const found = new Set<string>()
  for (const { manager, subresource, fields } of treesOf(others)) {
    if (subresource !== '' || SYSTEM.has(manager)) continue
    collect(object, fields, '', (path) => found.add(`${shownPaths([path])[0]} (${manager})`))
  }
  const all = [...found].sort(compareText)
  if (all.length === 0) return ''
  return objectPart('fields_added', { paths: andMore(all.slice(0, SHOWN_MAX), all.length) })
}

/** The topmost paths that we do not send. */
function collect(value: unknown, node: FieldsNode, text: string, found: (path: string) => void): void {
  for (const [key, child] of Object.entries(node)) {
    if (key === '.' || child === null || typeof child !== 'object') continue
    const member = childOf(value, key)
    const path = `${text}${key.startsWith('f:') ? fieldText(key.slice(2)) : `[${key.startsWith('v:') ? '*' : itemText(undefined, key)}]`}`
    if (member === undefined) found(path)
    else collect(member, child as FieldsNode, path, found)
  }
}
