// The server as plain manifests: what the chart skerry makes of the same values (IK12), with Helm's marks, so that a
// later `helm upgrade --install` takes the objects over. Pure.
import { VERSION } from '../../../shared/runtime/build-info.ts'

export interface ServerSite {
  namespace: string
  image: string
  /** Undefined for the URL of the Service inside the cluster. */
  url: string | undefined
  storageSize: string
  storageClass: string | undefined
  /** Secret of type kubernetes.io/tls. Undefined means that the server speaks HTTP. */
  tlsSecret: string | undefined
  ingressClass: string | undefined
  serviceType: 'ClusterIP' | 'NodePort' | 'LoadBalancer'
}

export const RELEASE = 'skerry'
export const CLAIM = `data-${RELEASE}-0`
const SELECTOR = { 'app.kubernetes.io/name': RELEASE, 'app.kubernetes.io/instance': RELEASE }
export const SELECTOR_TEXT = Object.entries(SELECTOR)
  .map(([key, value]) => `${key}=${value}`)
  .join(',')
const LABELS = {
  ...SELECTOR,
  'app.kubernetes.io/version': VERSION,
  'app.kubernetes.io/component': 'server',
  'app.kubernetes.io/managed-by': 'Helm',
  'helm.sh/chart': `skerry-${VERSION}`,
}
/** Kinds that `serverManifests` can contain, without the Namespace, as kubectl names them. */
export const SERVER_KINDS = [
  ...['statefulset.apps', 'service', 'ingress.networking.k8s.io', 'networkpolicy.networking.k8s.io'],
  ...['poddisruptionbudget.policy', 'serviceaccount'],
] as const

const portOf = ({ tlsSecret }: ServerSite): number => (tlsSecret === undefined ? 80 : 443)

export function serverUrl(site: ServerSite): string {
  const scheme = site.tlsSecret === undefined ? 'http' : 'https'
  return site.url ?? `${scheme}://${RELEASE}.${site.namespace}.svc:${portOf(site)}`
}

/** In the order in which they are to be applied. */
export function serverManifests(site: ServerSite): object[] {
  const { namespace, ingressClass } = site
  const annotations = { 'meta.helm.sh/release-name': RELEASE, 'meta.helm.sh/release-namespace': namespace }
  const metadata = { name: RELEASE, namespace, labels: LABELS, annotations }
  return [
    {
      ...{ apiVersion: 'v1', kind: 'Namespace' },
      metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false },
    {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata },
      spec: {
        podSelector: { matchLabels: SELECTOR },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [{ ports: [{ port: 'http' }] }],
        egress: [{}],
      },
    },
    {
      ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata },
      spec: { maxUnavailable: 1, selector: { matchLabels: SELECTOR } },
    },
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata },
      spec: { type: site.serviceType, selector: SELECTOR, ports: [{ name: 'http', port: portOf(site), targetPort: 'http' }] },
    },
    ...(ingressClass === undefined ? [] : [ingress(site, ingressClass, metadata)]),
    { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec: statefulSetSpec(site) },
  ]
}

function ingress(site: ServerSite, ingressClassName: string, metadata: object): object {
  const host = new URL(serverUrl(site)).hostname
  const backend = { service: { name: RELEASE, port: { name: 'http' } } }
  return {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata },
    spec: {
      ingressClassName,
      tls: [{ hosts: [host], secretName: `${RELEASE}-ingress-tls` }],
      rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  }
}

function statefulSetSpec(site: ServerSite): object {
  const { storageSize, storageClass } = site
  return {
    replicas: 1,
    serviceName: RELEASE,
    selector: { matchLabels: SELECTOR },
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    volumeClaimTemplates: [
      {
        metadata: { name: 'data', labels: SELECTOR },
        spec: {
          accessModes: ['ReadWriteOnce'],
          ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
          resources: { requests: { storage: storageSize } },
        },
      },
    ],
    template: {
      metadata: { labels: LABELS },
      spec: {
        ...{ serviceAccountName: RELEASE, automountServiceAccountToken: false, enableServiceLinks: false },
        terminationGracePeriodSeconds: 60,
        securityContext: {
          ...{ runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, fsGroupChangePolicy: 'OnRootMismatch' },
          seccompProfile: { type: 'RuntimeDefault' },
        },
        containers: [container(site)],
        volumes: [{ name: 'tmp', emptyDir: {} }, ...tlsOf(site).volumes],
      },
    },
  }
}

const tlsOf = ({ tlsSecret }: ServerSite) =>
  tlsSecret === undefined
    ? { env: {}, volumes: [], mounts: [] }
    : {
        env: { SKERRY_TLS_CERT: '/etc/skerry/tls/tls.crt', SKERRY_TLS_KEY: '/etc/skerry/tls/tls.key' },
        volumes: [{ name: 'tls', secret: { secretName: tlsSecret, defaultMode: 0o440 } }],
        mounts: [{ name: 'tls', mountPath: '/etc/skerry/tls', readOnly: true }],
      }

function container(site: ServerSite): object {
  const tls = tlsOf(site)
  const env = {
    SKERRY_DATA: '/data/skerry',
    SKERRY_LISTEN: '0.0.0.0:8080',
    SKERRY_EXTERNAL_URL: serverUrl(site),
    SKERRY_RENDER_SANDBOX: 'limits',
    SKERRY_LOG_LEVEL: 'info',
    TMPDIR: '/tmp',
    ...tls.env,
  }
  const scheme = site.tlsSecret === undefined ? 'HTTP' : 'HTTPS'
  const probe = (path: string, rest: object) => ({ httpGet: { path, port: 'http', scheme }, ...rest })
  return {
    ...{ name: 'server', image: site.image, imagePullPolicy: 'IfNotPresent', args: ['server'] },
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    ports: [{ name: 'http', containerPort: 8080 }],
    startupProbe: probe('/healthz', { failureThreshold: 120, periodSeconds: 5 }),
    livenessProbe: probe('/healthz', { failureThreshold: 6, periodSeconds: 20, timeoutSeconds: 5 }),
    readinessProbe: probe('/readyz', { failureThreshold: 3, periodSeconds: 5, timeoutSeconds: 5 }),
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    resources: { requests: { cpu: '250m', memory: '512Mi' }, limits: { memory: '2Gi' } },
    volumeMounts: [{ name: 'data', mountPath: '/data' }, { name: 'tmp', mountPath: '/tmp' }, ...tls.mounts],
  }
}
