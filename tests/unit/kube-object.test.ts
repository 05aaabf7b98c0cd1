import { describe, expect, test } from 'bun:test'
import { isK8sObject, k8sObjectSchema } from '../../shared/kube/object.ts'

const whole = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'a',
    namespace: 'b',
    uid: 'u',
    resourceVersion: '7',
    generation: 1,
    creationTimestamp: null,
    finalizers: ['x/y'],
    labels: { a: 'b' },
    annotations: { c: 'd' },
    ownerReferences: [{ kind: 'Deployment', name: 'n', uid: 'u', controller: true }],
    managedFields: [{ manager: 'm', operation: 'Apply', fieldsV1: { 'f:data': {} } }],
  },
  data: { a: '1' },
}
const WRONG = [
  null,
  7,
  '',
  'text',
  true,
  [],
  [7],
  [null],
  {},
  { a: 7 },
  [{ kind: 7 }],
  [{ manager: 7 }],
  [{ fieldsV1: 'x' }],
  [{ fieldsV1: null }],
]

/** Every value of WRONG in every place of the object, and every place left out. */
function* variants(value: unknown, rebuild: (changed: unknown) => unknown): Generator<unknown> {
  for (const wrong of WRONG) yield rebuild(wrong)
  if (Array.isArray(value)) for (const [i, item] of value.entries()) yield* variants(item, (changed) => rebuild(value.with(i, changed)))
  else if (value !== null && typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) {
      const { [key]: _out, ...rest } = value as Record<string, unknown>
      yield rebuild(rest)
      yield* variants(member, (changed) => rebuild({ ...value, [key]: changed }))
    }
  }
}

describe('isK8sObject', () => {
  test('KA20 takes exactly what the schema takes', () => {
    let refused = 0
    for (const variant of [whole, ...variants(whole, (changed) => changed)]) {
      const expected = k8sObjectSchema.safeParse(variant).success
      if (isK8sObject(variant) !== expected) expect({ variant, taken: !expected }).toEqual({ variant, taken: expected })
      if (!expected) refused += 1
    }
    expect(refused).toBeGreaterThan(100)
    expect(isK8sObject(whole)).toBe(true)
  })
})
