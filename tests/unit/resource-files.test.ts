// What somebody is told of a file of resources before anything is sent: all of it, each with its line.
import { expect, test } from 'bun:test'
import { parseResources } from '../../server/cli/resource-files.ts'
import { isRange } from '../../server/sources/range.ts'

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
    'a.yaml:4: metadata.name: n is a boolean in YAML: write "n"',
    'a.yaml:5: metadata.labels.region: no is a boolean in YAML: write "no"',
    'a.yaml:7: spec.source.chart: y is a boolean in YAML: write "y"',
    'a.yaml:8: spec.targets.selector.matchLabels.env: off is a boolean in YAML: write "off"',
    'a.yaml:9: spec.namespace: expected string, received number; put it in quotes',
  ])
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
    'a.yaml:4: spec.git.semver: expected a range of versions, such as ^1.4, ~1.2.3 or >=1.2.0 <2.0.0',
    'a.yaml:4: spec.poll: expected a whole number with ms, s, m, h or d, such as 60s',
    'a.yaml:9: spec.git.clint: unknown field; did you mean "client"?',
    'a.yaml:9: spec.git.semver: ref and semver exclude each other',
    'a.yaml:9: spec.poll: expected a whole number with ms, s, m, h or d, such as 60s',
    'a.yaml:14: spec.oci.url: expected string, received number; put it in quotes',
    'a.yaml:14: spec.oci.insecur: unknown field; did you mean "insecure"?',
    'a.yaml:14: spec.oci: expected one of tag, semver and digest',
    'a.yaml:14: spec.poll: expected a whole number with ms, s, m, h or d, such as 60s',
    'a.yaml:19: spec.poll: at least 1s',
    'a.yaml:19: spec: expected one of git, helm and oci',
    'a.yaml:23: metadata.name: expected lower-case letters, digits and "-", beginning and ending with a letter or digit',
    'a.yaml:24: spec: expected source or sources',
    'a.yaml:25: spec.source: expected a path, or the chart of a Helm repository',
    'a.yaml:26: spec.sources[0]: version applies to charts only; for Git and OCI sources set the version in the Repository',
    'a.yaml:26: spec.sources[2]: expected object, received number; write {repository: …}',
    'a.yaml:26: spec.sources: two sources have the same name',
    'a.yaml:27: spec.targets: expected object, received number; write {selector: …}',
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
