// Health of well-known custom kinds that a platform is made of: certificates, secrets, scaling, monitoring, machines,
// policies, dashboards. Each row names the field that it reads and where that field is documented; the rows follow the
// types of those APIs, not another tool's table.
import {
  byPhase,
  conditionsTogether,
  isTrue,
  notReported,
  readySummary,
  replicasReady,
  statusTogether,
  unlessFalse,
  unlessStopped,
  unlessTrue,
  whenSeen,
} from './health-conditions.ts'
import { CORE_RULES } from './health-core.ts'
import { failedBy, generalHealth, waitsFor } from './health-general.ts'
import { degraded, fields, HEALTHY, healthyWith, list, oneLine, progressing, type Rule, suspended, text } from './health-object.ts'

/** Issuing is True while a certificate is made, and False with reason Failed until the next attempt. */
const certificate: Rule = whenSeen(['Ready'], (reading) => {
  const issuing = reading.condition('Issuing')
  if (issuing?.status === 'False' && issuing.reason === 'Failed') return failedBy(issuing)
  if (issuing?.status === 'True') return waitsFor(issuing)
  return isTrue('Ready')(reading)
})
const certificateRequest = unlessTrue(['Denied', 'InvalidRequest'], isTrue('Ready', { failed: ['Failed', 'Denied'] }))
const issuer = isTrue('Ready', { falseIs: 'Degraded' })
const acme = byPhase({ at: ['state'], message: ['reason'], healthy: ['valid', 'ready'], degraded: ['invalid', 'expired', 'errored'] })

/** Ready in some namespaces only is a failure in the others; Ready itself comes when all are well. */
const clusterExternalSecret: Rule = (reading) => {
  if (reading.condition('Ready')?.status === 'True') return HEALTHY
  return unlessTrue(['NotReady', 'PartiallyReady'], isTrue('Ready', { falseIs: 'Degraded' }))(reading)
}

/** With a fallback a trigger fails and the target runs at a fixed size. */
const keda: Rule = unlessStopped('Paused', unlessTrue(['Fallback'], isTrue('Ready', { falseIs: 'Degraded' })))
const prometheus: Rule = unlessFalse(['Reconciled'], isTrue('Available'))

const virtualMachine = byPhase({
  at: ['printableStatus'],
  healthy: ['Running'],
  degraded: [
    'CrashLoopBackOff',
    'DataVolumeError',
    'ErrImagePull',
    'ErrorDataVolumeNotFound',
    'ErrorPvcNotFound',
    'ErrorUnschedulable',
    'ImagePullBackOff',
  ],
  suspended: ['Paused', 'Stopped'],
})

/** Each pod of Gatekeeper says for itself what is wrong with the template. */
const constraintTemplate: Rule = ({ status }) => {
  for (const pod of list(status['byPod'])) {
    const errors = pod['errors']
    if (Array.isArray(errors) && errors.length > 0) return degraded('TemplateError', oneLine(text(fields(errors[0])['message'])))
  }
  return status['created'] === true ? HEALTHY : progressing('NotCreated', 'its constraint is not created yet')
}

/** The operator goes through its stages in order; the last one is `complete`. */
const grafana: Rule = ({ status }) => {
  const [stage, result] = [text(status['stage']), text(status['stageStatus'])]
  const said = oneLine(text(status['lastMessage'])) || `stage ${stage} is ${result}`
  if (stage === '') return notReported('status.stage')
  if (result === 'failed') return degraded('StageFailed', said)
  return stage === 'complete' && result === 'success' ? HEALTHY : progressing('StageInProgress', said)
}
/** Before 5.15 a datasource had no conditions: a hash says that it was written to an instance. */
const grafanaDatasource: Rule = (reading) => {
  if (reading.conditions.length > 0) return grafanaContent(reading)
  if (reading.status['NoMatchingInstances'] === true) return degraded('NoMatchingInstances', 'status.NoMatchingInstances is true')
  return text(reading.status['hash']) === '' ? notReported('status.hash') : HEALTHY
}
const grafanaContent: Rule = (reading) => generalHealth({ ...reading, status: { conditions: reading.status['conditions'] } })

const vaultResource: Rule = (reading) => {
  if (reading.status['valid'] === false) return degraded('NotValid', oneLine(text(reading.status['error'])) || 'status.valid is false')
  return statusTogether(reading)
}

/** Kinds without an update of their own (a VMRule, a VMServiceScrape) write only conditions. */
const victoriaUpdate = byPhase({
  at: ['updateStatus'],
  message: ['reason'],
  healthy: ['operational'],
  degraded: ['failed'],
  suspended: ['paused'],
})
const victoria: Rule = (reading) => (reading.status['updateStatus'] === undefined ? statusTogether(reading) : victoriaUpdate(reading))

/** `UpToDate` is the only one that serves what the spec says; a ready predictor may still serve its former model. */
const inferenceService: Rule = (reading) => {
  const model = fields(reading.status['modelStatus'])
  const transition = text(model['transitionStatus'])
  const said = oneLine(text(fields(model['lastFailureInfo'])['message'])) || `status.modelStatus.transitionStatus is ${transition}`
  if (transition === 'BlockedByFailedLoad' || transition === 'InvalidSpec') return degraded(transition, said)
  const found = isTrue('Ready', { patient: ['PredictorNotReady', 'RevisionMissing'] })(reading)
  return found.word === 'Healthy' && transition === 'InProgress' ? progressing(transition, said) : found
}

/** Before 1.8 a policy had `status.ready` and no condition. */
const kyvernoPolicy: Rule = (reading) =>
  reading.conditions.length === 0 && reading.status['ready'] === true ? HEALTHY : isTrue('Ready', { falseIs: 'Degraded' })(reading)

/** A rolling update that a person paused. */
const unlessPausedUpdate =
  (rule: Rule): Rule =>
  (reading) => {
    const strategy = fields(reading.spec['updateStrategy'])
    const isPaused = strategy['paused'] === true || fields(strategy['rollingUpdate'])['paused'] === true
    return isPaused ? suspended('spec.updateStrategy is paused') : rule(reading)
  }

/** A failed attempt to scale is over once the wanted number is ready. `readyReplicas` is missing in old versions. */
const cloneSet: Rule = unlessTrue(['FailedUpdate'], (reading) => {
  const { readyReplicas, updatedReadyReplicas } = reading.status
  const found = replicasReady({ ...reading, status: { readyReplicas: readyReplicas ?? updatedReadyReplicas } })
  return found.word === 'Healthy' ? found : unlessTrue(['FailedScale'], () => found)(reading)
})

/** A collector in a sidecar has no replicas of its own: then a version is all that its operator reports. */
const collector: Rule = (reading) => {
  const found = statusTogether(reading)
  return found.reason === 'NotUnderstood' && text(reading.status['version']) !== '' ? HEALTHY : found
}
/** One word or sentence in `message`. */
const sopsSecret: Rule = byPhase({ at: ['message'], message: [], healthy: ['Healthy'], suspended: ['Reconciliation is suspended'] })

export const PLATFORM_RULES: Readonly<Record<string, Rule>> = {
  // conditions Ready, Issuing, Denied, InvalidRequest; status.state of ACME: cert-manager
  // pkg/apis/{certmanager,acme}/v1, and its group before 0.11.
  'acme.cert-manager.io/Challenge': acme,
  'acme.cert-manager.io/Order': acme,
  'cert-manager.io/Certificate': certificate,
  'cert-manager.io/CertificateRequest': certificateRequest,
  'cert-manager.io/ClusterIssuer': issuer,
  'cert-manager.io/Issuer': issuer,
  'certmanager.k8s.io/Certificate': certificate,
  'certmanager.k8s.io/ClusterIssuer': issuer,
  'certmanager.k8s.io/Issuer': issuer,
  'trust.cert-manager.io/Bundle': isTrue('Synced', { falseIs: 'Degraded' }),
  // condition Ready, reasons SecretSynced, SecretSyncedError; NotReady, PartiallyReady: external-secrets
  // apis/externalsecrets.
  'external-secrets.io/ClusterExternalSecret': clusterExternalSecret,
  'external-secrets.io/ClusterSecretStore': isTrue('Ready', { falseIs: 'Degraded' }),
  'external-secrets.io/ExternalSecret': isTrue('Ready', { falseIs: 'Degraded' }),
  'external-secrets.io/PushSecret': isTrue('Ready', { falseIs: 'Degraded' }),
  'external-secrets.io/SecretStore': isTrue('Ready', { falseIs: 'Degraded' }),
  // condition Synced: sealed-secrets pkg/apis/sealedsecrets/v1alpha1.
  'bitnami.com/SealedSecret': isTrue('Synced', { falseIs: 'Degraded' }),
  // status.condition (one), later status.conditions: sops-operator addons.projectcapsule.dev/v1alpha1.
  'addons.projectcapsule.dev/GlobalSopsSecret': statusTogether,
  'addons.projectcapsule.dev/SopsProvider': statusTogether,
  'addons.projectcapsule.dev/SopsSecret': statusTogether,
  // status.valid, status.error, conditions: vault-secrets-operator secrets.hashicorp.com/v1beta1.
  'secrets.hashicorp.com/VaultAuth': vaultResource,
  'secrets.hashicorp.com/VaultConnection': vaultResource,
  'secrets.hashicorp.com/VaultDynamicSecret': statusTogether,
  'secrets.hashicorp.com/VaultPKISecret': vaultResource,
  'secrets.hashicorp.com/VaultStaticSecret': statusTogether,
  // conditions Ready, Paused, Fallback (Active False is an idle workload): keda apis/keda/v1alpha1.
  'keda.sh/ScaledJob': keda,
  'keda.sh/ScaledObject': keda,
  // conditions ConfigUnsupported, NoPodsMatched, RecommendationProvided; without metrics there is no recommendation,
  // which is no failure on the edge: autoscaler vertical-pod-autoscaler autoscaling.k8s.io/v1.
  'autoscaling.k8s.io/VerticalPodAutoscaler': unlessTrue(['ConfigUnsupported'], ({ conditions, condition }) => {
    if (conditions.length === 0) return notReported('a condition')
    const unmatched = condition('NoPodsMatched')
    if (unmatched?.status === 'True') return waitsFor(unmatched)
    const given = condition('RecommendationProvided')
    return given?.status === 'False' ? healthyWith('NoRecommendation', given.message || 'it has no recommendation yet') : HEALTHY
  }),
  // conditions Available (True, Degraded, False), Reconciled; spec.paused: prometheus-operator pkg/apis/monitoring/v1.
  'monitoring.coreos.com/Alertmanager': prometheus,
  'monitoring.coreos.com/Prometheus': prometheus,
  'monitoring.coreos.com/PrometheusAgent': prometheus,
  'monitoring.coreos.com/ThanosRuler': prometheus,
  // status.updateStatus, status.reason: VictoriaMetrics operator api/operator/v1beta1 (expanding, operational, failed,
  // paused).
  ...Object.fromEntries(
    ['VLSingle', 'VMAgent', 'VMAlert', 'VMAlertmanager', 'VMAuth', 'VMCluster', 'VMSingle'].map((kind) => [
      `operator.victoriametrics.com/${kind}`,
      victoria,
    ]),
  ),
  // status.stage, status.stageStatus, status.hash, NoMatchingInstances; conditions {Dashboard,Folder,…}Synchronized:
  // grafana-operator api/v1beta1.
  'grafana.integreatly.org/Grafana': grafana,
  'grafana.integreatly.org/GrafanaAlertRuleGroup': grafanaContent,
  'grafana.integreatly.org/GrafanaDashboard': grafanaContent,
  'grafana.integreatly.org/GrafanaDatasource': grafanaDatasource,
  'grafana.integreatly.org/GrafanaFolder': grafanaContent,
  // conditions Valid, Error, Updated (Active says only that an autoscaler uses it): datadog cluster agent
  // datadoghq.com/v1alpha1.
  'datadoghq.com/DatadogMetric': unlessTrue(['Error'], isTrue('Valid', { falseIs: 'Degraded' })),
  // status.phase: jaeger-operator jaegertracing.io/v1.
  'jaegertracing.io/Jaeger': byPhase({ healthy: ['Running'], degraded: ['Failed'] }),
  // condition RemoteSynced: coralogix-operator api/coralogix.
  'coralogix.com/Alert': isTrue('RemoteSynced', { falseIs: 'Degraded' }),
  'coralogix.com/RecordingRuleGroupSet': isTrue('RemoteSynced', { falseIs: 'Degraded' }),
  // status.printableStatus, status.phase: kubevirt.io/api core/v1.
  'kubevirt.io/KubeVirt': byPhase({ healthy: ['Deployed'], degraded: ['Error'] }),
  'kubevirt.io/VirtualMachine': virtualMachine,
  'kubevirt.io/VirtualMachineInstance': unlessStopped('Paused', byPhase({ healthy: ['Running', 'Succeeded'], degraded: ['Failed'] })),
  // condition Ready: karpenter pkg/apis/v1.
  'karpenter.k8s.aws/EC2NodeClass': isTrue('Ready', { falseIs: 'Degraded' }),
  // Disrupting: karpenter takes the node out of service on purpose.
  'karpenter.sh/NodeClaim': unlessStopped('Disrupting', isTrue('Ready')),
  'karpenter.sh/NodePool': isTrue('Ready', { falseIs: 'Degraded' }),
  // condition Ready (False also while Pods come up), modelStatus.transitionStatus: kserve pkg/apis/serving.
  'serving.kserve.io/InferenceService': inferenceService,
  'serving.kserve.io/LLMInferenceService': isTrue('Ready'),
  // conditions Ready, HasErrors, RollingUpdate; Done, Started, HasErrors: keycloak operator k8s.keycloak.org/v2alpha1.
  'k8s.keycloak.org/Keycloak': unlessTrue(['HasErrors'], readySummary),
  'k8s.keycloak.org/KeycloakRealmImport': unlessTrue(['HasErrors'], isTrue('Done')),
  // condition Ready: kyverno api/kyverno/v1; status.byPod[].errors, status.created: gatekeeper frameworks/constraint.
  'kyverno.io/ClusterPolicy': kyvernoPolicy,
  'kyverno.io/Policy': kyvernoPolicy,
  'templates.gatekeeper.sh/ConstraintTemplate': constraintTemplate,
  // the counters of their namesakes in apps/v1; conditions FailedScale, FailedUpdate: kruise apis/apps.
  'apps.kruise.io/CloneSet': unlessPausedUpdate(cloneSet),
  'apps.kruise.io/DaemonSet': unlessPausedUpdate(CORE_RULES['apps/DaemonSet'] as Rule),
  'apps.kruise.io/StatefulSet': unlessPausedUpdate(CORE_RULES['apps/StatefulSet'] as Rule),
  // status.scale.statusReplicas (a fraction), status.version: opentelemetry-operator apis/v1beta1; status.message:
  // isindir sops-secrets-operator.
  'opentelemetry.io/OpenTelemetryCollector': collector,
  'isindir.github.com/SopsSecret': sopsSecret,
  // condition Available, ReplicaFailure, Progressing: openshift/api apps/v1.
  'apps.openshift.io/DeploymentConfig': statusTogether,
  // condition Available, reason Missing… and Failed…; while Deployments start it has none: 3scale-operator
  // apis/apps/v1alpha1; Ready, Synced, Failed, Invalid, Orphan: apis/capabilities.
  'apps.3scale.net/APIManager': isTrue('Available'),
  ...Object.fromEntries(
    [
      'ActiveDoc',
      'Application',
      'ApplicationAuth',
      'Backend',
      'CustomPolicyDefinition',
      'OpenAPI',
      'Product',
      'ProxyConfigPromote',
      'Tenant',
    ].map((kind) => [`capabilities.3scale.net/${kind}`, conditionsTogether]),
  ),
  // conditions of an Integration, status.phase: camel-k pkg/apis/camel/v1.
  'camel.apache.org/Integration': byPhase({ healthy: ['Running'], degraded: ['Error'] }),
  // conditions, each of which is to be True: argocd-image-updater api/v1alpha1.
  'argocd-image-updater.argoproj.io/ImageUpdater': readySummary,
}
