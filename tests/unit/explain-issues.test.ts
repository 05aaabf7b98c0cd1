// What somebody reads whose document is not as the schema wants it: never a hint that repeats what was said, always
// what to write.
import { expect, test } from 'bun:test'
import { explainIssues } from '../../shared/model/explain.ts'
import { applicableSchema } from '../../shared/model/resources.ts'
import { naming } from '../support/naming.ts'

function told(input: unknown): string[] {
  const read = applicableSchema.safeParse(input)
  return read.success ? [] : explainIssues(applicableSchema, input, read.error).map(({ path, message }) => `${path}: ${message}`)
}
const service = (spec: Record<string, unknown>, apiVersion = 'skerry.dev/v1') => ({
  apiVersion,
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { source: { repository: 'apps', path: 'web' }, targets: { selector: {} }, ...spec },
})

test.each([
  ['one right word is said once', service({}, 'skerry.dev/v2'), [['apiVersion: ', '"skerry.dev/v1"']]],
  ['a string in a list of objects', service({ dependsOn: ['db'] }), [['spec.dependsOn[0]: ', 'object', 'string', '{name: …}']]],
  [
    'of values, as Argo CD takes them',
    service({ render: { helm: { values: 'replicas: 3' } } }),
    [['spec.render.helm.values: ', 'map', 'string', 'mapping itself']],
  ],
  ['of a list', service({ configFrom: { name: 'vars' } }), [['spec.configFrom: ', 'list', 'object']]],
  ['of configs', service({ configFrom: ['vars'] }), [['spec.configFrom[0]: ', 'object', 'string', '{name: …}']]],
  [
    'of fields that may all be left out',
    service({ targets: { selector: {}, exclude: ['env=prod'] } }),
    [['spec.targets.exclude[0]: ', 'object', 'string', '{matchLabels: …, matchExpressions: …}']],
  ],
  ['a near word of several', service({ deletionPolicy: 'prun' }), [['spec.deletionPolicy: ', '"orphan"', '"prune"?']]],
] as const)('AP4 what is wrong says what to write: %s', (_, input, expected) => {
  expect(told(input)).toEqual(expected.map((values) => naming(...values)))
})

test.each([
  ['argoproj.io/v1alpha1', 'Application', 'Argo CD (Application)'],
  ['argoproj.io/v1alpha1', 'ApplicationSet', 'Argo CD (ApplicationSet)'],
  ['helm.toolkit.fluxcd.io/v2', 'HelmRelease', 'Flux (HelmRelease)'],
  ['kustomize.toolkit.fluxcd.io/v1', 'Kustomization', 'Flux (Kustomization)'],
  ['source.toolkit.fluxcd.io/v1', 'GitRepository', 'Flux (GitRepository)'],
  ['source.toolkit.fluxcd.io/v1', 'HelmRepository', 'Flux (HelmRepository)'],
  ['source.toolkit.fluxcd.io/v1', 'OCIRepository', 'Flux (OCIRepository)'],
  ['deployments.plural.sh/v1alpha1', 'ServiceDeployment', 'Plural (ServiceDeployment)'],
  ['fleet.cattle.io/v1alpha1', 'GitRepo', 'Fleet (GitRepo)'],
])('AP4 a document of another tool is told where to read on: %s %s', (apiVersion, kind, tool) => {
  const [only, ...more] = told({ apiVersion, kind, metadata: { name: 'web' }, spec: {} })
  expect(more).toEqual([])
  expect(only).toEqual(naming('kind: ', tool, 'docs/how-to/migrate.md'))
})

test.each([
  ['kustomize.config.k8s.io/v1beta1', 'Kustomization'],
  ['argoproj.io/v1alpha1', 'Rollout'],
  ['apps/v1', 'Deployment'],
])('AP4 a kind of nobody we know keeps its list of kinds: %s %s', (apiVersion, kind) => {
  expect(told({ apiVersion, kind })).toEqual([naming('kind: ', 'Repository', 'Service', 'NotificationRoute')])
})
