// What somebody is told of a file of resources before anything is sent: all of it, each with its line.
import { expect, test } from 'bun:test'
import { parseResources } from '../../server/cli/resource-files.ts'
import { isRange } from '../../server/sources/range.ts'
import { naming } from '../support/naming.ts'

const told = (text: string) => parseResources([{ name: 'a.yaml', text }]).problems.map(({ path, message }) => `${path}: ${message}`)
const HEAD = 'apiVersion: skerry.dev/v1\n'

test('AP4 a word that YAML takes for a boolean is said as it was written', () => {
  const text = `${HEAD}kind: Service
metadata:
  name: n
  labels: {region: no}
spec:
  source: {repository: "a", chart: y}
  targets: {selector: {matchLabels: {env: off}}}
  namespace: 7
`
  expect(told(text)).toEqual([
    naming('a.yaml:4: metadata.name:', 'boolean', '"n"'),
    naming('a.yaml:5: metadata.labels.region:', 'boolean', '"no"'),
    naming('a.yaml:7: spec.source.chart:', 'boolean', '"y"'),
    naming('a.yaml:8: spec.targets.selector.matchLabels.env:', 'boolean', '"off"'),
    naming('a.yaml:9: spec.namespace:', 'string', 'number', 'quotes'),
  ])
})

test('AP4 an object of Kubernetes is one problem, which says where it belongs', () => {
  const text = 'apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 1}\n---\napiVersion: v1\nkind: Service\nspec: {ports: []}\n'
  expect(told(text)).toEqual([
    naming('a.yaml:1: apiVersion:', 'apps/v1', 'skerry explain'),
    naming('a.yaml:5: apiVersion:', 'v1', 'skerry explain'),
  ])
  expect(told('apiVersion: skerry.dev/v2\nkind: Role\n')[0]).toEqual(naming('a.yaml:1: apiVersion:', 'skerry.dev/v1'))
})

test('AP4 one document with everything wrong, and others beside it: all of it is told at once, each once', () => {
  const repository = (name: string, spec: string) => `${HEAD}kind: Repository\nmetadata: {name: ${name}}\nspec: ${spec}\n`
  const text = [
    repository('r1', '{git: {url: "https://a/b", semver: not a range}, poll: 5}'),
    repository('r2', '{git: {url: "https://a/b", ref: v1, semver: "^1", clint: x}, poll: 5x}'),
    repository('r3', '{oci: {url: 7, tag: a, semver: "1", insecur: true}, poll: 0}'),
    repository('r4', '{poll: 10ms}'),
    `${HEAD}kind: Service
metadata: {name: Web}
spec:
  source: {repository: a, path: b, chart: c}
  sources: [{repository: a, version: "1", path: b, name: x}, {repository: a, path: b, name: x}, 7]
  targets: 7
`,
  ].join('---\n')
  expect(told(text)).toEqual([
    naming('a.yaml:4: spec.git.semver:', '^1.4, ~1.2.3 or >=1.2.0 <2.0.0'),
    naming('a.yaml:4: spec.poll:', 'ms, s, m, h or d', '60s'),
    naming('a.yaml:9: spec.git.clint:', '"client"'),
    naming('a.yaml:9: spec.git.semver:', 'ref and semver'),
    naming('a.yaml:9: spec.poll:', '60s'),
    naming('a.yaml:14: spec.oci.url:', 'string', 'number', 'quotes'),
    naming('a.yaml:14: spec.oci.insecur:', '"insecure"'),
    naming('a.yaml:14: spec.oci:', 'tag, semver and digest'),
    naming('a.yaml:14: spec.poll:', '60s'),
    naming('a.yaml:19: spec.poll:', '1s'),
    naming('a.yaml:19: spec:', 'git, helm and oci'),
    naming('a.yaml:23: metadata.name:', 'lower-case', '"-"'),
    naming('a.yaml:24: spec:', 'source or sources'),
    naming('a.yaml:25: spec.source:', 'path', 'chart'),
    naming('a.yaml:26: spec.sources[0]:', 'version', 'charts'),
    naming('a.yaml:26: spec.sources[2]:', 'object', 'number', '{repository: …}'),
    naming('a.yaml:26: spec.sources:', 'same name'),
    naming('a.yaml:27: spec.targets:', 'object', 'number', '{selector: …}'),
  ])
})

test.each([
  '^1.4',
  '~1.2.3',
  '>=1.2.0 <2.0.0',
  '1.x',
  '*',
  '1 - 2',
  '>= 1, < 2',
  '^1 || ~2',
  '!=1.2.3',
  '=>1',
  'v1.2',
  '>=1.0.0-0',
  '1.2.3-rc.1',
  'X',
  '1||2',
])('SO37 a range of versions is taken: %s', (semver) => {
  const text = JSON.stringify({
    apiVersion: 'skerry.dev/v1',
    kind: 'Repository',
    metadata: { name: 'a' },
    spec: { git: { url: 'https://a/b', semver } },
  })
  expect(isRange(semver)).toBe(true)
  expect(told(text)).toEqual([])
})
