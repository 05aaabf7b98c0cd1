// Everything but workloads that an API server refuses: Secrets, ConfigMaps, networking, storage, RBAC, CRDs and custom
// resources, with planted secrets.
import type { K8sObject } from '../../shared/kube/object.ts'
import type { RefusalCase } from './refusal-cases.ts'
import { meta } from './refusal-cases-workloads.ts'

type Members = Record<string, unknown>
const made = (apiVersion: string, kind: string, name: string, rest: Members, more: Members = {}): K8sObject =>
  ({ apiVersion, kind, metadata: meta(name, more), ...rest }) as K8sObject
const base64 = (text: string): string => Buffer.from(text).toString('base64')

const secret = (name: string, rest: Members, more: Members = {}): K8sObject => made('v1', 'Secret', name, { type: 'Opaque', ...rest }, more)
const wrongSecret = (name: string, rest: Members): RefusalCase => ({ name: `a Secret: ${name}`, object: secret('wrong', rest) })

const SECRET_CASES: readonly RefusalCase[] = [
  wrongSecret('no base64', { data: { password: 'canary!!' } }),
  wrongSecret('a number', { data: { pin: 987654321 } }),
  wrongSecret('a number as text', { stringData: { pin: 987654321 } }),
  wrongSecret('a map', { stringData: { pin: { a: 'canary' } } }),
  wrongSecret('a yes', { stringData: { pin: true } }),
  wrongSecret('a text', { data: 'canary' }),
  wrongSecret('a list', { data: ['canary', 'canary\n.data.x: field not declared in schema'] }),
  wrongSecret('a key of no sort', { stringData: { 'bad key canary': 'canary' } }),
  wrongSecret('too large', { stringData: { a: 'canary'.repeat(200_000) } }),
  wrongSecret('a field that nobody knows', { password: 'canary' }),
  wrongSecret('no key of its certificate', { type: 'kubernetes.io/tls', data: { 'tls.crt': base64('canary') } }),
  wrongSecret('no JSON', { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': base64('{"auths": canary') } }),
  wrongSecret('no password', { type: 'kubernetes.io/basic-auth', stringData: { x: 'canary' } }),
  wrongSecret('no account', { type: 'kubernetes.io/service-account-token', stringData: { x: 'canary' } }),
  {
    name: 'a Secret that may not change',
    before: [secret('frozen', { immutable: true, stringData: { a: 'canary-old' } })],
    object: secret('frozen', { immutable: true, stringData: { a: 'canary-new' } }),
  },
  {
    name: 'the type of a Secret',
    before: [secret('typed', { stringData: { a: 'canary' } })],
    object: secret('typed', { type: 'example.com/other', stringData: { a: 'canary' } }),
  },
]

const configMap = (name: string, rest: Members, more: Members = {}): K8sObject => made('v1', 'ConfigMap', name, rest, more)
const wrongConfigMap = (name: string, rest: Members, more: Members = {}): RefusalCase => ({
  name: `a ConfigMap: ${name}`,
  object: configMap('wrong', rest, more),
})

const CONFIG_MAP_CASES: readonly RefusalCase[] = [
  wrongConfigMap('a number', { data: { k: 987654321 } }),
  wrongConfigMap('a map', { data: { k: { a: 'canary' } } }),
  wrongConfigMap('a text', { data: 'canary' }),
  wrongConfigMap('no base64', { binaryData: { k: 'canary!' } }),
  wrongConfigMap('one key in both', { data: { k: 'canary' }, binaryData: { k: base64('canary') } }),
  wrongConfigMap('a key of no sort', { data: { 'bad/key canary': 'canary' } }),
  wrongConfigMap('a finalizer of no sort', { data: { k: 'canary' } }, { finalizers: ['bad finalizer canary'] }),
  wrongConfigMap('an owner without uid', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: '' }] }),
  wrongConfigMap('managed fields', { data: { k: 'canary' } }, { managedFields: [{ manager: 'x', operation: 'Apply', apiVersion: 'v1' }] }),
  {
    name: 'a ConfigMap: a name of no sort',
    object: { ...configMap('x', { data: { k: 'canary' } }), metadata: meta('Bad_Name') } as K8sObject,
  },
  {
    name: 'a ConfigMap: another uid',
    before: [configMap('present', { data: { k: 'canary' } })],
    object: configMap('present', { data: { k: 'canary' } }, { uid: 'other' }),
  },
  { name: 'a ConfigMap: an older version', object: configMap('present', { data: { k: 'canary' } }, { resourceVersion: '1' }) },
]

const service = (name: string, spec: Members): K8sObject =>
  made('v1', 'Service', name, { spec: { selector: { app: 'x' }, ports: [{ port: 80 }], ...spec } })
const taken = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_123 }] }
const claim = (storageClassName: string, storage: string): K8sObject =>
  made('v1', 'PersistentVolumeClaim', 'claim', {
    spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
  })

const NETWORK_CASES: readonly RefusalCase[] = [
  { name: 'the address of a Service', before: [service('first', taken)], object: service('first', { clusterIP: '10.0.77.2' }) },
  { name: 'a port that another Service has', object: service('second', taken) },
  { name: 'a port out of the range of nodes', object: service('second', { type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] }) },
  {
    name: 'a Service of no sort',
    object: service('second', {
      type: 'canary-type',
      sessionAffinity: 'canary-affinity',
      ports: [{ port: 0, targetPort: 'no_port', protocol: 'canary-protocol' }],
      externalIPs: ['canary-address'],
      loadBalancerSourceRanges: ['canary-range'],
    }),
  },
  {
    name: 'two ports of one number',
    object: service('second', {
      ports: [
        { port: 80, name: 'a' },
        { port: 80, name: 'b' },
      ],
    }),
  },
  {
    name: 'a NetworkPolicy of no sort',
    object: made('networking.k8s.io/v1', 'NetworkPolicy', 'policy', {
      spec: {
        podSelector: { matchLabels: { a: 'canary with spaces' } },
        ingress: [{ from: [{ ipBlock: { cidr: 'canary-range' } }], ports: [{ port: 'BAD canary', protocol: 'canary-protocol' }] }],
        policyTypes: ['canary-type'],
      },
    }),
  },
  {
    name: 'an Ingress of no sort',
    object: made('networking.k8s.io/v1', 'Ingress', 'ingress', {
      spec: {
        tls: [{ hosts: ['*.*.shop.example'], secretName: 'bad canary' }],
        rules: [
          {
            host: 'Bad_Host',
            http: {
              paths: [
                { path: 'canary-path', pathType: 'Prefix', backend: { service: { name: 'bad canary', port: {} } } },
                { path: '/a', pathType: 'canary-type', backend: {} },
              ],
            },
          },
        ],
      },
    }),
  },
  { name: 'the class of a claim', before: [claim('a', '1Gi')], object: claim('b', '1Gi') },
  { name: 'a smaller claim', object: claim('a', '1Mi') },
]

const RBAC = 'rbac.authorization.k8s.io'
const binding = (name: string, role: string, subjects: unknown[] = []): K8sObject =>
  made(`${RBAC}/v1`, 'RoleBinding', name, { roleRef: { apiGroup: RBAC, kind: 'Role', name: role }, subjects })

const RBAC_CASES: readonly RefusalCase[] = [
  { name: 'the role of a RoleBinding', before: [binding('bound', 'a')], object: binding('bound', 'b') },
  { name: 'a subject of no sort', object: binding('unbound', 'a', [{ kind: 'canary-kind', name: '' }]) },
  {
    name: 'a Role of no sort',
    object: made(`${RBAC}/v1`, 'Role', 'role', { rules: [{ verbs: [], resources: ['pods'], nonResourceURLs: ['canary-url'] }] }),
  },
]

const string = { type: 'string' }
const boatSchema = {
  type: 'object',
  required: ['captain'],
  properties: {
    captain: { ...string, pattern: '^[a-z]+$', maxLength: 40 },
    mast: { type: 'integer', minimum: 1, maximum: 3 },
    color: { ...string, enum: ['red', 'blue'] },
    tags: { type: 'array', maxItems: 1, items: string },
    token: { ...string, maxLength: 10 },
    options: { type: 'object', additionalProperties: string, maxProperties: 1 },
    when: { ...string, format: 'date-time' },
    address: { ...string, format: 'ipv4' },
    fixed: { ...string, maxLength: 100, 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'fixed is immutable' }] },
    note: {
      ...string,
      maxLength: 500,
      'x-kubernetes-validations': [{ rule: 'self.size() < 5', messageExpression: "'note ' + self + ' is too long'" }],
    },
  },
}
const boatCrd = (name: string, schema: Members, spec: Members = {}): K8sObject =>
  ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group: 'corpus.example',
      scope: 'Namespaced',
      names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      ...spec,
    },
  }) as K8sObject

/** Served before the first of its objects is sent. */
export const BOAT_CRD = boatCrd('boats.corpus.example', { type: 'object', properties: { spec: boatSchema } })
const BOAT = 'corpus.example/v1'
const boat = (name: string, spec: Members): K8sObject => made(BOAT, 'Boat', name, { spec: { captain: 'ann', ...spec } })

const CUSTOM_CASES: readonly RefusalCase[] = [
  {
    name: 'a custom resource: many errors',
    object: boat('many', {
      captain: 'Ann Canary',
      mast: 7,
      color: 'canary',
      tags: ['canary', 'canary-too'],
      token: 'canary-token',
      options: { a: 'canary', b: 'canary' },
      when: 'canary-time',
      address: 'canary-address',
    }),
  },
  { name: 'a custom resource: a text for a number', object: boat('types', { mast: 'canary' }) },
  { name: 'a custom resource: a text for a list', object: boat('types', { tags: 'canary' }) },
  { name: 'a custom resource: a map for a text', object: boat('types', { captain: { a: 'canary' } }) },
  { name: 'a custom resource: a fraction', object: boat('types', { mast: 1.5 }) },
  { name: 'a custom resource: a missing field', object: made(BOAT, 'Boat', 'types', { spec: { color: 'red' } }) },
  { name: 'a custom resource: an unknown field', object: boat('types', { password: 'canary' }) },
  {
    name: 'a custom resource: a rule about the old value',
    before: [boat('ruled', { fixed: 'canary-old' })],
    object: boat('ruled', { fixed: 'canary-new' }),
  },
  { name: 'a custom resource: a rule that quotes the value', object: boat('quoted', { note: 'canary words' }) },
  {
    name: 'a CRD: its scope',
    object: boatCrd('boats.corpus.example', { type: 'object', properties: { spec: boatSchema } }, { scope: 'Cluster' }),
  },
  {
    name: 'a CRD: a schema of no sort',
    object: boatCrd('wrong.corpus.example', {
      type: 'canary-type',
      properties: { spec: { type: 'object', pattern: '(canary', default: { a: 'canary' } } },
    }),
  },
  {
    name: 'a CRD: a rule of no sort',
    object: boatCrd('boats.corpus.example', {
      type: 'object',
      properties: { spec: { type: 'object', 'x-kubernetes-validations': [{ rule: "self.nope == 'canary'" }] } },
    }),
  },
]

export const SETTING_CASES: readonly RefusalCase[] = [
  ...SECRET_CASES,
  ...CONFIG_MAP_CASES,
  ...NETWORK_CASES,
  ...RBAC_CASES,
  ...CUSTOM_CASES,
]
