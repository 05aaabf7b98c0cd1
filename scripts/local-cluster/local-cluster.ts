// A real Kubernetes control plane on this machine for demo and tests: etcd, kube-apiserver, controller-manager,
// scheduler, and kwok, which plays the nodes: pods become Ready without running anything. All of it dies with this
// process and leaves no file behind.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { AUDIT_POLICY, type AuditEvent, type AuditFilter, auditMark, readAuditLog } from './audit-log.ts'
import { apiServerBinary, clusterBinary, type KubernetesMinor, kubernetesSource, kwokSource } from './binaries.ts'
import { type ChildProcess, createDataFolder, type DataFolder, freePort, startChild, waitUntil } from './child-process.ts'
import { type Etcd, startEtcd } from './etcd.ts'

export interface KubeClusterOptions {
  /** Context name and etcd prefix; default `local`. Two clusters on one etcd need two names. */
  name?: string
  /** An etcd to share; without it the cluster starts and stops its own. */
  etcd?: Etcd
  /** Default `newest`. The older minor has only an API server of its own, so it wants `controllers: false`. */
  kubernetes?: KubernetesMinor
  /** Controller-manager, scheduler and kwok's nodes; default true. Without them a namespace is never finalized and no
   *  pod ever starts. */
  controllers?: boolean
  /** Fake nodes whose pods become Ready; default as `controllers`. */
  kwok?: boolean
  /** How many; default 2. */
  nodes?: number
  extraApiServerFlags?: readonly string[]
  /** Writes the audit log; default true. Without it requests cannot be counted, and are a little faster. */
  audit?: boolean
  /** Requests per second that the controller-manager allows itself; default 300 (its own 20 would slow every test). */
  controllerQps?: number
}

export interface KubeCluster {
  readonly name: string
  /** A kubeconfig for an admin in system:masters, with CA and token inside. */
  readonly kubeconfigPath: string
  readonly contextName: string
  /** https://127.0.0.1:PORT */
  readonly server: string
  readonly token: string
  readonly caPem: string
  /** Answers its standard output; a failure throws with the standard error. */
  kubectl(args: readonly string[], options?: { stdin?: string }): Promise<string>
  auditMark(): number
  auditLines(filter?: AuditFilter): AuditEvent[]
  stopApiServer(): Promise<void>
  startApiServer(): Promise<void>
  /** Kill and start on the same port with the same certificate and data. */
  restartApiServer(): Promise<void>
  /** The API server stays and does not answer, as behind a dead link. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

export async function startKubeCluster(options: KubeClusterOptions = {}): Promise<KubeCluster> {
  const {
    name = 'local',
    kubernetes = 'newest',
    controllers = true,
    kwok = controllers,
    nodes = 2,
    audit = true,
    controllerQps = 300,
  } = options
  const etcd = options.etcd ?? (await startEtcd())
  const folder = createDataFolder(`skerry-cluster-${name}`)
  const files = await writeFiles(folder, name)
  const flags = apiServerFlags(files, { etcdUrl: etcd.url, name, controllers, audit, extra: options.extraApiServerFlags ?? [] })
  const apiServer = createApiServer(name, files, [apiServerBinary(kubernetes), ...flags])
  const components: ChildProcess[] = []
  const kubectl = (args: readonly string[], { stdin }: { stdin?: string } = {}) => runKubectl(files, args, stdin)
  const stop = async () => {
    await removeHostPathVolumes(apiServer.request).catch(() => {}) // an API server that is down knows of none
    await Promise.all(components.map((child) => child.kill()))
    await apiServer.stop()
    if (options.etcd === undefined) await etcd.stop()
    await folder.remove()
  }

  try {
    await apiServer.start()
    await Bun.write(files.kubeconfigPath, kubeconfig(name, files, apiServer.caPem()))
    const start = (binary: 'kube-controller-manager' | 'kube-scheduler' | 'kwok', args: string[]) =>
      components.push(startChild([clusterBinary(binary), '--kubeconfig', files.kubeconfigPath, ...args], join(files.dir, `${binary}.log`)))
    if (controllers) {
      start('kube-controller-manager', controllerManagerFlags(files, controllerQps))
      start('kube-scheduler', ['--leader-elect=false', '--secure-port=0', '--kube-api-qps=300', '--kube-api-burst=600'])
    }
    if (kwok) {
      await Bun.write(join(files.dir, 'stages.yaml'), kwokStages())
      start('kwok', ['--manage-all-nodes=true', '--config', join(files.dir, 'stages.yaml'), '--node-lease-duration-seconds=40'])
      await kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(nodeList(nodes)) })
    }
    if (controllers) await kubectl(['apply', '--server-side', '-f', kubernetesSource('cluster/addons/storage-class/local/default.yaml')])
    await waitUntil(`cluster ${name}`, () => isUsable(apiServer.request, { controllers, nodes: kwok ? nodes : 0 }))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    name,
    kubeconfigPath: files.kubeconfigPath,
    contextName: name,
    server: files.server,
    token: files.token,
    caPem: apiServer.caPem(),
    kubectl,
    auditMark: () => auditMark(files.auditLogPath),
    auditLines: (filter = {}) => readAuditLog(files.auditLogPath, filter),
    stopApiServer: apiServer.stop,
    startApiServer: apiServer.start,
    restartApiServer: async () => {
      await apiServer.stop()
      await apiServer.start()
    },
    pause: apiServer.pause,
    resume: apiServer.resume,
    stop,
  }
}

type Request = (path: string) => Promise<Response>

/** One API server that can go and come back: address, certificate and data stay. */
function createApiServer(name: string, files: ClusterFiles, command: readonly string[]) {
  let running: ChildProcess | undefined
  // Self-signed by the server at its first start; so it is its own CA.
  const caPem = () => readFileSync(join(files.dir, 'certs', 'apiserver.crt'), 'utf8')
  const request: Request = (path) =>
    fetch(files.server + path, {
      headers: { authorization: `Bearer ${files.token}` },
      tls: { ca: caPem() },
      keepalive: false,
      signal: AbortSignal.timeout(5000),
    })
  return {
    caPem,
    request,
    start: async () => {
      if (running !== undefined) return
      const child = startChild([...command], join(files.dir, 'kube-apiserver.log'))
      running = child
      await waitUntil(`API server ${name}`, async () => (await request('/readyz')).ok, { child })
    },
    stop: async () => {
      const child = running
      running = undefined
      await child?.kill()
    },
    pause: () => running?.pause(),
    resume: () => running?.resume(),
  }
}

interface ClusterFiles {
  server: string
  port: number
  token: string
  dir: string
  kubeconfigPath: string
  auditLogPath: string
}

async function writeFiles(folder: DataFolder, name: string): Promise<ClusterFiles> {
  const at = (file: string) => join(folder.path, file)
  const token = randomBytes(16).toString('hex')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  await Bun.write(at('tokens.csv'), `${token},admin,admin,"system:masters"\n`)
  await Bun.write(at('service-accounts.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }).toString())
  await Bun.write(at('audit-policy.json'), AUDIT_POLICY)
  const port = freePort()
  const server = `https://127.0.0.1:${port}`
  return { server, port, token, dir: folder.path, kubeconfigPath: at(`${name}.kubeconfig`), auditLogPath: at('audit.log') }
}

function apiServerFlags(
  { dir, port, auditLogPath }: ClusterFiles,
  {
    etcdUrl,
    name,
    controllers,
    audit,
    extra,
  }: { etcdUrl: string; name: string; controllers: boolean; audit: boolean; extra: readonly string[] },
): string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    `--etcd-prefix=/${name}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none', // no Endpoints may hold a loopback address, and a machine without network has no other
    `--cert-dir=${join(dir, 'certs')}`,
    `--service-account-key-file=${join(dir, 'service-accounts.key')}`,
    `--service-account-signing-key-file=${join(dir, 'service-accounts.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--token-auth-file=${join(dir, 'tokens.csv')}`,
    '--authorization-mode=Node,RBAC',
    '--service-cluster-ip-range=10.0.0.0/16', // a /24 holds 254 Services
    '--allow-privileged=true',
    '--min-request-timeout=30', // watches expire every 30 to 60 s, so that a hidden relist shows within a test
    '--profiling=false',
    ...(audit ? [`--audit-policy-file=${join(dir, 'audit-policy.json')}`, `--audit-log-path=${auditLogPath}`] : []),
    ...(audit ? ['--audit-log-mode=blocking'] : []), // a request that was answered is in the log
    ...(controllers ? [] : ['--disable-admission-plugins=ServiceAccount']), // nobody makes the default account
    ...extra,
  ]
}

const controllerManagerFlags = ({ dir }: ClusterFiles, qps: number): string[] => [
  '--leader-elect=false',
  '--secure-port=0',
  `--kube-api-qps=${qps}`,
  `--kube-api-burst=${qps * 2}`,
  '--enable-hostpath-provisioner=true',
  '--concurrent-namespace-syncs=20',
  `--service-account-private-key-file=${join(dir, 'service-accounts.key')}`,
  `--root-ca-file=${join(dir, 'certs', 'apiserver.crt')}`,
]

const kubeconfig = (name: string, { server, token }: ClusterFiles, caPem: string): string => `apiVersion: v1
kind: Config
current-context: ${name}
clusters:
- name: ${name}
  cluster:
    server: ${server}
    certificate-authority-data: ${Buffer.from(caPem).toString('base64')}
contexts:
- name: ${name}
  context: { cluster: ${name}, user: ${name}-admin }
users:
- name: ${name}-admin
  user:
    token: ${token}
`

function kwokStages(): string {
  const folders = ['stage/node/fast', 'stage/pod/fast'].map(kwokSource)
  const files = folders.flatMap((dir) => readdirSync(dir).flatMap((file) => (file.endsWith('.yaml') ? [join(dir, file)] : [])))
  return files
    .map((path) => readFileSync(path, 'utf8'))
    .filter((text) => text.includes('kind: Stage'))
    .join('\n---\n')
}

const nodeList = (count: number) => ({
  apiVersion: 'v1',
  kind: 'List',
  items: Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `node-${index + 1}`,
      labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64', 'kubernetes.io/hostname': `node-${index + 1}` },
    },
    spec: { podCIDR: `10.100.${index}.0/24` },
  })),
})

interface NodeFacts {
  spec: { taints?: unknown[] }
  status: { conditions?: { type: string; status: string }[] }
}

/** Nodes are Ready and have lost their not-ready taint, and the account exists that every pod of namespace `default` is
 *  created with. */
async function isUsable(request: Request, { controllers, nodes }: { controllers: boolean; nodes: number }) {
  if (controllers && !(await request('/api/v1/namespaces/default/serviceaccounts/default')).ok) return false
  if (nodes === 0) return true
  const { items } = (await (await request('/api/v1/nodes')).json()) as { items: NodeFacts[] }
  const ready = items.filter(({ status }) => status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'))
  return ready.length >= nodes && (!controllers || items.every(({ spec }) => (spec.taints ?? []).length === 0))
}

const HOST_PATH_VOLUMES = '/tmp/hostpath_pv'

/** The hostpath provisioner makes its folders under that fixed path, outside ours; they go when the cluster goes. */
async function removeHostPathVolumes(request: Request): Promise<void> {
  const { items } = (await (await request('/api/v1/persistentvolumes')).json()) as { items: { spec: { hostPath?: { path: string } } }[] }
  for (const { spec } of items) {
    if (spec.hostPath?.path.startsWith(`${HOST_PATH_VOLUMES}/`)) rmSync(spec.hostPath.path, { recursive: true, force: true })
  }
  if (existsSync(HOST_PATH_VOLUMES) && readdirSync(HOST_PATH_VOLUMES).length === 0) rmdirSync(HOST_PATH_VOLUMES)
}

async function runKubectl(files: ClusterFiles, args: readonly string[], stdin?: string): Promise<string> {
  const child = Bun.spawn([clusterBinary('kubectl'), '--kubeconfig', files.kubeconfigPath, ...args], {
    stdin: stdin === undefined ? 'ignore' : new Blob([stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
    env: { HOME: files.dir }, // its discovery cache
  })
  const [output, errors, code] = await Promise.all([
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
    child.exited,
  ])
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit code ${code}\n${errors}`)
  return output
}
