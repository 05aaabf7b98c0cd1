// Denials and warnings of admission webhooks, as a real API server passes them on. The webhook is ours; what it answers
// has the form of the engine that its name stands for: Kyverno pkg/webhooks/utils (block.go, warning.go), Gatekeeper
// pkg/webhook/policy.go, cert-manager internal/webhook, OPA kube-mgmt, Istio pkg/webhooks/validation.
import type { K8sObject } from '../../shared/kube/object.ts'
import type { RefusalCase } from './refusal-cases.ts'
import { NAMESPACE } from './refusal-cases-workloads.ts'
import type { WebhookAnswer } from './webhook-server.ts'

export interface WebhookCase extends RefusalCase {
  /** Name of the webhook. */
  engine: string
  answer: WebhookAnswer
}

/** The label by which an object reaches its webhook, and the webhook its answer. */
const WEBHOOK_LABEL = 'corpus.example/webhook'
const CASE_LABEL = 'corpus.example/case'

const deployment = (): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web2', namespace: NAMESPACE, annotations: { note: 'canary note' } },
    spec: {
      selector: { matchLabels: { app: 'web2' } },
      template: {
        metadata: { labels: { app: 'web2' } },
        spec: {
          containers: [
            {
              name: 'main2',
              image: 'registry.example/shop/web2:v1.4.2-a1b2c3',
              args: ['--dsn=postgres://app:canaryPass@db/shop', '-x', 'canary-argument'],
              env: [{ name: 'TOKEN', value: 'canary-token-9f8e7d' }],
            },
          ],
        },
      },
    },
  }) as unknown as K8sObject
const secret = (): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'db2', namespace: NAMESPACE },
    stringData: { password: 'canary-word' },
  }) as K8sObject

const KYVERNO = 'validate.kyverno.svc-fail'
const KYVERNO_IMAGES = 'mutate.kyverno.svc-fail'
const GATEKEEPER = 'validation.gatekeeper.sh'
const blocked = (kind: string, name: string, results: string): string =>
  `\n\nresource ${kind}/${NAMESPACE}/${name} was blocked due to the following policies \n\n${results}`
/** Gatekeeper answers 403 for constraints that deny. */
const denied = (message: string): WebhookAnswer => ({ status: { message, code: 403, reason: 'Forbidden' } })

const CASES: ReadonlyArray<readonly [name: string, engine: string, answer: WebhookAnswer, object?: K8sObject]> = [
  [
    'Kyverno: a missing label',
    KYVERNO,
    {
      status: {
        message: blocked(
          'Deployment',
          'web2',
          "require-labels:\n  autogen-check-for-labels: 'validation error: The label `app.kubernetes.io/name` is\n    required. rule autogen-check-for-labels failed at path /spec/template/metadata/labels/app.kubernetes.io/name/'\n",
        ),
      },
    },
  ],
  [
    'Kyverno: two policies, one with variables',
    KYVERNO,
    {
      status: {
        message: blocked(
          'Deployment',
          'web2',
          'no-plain-secrets:\n  env: The value canary-token-9f8e7d of TOKEN in main2 is a plain secret, use secretKeyRef\n  args: "found \\"canary-argument\\" in args"\nrestrict-registries:\n  check: \'validation failure: registry.example is not allowed\'\n',
        ),
      },
    },
  ],
  [
    'Kyverno: a Secret',
    KYVERNO,
    { status: { message: blocked('Secret', 'db2', 'weak:\n  words: password canary-word is weak\n') } },
    secret(),
  ],
  [
    'Kyverno: an image without a signature',
    KYVERNO_IMAGES,
    {
      status: {
        message: blocked(
          'Deployment',
          'web2',
          "check-image:\n  autogen-check-image: 'failed to verify image registry.example/shop/web2:v1.4.2-a1b2c3:\n    .attestors[0].entries[0].keys: no signatures found'\n",
        ),
      },
    },
  ],
  [
    'Kyverno: warnings of a policy that audits',
    KYVERNO,
    {
      warnings: [
        'policy require-requests.autogen-check: validation error: CPU and memory requests are required. rule autogen-check failed at path /spec/template/spec/containers/0/resources/requests/',
        'policy no-plain-secrets.env: The value canary-token-9f8e7d is a plain secret',
      ],
    },
  ],
  ['Gatekeeper: a missing label, as a set', GATEKEEPER, denied('[must-have-owner] you must provide labels: {"owner"}')],
  [
    'Gatekeeper: several constraints',
    GATEKEEPER,
    denied(
      '[allowed-repos] container <main2> has an invalid image repo <registry.example/shop/web2:v1.4.2-a1b2c3>, allowed repos are ["registry.internal/"]\n[no-root] container {"args": ["--dsn=postgres://app:canaryPass@db/shop"], "env": [{"name": "TOKEN", "value": "canary-token-9f8e7d"}], "name": "main2"} runs as root',
    ),
  ],
  ['Gatekeeper: a warning', GATEKEEPER, { warnings: ['[env-values] variable TOKEN has the value canary-token-9f8e7d'] }],
  [
    'OPA: an image',
    'validating-webhook.openpolicyagent.org',
    { status: { reason: 'image registry.example/shop/web2:v1.4.2-a1b2c3 fails to come from trusted registry', message: '' } },
  ],
  [
    'Kubewarden: a sentence',
    'clusterwide-pss.kubewarden.admission',
    { status: { message: "Privileged container is not allowed, it's refused", code: 400 } },
  ],
  [
    'cert-manager: errors of fields',
    'webhook.cert-manager.io',
    {
      status: {
        message:
          'spec.template.spec.containers[0].args[0]: Invalid value: "--dsn=postgres://app:canaryPass@db/shop": must not hold a password',
        code: 406,
        reason: 'NotAcceptable',
      },
    },
  ],
  [
    'Istio: several errors',
    'rev.validation.istio.io',
    {
      status: {
        message: 'configuration is invalid: 2 errors occurred:\n\t* gateway must have at least one server\n\t* duplicate host\n',
        code: 400,
      },
    },
  ],
  [
    'an own webhook prints the object as Go does',
    'own.example.com',
    {
      status: {
        message: 'refused &{Name:main2 Env:[{Name:TOKEN Value:canary-token-9f8e7d}]}, ask the platform team',
        code: 422,
        reason: 'Invalid',
      },
    },
  ],
  [
    'an own webhook has causes',
    'own.example.com',
    {
      status: {
        message:
          'Deployment.apps "web2" is invalid: spec.template.spec.containers[0].env[0].value: Invalid value: "canary-token-9f8e7d": use a Secret',
        code: 422,
        reason: 'Invalid',
        details: {
          name: 'web2',
          kind: 'Deployment',
          causes: [
            {
              reason: 'FieldValueInvalid',
              message: 'Invalid value: "canary-token-9f8e7d": use a Secret',
              field: 'spec.template.spec.containers[0].env[0].value',
            },
          ],
        },
      },
    },
  ],
  ['an own webhook says nothing', 'own.example.com', { status: {} }],
]

export const WEBHOOK_CASES: readonly WebhookCase[] = CASES.map(([name, engine, answer, object = deployment()], index) => {
  const labels = { [WEBHOOK_LABEL]: engine, [CASE_LABEL]: String(index) }
  return { name, engine, answer, object: { ...object, metadata: { ...object.metadata, labels } } as K8sObject }
})

/** The answer to an object. Null allows it. */
export function answerOf(object: Record<string, unknown> | null): WebhookAnswer | null {
  const labels = (object?.['metadata'] as { labels?: Record<string, string> } | undefined)?.labels ?? {}
  return WEBHOOK_CASES[Number(labels[CASE_LABEL] ?? -1)]?.answer ?? null
}

/** A configuration of one webhook for each engine. */
export function webhookConfigurations(url: string, caBundle: string): K8sObject[] {
  return [...new Set(WEBHOOK_CASES.map(({ engine }) => engine))].map(
    (engine) =>
      ({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: engine },
        webhooks: [
          {
            name: engine,
            clientConfig: { url, caBundle },
            rules: [
              { apiGroups: ['', 'apps'], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['deployments', 'secrets'] },
            ],
            objectSelector: { matchLabels: { [WEBHOOK_LABEL]: engine } },
            sideEffects: 'None',
            failurePolicy: 'Fail',
            admissionReviewVersions: ['v1'],
          },
        ],
      }) as unknown as K8sObject,
  )
}
