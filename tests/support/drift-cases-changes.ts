// Drift corpus: what is ours was changed, removed or replaced. Each is put back by exactly one write, names the paths
// and who it was.
import { crd, thing, twoVersions } from './drift-cases-others.ts'
import { configMapYaml, deployment } from './drift-cases-values.ts'
import type { DriftCase } from './drift-site.ts'

const THING = 'Thing.$NS.example.com/one'
const SETTINGS = 'ConfigMap/settings'
/** Of what was removed, the API server keeps no name. */
const NOBODY = ''
const APP = '.spec.template.spec.containers[{"name":"app"}]'
const SERVICE = `
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ name: http, port: 80 }] }`

/** Healed by one write. */
const healed = (
  name: string,
  manifest: string,
  deed: DriftCase['deed'],
  drift: NonNullable<DriftCase['drift']>,
  more: Partial<DriftCase> = {},
): DriftCase => ({ name, manifest, deed, drift, writes: 1, ...more })

export const CHANGE_CASES: readonly DriftCase[] = [
  healed('a value is changed', configMapYaml(), ({ as }) => as('editor').merge(SETTINGS, { data: { a: 'x' } }), {
    target: SETTINGS,
    paths: ['.data.a'],
    manager: 'editor',
  }),
  healed('a key is removed', configMapYaml('a: "1"\nb: "2"'), ({ as }) => as('editor').merge(SETTINGS, { data: { b: null } }), {
    target: SETTINGS,
    paths: ['.data.b'],
    manager: NOBODY,
  }),
  healed(
    'binary data is changed',
    `${configMapYaml()}binaryData: { "b": "//79" }`,
    ({ as }) => as('editor').merge(SETTINGS, { binaryData: { b: 'AAAA' } }),
    { target: SETTINGS, paths: ['.binaryData.b'], manager: 'editor' },
  ),
  healed(
    'one character of a large object is changed',
    configMapYaml(`big: "${'x'.repeat(500_000)}"\na: "1"`),
    ({ as }) => as('editor').merge(SETTINGS, { data: { a: '2' } }),
    { target: SETTINGS, paths: ['.data.a'], manager: 'editor' },
  ),
  healed(
    'data of a Secret that is written as stringData is changed',
    '\napiVersion: v1\nkind: Secret\nmetadata: { name: login }\nstringData: { user: shop }',
    ({ as }) => as('editor').merge('Secret/login', { stringData: { user: 'thief' } }),
    { target: 'Secret/login', paths: ['.data.user'], manager: 'editor' },
    { live: { 'Secret/login': { data: { user: 'c2hvcA==' } } } },
  ),
  healed(
    'a label is removed with kubectl',
    configMapYaml().replace('{ name: settings }', '{ name: settings, labels: { tier: gold, team: shop } }'),
    ({ kubectl }) => kubectl(['label', 'configmap', 'settings', 'tier-']),
    { target: SETTINGS, paths: ['.metadata.labels.tier'], manager: NOBODY },
  ),
  healed(
    'an annotation is overwritten with kubectl',
    configMapYaml().replace('{ name: settings }', '{ name: settings, annotations: { example.com/note: ours } }'),
    ({ kubectl }) => kubectl(['annotate', '--overwrite', 'configmap', 'settings', 'example.com/note=theirs']),
    { target: SETTINGS, paths: ['.metadata.annotations["example.com/note"]'], manager: 'kubectl-annotate' },
  ),
  healed('kubectl scale', deployment(), ({ kubectl }) => kubectl(['scale', 'deployment/web', '--replicas=3']), {
    target: 'Deployment/web',
    paths: ['.spec.replicas'],
    manager: 'kubectl (scale)',
  }),
  healed(
    'the scale subresource of a StatefulSet',
    statefulSet(),
    ({ as }) => as('scaler').merge('StatefulSet/db', { spec: { replicas: 1 } }, 'scale'),
    {
      target: 'StatefulSet/db',
      paths: ['.spec.replicas'],
      manager: 'scaler (scale)',
    },
  ),
  healed('kubectl set image', deployment(), ({ kubectl }) => kubectl(['set', 'image', 'deployment/web', 'app=registry.example/app:2']), {
    target: 'Deployment/web',
    paths: [`${APP}.image`],
    manager: 'kubectl-set',
  }),
  healed(
    'kubectl set env overwrites one variable and adds another',
    deployment('', 'env: [{ name: A, value: "1" }]'),
    ({ kubectl }) => kubectl(['set', 'env', 'deployment/web', 'A=2', 'B=3']),
    { target: 'Deployment/web', paths: [`${APP}.env[{"name":"A"}].value`], manager: 'kubectl-set' },
  ),
  healed(
    'a variable of ours is removed',
    deployment('', 'env: [{ name: A, value: "1" }, { name: B, value: "2" }]'),
    ({ as }) =>
      as('editor').strategic('Deployment/web', {
        spec: { template: { spec: { containers: [{ name: 'app', env: [{ name: 'B', $patch: 'delete' }] }] } } },
      }),
    { target: 'Deployment/web', paths: [`${APP}.env[{"name":"B"}]`], manager: NOBODY },
  ),
  healed(
    'an atomic list is changed: the arguments of a container',
    deployment('', 'args: [serve, --port, "80"]'),
    ({ as }) => as('editor').json('Deployment/web', [{ op: 'add', path: '/spec/template/spec/containers/0/args/-', value: '--debug' }]),
    { target: 'Deployment/web', paths: [`${APP}.args`], manager: 'editor' },
  ),
  healed(
    'a whole container of ours is removed',
    deployment('', '').replace('containers:', 'containers:\n        - { name: side, image: "registry.example/side:1" }'),
    ({ as }) =>
      as('editor').strategic('Deployment/web', { spec: { template: { spec: { containers: [{ name: 'side', $patch: 'delete' }] } } } }),
    { target: 'Deployment/web', paths: ['.spec.template.spec.containers[{"name":"side"}]'], manager: NOBODY },
  ),
  healed(
    'a limit is changed to another quantity',
    deployment('', 'resources: { limits: { cpu: 1000m, memory: 1024Mi } }'),
    ({ as }) =>
      as('editor').strategic('Deployment/web', {
        spec: { template: { spec: { containers: [{ name: 'app', resources: { limits: { memory: '2Gi' } } }] } } },
      }),
    { target: 'Deployment/web', paths: [`${APP}.resources.limits.memory`], manager: 'editor' },
  ),
  healed('the selector of a Service', SERVICE, ({ as }) => as('editor').merge('Service/web', { spec: { selector: { app: 'other' } } }), {
    target: 'Service/web',
    manager: 'editor',
  }),
  healed(
    'a port of a Service is moved to another target',
    SERVICE,
    ({ as }) => as('editor').json('Service/web', [{ op: 'replace', path: '/spec/ports/0/name', value: 'other' }]),
    { target: 'Service/web', paths: ['.spec.ports[{"port":80,"protocol":"TCP"}].name'], manager: 'editor' },
  ),
  healed(
    'our finalizer is taken off',
    configMapYaml().replace('{ name: settings }', '{ name: settings, finalizers: [example.com/ours] }'),
    ({ as }) => as('editor').merge(SETTINGS, { metadata: { finalizers: null } }),
    { target: SETTINGS, paths: ['.metadata.finalizers'], manager: NOBODY },
  ),
  healed(
    'a rule of a Role',
    `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader }
rules: [{ apiGroups: [""], resources: [pods], verbs: [get] }]`,
    ({ as }) => as('editor').merge('Role/reader', { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] }),
    { target: 'Role/reader', paths: ['.rules'], manager: 'editor' },
  ),
  healed(
    'a CronJob is suspended',
    `
apiVersion: batch/v1
kind: CronJob
metadata: { name: nightly }
spec:
  schedule: "0 3 * * *"
  suspend: false
  jobTemplate: { spec: { template: { spec: { restartPolicy: Never, containers: [{ name: a, image: "registry.example/a:1" }] } } } }`,
    ({ kubectl }) => kubectl(['patch', 'cronjob', 'nightly', '-p', '{"spec":{"suspend":true}}']),
    { target: 'CronJob/nightly', paths: ['.spec.suspend'], manager: 'kubectl-patch' },
  ),
  healed(
    'a field of a kind that keeps unknown fields',
    crd('{ spec: { type: object, x-kubernetes-preserve-unknown-fields: true } }') + thing('{ size: 1, deep: { list: [{ a: 1 }] } }'),
    ({ as }) => as('editor').merge(THING, { spec: { deep: { list: [{ a: 2 }] } } }),
    { target: 'Thing/one', paths: ['.spec.deep.list'], manager: 'editor' },
  ),
  healed(
    'a kind in two versions: changed in the one that we do not use',
    twoVersions(),
    ({ as }) => as('editor').update(THING, (object) => void Object.assign(object['spec'] as object, { size: 2 }), 'v1'),
    { target: 'Thing/one', paths: ['.spec.size'], manager: 'editor' },
  ),
  healed(
    'somebody applies another value by force',
    configMapYaml(),
    ({ as }) => as('other-gitops').apply(configMapYaml('a: "other"'), { force: true }),
    {
      target: SETTINGS,
      paths: ['.data.a'],
      manager: 'other-gitops',
    },
  ),
  healed(
    'a value that somebody owns with us is changed by a third',
    configMapYaml(),
    async ({ as }) => {
      await as('co-owner').apply(configMapYaml())
      await as('third').merge(SETTINGS, { data: { a: '3' } })
    },
    { target: SETTINGS, paths: ['.data.a'], manager: 'third' },
  ),
  healed(
    'managedFields are cleared: what the API server then calls before-first-apply is taken over, too',
    configMapYaml(),
    ({ as }) => as('cleaner').merge(SETTINGS, { metadata: { managedFields: [{}] } }),
    { target: SETTINGS },
    { writes: 3 },
  ),
  healed(
    'the object is replaced by a PUT without our marks',
    configMapYaml(),
    ({ kubectl }) => kubectl(['replace', '-f', '-'], configMapYaml('z: "9"')),
    { target: SETTINGS },
    { live: { [SETTINGS]: { data: { a: '1' } } } },
  ),
  healed('the object is deleted', configMapYaml(), ({ as }) => as('somebody').remove(SETTINGS), {
    target: SETTINGS,
    paths: [],
    manager: '',
    deleted: true,
  }),
  healed(
    'the object is deleted and made anew by somebody, with another uid',
    configMapYaml('a: "1"', 'settings', 'immutable: true'),
    ({ unnoticed, kubectl }) => unnoticed(() => kubectl(['replace', '--force', '-f', '-'], configMapYaml('a: "9"'))),
    { target: SETTINGS },
    { live: { [SETTINGS]: { data: { a: '1' } } } },
  ),
  healed('our label is taken off', configMapYaml(), ({ kubectl }) => kubectl(['label', 'configmap', 'settings', 'skerry.dev/service-']), {
    target: SETTINGS,
    paths: ['.metadata.labels'],
    manager: NOBODY,
  }),
  healed(
    'our tracking mark is taken off',
    configMapYaml(),
    ({ kubectl }) => kubectl(['annotate', 'configmap', 'settings', 'skerry.dev/tracking-']),
    {
      target: SETTINGS,
      paths: ['.metadata.annotations["skerry.dev/tracking"]'],
      manager: NOBODY,
    },
  ),
  healed(
    'kubectl apply, client-side, with another value',
    configMapYaml(),
    ({ kubectl }) => kubectl(['apply', '--server-side=false', '-f', '-'], configMapYaml('a: "kubectl"')),
    { target: SETTINGS },
    { writes: 2, live: { [SETTINGS]: { data: { a: '1' } } } },
  ),
  healed(
    'the service only reports: a value is changed',
    configMapYaml(),
    ({ as }) => as('editor').merge(SETTINGS, { data: { a: 'x' } }),
    { target: SETTINGS, paths: ['.data.a'], manager: 'editor', action: 'reported' },
    { options: { sync: { drift: 'report' } }, writes: 0, same: false, live: { [SETTINGS]: { data: { a: 'x' } } } },
  ),
  healed(
    'the service is paused on drift, and a newer revision does not overwrite what somebody did',
    configMapYaml(),
    async ({ as, revise, seen }) => {
      await as('editor').merge(SETTINGS, { data: { a: 'x' } })
      await seen(SETTINGS)
      await revise(configMapYaml('a: "2"'), { sync: { drift: 'pause' } })
    },
    { target: SETTINGS, paths: ['.data.a'], manager: 'editor', action: 'reported' },
    { options: { sync: { drift: 'pause' } }, writes: 0, same: false, live: { [SETTINGS]: { data: { a: 'x' } } } },
  ),
]

function statefulSet(): string {
  return `
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  replicas: 0
  serviceName: db
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec: { containers: [{ name: db, image: "registry.example/db:1" }] }`
}
