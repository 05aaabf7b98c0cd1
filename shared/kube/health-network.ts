// Health of kinds that route and expose traffic: Gateway API, Gloo, Contour, OpenShift's routes, Istio's operators.
// Each row names the field that it reads and where that field is documented; the rows follow the types of those APIs,
// not another tool's table.
import {
  byPhase,
  conditionLists,
  conditionsTogether,
  isTrue,
  notReported,
  statusTogether,
  unlessFalse,
  unlessTrue,
  whenSeen,
} from './health-conditions.ts'
import { byConditions, failedBy, waitsFor } from './health-general.ts'
import {
  type Condition,
  degraded,
  type Fields,
  fields,
  HEALTHY,
  type Health,
  oneLine,
  progressing,
  type Reading,
  type Rule,
  text,
} from './health-object.ts'

const isFalse =
  (...types: string[]) =>
  ({ type, status }: Condition): boolean =>
    status === 'False' && types.includes(type)

/** A listener that is refused, whose references do not resolve, or that conflicts with another. Null means none. */
function wrongListener(reading: Reading): Condition | null {
  const all = conditionLists(reading, 'listeners').flat()
  return all.find(isFalse('Accepted', 'ResolvedRefs')) ?? all.find(({ type, status }) => type === 'Conflicted' && status === 'True') ?? null
}

/** HE5: a gateway without an address is programmed as far as an edge cluster can. */
const gateway: Rule = whenSeen(['Accepted', 'Programmed'], (reading) => {
  const accepted = isTrue('Accepted', { falseIs: 'Degraded', patient: ['Pending', 'NotReconciled'] })(reading)
  if (accepted.word !== 'Healthy') return accepted
  const wrong = reading.conditions.find(isFalse('ResolvedRefs')) ?? wrongListener(reading)
  if (wrong !== null && wrong !== undefined) return failedBy(wrong)
  const programmed = reading.condition('Programmed')
  if (!reading.waitForAddress && programmed?.status === 'False' && programmed.reason === 'AddressNotAssigned') return HEALTHY
  return isTrue('Programmed', { failed: ['Invalid', 'NoResources', 'AddressNotUsable'] })(reading)
})

/** Every parent that has looked must accept it. */
const attached =
  (name: 'parents' | 'ancestors'): Rule =>
  (reading) => {
    const owners = conditionLists(reading, name)
    if (owners.length === 0) return progressing('NotReported', 'no gateway has reported on it yet; check its parentRefs if this persists')
    const { generation = 0 } = reading
    if (owners.flat().some((entry) => entry.type === 'Accepted' && entry.generation !== null && entry.generation < generation)) {
      return progressing('GenerationNotObserved', `not every gateway has processed generation ${generation} yet`)
    }
    for (const conditions of owners) {
      const refused = conditions.find(isFalse('Accepted', 'ResolvedRefs')) ?? conditions.find(isPartlyInvalid)
      if (refused !== undefined) return failedBy(refused)
    }
    const waits = owners.some((conditions) => !conditions.some(({ type, status }) => type === 'Accepted' && status === 'True'))
    if (waits) return progressing('NotAccepted', 'a gateway has not accepted it yet')
    // Implementations add conditions of their own, such as Programmed.
    const found = owners.map((conditions) => byConditions(conditions, generation))
    return found.find((health) => health?.word === 'Degraded') ?? found.find((health) => health?.word === 'Progressing') ?? HEALTHY
  }
const isPartlyInvalid = ({ type, status }: Condition): boolean => type === 'PartiallyInvalid' && status === 'True'

/** Each router admits or rejects a Route. */
const route: Rule = (reading) => {
  const admissions = conditionLists(reading, 'ingress')
    .flat()
    .filter(({ type }) => type === 'Admitted')
  const rejected = admissions.find(({ status }) => status === 'False')
  if (rejected !== undefined) return failedBy(rejected)
  const waiting = admissions.find(({ status }) => status !== 'True')
  if (waiting !== undefined) return waitsFor(waiting)
  return admissions.length === 0 ? notReported('a router') : HEALTHY
}

/** Gloo writes its states as words, and as the numbers of its enum before 1.12; each namespace that runs Gloo reports
 *  for itself. */
const GLOO_STATES = ['Pending', 'Accepted', 'Rejected', 'Warning'] as const
const gloo: Rule = ({ status }) => {
  const byNamespace = Object.values(fields(status['statuses'])).slice(0, 64).map(fields)
  const reports = byNamespace.length > 0 ? byNamespace : [status]
  const found = reports.map(glooState)
  return found.find(({ word }) => word === 'Degraded') ?? found.find(({ word }) => word === 'Progressing') ?? HEALTHY
}
function glooState(report: Fields): Health {
  const raw = report['state']
  const state = typeof raw === 'number' ? GLOO_STATES[raw] : text(raw)
  if (state === 'Accepted') return HEALTHY
  const why = oneLine(text(report['reason']))
  if (state === 'Rejected' || state === 'Warning') return degraded(state, why === '' ? `state is ${state}` : `state is ${state}: ${why}`)
  return state === undefined || state === '' ? notReported('a state') : progressing(state, `state is ${state}`)
}
const GLOO_KINDS = ['gloo.solo.io/Proxy', 'gloo.solo.io/Settings', 'gloo.solo.io/Upstream', 'gloo.solo.io/UpstreamGroup'] as const
const GLOO_GATEWAY_KINDS = [
  'Gateway',
  'MatchableHttpGateway',
  'MatchableTcpGateway',
  'RouteOption',
  'RouteTable',
  'VirtualHostOption',
  'VirtualService',
] as const

/** A TargetGroupBinding tells only which generation it has seen, which comes before every rule. */
const targetGroupBinding: Rule = ({ status }) =>
  status['observedGeneration'] === undefined ? notReported('status.observedGeneration') : HEALTHY

export const NETWORK_RULES: Readonly<Record<string, Rule>> = {
  // conditions Accepted, Programmed, ResolvedRefs, listeners[].conditions: gateway-api apis/v1 (GatewayConditionReason,
  // RouteStatus.parents, PolicyStatus.ancestors).
  'gateway.networking.k8s.io/BackendTLSPolicy': attached('ancestors'),
  'gateway.networking.k8s.io/GRPCRoute': attached('parents'),
  'gateway.networking.k8s.io/Gateway': gateway,
  'gateway.networking.k8s.io/GatewayClass': whenSeen(
    ['Accepted'],
    isTrue('Accepted', { falseIs: 'Degraded', patient: ['Waiting', 'Pending'] }),
  ),
  'gateway.networking.k8s.io/HTTPRoute': attached('parents'),
  'gateway.networking.k8s.io/ListenerSet': gateway,
  'gateway.networking.k8s.io/TCPRoute': attached('parents'),
  'gateway.networking.k8s.io/TLSRoute': attached('parents'),
  'gateway.networking.k8s.io/UDPRoute': attached('parents'),
  'gateway.networking.x-k8s.io/XListenerSet': gateway,
  // status.statuses.<namespace>.state, reason: solo-kit core.solo.io Status (Pending, Accepted, Rejected, Warning).
  ...Object.fromEntries(GLOO_KINDS.map((kind) => [kind, gloo])),
  ...Object.fromEntries(GLOO_GATEWAY_KINDS.map((kind) => [`gateway.solo.io/${kind}`, gloo])),
  // status.currentStatus (valid, invalid, orphaned), condition Valid: contour apis/projectcontour/v1.
  'projectcontour.io/ExtensionService': conditionsTogether,
  'projectcontour.io/HTTPProxy': byPhase({
    at: ['currentStatus'],
    message: ['description'],
    healthy: ['valid'],
    degraded: ['invalid', 'orphaned'],
  }),
  // status.ingress[].conditions, Admitted: openshift/api route/v1 ("False if it was rejected").
  'route.openshift.io/Route': route,
  // status.observedGeneration: aws-load-balancer-controller apis/elbv2/v1beta1.
  'elbv2.k8s.aws/TargetGroupBinding': targetGroupBinding,
  // status.certificateStatus, status.domainStatus[].status: GKE's ManagedCertificate networking.gke.io/v1.
  'networking.gke.io/ManagedCertificate': statusTogether,
  // status.state of the Sail operator, status.status of the older one: istio api.
  'sailoperator.io/Istio': byPhase({ at: ['state'], healthy: ['Healthy'], degraded: ['ReconcileError'] }),
  'install.istio.io/IstioOperator': byPhase({ at: ['status'], healthy: ['HEALTHY'], degraded: ['ERROR', 'ACTION_REQUIRED'] }),
  // conditions Successful, Failure, Running: operator-sdk's ansible operator, which Kiali's is made with.
  'kiali.io/Kiali': unlessTrue(['Failure'], conditionsTogether),
  // conditions Ready, Stalled, Reconciling: openfaas.com/v1.
  'openfaas.com/Function': unlessFalse(['Healthy'], conditionsTogether),
}
