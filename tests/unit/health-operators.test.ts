// Kinds of well-known operators: most share one rule, whose documents are one table; the others have documents of their
// own.
import { describe, expect, test } from 'bun:test'
import { healthOf } from '../../shared/kube/health.ts'
import { STATUS_GRACE_MS } from '../../shared/kube/health-object.ts'
import { OPERATOR_RULES, REPORTING_KINDS } from '../../shared/kube/health-operators.ts'
import { nothing, objectOf, type Part, paused, phase, type Row, says, state, testHealthTable } from '../support/health-table.ts'

const HUMIO = ['HumioAlert', 'HumioParser', 'HumioRepository', 'HumioView', 'HumioUser'].map((kind) => `core.humio.com/v1alpha1/${kind}`)
const rest = Object.keys(OPERATOR_RULES).filter((kind) => !REPORTING_KINDS.includes(kind))
const inVersion = (prefix: string) => rest.filter((kind) => kind.startsWith(prefix)).map((kind) => kind.replace('/', '/v1/'))

const ROWS: Row[] = [
  {
    kinds: inVersion('astra.netapp.io/').concat(inVersion('protect.trident.netapp.io/')),
    Healthy: [says('Ready:True')],
    Progressing: [nothing],
    Degraded: [says('Ready:False:Ready:namespace wordpress is in terminating state')],
  },
  {
    kinds: inVersion('awx.ansible.com/').concat(inVersion('automationcontroller.ansible.com/'), inVersion('eda.ansible.com/')),
    Healthy: [says('Running:True:Successful', 'Successful:True', 'Failure:False')],
    Progressing: [nothing, says('Running:True:Running', 'Successful:False')],
    Degraded: [says('Running:False', 'Failure:True:Failed:task failed')],
  },
  {
    kinds: inVersion('capabilities.3scale.net/'),
    Healthy: [says('Ready:True')],
    Progressing: [nothing, says()],
    Degraded: [says('Invalid:True')],
    Suspended: [says('Waiting:True'), { status: { developerUserState: 'suspended' } }],
  },
  {
    kinds: inVersion('core.humio.com/'),
    Healthy: [state('Exists')],
    Progressing: [nothing],
    Degraded: [state('ConfigError')],
  },
  {
    kinds: [
      'hco.kubevirt.io',
      'hypershift.openshift.io',
      'imageregistry.operator.openshift.io',
      'ssp.kubevirt.io',
      'networkaddonsoperator.network.kubevirt.io',
    ]
      .map((group) => `${group}/`)
      .flatMap(inVersion),
    Healthy: [says('Available:True', 'Progressing:False', 'Degraded:False')],
    Progressing: [nothing, says('Available:True', 'Progressing:True', 'Degraded:False')],
    Degraded: [says('Available:True', 'Degraded:True:ImagePull')],
  },
  {
    kinds: inVersion('redhatcop.redhat.io/'),
    Healthy: [says('ReconcileSuccess:True')],
    Progressing: [nothing],
    Degraded: [says('ReconcileSuccess:False', 'ReconcileError:True:LastReconcileCycleFailed')],
  },
  {
    kinds: REPORTING_KINDS.map((kind) => kind.replace('/', '/v1/')),
    Healthy: [says('Ready:True')],
    Progressing: [nothing],
    Degraded: [says('Ready:False:Failed')],
    Suspended: [paused],
  },
]
testHealthTable(ROWS, OPERATOR_RULES, [], 400)

describe('the words of these operators', () => {
  test.each<[string, Part, string]>([
    ['actions.github.com/v1alpha1/EphemeralRunner', phase('Failed'), 'Degraded'],
    ['app.redislabs.com/v1/RedisEnterpriseCluster', state('Running'), 'Healthy'],
    ['app.redislabs.com/v1/RedisEnterpriseCluster', state('InvalidConfiguration'), 'Degraded'],
    ['apps.kruise.io/v1alpha1/BroadcastJob', phase('running'), 'Progressing'],
    ['apps.kruise.io/v1alpha1/BroadcastJob', phase('completed'), 'Healthy'],
    ['batch.volcano.sh/v1alpha1/Job', { status: { state: { phase: 'Failed' } } }, 'Degraded'],
    ['camel.apache.org/v1/Pipe', phase('Ready'), 'Healthy'],
    ['ceph.rook.io/v1/CephObjectStoreUser', phase('ReconcileFailed'), 'Degraded'],
    ['iammanager.keikoproj.io/v1alpha1/Iamrole', state('RolesMaxLimitReached'), 'Degraded'],
    ['k6.io/v1alpha1/TestRun', { status: { stage: 'started' } }, 'Progressing'],
    ['k6.io/v1alpha1/TestRun', { status: { stage: 'finished' } }, 'Healthy'],
    ['k6.io/v1alpha1/TestRun', { status: { stage: 'error' } }, 'Degraded'],
    ['k8s.nginx.org/v1/VirtualServer', { status: { state: 'Warning', message: 'unknown upstream' } }, 'Degraded'],
    ['kargo.akuity.io/v1alpha1/Promotion', phase('Errored'), 'Degraded'],
    ['loki.grafana.com/v1/LokiStack', says('Ready:False', 'Failed:True:FailedComponents'), 'Degraded'],
    ['metal3.io/v1alpha1/BareMetalHost', { status: { operationalStatus: 'error', errorMessage: 'no power' } }, 'Degraded'],
    ['nvidia.com/v1/ClusterPolicy', state('notReady'), 'Progressing'],
    ['olm.operatorframework.io/v1/ClusterExtension', says('Installed:True:Succeeded', 'Progressing:True:Succeeded'), 'Healthy'],
    ['olm.operatorframework.io/v1/ClusterExtension', says('Installed:False:Failed', 'Progressing:True:Retrying'), 'Degraded'],
    ['packaging.carvel.dev/v1alpha1/PackageInstall', says('ReconcileFailed:True'), 'Degraded'],
    ['packaging.carvel.dev/v1alpha1/PackageInstall', says('ReconcileSucceeded:True'), 'Healthy'],
    ['psmdb.percona.com/v1/PerconaServerMongoDBBackup', state('running'), 'Progressing'],
    ['pxc.percona.com/v1/PerconaXtraDBClusterBackup', state('Succeeded'), 'Healthy'],
    ['tailscale.com/v1alpha1/Connector', says('ConnectorReady:False:ConnectorInvalid'), 'Degraded'],
    ['volsync.backube/v1alpha1/ReplicationSource', says('Synchronizing:False:Error'), 'Degraded'],
    ['weblogic.oracle/v9/Domain', says('Completed:True', 'Available:True'), 'Healthy'],
    ...HUMIO.flatMap(
      (kind): Array<[string, Part, string]> => [
        [kind, state('NotFound'), 'Missing'],
        [kind, state('Unknown'), 'Unknown'],
      ],
    ),
  ])('HE4 %s %p is %s', (kind, part, word) => expect(healthOf(objectOf(kind, part), 0).word as string).toBe(word))
})

test('HE4 HE17 no grace time ends the silence of an operator, unless its version has no status to report', () => {
  const old = { ...objectOf('k6.io/v1alpha1/TestRun', nothing), metadata: { name: 'x', creationTimestamp: '2020-01-01T00:00:00Z' } }
  const laterMs = Date.UTC(2020, 0, 1) + 2 * STATUS_GRACE_MS
  expect(healthOf(old, laterMs, { hasStatus: true }).word).toBe('Progressing')
  expect(healthOf(old, laterMs, { hasStatus: false }).word).toBe('Healthy')
})
