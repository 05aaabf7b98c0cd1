// What well-known controllers say of certificates, secrets, scaling, monitoring and policies, by the words of their own
// API types, and the health that it means.
import { expect, test } from 'bun:test'
import { healthOf } from '../../shared/kube/health.ts'
import { PLATFORM_RULES } from '../../shared/kube/health-platform.ts'
import {
  conditions,
  nothing,
  objectOf,
  type Part,
  paused,
  phase,
  type Row,
  ready,
  says,
  state,
  suspended,
  testHealthTable,
} from '../support/health-table.ts'

const model = (transitionStatus: string): Part => ({ status: { ...conditions('Ready:True'), modelStatus: { transitionStatus } } })

const ROWS: Row[] = [
  {
    kinds: ['Order', 'Challenge'].map((kind) => `acme.cert-manager.io/v1/${kind}`),
    Healthy: [state('valid'), state('ready')],
    Progressing: [nothing, state('pending'), state('processing')],
    Degraded: [state('invalid'), state('expired'), state('errored')],
  },
  {
    kinds: ['cert-manager.io/v1/Certificate', 'certmanager.k8s.io/v1alpha1/Certificate'],
    Healthy: [says('Ready:True'), says('Ready:True', 'Issuing:False:Issued')],
    Progressing: [nothing, says('Ready:False:DoesNotExist', 'Issuing:True:DoesNotExist'), says('Ready:True', 'Issuing:True:Renewing')],
    Degraded: [says('Ready:False:DoesNotExist', 'Issuing:False:Failed:the order is invalid')],
  },
  {
    kinds: ['cert-manager.io/v1/CertificateRequest'],
    Healthy: [says('Approved:True', 'Ready:True:Issued')],
    Progressing: [nothing, says('Approved:True', 'Ready:False:Pending')],
    Degraded: [says('Ready:False:Failed'), says('Denied:True:Policy'), says('InvalidRequest:True')],
  },
  {
    kinds: ['cert-manager.io/v1', 'certmanager.k8s.io/v1alpha1'].flatMap((group) => [`${group}/Issuer`, `${group}/ClusterIssuer`]),
    ...ready,
    Degraded: [says('Ready:False:ErrRegisterACMEAccount')],
  },
  {
    kinds: ['trust.cert-manager.io/v1alpha1/Bundle'],
    Healthy: [says('Synced:True')],
    Progressing: [nothing],
    Degraded: [says('Synced:False:SourceNotFound')],
  },
  {
    kinds: ['ClusterExternalSecret', 'ClusterSecretStore', 'ExternalSecret', 'PushSecret', 'SecretStore'].map(
      (kind) => `external-secrets.io/v1/${kind}`,
    ),
    ...ready,
    Degraded: [says('Ready:False:SecretSyncedError:could not get secret data from provider')],
  },
  {
    kinds: ['bitnami.com/v1alpha1/SealedSecret'],
    Healthy: [says('Synced:True')],
    Progressing: [nothing],
    Degraded: [says('Synced:False::no key could decrypt secret')],
  },
  {
    kinds: ['keda.sh/v1alpha1/ScaledObject', 'keda.sh/v1alpha1/ScaledJob'],
    Healthy: [says('Ready:True', 'Active:False:ScalerNotActive', 'Fallback:False', 'Paused:False')],
    Progressing: [nothing, says('Ready:Unknown')],
    Degraded: [says('Ready:False:ScaledObjectCheckFailed'), says('Ready:True', 'Fallback:True:FallbackExists')],
    Suspended: [says('Ready:True', 'Paused:True:ScaledObjectPaused')],
  },
  {
    kinds: ['Alertmanager', 'Prometheus', 'PrometheusAgent', 'ThanosRuler'].map((kind) => `monitoring.coreos.com/v1/${kind}`),
    Healthy: [says('Available:True', 'Reconciled:True')],
    Progressing: [
      nothing,
      says('Available:False:NoPodReady', 'Reconciled:True'),
      says('Available:Degraded:SomePodsNotReady', 'Reconciled:True'),
    ],
    Degraded: [says('Available:True', 'Reconciled:False:ReconciliationFailed')],
    Suspended: [paused],
  },
  {
    kinds: ['kubevirt.io/v1/VirtualMachine'],
    Healthy: [{ status: { printableStatus: 'Running' } }],
    Progressing: [nothing, ...['Provisioning', 'Starting', 'Migrating'].map((word) => ({ status: { printableStatus: word } }))],
    Degraded: ['CrashLoopBackOff', 'ErrorUnschedulable', 'ErrorPvcNotFound'].map((word) => ({ status: { printableStatus: word } })),
    Suspended: ['Stopped', 'Paused'].map((word) => ({ status: { printableStatus: word } })),
  },
  {
    kinds: ['kubevirt.io/v1/VirtualMachineInstance'],
    Healthy: [phase('Running')],
    Progressing: [nothing, phase('Scheduling')],
    Degraded: [phase('Failed')],
    Suspended: [{ status: { phase: 'Running', ...conditions('Paused:True') } }],
  },
  { kinds: ['karpenter.k8s.aws/v1/EC2NodeClass', 'karpenter.sh/v1/NodePool'], ...ready, Degraded: [says('Ready:False:NodeClassNotReady')] },
  {
    kinds: ['karpenter.sh/v1/NodeClaim'],
    Healthy: [says('Ready:True')],
    Progressing: [nothing, says('Ready:False:NotLaunched')],
    Degraded: [says('Ready:False:NotReady:Instance terminated unexpectedly')],
    Suspended: [says('Ready:True', 'Disrupting:True:Expired:TTL expired')],
  },
  {
    kinds: ['serving.kserve.io/v1beta1/InferenceService'],
    ...ready,
    Progressing: [nothing, says('Ready:False:PredictorNotReady'), model('InProgress')],
    Degraded: [says('Ready:False:RevisionFailed'), model('BlockedByFailedLoad'), model('InvalidSpec')],
  },
  { kinds: ['kyverno.io/v1/ClusterPolicy', 'kyverno.io/v1/Policy'], ...ready, Degraded: [says('Ready:False:Failed')] },
  { kinds: ['kyverno.io/v1/ClusterPolicy'], Healthy: [{ status: { ready: true } }], Progressing: [{ status: { ready: false } }] },
  {
    kinds: ['apps.kruise.io/v1alpha1/CloneSet'],
    Healthy: [
      { spec: { updateStrategy: { paused: false } }, status: { readyReplicas: 1 } },
      { status: { updatedReadyReplicas: 2, ...conditions('FailedScale:True:MinimumReplicasAvailable') } },
    ],
    Degraded: [{ status: { readyReplicas: 0, ...conditions('FailedScale:True:FailedCreate') } }],
    Suspended: [{ spec: { updateStrategy: { paused: true } }, status: { readyReplicas: 1 } }],
  },
  {
    kinds: ['apps.kruise.io/v1beta1/StatefulSet', 'apps.kruise.io/v1alpha1/DaemonSet'],
    Healthy: [],
    Suspended: [{ spec: { updateStrategy: { rollingUpdate: { paused: true } } } }],
  },
  {
    kinds: ['opentelemetry.io/v1beta1/OpenTelemetryCollector'],
    Healthy: [{ status: { scale: { statusReplicas: '2/2' }, version: '1' } }, { status: { version: '1', image: 'x' } }],
    Progressing: [nothing, { status: { scale: { statusReplicas: '1/2' }, version: '1' } }],
    Suspended: [paused],
  },
  {
    kinds: ['isindir.github.com/v1alpha3/SopsSecret'],
    Healthy: [{ status: { message: 'Healthy' } }],
    Progressing: [nothing],
    Degraded: [{ status: { message: 'Decryption error' } }],
    Suspended: [suspended, { status: { message: 'Reconciliation is suspended' } }],
  },
  {
    kinds: ['templates.gatekeeper.sh/v1/ConstraintTemplate'],
    Healthy: [{ status: { created: true, byPod: [{ id: 'a' }] } }],
    Progressing: [nothing],
    Degraded: [{ status: { created: true, byPod: [{ errors: [{ message: 'rego does not parse' }] }] } }],
  },
  {
    kinds: ['apps.kruise.io/v1alpha1/CloneSet'],
    Healthy: [{ spec: { replicas: 1 }, status: { readyReplicas: 1 } }],
    Progressing: [nothing, { spec: { replicas: 2 }, status: { readyReplicas: 1 } }],
    Degraded: [{ spec: { replicas: 1 }, status: { readyReplicas: 1, ...conditions('FailedUpdate:True') } }],
  },
  {
    kinds: ['external-secrets.io/v1/ClusterExternalSecret'],
    Healthy: [says('PartiallyReady:True', 'Ready:True')],
    Degraded: [says('NotReady:True:::one or more namespaces failed'), says('PartiallyReady:True')],
  },
  {
    kinds: ['GlobalSopsSecret', 'SopsProvider', 'SopsSecret'].map((kind) => `addons.projectcapsule.dev/v1alpha1/${kind}`),
    Healthy: [{ status: { condition: { type: 'Ready', status: 'True' } } }, says('Ready:True')],
    Progressing: [nothing, { status: { condition: { type: 'Ready', status: 'Unknown' } } }],
    Degraded: [{ status: { condition: { type: 'Ready', status: 'False', reason: 'NotSopsEncrypted', message: 'decryption failed' } } }],
  },
  {
    kinds: ['VaultAuth', 'VaultConnection', 'VaultDynamicSecret', 'VaultPKISecret', 'VaultStaticSecret'].map(
      (kind) => `secrets.hashicorp.com/v1beta1/${kind}`,
    ),
    Healthy: [{ status: { valid: true } }, says('Healthy:True', 'Ready:True')],
    Progressing: [nothing],
    Degraded: [{ status: { valid: false, error: 'InvalidConnection' } }],
  },
  {
    kinds: ['autoscaling.k8s.io/v1/VerticalPodAutoscaler'],
    Healthy: [says('RecommendationProvided:True'), says('RecommendationProvided:False')],
    Progressing: [nothing, says('RecommendationProvided:False', 'NoPodsMatched:True:NoPodsMatched')],
    Degraded: [says('ConfigUnsupported:True::the target has no selector')],
  },
  {
    kinds: ['VLSingle', 'VMAgent', 'VMAlert', 'VMAlertmanager', 'VMAuth', 'VMCluster', 'VMSingle'].map(
      (kind) => `operator.victoriametrics.com/v1beta1/${kind}`,
    ),
    Healthy: [{ status: { updateStatus: 'operational' } }],
    Progressing: [nothing, { status: { updateStatus: 'expanding' } }],
    Degraded: [{ status: { updateStatus: 'failed', reason: 'no such secret' } }],
    Suspended: [paused, { status: { updateStatus: 'paused' } }],
  },
  {
    kinds: ['grafana.integreatly.org/v1beta1/Grafana'],
    Healthy: [{ status: { stage: 'complete', stageStatus: 'success' } }],
    Progressing: [nothing, { status: { stage: 'deployment', stageStatus: 'success' } }],
    Degraded: [{ status: { stage: 'ingress', stageStatus: 'failed' } }],
  },
  {
    kinds: ['GrafanaAlertRuleGroup', 'GrafanaDashboard', 'GrafanaFolder'].map((kind) => `grafana.integreatly.org/v1beta1/${kind}`),
    Healthy: [says('FolderSynchronized:True:ApplySuccessful')],
    Progressing: [nothing],
    Degraded: [says('FolderSynchronized:False:ApplyFailed'), says('NoMatchingInstance:True:EmptyAPIReply')],
  },
  {
    kinds: ['grafana.integreatly.org/v1beta1/GrafanaDatasource'],
    Healthy: [{ status: { hash: 'a', uid: 'b' } }, says('DatasourceSynchronized:True')],
    Progressing: [nothing, { status: { uid: '' } }],
    Degraded: [{ status: { hash: 'a', NoMatchingInstances: true } }],
  },
  {
    kinds: ['datadoghq.com/v1alpha1/DatadogMetric'],
    Healthy: [says('Active:False', 'Valid:True', 'Error:False')],
    Progressing: [nothing],
    Degraded: [says('Valid:False::the metric query is invalid'), says('Valid:True', 'Error:True')],
  },
  {
    kinds: ['jaegertracing.io/v1/Jaeger'],
    Healthy: [phase('Running')],
    Progressing: [nothing],
    Degraded: [phase('Failed')],
  },
  {
    kinds: ['coralogix.com/v1alpha1/Alert', 'coralogix.com/v1alpha1/RecordingRuleGroupSet'],
    Healthy: [says('RemoteSynced:True')],
    Progressing: [nothing],
    Degraded: [says('RemoteSynced:False:RemoteCreationFailed')],
  },
  {
    kinds: ['kubevirt.io/v1/KubeVirt'],
    Healthy: [phase('Deployed')],
    Progressing: [nothing, phase('Deploying')],
    Degraded: [phase('Error')],
  },
  {
    kinds: ['serving.kserve.io/v1alpha1/LLMInferenceService'],
    Healthy: [says('Ready:True')],
    Progressing: [nothing, says('Ready:False:MinimumReplicasUnavailable')],
    Degraded: [says('Ready:False:ReconcileError')],
  },
  {
    kinds: ['k8s.keycloak.org/v2alpha1/Keycloak'],
    Healthy: [says('Ready:True', 'HasErrors:False', 'RollingUpdate:False')],
    Progressing: [nothing, says('Ready:False::Waiting for more replicas', 'HasErrors:False', 'RollingUpdate:True')],
    Degraded: [says('Ready:False::Waiting for more replicas', 'HasErrors:True')],
  },
  {
    kinds: ['k8s.keycloak.org/v2alpha1/KeycloakRealmImport'],
    Healthy: [says('Done:True', 'Started:True', 'HasErrors:False')],
    Progressing: [nothing, says('Done:False', 'Started:True', 'HasErrors:False')],
    Degraded: [says('Done:False', 'HasErrors:True')],
  },
  {
    kinds: ['apps.kruise.io/v1beta1/StatefulSet'],
    Healthy: [{ status: { observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1 } }],
    Progressing: [nothing, { status: { observedGeneration: 1, replicas: 1, readyReplicas: 0 } }],
    Suspended: [paused],
  },
  {
    kinds: ['apps.kruise.io/v1alpha1/DaemonSet'],
    Healthy: [
      {
        status: {
          observedGeneration: 1,
          desiredNumberScheduled: 1,
          currentNumberScheduled: 1,
          updatedNumberScheduled: 1,
          numberAvailable: 1,
          numberReady: 1,
        },
      },
    ],
    Progressing: [nothing, { status: { observedGeneration: 1, desiredNumberScheduled: 1 } }],
    Suspended: [paused],
  },
  {
    kinds: ['apps.openshift.io/v1/DeploymentConfig'],
    Healthy: [says('Available:True', 'Progressing:True:NewReplicationControllerAvailable')],
    Progressing: [
      nothing,
      says('Available:True', 'Progressing:True:ReplicationControllerUpdated'),
      says('Available:True', 'Progressing:Unknown'),
    ],
    Degraded: [says('Available:True', 'Progressing:False:ProgressDeadlineExceeded')],
    Suspended: [paused],
  },
  {
    kinds: ['apps.3scale.net/v1alpha1/APIManager'],
    Healthy: [says('Available:True')],
    Progressing: [nothing, says('Available:False')],
    Degraded: [says('Available:False:MissingWatchedSecrets')],
  },
  {
    kinds: [
      'ActiveDoc',
      'Application',
      'ApplicationAuth',
      'Backend',
      'CustomPolicyDefinition',
      'OpenAPI',
      'Product',
      'ProxyConfigPromote',
      'Tenant',
    ].map((kind) => `capabilities.3scale.net/v1beta1/${kind}`),
    Healthy: [says('Failed:False', 'Invalid:False', 'Synced:True'), says('Ready:True')],
    Progressing: [nothing, says(), says('Failed:False', 'Invalid:False', 'Synced:False')],
    Degraded: [says('Failed:True', 'Synced:False'), says('Invalid:True'), says('Orphan:True')],
  },
  {
    kinds: ['camel.apache.org/v1/Integration'],
    Healthy: [{ status: { phase: 'Running', ...conditions('CronJobAvailable:False', 'Ready:True') } }],
    Progressing: [nothing, phase('Deploying'), phase('Building Kit')],
    Degraded: [{ status: { phase: 'Error', ...conditions('Ready:False:Error') } }],
  },
  {
    kinds: ['argocd-image-updater.argoproj.io/v1alpha1/ImageUpdater'],
    Healthy: [says('Ready:True', 'Reconciling:False', 'Error:False')],
    Progressing: [nothing, says('Reconciling:True')],
    Degraded: [says('Ready:False', 'Error:True:ReconcileFailed')],
  },
]

testHealthTable(ROWS, PLATFORM_RULES, [], 65)

test('HE4 where an API promises that conditions name their generation, one of an older generation says nothing', () => {
  const seen = (type: string, observedGeneration: number) => ({ type, status: 'True', observedGeneration })
  const at = (kind: string, generation: number, status: Part) =>
    healthOf(objectOf(kind, { metadata: { name: 'x', generation }, status }), 0)
  const kinds = [
    ['gateway.networking.k8s.io/v1/Gateway', (n: number) => ({ conditions: [seen('Accepted', 2), seen('Programmed', n)] })],
    ['gateway.networking.k8s.io/v1/GatewayClass', (n: number) => ({ conditions: [seen('Accepted', n)] })],
    [
      'gateway.networking.k8s.io/v1/HTTPRoute',
      (n: number) => ({ parents: [{ conditions: [seen('Accepted', 2)] }, { conditions: [seen('Accepted', n)] }] }),
    ],
    ['cert-manager.io/v1/Certificate', (n: number) => ({ conditions: [seen('Ready', n)] })],
  ] as const
  for (const [kind, status] of kinds) {
    expect(at(kind, 2, status(1))).toMatchObject({ word: 'Progressing', reason: 'GenerationNotObserved' })
    expect(at(kind, 2, status(2)).word).toBe('Healthy')
  }
})
