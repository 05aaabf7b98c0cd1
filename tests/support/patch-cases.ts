// Patches and what they are put on; kubectl says what comes of them. `ours`: where we mean to differ, and why.
export interface PatchCase {
  name: string
  type: 'strategic' | 'merge' | 'json'
  object: string
  patch: unknown
  /** Taken by us, refused by kubectl. */
  lenient?: true
  /** Refused by us as RFC 6902 has it, taken by kubectl. */
  strict?: true
}

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, tier: a}, annotations: {note: x}, finalizers: [example.com/a, example.com/b]}
spec:
  replicas: 2
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      imagePullSecrets: [{name: one}, {name: two}]
      tolerations: [{key: a, operator: Exists}]
      topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]
      initContainers: [{name: init, image: init:1}]
      containers:
      - name: web
        image: web:1
        args: [--one, --two]
        env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        envFrom: [{configMapRef: {name: one}}]
        ports: [{containerPort: 80, name: http}, {containerPort: 443, name: https}]
        volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]
        resources: {limits: {cpu: 100m, memory: 64Mi}}
      - {name: sidecar, image: sidecar:1}
      volumes: [{name: data, emptyDir: {}}, {name: tmp, hostPath: {path: /tmp}}]
`
const SERVICE = `apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, name: http}, {port: 443, targetPort: 8443, name: https, protocol: TCP}]
  externalIPs: [192.0.2.1, 192.0.2.2]
`
const CONFIG_MAP = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u1}]}
data: {a: "1", b: "2", "a/b": slash, "m~n": tilde}
`
const ACCOUNT = `apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
secrets: [{name: one}, {name: two}]
imagePullSecrets: [{name: pull}]
`
const INGRESS = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
  tls: [{hosts: [a.example], secretName: tls}]
`
const POLICY = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}, policyTypes: [Ingress]}
`
const SET = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: db:1}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]
`
const CRON = `apiVersion: batch/v1
kind: CronJob
metadata: {name: job}
spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a:1}]}}}}}
`
const WEBHOOK = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: "https://a"}, matchConditions: [{name: x, expression: "true"}]}]
`
const pod = (spec: unknown) => ({ spec: { template: { spec } } })
const container = (fields: unknown) => pod({ containers: [{ name: 'web', ...(fields as object) }] })
const strategic = (name: string, object: string, patch: unknown, lenient?: true): PatchCase => ({
  name,
  type: 'strategic',
  object,
  patch,
  ...(lenient === undefined ? {} : { lenient }),
})
const json = (name: string, object: string, ...patch: unknown[]): PatchCase => ({ name, type: 'json', object, patch })
const merge = (name: string, object: string, patch: unknown): PatchCase => ({ name, type: 'merge', object, patch })

export const PATCH_CASES: readonly PatchCase[] = [
  strategic('a value', DEPLOYMENT, { spec: { replicas: 5 } }),
  strategic('null takes away', DEPLOYMENT, {
    spec: { replicas: null, nothing: null },
    metadata: { annotations: null, labels: { tier: null } },
  }),
  strategic('a map is merged', DEPLOYMENT, { metadata: { labels: { tier: 'b', more: 'c' } } }),
  strategic('a container is merged by its name', DEPLOYMENT, container({ image: 'web:2' })),
  strategic('a container is added', DEPLOYMENT, pod({ containers: [{ name: 'new', image: 'new:1' }] })),
  strategic('two are merged, in another order', DEPLOYMENT, pod({ containers: [{ name: 'sidecar', image: 's:2' }, { name: 'web', image: 'w:2' }] })), // biome-ignore format: short
  strategic('one is added before one that is merged', DEPLOYMENT, pod({ containers: [{ name: 'new', image: 'n:1' }, { name: 'sidecar', image: 's:2' }] })), // biome-ignore format: short
  strategic('env is merged by name', DEPLOYMENT, container({ env: [{ name: 'B', value: '3' }, { name: 'D', value: '4' }] })), // biome-ignore format: short
  strategic('env from a value to a reference', DEPLOYMENT, container({ env: [{ name: 'A', value: null, valueFrom: { fieldRef: { fieldPath: 'x' } } }] })), // biome-ignore format: short
  strategic('null in an item that is added', DEPLOYMENT, container({ env: [{ name: 'D', value: null }] })),
  strategic(
    'null deep in a map that is added',
    DEPLOYMENT,
    container({ livenessProbe: { httpGet: { path: null, port: 80 }, exec: null } }),
  ),
  strategic('lists without a strategy are replaced', DEPLOYMENT, container({ args: ['--three'], envFrom: [{ secretRef: { name: 's' } }] })),
  strategic('tolerations are replaced', DEPLOYMENT, pod({ tolerations: [{ key: 'b' }] })),
  strategic('spread constraints are merged by their key', DEPLOYMENT, pod({ topologySpreadConstraints: [{ topologyKey: 'zone', maxSkew: 2 }, { topologyKey: 'host', maxSkew: 1 }] })), // biome-ignore format: short
  strategic('ports by their number', DEPLOYMENT, container({ ports: [{ containerPort: 443, protocol: 'UDP' }, { containerPort: 8080 }] })), // biome-ignore format: short
  strategic('mounts by their path', DEPLOYMENT, container({ volumeMounts: [{ mountPath: '/tmp', name: 'other' }] })),
  strategic('volumes are merged by name', DEPLOYMENT, pod({ volumes: [{ name: 'data', configMap: { name: 'c' } }] })),
  strategic('a volume of another type with $retainKeys', DEPLOYMENT, pod({ volumes: [{ $retainKeys: ['name', 'configMap'], name: 'data', configMap: { name: 'c' } }] })), // biome-ignore format: short
  strategic('pull secrets', DEPLOYMENT, pod({ imagePullSecrets: [{ name: 'three' }, { name: 'one' }] })),
  strategic('$retainKeys of the strategy', DEPLOYMENT, { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }),
  strategic('$retainKeys that misses a key', DEPLOYMENT, {
    spec: { strategy: { $retainKeys: ['type'], type: 'Recreate', rollingUpdate: {} } },
  }),
  strategic('$retainKeys that is no list', DEPLOYMENT, { spec: { strategy: { $retainKeys: 'type', type: 'Recreate' } } }),
  strategic('$patch: delete of an item', DEPLOYMENT, pod({ containers: [{ name: 'sidecar', $patch: 'delete' }] })),
  strategic('$patch: delete of one that is not there', DEPLOYMENT, pod({ containers: [{ name: 'none', $patch: 'delete' }] })),
  strategic('$patch: delete beside others', DEPLOYMENT, container({ env: [{ name: 'A', $patch: 'delete' }, { name: 'B', value: '9' }, { name: 'E', value: '5' }] })), // biome-ignore format: short
  strategic('$patch: delete without the key', DEPLOYMENT, pod({ containers: [{ image: 'x', $patch: 'delete' }] })),
  strategic('$patch: replace of a list', DEPLOYMENT, pod({ containers: [{ $patch: 'replace' }, { name: 'only', image: 'only:1' }] })),
  strategic('$patch: replace of a list by nothing', DEPLOYMENT, pod({ containers: [{ $patch: 'replace' }] })),
  strategic('$patch: replace of a map', DEPLOYMENT, { spec: { template: { spec: { nodeSelector: { $patch: 'replace', zone: 'a' } } } } }),
  strategic('$patch: replace of a map keeps its nulls', DEPLOYMENT, { metadata: { labels: { $patch: 'replace', a: null, b: 'c' } } }),
  strategic('$patch: delete of a map', DEPLOYMENT, { spec: { strategy: { $patch: 'delete' } } }),
  strategic('$patch: merge of a map', DEPLOYMENT, { spec: { strategy: { $patch: 'merge', type: 'X' } } }, true),
  strategic('$patch: merge of an item', DEPLOYMENT, container({ env: [{ $patch: 'merge', name: 'A', value: 'm' }] }), true),
  strategic('$patch of another word', DEPLOYMENT, { spec: { strategy: { $patch: 'remove' } } }),
  strategic('$patch of another word in a list', DEPLOYMENT, pod({ containers: [{ name: 'web', $patch: 'remove' }] })),
  strategic('a directive in what is added goes with it', DEPLOYMENT, container({ securityContext: { $patch: 'delete', runAsUser: 1 } })),
  strategic('directives below what is added', DEPLOYMENT, pod({ affinity: { nodeAffinity: { $patch: 'replace' }, podAffinity: {} } })),
  strategic('an item without its key', DEPLOYMENT, pod({ containers: [{ image: 'x' }] })),
  strategic('a list where a map was', DEPLOYMENT, { spec: { strategy: ['x'] } }),
  strategic('a text where a list was', DEPLOYMENT, container({ args: 'x' })),
  strategic('finalizers are merged', DEPLOYMENT, { metadata: { finalizers: ['example.com/c', 'example.com/a'] } }),
  strategic('finalizers: one twice', DEPLOYMENT, { metadata: { finalizers: ['example.com/c', 'example.com/c'] } }),
  strategic('$deleteFromPrimitiveList', DEPLOYMENT, { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/a'] } }),
  strategic('$deleteFromPrimitiveList of one that is not there', DEPLOYMENT, {
    metadata: { '$deleteFromPrimitiveList/finalizers': ['z'] },
  }),
  strategic('$deleteFromPrimitiveList of no list', CONFIG_MAP, { metadata: { '$deleteFromPrimitiveList/finalizers': ['z'] } }),
  strategic('$setElementOrder of containers', DEPLOYMENT, pod({ '$setElementOrder/containers': [{ name: 'sidecar' }, { name: 'web' }], containers: [{ name: 'web', image: 'web:2' }] })), // biome-ignore format: short
  strategic('$setElementOrder alone', DEPLOYMENT, pod({ '$setElementOrder/containers': [{ name: 'sidecar' }, { name: 'web' }] })),
  strategic('$setElementOrder of a part', DEPLOYMENT, container({ '$setElementOrder/env': [{ name: 'C' }, { name: 'A' }] })),
  strategic('$setElementOrder with a new one', DEPLOYMENT, container({ '$setElementOrder/env': [{ name: 'D' }, { name: 'B' }], env: [{ name: 'D', value: '4' }] })), // biome-ignore format: short
  strategic('$setElementOrder of finalizers', DEPLOYMENT, {
    metadata: { '$setElementOrder/finalizers': ['example.com/b', 'c'], finalizers: ['c'] },
  }),
  strategic('$setElementOrder that the patch does not follow', DEPLOYMENT, pod({ '$setElementOrder/containers': [{ name: 'web' }], containers: [{ name: 'new', image: 'x' }] })), // biome-ignore format: short
  // A random case: kubectl deletes in place, so that what is new takes the room of what went, also in the order.
  strategic('$setElementOrder where one goes and one comes', DEPLOYMENT, pod({ '$setElementOrder/containers': [{ name: 'new' }, { name: 'web' }], containers: [{ name: 'web', $patch: 'delete' }, { name: 'new', image: 'n:1' }] })), // biome-ignore format: short
  strategic('$setElementOrder of a list that is new', CONFIG_MAP, {
    metadata: { '$setElementOrder/finalizers': ['b', 'a'], finalizers: ['b', 'a'] },
  }),
  strategic('service ports by port', SERVICE, { spec: { ports: [{ port: 443, targetPort: 9443 }, { port: 22, name: 'ssh' }] } }), // biome-ignore format: short
  strategic('a service port is deleted', SERVICE, { spec: { ports: [{ port: 80, $patch: 'delete' }] } }),
  strategic('external addresses are replaced', SERVICE, { spec: { externalIPs: ['192.0.2.9'] } }),
  strategic('data of a ConfigMap', CONFIG_MAP, { data: { a: null, c: '3' }, binaryData: { x: 'eA==' } }),
  strategic('owners by uid', CONFIG_MAP, { metadata: { ownerReferences: [{ uid: 'u2', name: 'q', kind: 'Pod', apiVersion: 'v1' }] } }),
  strategic('secrets of an account', ACCOUNT, { secrets: [{ name: 'three' }], imagePullSecrets: [{ name: 'other' }] }),
  strategic('rules of an ingress are replaced', INGRESS, { spec: { rules: [{ host: 'b.example' }] } }),
  strategic('a network policy', POLICY, { spec: { ingress: [{ ports: [{ port: 80 }] }], policyTypes: ['Egress'] } }),
  strategic('claims of a set are replaced', SET, { spec: { volumeClaimTemplates: [{ metadata: { name: 'logs' } }] } }),
  strategic('deep in a CronJob', CRON, {
    spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: 'a', image: 'a:2' }] } } } } },
  }),
  strategic('webhooks and their conditions', WEBHOOK, { webhooks: [{ name: 'a.example.com', timeoutSeconds: 5, matchConditions: [{ name: 'y', expression: '1' }] }] }), // biome-ignore format: short
  strategic('an empty patch', DEPLOYMENT, {}),
  strategic('an empty list onto a merged one', DEPLOYMENT, pod({ containers: [] })),
  strategic('an empty list onto a replaced one', DEPLOYMENT, pod({ tolerations: [] })),

  merge('a value and null', DEPLOYMENT, { spec: { replicas: 5, strategy: null } }),
  merge('lists are replaced', DEPLOYMENT, pod({ containers: [{ name: 'only' }] })),
  merge('null in a map that is added', CONFIG_MAP, { data: { x: null }, more: { a: null, b: { c: null, d: 1 } } }),
  merge('a text becomes a map', CONFIG_MAP, { data: { a: { b: null, c: '1' } } }),
  merge('a map becomes a text', CONFIG_MAP, { data: 'x' }),
  merge('nulls in lists stay', CONFIG_MAP, { list: [1, null, { a: null }] }),
  merge('an empty patch', CONFIG_MAP, {}),

  json('replace', DEPLOYMENT, { op: 'replace', path: '/spec/replicas', value: 7 }),
  { ...json('replace of what is not there', CONFIG_MAP, { op: 'replace', path: '/data/none', value: 'x' }), strict: true },
  json('replace below what is not there', CONFIG_MAP, { op: 'replace', path: '/none/x', value: 'x' }),
  json('add a member, and over one', CONFIG_MAP, { op: 'add', path: '/data/c', value: '3' }, { op: 'add', path: '/data/a', value: '9' }),
  json('add below what is not there', CONFIG_MAP, { op: 'add', path: '/none/x', value: 'x' }),
  json('add to a list: first, at its end, at "-"', SERVICE, { op: 'add', path: '/spec/externalIPs/0', value: 'a' }, { op: 'add', path: '/spec/externalIPs/3', value: 'b' }, { op: 'add', path: '/spec/externalIPs/-', value: 'c' }), // biome-ignore format: short
  json('add past the end', SERVICE, { op: 'add', path: '/spec/externalIPs/3', value: 'a' }),
  json('add at no index', SERVICE, { op: 'add', path: '/spec/externalIPs/x', value: 'a' }),
  json('an index from the end', SERVICE, { op: 'replace', path: '/spec/externalIPs/-1', value: 'z' }, { op: 'add', path: '/spec/externalIPs/-1', value: 'y' }, { op: 'remove', path: '/spec/externalIPs/-2' }), // biome-ignore format: short
  json('an index before the first', SERVICE, { op: 'remove', path: '/spec/externalIPs/-3' }),
  json('remove', DEPLOYMENT, { op: 'remove', path: '/spec/template/spec/containers/1' }, { op: 'remove', path: '/metadata/labels/tier' }),
  json('remove of what is not there', CONFIG_MAP, { op: 'remove', path: '/data/none' }),
  json('remove past the end', SERVICE, { op: 'remove', path: '/spec/externalIPs/2' }),
  json('remove at "-"', SERVICE, { op: 'remove', path: '/spec/externalIPs/-' }),
  json('move', CONFIG_MAP, { op: 'move', from: '/data/a', path: '/data/z' }),
  json('move of what is not there', CONFIG_MAP, { op: 'move', from: '/data/none', path: '/data/z' }),
  json('move in a list', DEPLOYMENT, { op: 'move', from: '/spec/template/spec/containers/0', path: '/spec/template/spec/containers/1' }),
  json('copy', CONFIG_MAP, { op: 'copy', from: '/data', path: '/metadata/annotations' }, { op: 'replace', path: '/metadata/annotations/a', value: 'own' }), // biome-ignore format: short
  { ...json('copy of what is not there', CONFIG_MAP, { op: 'copy', from: '/data/none', path: '/data/x' }), strict: true },
  json('test that holds', CONFIG_MAP, { op: 'test', path: '/data', value: { b: '2', a: '1', 'a/b': 'slash', 'm~n': 'tilde' } }, { op: 'add', path: '/data/c', value: '3' }), // biome-ignore format: short
  json('test that fails', CONFIG_MAP, { op: 'test', path: '/data/a', value: '2' }, { op: 'add', path: '/data/c', value: '3' }),
  json('test of lists', SERVICE, { op: 'test', path: '/spec/externalIPs', value: ['192.0.2.1', '192.0.2.2'] }),
  json('test of lists in another order', SERVICE, { op: 'test', path: '/spec/externalIPs', value: ['192.0.2.2', '192.0.2.1'] }),
  json('test of numbers', DEPLOYMENT, { op: 'test', path: '/spec/replicas', value: 2 }),
  json('escaped names', CONFIG_MAP, { op: 'replace', path: '/data/a~1b', value: 'one' }, { op: 'replace', path: '/data/m~0n', value: 'two' }, { op: 'add', path: '/data/x~01', value: 'three' }), // biome-ignore format: short
  json('no operations', CONFIG_MAP),
  json('an empty name', CONFIG_MAP, { op: 'add', path: '/data/', value: 'x' }),
  json('null as a value', CONFIG_MAP, { op: 'add', path: '/data/n', value: null }),
]
