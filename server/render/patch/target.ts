// Which objects a patch is of. Pure.
import { groupOf, type K8sObject } from '../../../shared/kube/object.ts'
import { matchesSelector, parseSelectorText } from '../../../shared/model/labels.ts'
import type { Patch } from '../../../shared/model/render.ts'
import { isMap, type JsonMap, PatchError } from './merge.ts'
import { compilePattern } from './safe-pattern.ts'

type Target = NonNullable<Patch['target']>
/** `namespace` is what an object without one gets. */
export type IsTarget = (object: K8sObject, namespace: string) => boolean

const TEXTS = ['group', 'version', 'kind', 'namespace', 'name'] as const
const SELECTORS = { labelSelector: 'labels', annotationSelector: 'annotations' } as const

const versionOf = (apiVersion: string): string => apiVersion.slice(apiVersion.indexOf('/') + 1)

function textOf(object: K8sObject, text: (typeof TEXTS)[number], namespace: string): string {
  const { apiVersion, kind, metadata } = object
  switch (text) {
    case 'group':
      return groupOf(apiVersion)
    case 'version':
      return versionOf(apiVersion)
    case 'kind':
      return kind
    case 'namespace':
      return metadata.namespace ?? namespace
    case 'name':
      return metadata.name ?? metadata.generateName ?? ''
  }
}

/** As in kustomize: all that is given has to hold, and what is empty is not given. Throws PatchError with the member
 *  that cannot be read. */
export function targetOf(target: Target): IsTarget {
  const tests: IsTarget[] = []
  for (const text of TEXTS) {
    const pattern = target[text]
    if (pattern === undefined || pattern === '') continue
    const matches = at(`target.${text}`, () => compilePattern(pattern))
    tests.push((object, namespace) => matches(textOf(object, text, namespace)))
  }
  for (const selector of ['labelSelector', 'annotationSelector'] as const) {
    const text = target[selector]
    if (text === undefined || text === '') continue
    const parsed = parseSelectorText(text)
    if (parsed === null)
      throw new PatchError(`target.${selector}: expected key=value, key!=value, key, !key or key in (a,b), joined by commas`)
    tests.push(({ metadata }) => matchesSelector(metadata[SELECTORS[selector]] ?? {}, parsed))
  }
  return (object, namespace) => tests.every((test) => test(object, namespace))
}

/** A strategic patch without a target is of the object that it names. */
export function namedTarget(patch: JsonMap): IsTarget {
  const { apiVersion, kind, metadata } = patch
  const named = isMap(metadata) ? metadata : {}
  const { name, namespace } = named
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || typeof name !== 'string')
    throw new PatchError('expected a target, or apiVersion, kind and metadata.name of the patched object')
  return (object, given) =>
    groupOf(object.apiVersion) === groupOf(apiVersion) &&
    object.kind === kind &&
    object.metadata.name === name &&
    (namespace === undefined || namespace === null || (object.metadata.namespace ?? given) === namespace)
}

function at<T>(place: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof PatchError) throw new PatchError(`${place}: ${error.message}`)
    throw error
  }
}
