// A real API server behind the Cluster port, for the contract suite and for what only a real one can do; the newest
// minor or an older one. And agents on it.
import type { ApiResource, Cluster } from '../../agent/cluster/cluster.ts'
import { objectPath } from '../../agent/cluster/discovery.ts'
import type { KubeCredentials } from '../../agent/cluster/kube-credentials.ts'
import { createKubeHttp, type KubeHttp } from '../../agent/cluster/kube-http.ts'
import { loadKubeCredentials } from '../../agent/cluster/kubeconfig.ts'
import { createRestCluster } from '../../agent/cluster/rest-cluster.ts'
import { type ObjectRef, refOf } from '../../shared/kube/object.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import type { ClusterHarness } from './contract-kit.ts'
import { eventually, type KubeCluster, type KubeClusterOptions, startKubeCluster } from './kube-cluster.ts'
import { createReconcileKit, type KitOptions, type ReconcileKit } from './reconcile-kit.ts'

export const USER_AGENT = 'skerry-agent/contract'
export const REST_DEPS = { clock: systemClock, random: systemRandom, log: silentLogger, userAgent: USER_AGENT }

const credentialsOf = (server: KubeCluster): Promise<KubeCredentials> =>
  loadKubeCredentials({ kubeconfig: server.kubeconfigPath, context: server.contextName, env: {} }, REST_DEPS)

type RealClient = ReturnType<typeof createRestCluster>

/** Told apart in the API server's log by its user agent. */
export const connect = async (server: KubeCluster, userAgent: string): Promise<RealClient> =>
  createRestCluster(await credentialsOf(server), { ...REST_DEPS, userAgent })

export interface RealCluster {
  server: KubeCluster
  credentials: KubeCredentials
  cluster: RealClient
  resources: readonly ApiResource[]
  stop(): Promise<void>
}

type RealOptions = KubeClusterOptions & { userAgent?: string }

/** Without controllers, if not asked for. */
export async function startRealCluster({ userAgent = USER_AGENT, ...options }: RealOptions): Promise<RealCluster> {
  const server = await startKubeCluster({ controllers: false, ...options })
  const credentials = await credentialsOf(server)
  const cluster = createRestCluster(credentials, { ...REST_DEPS, userAgent })
  const { resources } = await cluster.discover()
  const stop = async () => {
    cluster.close()
    await server.stop()
  }
  return { server, credentials, cluster, resources, stop }
}

/** With one agent for all tests of a file; each of them has a service of its own. */
export async function startRealAgent(options: RealOptions, told: Partial<KitOptions> = {}): Promise<RealCluster & { kit: ReconcileKit }> {
  const real = await startRealCluster(options)
  const kit = createReconcileKit({ cluster: real.cluster, clock: systemClock, ...told })
  kit.start()
  const stop = async () => {
    await kit.stop()
    await real.stop()
  }
  return { ...real, kit, stop }
}

/** An agent for each test. `removeAll` takes away what it applied. */
export function agentsOn(cluster: () => Cluster, options: Partial<KitOptions> = {}) {
  const kits: ReconcileKit[] = []
  const start = (): ReconcileKit => {
    const kit = createReconcileKit({ cluster: cluster(), clock: systemClock, ...options })
    kits.push(kit)
    kit.start()
    return kit
  }
  const removeAll = async () => {
    for (const kit of kits.splice(0)) {
      if (kit.service()?.removed !== true) kit.remove('prune')
      await eventually('all removed', async () => kit.service()?.removed === true, 60_000)
      await kit.stop()
    }
  }
  return { start, removeAll }
}

/** In vain, it tells what the service says instead. */
export const serviceIs = (kit: ReconcileKit, what: string, check: (status: ServiceStatus) => boolean, timeoutMs = 60_000) =>
  eventually(
    what,
    async () => {
      const status = kit.service()
      if (status !== null && check(status)) return true
      throw new Error(JSON.stringify(status))
    },
    timeoutMs,
  )

export const settled = (kit: ReconcileKit, digest: string, timeoutMs?: number) =>
  serviceIs(
    kit,
    'synced and healthy',
    ({ sync, health, healthy }) => sync === 'Synced' && health === 'Healthy' && healthy?.digest === digest,
    timeoutMs,
  )

export function resourceNamed(resources: readonly ApiResource[], kind: string, group?: string): ApiResource {
  const found = resources.find((resource) => resource.kind === kind && (group === undefined || resource.group === group))
  if (found === undefined) throw new Error(`${kind} is not served`)
  return found
}

/** Writes by somebody else, past the adapter under test. */
export interface Somebody {
  http: KubeHttp
  patch(manager: string, ref: ObjectRef, type: string, json: unknown): Promise<void>
}

export function somebodyElse(credentials: KubeCredentials, resources: readonly ApiResource[]): Somebody {
  const http = createKubeHttp(credentials, { ...REST_DEPS, userAgent: 'somebody-else' })
  return {
    http,
    async patch(manager, ref, type, json) {
      const resource = resourceNamed(resources, ref.kind, ref.group)
      const path = `${objectPath(resource, ref.namespace, ref.name)}?fieldManager=${manager}`
      const answer = await http.request({ method: 'PATCH', path, plural: resource.plural, body: { type, json } })
      if (answer.kind === 'failed') throw new Error(answer.failure.message)
    },
  }
}

export const MERGE_PATCH = 'application/merge-patch+json'
export const APPLY_PATCH = 'application/apply-patch+yaml'

export async function realHarness(options: KubeClusterOptions): Promise<ClusterHarness> {
  const { server, credentials, cluster, resources, stop } = await startRealCluster(options)
  const others = somebodyElse(credentials, resources)
  return {
    cluster,
    patchAs: (manager, ref, body) => others.patch(manager, ref, MERGE_PATCH, body),
    applyAs: (manager, object) => others.patch(manager, refOf(object), APPLY_PATCH, object),
    async deny(namespace, message) {
      await server.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(denialIn(namespace, message)) })
    },
    async permit(user, namespace) {
      await server.kubectl(['-n', namespace, 'create', 'role', 'permitted', '--verb=*', '--resource=configmaps'])
      await server.kubectl(['-n', namespace, 'create', 'rolebinding', 'permitted', '--role=permitted', `--user=${user}`])
    },
    stop,
  }
}

const ADMISSION = 'admissionregistration.k8s.io/v1'
export const DENYING_POLICY = 'deny-marked'

/** A policy of the cluster itself: it needs no webhook, and refuses ConfigMaps with the label `denied`. */
const denialIn = (namespace: string, message: string): Record<string, unknown> => ({
  apiVersion: 'v1',
  kind: 'List',
  items: [
    {
      apiVersion: ADMISSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: DENYING_POLICY },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['configmaps'] }],
        },
        validations: [{ expression: "!has(object.metadata.labels) || !('denied' in object.metadata.labels)", message }],
      },
    },
    {
      apiVersion: ADMISSION,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: DENYING_POLICY },
      spec: {
        policyName: DENYING_POLICY,
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
      },
    },
  ],
})
