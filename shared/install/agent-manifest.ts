// The agent of one cluster as plain manifests, for `kubectl apply -f -`: what the chart skerry-agent makes of the same
// values (IK6). Pure.

export interface AgentSite {
  server: string
  cluster: string
  token: string
  image: string
  namespace: string
  insecureHttp: boolean
  /** PEM of the authority of the server. Undefined means the public ones. */
  ca: string | undefined
}

const NAME = 'skerry-agent'
const SELECTOR = { 'app.kubernetes.io/name': NAME, 'app.kubernetes.io/instance': NAME }
const RBAC_GROUP = 'rbac.authorization.k8s.io'
const DATA = '/data'
const CONFIG = '/etc/skerry'

/** In the order in which they are to be applied. */
export function agentManifests(site: AgentSite): object[] {
  const { namespace, token, ca } = site
  const metadata = { name: NAME, namespace, labels: { ...SELECTOR, 'app.kubernetes.io/component': 'agent' } }
  const named = (suffix: string) => ({ ...metadata, name: `${NAME}-${suffix}` })
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      ...{
        apiVersion: `${RBAC_GROUP}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: `${NAME}-cluster-admin`, labels: metadata.labels },
      },
      roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', name: NAME, namespace }],
    },
    { apiVersion: 'v1', kind: 'Secret', metadata: named('join'), stringData: { token } },
    ...(ca === undefined ? [] : [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: named('ca'), data: { 'ca.crt': ca } }]),
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deploymentSpec(site, metadata.labels) },
  ]
}

function deploymentSpec({ server, cluster, image, insecureHttp, ca }: AgentSite, labels: Record<string, string>): object {
  const mounted = (name: string, source: object) => ({
    volume: { name, ...source },
    mount: { name, mountPath: `${CONFIG}/${name}`, readOnly: true },
  })
  const files = [
    mounted('join', { secret: { secretName: `${NAME}-join`, defaultMode: 0o440, optional: true } }),
    ...(ca === undefined ? [] : [mounted('ca', { configMap: { name: `${NAME}-ca` } })]),
  ]
  const env = {
    SKERRY_DATA: `${DATA}/agent`,
    SKERRY_SERVER: server,
    SKERRY_CLUSTER: cluster,
    SKERRY_PROBES: '0.0.0.0:8081',
    SKERRY_LOG_LEVEL: 'info',
    SKERRY_ASKING: 'restart',
    SKERRY_JOIN_TOKEN_FILE: `${CONFIG}/join/token`,
    ...(ca === undefined ? {} : { SKERRY_SERVER_CA: `${CONFIG}/ca/ca.crt` }),
    ...(insecureHttp ? { SKERRY_INSECURE_HTTP: 'true' } : {}),
  }
  const container = {
    ...{ name: 'agent', image, imagePullPolicy: 'IfNotPresent', args: ['run'] },
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    ports: [{ name: 'probes', containerPort: 8081 }],
    livenessProbe: {
      httpGet: { path: '/healthz', port: 'probes' },
      ...{ failureThreshold: 6, initialDelaySeconds: 10, periodSeconds: 20, timeoutSeconds: 5 },
    },
    readinessProbe: { httpGet: { path: '/readyz', port: 'probes' }, failureThreshold: 3, periodSeconds: 10, timeoutSeconds: 5 },
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '384Mi' } },
    volumeMounts: [{ name: 'data', mountPath: DATA }, ...files.map(({ mount }) => mount)],
  }
  const securityContext = {
    ...{ runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, fsGroupChangePolicy: 'OnRootMismatch' },
    seccompProfile: { type: 'RuntimeDefault' },
  }
  return {
    replicas: 1,
    strategy: { type: 'Recreate' },
    selector: { matchLabels: SELECTOR },
    template: {
      metadata: { labels },
      spec: {
        ...{ serviceAccountName: NAME, enableServiceLinks: false, terminationGracePeriodSeconds: 30, securityContext },
        containers: [container],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: NAME } }, ...files.map(({ volume }) => volume)],
      },
    },
  }
}
