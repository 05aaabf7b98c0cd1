// Texts of policies, operators, kubelets and controllers that no recorded answer has (refusal-cases-webhooks.ts records
// those of policy engines): the form is theirs, the objects and the planted secrets (`canary`) are ours.
import type { K8sObject } from '../../shared/kube/object.ts'

export interface PolicyRefusal {
  name: string
  said: string
  /** What people see. */
  safe: string
  /** What was sent, or what the text is about; default: a Deployment with secrets in its environment. */
  document?: K8sObject
}

const made = (value: unknown): K8sObject => value as K8sObject

export const DEPLOYMENT = made({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web2', namespace: 'shop2', labels: { app: 'web2', team: 'blue' } },
  spec: {
    replicas: 3,
    selector: { matchLabels: { app: 'web2' } },
    template: {
      metadata: { labels: { app: 'web2' }, annotations: { note: 'canary note' } },
      spec: {
        containers: [
          {
            name: 'main2',
            image: 'registry.example/shop/web2:v1.4.2-a1b2c3',
            args: ['--dsn=postgres://app:canaryPass@db/shop', '-x', 'canary-argument'],
            env: [
              { name: 'TOKEN', value: 'canary-token-9f8e7d' },
              { name: 'PHRASE', value: 'correct canary battery staple' },
              { name: 'LOG_LEVEL', value: 'info' },
            ],
            ports: [{ containerPort: 8080 }],
          },
        ],
      },
    },
  },
})

export const SECRET = made({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db2', namespace: 'shop2' },
  stringData: { password: 'canary', 'tls.key': '-----BEGIN KEY-----\ncanaryline1\ncanaryline2\n-----END KEY-----' },
})

const webhook = (name: string, said: string) => `admission webhook "${name}" denied the request: ${said}`
const GATEKEEPER = 'validation.gatekeeper.sh'

export const POLICY_REFUSALS: readonly PolicyRefusal[] = [
  {
    name: 'MutatingAdmissionPolicy: of a Secret',
    document: SECRET,
    said: "policy 'add-labels' with binding 'all-teams' denied request: failed to configure binding: not found",
    safe: "policy 'add-labels' with binding 'all-teams' denied request: failed to configure binding: not found",
  },
  {
    name: 'Gatekeeper: a value of the live object that nobody here knows',
    said: webhook(GATEKEEPER, '[frozen] value changed from "s3cr3tOfSomebody" to "canary-token-9f8e7d"'),
    safe: `admission webhook "${GATEKEEPER}" denied the request: [frozen] value changed from <redacted> to <redacted>`,
  },
  {
    name: 'OPA: a host',
    said: webhook('validating-webhook.openpolicyagent.org', 'invalid ingress host "signin.acmecorp.example"'),
    safe: 'admission webhook "validating-webhook.openpolicyagent.org" denied the request: invalid ingress host "signin.acmecorp.example"',
  },
  {
    name: 'cert-manager: errors of fields',
    said: webhook(
      'webhook.cert-manager.io',
      '[spec.issuerRef.kind: Invalid value: "Canary Issuer": must be one of Issuer or ClusterIssuer, spec.secretName: Required value: must be specified]',
    ),
    safe: 'admission webhook "webhook.cert-manager.io" denied the request: [spec.issuerRef.kind: Invalid value: <redacted>: must be one of Issuer or ClusterIssuer, spec.secretName: Required value: must be specified]',
  },
  {
    name: 'Linkerd: its webhook is down',
    said: 'Internal error occurred: failed calling webhook "linkerd-policy-validator.linkerd.io": failed to call webhook: Post "https://linkerd-policy-validator.linkerd.svc:443/?timeout=20s&token=canary": context deadline exceeded',
    safe: 'Internal error occurred: failed calling webhook "linkerd-policy-validator.linkerd.io": failed to call webhook: Post "https://linkerd-policy-validator.linkerd.svc:443/": context deadline exceeded',
  },
  {
    name: 'a webhook whose service has no endpoints',
    said: 'Internal error occurred: failed calling webhook "guard2.example.com": failed to call webhook: Post "https://guard2.policy2.svc:443/validate?timeout=10s": no endpoints available for service "guard2"',
    safe: 'Internal error occurred: failed calling webhook "guard2.example.com": failed to call webhook: Post "https://guard2.policy2.svc:443/validate": no endpoints available for service "guard2"',
  },
  {
    name: 'a webhook whose certificate is not trusted',
    said: 'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://guard.policy.svc:443/validate?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    safe: 'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://guard.policy.svc:443/validate": tls: failed to verify certificate: x509: certificate signed by unknown authority',
  },
  {
    name: 'a conversion webhook that is down',
    said: 'conversion webhook for example.com/v1, Kind=Boat failed: Post "https://boats.sea.svc:443/convert?timeout=30s": dial tcp 10.96.12.7:443: connect: connection refused',
    safe: 'conversion webhook for example.com/v1, Kind=Boat failed: Post "https://boats.sea.svc:443/convert": dial tcp 10.96.12.7:443: connect: connection refused',
  },
  {
    name: 'a webhook that prints the object as Go does',
    said: webhook(
      'own.example.com',
      'refused &{Name:main2 Env:[{Name:TOKEN Value:canary-token-9f8e7d}] Old:s3cr3tOfSomebody}, ask the platform team',
    ),
    safe: 'admission webhook "own.example.com" denied the request: refused <redacted>, ask the platform team',
  },
  {
    name: 'a webhook that prints a map as Go does',
    said: webhook('own.example.com', 'bad args map[a:canary-argument b:s3cr3tOfSomebody] in main2'),
    safe: 'admission webhook "own.example.com" denied the request: bad args <redacted> in main2',
  },
  {
    name: 'a webhook that quotes a part of a connection string',
    said: webhook('own.example.com', 'password canaryPass of user app must not be in args'),
    safe: 'admission webhook "own.example.com" denied the request: password <redacted> of user app must not be in args',
  },
  {
    name: 'a webhook that cuts a value off',
    said: webhook('own.example.com', 'PHRASE begins with "correct canary bat'),
    safe: 'admission webhook "own.example.com" denied the request: PHRASE begins with <redacted>',
  },
  {
    name: 'a webhook that writes another language',
    said: webhook('own.example.com', 'das Image muss signiert sein; Rückfragen an die Plattform: TOKEN=canary-token-9f8e7d'),
    safe: 'admission webhook "own.example.com" denied the request: das Image muss signiert sein; Rückfragen an die Plattform: <redacted>',
  },
  {
    name: 'a webhook about a Secret quotes its value, its base64 and its lines',
    document: SECRET,
    said: webhook('own.example.com', 'password canary (Y2FuYXJ5) is weak, canaryline2 is no key, db2 is kept'),
    safe: 'admission webhook "own.example.com" denied the request: password <redacted> (<redacted>) is weak, <redacted> is no key, db2 is kept',
  },
  {
    name: 'a webhook about a Secret quotes what it was before',
    document: SECRET,
    said: webhook('own.example.com', 'data.password changed from "hunter" to "canary"'),
    safe: 'admission webhook "own.example.com" denied the request: data.password changed from <redacted> to <redacted>',
  },
  {
    name: 'a missing ServiceAccount',
    said: 'pods "web2-" is forbidden: error looking up service account shop2/web-account2: serviceaccount "web-account2" not found',
    safe: 'pods "web2-" is forbidden: error looking up service account shop2/web-account2: serviceaccount "web-account2" not found',
  },
  {
    name: 'a quota that wants amounts',
    said: 'pods "web2-7d9f8b6c5d-x2x1z" is forbidden: failed quota: compute2: must specify limits.cpu for: main2; limits.memory for: main2',
    safe: 'pods "web2-7d9f8b6c5d-x2x1z" is forbidden: failed quota: compute2: must specify limits.cpu for: main2; limits.memory for: main2',
  },
  {
    name: 'an impersonation that is not allowed',
    said: 'serviceaccounts "deployer2" is forbidden: User "system:serviceaccount:skerry-system:agent" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop2"',
    safe: 'serviceaccounts "deployer2" is forbidden: User "system:serviceaccount:skerry-system:agent" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop2"',
  },
  {
    name: 'a kind of Secrets that may not be watched',
    document: SECRET,
    said: 'secrets is forbidden: User "system:serviceaccount:default:rbac2" cannot watch resource "secrets" in API group "" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "agent2" not found',
    safe: 'secrets is forbidden: User "system:serviceaccount:default:rbac2" cannot watch resource "secrets" in API group "" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "agent2" not found',
  },
  {
    name: 'a path that may not be read',
    said: 'forbidden: User "system:serviceaccount:default:rbac2" cannot get path "/apis"',
    safe: 'forbidden: User "system:serviceaccount:default:rbac2" cannot get path "/apis"',
  },
  {
    name: 'a field of a set',
    said: 'Apply failed with 1 conflict: conflict with "kubectl-edit" with subresource "scale" using example.com/v1: .spec.tokens[="canary-token-9f8e7d"]',
    safe: 'Apply failed with 1 conflict: conflict with "kubectl-edit" with subresource "scale" using example.com/v1: .spec.tokens[=<redacted>]',
  },
  {
    name: 'a time of no sort',
    said: 'failed to convert new object (shop2/web2; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured object to apps/v1, Kind=Deployment: parsing time "canary-argument" as "2006-01-02T15:04:05Z07:00": cannot parse "canary-argument" as "2006"',
    safe: 'failed to convert new object (shop2/web2; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured object to apps/v1, Kind=Deployment: parsing time <redacted> as <redacted>: cannot parse <redacted> as "2006"',
  },
  {
    name: 'a condition: Pods that are refused',
    said: 'pods "web2-7d9f8b6c5d-x2x1z" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "main2" must set securityContext.runAsNonRoot=true)',
    safe: 'pods "web2-7d9f8b6c5d-x2x1z" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "main2" must set securityContext.runAsNonRoot=true)',
  },
  {
    name: 'a condition: a rollout',
    said: 'ReplicaSet "web2-7d9f8b6c5d" has timed out progressing.',
    safe: 'ReplicaSet "web2-7d9f8b6c5d" has timed out progressing.',
  },
  {
    name: 'a condition: an image',
    said: 'Back-off pulling image "registry.example/shop/web2:v1.4.2-a1b2c3": ErrImagePull: failed to resolve reference "docker.io/registry.example/shop/web2:v1.4.2-a1b2c3": unexpected status: 401 Unauthorized',
    safe: 'Back-off pulling image "registry.example/shop/web2:v1.4.2-a1b2c3": ErrImagePull: failed to resolve reference "docker.io/registry.example/shop/web2:v1.4.2-a1b2c3": unexpected status: 401 Unauthorized',
  },
  {
    name: 'a condition: a crash loop',
    said: 'back-off 5m0s restarting failed container=main2 pod=web2-7d9f8b6c5d-x2x1z_shop2(5b7f0f4e-9d9b-4c6e-8f0a-1d2c3b4a5f6e)',
    safe: 'back-off 5m0s restarting failed container=main2 pod=web2-7d9f8b6c5d-x2x1z_shop2(<redacted>)',
  },
  {
    name: 'a condition: a command that is missing',
    said: 'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "canary-argument": executable file not found in $PATH: unknown',
    safe: 'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: <redacted>: executable file not found in $PATH: unknown',
  },
  {
    name: 'a condition: no node',
    said: '0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.',
    safe: '0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.',
  },
  {
    name: 'a condition: a key of a Secret',
    said: "couldn't find key password in Secret shop2/web2",
    safe: "couldn't find key password in Secret shop2/web2",
  },
  {
    name: 'a condition: a header with a credential',
    said: 'request failed: 401, sent Authorization: Bearer abcdefghij and password: hunter, token=xyz',
    safe: 'request failed: 401, sent Authorization: Bearer <redacted> and password: <redacted>, token=<redacted>',
  },
  {
    name: 'a condition: an address with a password',
    said: 'dial https://user:pw@registry.example:5000/v2/?account=x failed, mysql://app:pw@db.shop2/x as well',
    safe: 'dial https://registry.example:5000/v2/ failed, mysql://db.shop2/x as well',
  },
]
