// What an upgrade must not change unnoticed: the bytes that are sent for an object, and the name of what we own of a
// live one. An agent compares both with what it wrote down before: when one differs, nothing is wrong, and everything
// is applied.
import { expect, test } from 'bun:test'
import { ownedHash } from '../../agent/reconcile/snapshot/fields/owned-fields.ts'
import { readWanted, type WantedContext, wantedNamespace } from '../../agent/reconcile/snapshot/wanted.ts'
import { type K8sObject, refOf } from '../../shared/kube/object.ts'

const ADVICE =
  'every agent in the field applies every object once after this upgrade; say so in the release notes and put the new value here'

const context: WantedContext = {
  clusterId: 'c-0123456789abcdef',
  service: { project: 'web', service: 'shop' },
  namespace: 'shop',
  find: (group, version, kind) => ({
    kind: 'served',
    resource: { group, version, kind, plural: `${kind.toLowerCase()}s`, namespaced: true, verbs: ['patch', 'watch'] },
  }),
}

function sentOf(object: object): string {
  const parsed = object as K8sObject
  const read = readWanted(refOf(parsed), JSON.stringify(parsed), context)
  return read.kind === 'wanted' ? read.wanted.sent : read.kind
}

function expectFrozen(actual: string, frozen: string): void {
  expect(actual, ADVICE).toBe(frozen)
}

const CONFIG_MAP = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings', labels: { app: 'shop' }, creationTimestamp: null },
  data: { z: 'last', a: 'first', text: 'grün\n', gone: null },
}
const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop', annotations: { team: 'a' } },
  spec: {
    replicas: 2,
    strategy: {},
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        containers: [
          {
            name: 'web',
            image: 'web:1',
            ports: [
              { containerPort: 8080, protocol: 'TCP' },
              { containerPort: 9090, name: 'metrics' },
            ],
            env: [{ name: 'MODE', value: '' }],
            resources: { limits: { memory: '64Mi' } },
          },
        ],
        volumes: [{ name: 'tmp', emptyDir: {} }],
      },
    },
  },
  status: { replicas: 2 },
}
const RELEASE = {
  apiVersion: 'helm.toolkit.fluxcd.io/v2',
  kind: 'HelmRelease',
  metadata: { name: 'web', creationTimestamp: null },
  spec: { values: { nodeSelector: null, tolerations: [null] } },
}
const SECRET = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'keys' },
  type: 'Opaque',
  data: { a: 'eA==', b: 'eQ==' },
  stringData: { a: 'grün', c: '' },
}

test.each([
  [
    'a ConfigMap',
    CONFIG_MAP,
    '{"apiVersion":"v1","data":{"a":"first","text":"grün\\n","z":"last"},"kind":"ConfigMap","metadata":{"annotations":{"skerry.dev/tracking":"c-0123456789abcdef/web/shop:/ConfigMap/shop/settings"},"labels":{"app":"shop","skerry.dev/service":"web.shop"},"name":"settings","namespace":"shop"}}',
  ],
  [
    'a Deployment with lists by key',
    DEPLOYMENT,
    '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"skerry.dev/tracking":"c-0123456789abcdef/web/shop:apps/Deployment/shop/web","team":"a"},"labels":{"skerry.dev/service":"web.shop"},"name":"web","namespace":"shop"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"strategy":{},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"env":[{"name":"MODE","value":""}],"image":"web:1","name":"web","ports":[{"containerPort":8080,"protocol":"TCP"},{"containerPort":9090,"name":"metrics"}],"resources":{"limits":{"memory":"64Mi"}}}],"volumes":[{"emptyDir":{},"name":"tmp"}]}}}}',
  ],
  [
    'a custom resource with nulls (applied once by the upgrade that began to send them)',
    RELEASE,
    '{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"annotations":{"skerry.dev/tracking":"c-0123456789abcdef/web/shop:helm.toolkit.fluxcd.io/HelmRelease/shop/web"},"labels":{"skerry.dev/service":"web.shop"},"name":"web","namespace":"shop"},"spec":{"values":{"nodeSelector":null,"tolerations":[null]}}}',
  ],
  [
    'a Secret with stringData',
    SECRET,
    '{"apiVersion":"v1","data":{"a":"Z3LDvG4=","b":"eQ==","c":""},"kind":"Secret","metadata":{"annotations":{"skerry.dev/tracking":"c-0123456789abcdef/web/shop:/Secret/shop/keys"},"labels":{"skerry.dev/service":"web.shop"},"name":"keys","namespace":"shop"},"type":"Opaque"}',
  ],
])('RC1, RC2 the document that is sent for %s is what it was in the release before', (_, object, frozen) => {
  expectFrozen(sentOf(object), frozen)
})

test('NS1 the document of the namespace that is made is what it was in the release before', () => {
  expectFrozen(
    wantedNamespace('shop', { ...context, namespaceMarks: { labels: { tier: 'a' } } }).sent,
    '{"apiVersion":"v1","kind":"Namespace","metadata":{"annotations":{"skerry.dev/prune":"disabled","skerry.dev/tracking":"c-0123456789abcdef/web/shop:/Namespace//shop"},"labels":{"skerry.dev/service":"web.shop","tier":"a"},"name":"shop"}}',
  )
})

/** As the API server gives it back: our fields, its defaults, another manager's. */
const LIVE = {
  ...DEPLOYMENT,
  metadata: {
    ...DEPLOYMENT.metadata,
    uid: 'u',
    resourceVersion: '7',
    generation: 1,
    managedFields: [
      {
        manager: 'skerry',
        operation: 'Apply',
        apiVersion: 'apps/v1',
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:metadata': { 'f:annotations': { 'f:team': {} } },
          'f:spec': {
            'f:replicas': {},
            'f:strategy': {},
            'f:selector': {},
            'f:template': {
              'f:metadata': { 'f:labels': { 'f:app': {} } },
              'f:spec': {
                'f:containers': {
                  'k:{"name":"web"}': {
                    '.': {},
                    'f:name': {},
                    'f:image': {},
                    'f:ports': {
                      'k:{"containerPort":8080,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} },
                      'k:{"containerPort":9090,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {}, 'f:name': {} },
                    },
                    'f:env': { 'k:{"name":"MODE"}': { '.': {}, 'f:name': {}, 'f:value': {} } },
                    'f:resources': { 'f:limits': { 'f:memory': {} } },
                  },
                },
                'f:volumes': { 'k:{"name":"tmp"}': { '.': {}, 'f:name': {}, 'f:emptyDir': {} } },
              },
            },
          },
        },
      },
      {
        manager: 'kube-controller-manager',
        operation: 'Update',
        apiVersion: 'apps/v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:metadata': { 'f:annotations': { 'f:deployment.kubernetes.io/revision': {} } }, 'f:status': {} },
      },
    ],
  },
}

test('DR1 what is owned of a live object has the name that it had in the release before', () => {
  expectFrozen(ownedHash(LIVE as unknown as K8sObject), 'd784497eeb203c9252a8112b18257d1c')
})
