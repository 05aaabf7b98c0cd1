// Names, labels and annotations that no API server takes; tests/contract/object-names-real.test.ts holds the same rules
// against real ones.
import { describe, expect, test } from 'bun:test'
import { nameFaults } from '../../server/render/object-names.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { naming } from '../support/naming.ts'
import { renderFiles } from '../support/render-files.ts'

const object = (apiVersion: string, kind: string, metadata: Record<string, unknown>): K8sObject =>
  ({ apiVersion, kind, metadata: { namespace: 'web', ...metadata } }) as K8sObject
const faults = (apiVersion: string, kind: string, metadata: Record<string, unknown>) =>
  nameFaults(object(apiVersion, kind, metadata)).map(({ at, message }) => `${at.join(' ')}: ${message}`)

describe('RN10 names', () => {
  const [long, longest] = ['a'.repeat(63), `${'a'.repeat(125)}.${'b'.repeat(127)}`]
  test.each([
    ['v1', 'ConfigMap', 'web.1-a', true],
    ['v1', 'ConfigMap', '1', true],
    ['v1', 'ConfigMap', longest, true],
    ['v1', 'ConfigMap', `${longest}c`, false],
    ['v1', 'ConfigMap', 'Web', false],
    ['v1', 'Secret', 'my_web', false],
    ['apps/v1', 'Deployment', 'web-', false],
    ['apps/v1', 'StatefulSet', 'from.earlier', true],
    ['networking.k8s.io/v1', 'Ingress', 'a..b', false],
    ['v1', 'Service', '1st', true],
    ['v1', 'Service', 'a.b', false],
    ['v1', 'Namespace', long, true],
    ['v1', 'Namespace', `${long}a`, false],
    ['rbac.authorization.k8s.io/v1', 'ClusterRole', 'system:Node Viewer_1', true],
    ['policy/v1', 'PodDisruptionBudget', 'Web_1', true],
    ['apiregistration.k8s.io/v1', 'APIService', 'v1.example.com', true],
    ['example.com/v1', 'ConfigMap', 'My Thing', true],
    ['v1', 'constructor', 'A', true],
    ['__proto__/v1', 'ConfigMap', 'A', true],
  ])('RN10 %s %s %s: %p', (apiVersion, kind, name, isGood) => {
    expect(faults(apiVersion, kind, { name }).length).toBe(isGood ? 0 : 1)
  })

  test.each([
    ['web-', 0],
    ['web', 0],
    ['Web-', 1],
    ['web.-', 1],
    ['a'.repeat(253), 0],
    ['a'.repeat(254), 1],
  ])('RN10 HK9 what begins a name: %s', (generateName, count) => {
    const annotations = { 'skerry.dev/hook': 'before' }
    expect(faults('batch/v1', 'Job', { generateName, annotations }).length).toBe(count)
  })

  test('RN10 of what is skipped nothing is asked', () => {
    expect(faults('v1', 'Pod', { name: 'Test_1', annotations: { 'helm.sh/hook': 'test' } })).toEqual([])
  })

  test.each([
    ['My_Web', 'my-web'],
    ['-web.', 'web'],
    ['web-.example', 'web.example'],
    ['_', 'example'],
    [`${'Ä'.repeat(300)}x`, 'example'],
  ])('RN10 what was probably meant by %s', (name, example) => {
    const [message = ''] = faults('v1', 'ConfigMap', { name })
    expect(message).toMatch(new RegExp(`\\b253\\b.* ${example.replace('.', '\\.')}$`))
    expect(message.length).toBeLessThan(400)
  })
})

describe('RN10 labels and annotations', () => {
  test.each([
    ['labels', 'app', 'web', true],
    ['labels', 'app', '', true],
    ['labels', 'app', 'a'.repeat(63), true],
    ['labels', 'app', 'a'.repeat(64), false],
    ['labels', 'app', 'my web', false],
    ['labels', 'app', 'web.', false],
    ['labels', 'app', 'web\n', false],
    ['labels', `${'a'.repeat(253)}/${'b'.repeat(63)}`, 'x', true],
    ['labels', `${'a'.repeat(254)}/b`, 'x', false],
    ['labels', 'b'.repeat(64), 'x', false],
    ['labels', 'Example.com/a', 'x', false],
    ['labels', 'a/b/c', 'x', false],
    ['labels', '/a', 'x', false],
    ['labels', 'a/', 'x', false],
    ['labels', '', 'x', false],
    ['annotations', 'Example.com/A_b', 'any text\n{}', true],
    ['annotations', 'a b', 'x', false],
    ['annotations', 'a/b/c', 'x', false],
    ['annotations', 'a', 'x'.repeat(256 * 1024 - 1), true],
    ['annotations', 'a', 'x'.repeat(256 * 1024), false],
  ])('RN10 %s %s', (field, key, value, isGood) => {
    const found = faults('rbac.authorization.k8s.io/v1', 'ClusterRole', { name: 'a', [field]: { [key]: value } })
    expect(found.length).toBe(isGood ? 0 : 1)
  })

  test('RN10 what was found, what is expected, an example', () => {
    expect(faults('v1', 'Service', { name: 'Web.1', labels: { 'My app': 'x y' }, annotations: { 'a/b c': 'x' } })).toEqual([
      naming('metadata name:', '"Web.1"', 'Service', 'lower-case', 63, 'such as web-1'),
      naming('metadata labels My app:', 'key', 'PREFIX/NAME', 63, 'such as My-app'),
      naming('metadata labels My app:', 'value "x y"', 63, 'such as x-y'),
      naming('metadata annotations a/b c:', 'key', 'PREFIX/NAME', 63, 'such as a/b-c'),
    ])
  })
})

describe('RN10 in a render', () => {
  const problems = (text: string) => {
    const files = new Map([['a.yaml', new TextEncoder().encode(text)]])
    const result = renderFiles({ project: 'default', service: 'shop', path: 'shop', commit: '0123456789abcdef', namespace: 'web', files })
    return result.kind === 'failed' ? result.problems.map(({ path, message }) => `${path}: ${message.split(': expected')[0]}`) : []
  }
  const head = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n'
  test('RN10 with the line of the field, all at once', () => {
    const labels = '  labels:\n    app: web\n    tier: a b\n  annotations: { x y: "1" }\n'
    expect(problems(`${head}  name: A\n${labels}---\n${head}  name: b\n  labels: { a: "-" }\n`)).toEqual([
      naming('a.yaml:4:3:', 'metadata.name "A"', 'ConfigMap'),
      naming('a.yaml:7:5:', 'label "tier"', '"a b"'),
      naming('a.yaml:8:18:', 'annotation "x y"'),
      naming('a.yaml:14:13:', 'label "a"', '"-"'),
    ])
  })
  test.each([
    ['name: a/b', ['4:3:', 'metadata.name "a/b"']],
    ['name: ..', ['4:3:', 'metadata.name ".."']],
    ['name: a%b', ['4:3:', 'metadata.name "a%b"']],
    ['name: "a\\nb"', ['4:3:', 'metadata.name "a\\nb"']],
    [`{ name: a, namespace: ${'n'.repeat(64)} }`, ['4:14:', `metadata.namespace "${'n'.repeat(64)}"`]],
    ['{ name: a, namespace: My_web }', ['4:14:', 'metadata.namespace "My_web"']],
  ])('RN10 %s', (metadata, expected) => {
    expect(problems(`apiVersion: v1\nkind: ConfigMap\nmetadata:\n  ${metadata}\n`)).toEqual([naming('a.yaml:', ...expected)])
  })
})
