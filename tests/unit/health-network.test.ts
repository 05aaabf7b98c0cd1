// What well-known controllers say of gateways, routes and meshes, by the words of their own API types, and the health
// that it means.
import { NETWORK_RULES } from '../../shared/kube/health-network.ts'
import { conditions, nothing, type Part, paused, type Row, says, state, testHealthTable } from '../support/health-table.ts'

const parents = (...each: Part[]): Part => ({ status: { parents: each } })
const gloo = (...each: Part[]): Part => ({ status: { statuses: Object.fromEntries(each.map((report, n) => [`gloo-${n}`, report])) } })

const ROWS: Row[] = [
  {
    kinds: ['GRPCRoute', 'HTTPRoute', 'TCPRoute', 'TLSRoute', 'UDPRoute'].map((kind) => `gateway.networking.k8s.io/v1/${kind}`),
    Healthy: [parents(conditions('Accepted:True', 'ResolvedRefs:True'), conditions('Accepted:True'))],
    Progressing: [
      nothing,
      parents(conditions('ResolvedRefs:True')),
      parents(conditions('Accepted:True', 'Programmed:Unknown'), conditions('Accepted:True')),
      parents(conditions('Accepted:True'), conditions('Accepted:Unknown:Pending')),
    ],
    Degraded: [
      parents(conditions('Accepted:True'), conditions('Accepted:False:NotAllowedByListeners')),
      parents(conditions('Accepted:True', 'Programmed:False:TranslationError')),
      parents(conditions('Accepted:True', 'ResolvedRefs:False:BackendNotFound')),
      parents(conditions('Accepted:True', 'PartiallyInvalid:True:UnsupportedValue')),
    ],
  },
  {
    kinds: ['gateway.networking.k8s.io/v1/BackendTLSPolicy'],
    Healthy: [{ status: { ancestors: [conditions('Accepted:True')] } }],
    Progressing: [nothing],
    Degraded: [{ status: { ancestors: [conditions('Accepted:False:Invalid')] } }],
  },
  {
    kinds: [
      ...['Gateway', 'ListenerSet'].map((kind) => `gateway.networking.k8s.io/v1/${kind}`),
      'gateway.networking.x-k8s.io/v1alpha1/XListenerSet',
    ],
    Healthy: [says('Accepted:True', 'Programmed:True'), says('Accepted:True', 'Programmed:False:AddressNotAssigned')],
    Progressing: [
      nothing,
      says('Accepted:Unknown:Pending', 'Programmed:Unknown:Pending'),
      says('Accepted:True', 'Programmed:False:Pending'),
    ],
    Degraded: [
      says('Accepted:False:InvalidParameters', 'Programmed:Unknown'),
      says('Accepted:True', 'Programmed:False:NoResources'),
      says('Accepted:True', 'Programmed:True', 'ResolvedRefs:False:InvalidCertificateRef'),
      {
        status: {
          ...conditions('Accepted:True', 'Programmed:True'),
          listeners: [conditions('Accepted:True'), conditions('ResolvedRefs:False:RefNotPermitted')],
        },
      },
      { status: { ...conditions('Accepted:True', 'Programmed:True'), listeners: [conditions('Conflicted:True:HostnameConflict')] } },
    ],
  },
  {
    kinds: ['gateway.networking.k8s.io/v1/GatewayClass'],
    Healthy: [says('Accepted:True')],
    Progressing: [nothing, says('Accepted:Unknown:Pending')],
    Degraded: [says('Accepted:False:InvalidParameters')],
  },
  {
    kinds: ['sailoperator.io/v1/Istio'],
    Healthy: [state('Healthy')],
    Progressing: [nothing, state('Reconciling')],
    Degraded: [state('ReconcileError')],
  },
  {
    kinds: ['install.istio.io/v1alpha1/IstioOperator'],
    Healthy: [{ status: { status: 'HEALTHY' } }],
    Progressing: [nothing, { status: { status: 'RECONCILING' } }],
    Degraded: [{ status: { status: 'ERROR' } }],
  },
  {
    kinds: [
      ...['Proxy', 'Settings', 'Upstream', 'UpstreamGroup'].map((kind) => `gloo.solo.io/v1/${kind}`),
      ...['Gateway', 'MatchableHttpGateway', 'MatchableTcpGateway', 'RouteOption', 'RouteTable', 'VirtualHostOption', 'VirtualService'].map(
        (kind) => `gateway.solo.io/v1/${kind}`,
      ),
    ],
    Healthy: [gloo({ state: 'Accepted' }), gloo({ state: 1 }, { state: 'Accepted' }), state('Accepted')],
    Progressing: [nothing, gloo({ state: 'Pending' }), gloo({ state: 0 }), gloo({ reportedBy: 'gateway' })],
    Degraded: [
      gloo({ state: 'Accepted' }, { state: 'Rejected', reason: 'no such upstream' }),
      gloo({ state: 2 }),
      gloo({ state: 'Warning' }),
    ],
  },
  {
    kinds: ['projectcontour.io/v1/HTTPProxy'],
    Healthy: [{ status: { currentStatus: 'valid' } }],
    Progressing: [nothing],
    Degraded: [
      { status: { currentStatus: 'invalid', description: 'At least one error present' } },
      { status: { currentStatus: 'orphaned' } },
    ],
  },
  {
    kinds: ['projectcontour.io/v1alpha1/ExtensionService'],
    Healthy: [says('Valid:True:Valid')],
    Progressing: [nothing],
    Degraded: [says('Valid:False:ErrorPresent:At least one error present')],
  },
  {
    kinds: ['route.openshift.io/v1/Route'],
    Healthy: [{ status: { ingress: [conditions('Admitted:True'), conditions('Admitted:True')] } }],
    Progressing: [nothing, { status: { ingress: [conditions('Admitted:Unknown')] } }],
    Degraded: [{ status: { ingress: [conditions('Admitted:True'), conditions('Admitted:False:HostAlreadyClaimed')] } }],
  },
  {
    kinds: ['elbv2.k8s.aws/v1beta1/TargetGroupBinding'],
    Healthy: [{ metadata: { generation: 2 }, status: { observedGeneration: 2 } }],
    Progressing: [nothing, { metadata: { generation: 2 }, status: { observedGeneration: 1 } }],
    Suspended: [paused],
  },
  {
    kinds: ['networking.gke.io/v1/ManagedCertificate'],
    Healthy: [{ status: { certificateStatus: 'Active', domainStatus: [{ domain: 'a', status: 'Active' }] } }],
    Progressing: [nothing, { status: { certificateStatus: 'Provisioning', domainStatus: [{ domain: 'a', status: 'Provisioning' }] } }],
    Degraded: [{ status: { certificateStatus: 'Provisioning', domainStatus: [{ domain: 'a', status: 'FailedNotVisible' }] } }],
  },
  {
    kinds: ['kiali.io/v1alpha1/Kiali'],
    Healthy: [says('Running:True:Running:Awaiting next reconciliation', 'Successful:True:Successful')],
    Progressing: [nothing, says('Running:True:Running:Running reconciliation')],
    Degraded: [says('Running:False:Running', 'Failure:True:Failed:a task failed')],
  },
  {
    kinds: ['openfaas.com/v1/Function'],
    Healthy: [says('Ready:True')],
    Progressing: [nothing, says('Reconciling:True:Deploying'), says('Ready:False:MinimumReplicasUnavailable')],
    Degraded: [says('Stalled:True:SecretMissing'), says('Ready:True', 'Healthy:False:CrashLoop')],
  },
]

testHealthTable(ROWS, NETWORK_RULES, [], 28)
