// The repository that demo and end-to-end tests deploy: real manifests from the Kubernetes sources (unchanged except
// for `mended`), a small shop of our own, and ConfigMaps. One folder and one namespace for each service.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { kubernetesSource } from './binaries.ts'

export interface DemoService {
  name: string
  /** The folder in the repository. */
  path: string
  /** For objects that name none. */
  namespace: string
}

/** Something that is left out or cannot become healthy here, and why. */
export interface Exception {
  /** A path of the Kubernetes sources, or `Kind/namespace/name` of an object. */
  what: string
  why: string
}

export interface DemoRepository {
  files: Record<string, string>
  services: DemoService[]
  /** Files of these folders that are left out, mostly because they need a value filled in. */
  skipped: Exception[]
  /** Files of the sources that no API server takes as they are, with what was changed. */
  mended: Exception[]
  /** Objects that are applied and stay unhealthy on kwok's nodes. */
  expectedUnhealthy: Exception[]
}

interface SourceFolder {
  name: string
  namespace: string
  /** Files and folders (not deep) of the Kubernetes sources. */
  from: readonly string[]
}

const ADDONS = 'cluster/addons'
const E2E = 'test/e2e/testing-manifests'
const STATEFUL_SETS = ['cassandra', 'cockroachdb', 'etcd', 'mysql-galera', 'mysql-upgrade', 'zookeeper']

const SOURCES: readonly SourceFolder[] = [
  {
    name: 'volumesnapshots',
    namespace: 'kube-system',
    from: [`${ADDONS}/volumesnapshots/crd`, `${ADDONS}/volumesnapshots/volume-snapshot-controller`],
  },
  { name: 'node-problem-detector', namespace: 'kube-system', from: [`${ADDONS}/node-problem-detector`] },
  { name: 'calico', namespace: 'kube-system', from: [`${ADDONS}/calico-policy-controller`] },
  { name: 'kube-network-policies', namespace: 'kube-system', from: [`${ADDONS}/kube-network-policies`] },
  { name: 'ip-masq-agent', namespace: 'kube-system', from: [`${ADDONS}/ip-masq-agent`] },
  { name: 'csi-mock', namespace: 'csi-mock', from: [`${E2E}/storage-csi/mock`] },
  { name: 'load-balancing', namespace: 'kube-system', from: [`${ADDONS}/cluster-loadbalancing/glbc`] },
  { name: 'guestbook', namespace: 'guestbook', from: [`${E2E}/guestbook`, `${E2E}/guestbook/legacy`] },
  ...STATEFUL_SETS.map((name) => ({ name, namespace: name, from: [`${E2E}/statefulset/${name}`] })),
]

const LEFT_OUT: readonly Exception[] = [
  { what: `${E2E}/storage-csi/mock/csi-mock-proxy.yaml`, why: 'another StatefulSet of the name csi-mockplugin: use one of the two' },
]

interface Mend extends Exception {
  from: string
  to: string
}

const MENDS: readonly Mend[] = [
  {
    what: `${ADDONS}/node-problem-detector/npd.yaml`,
    why: 'nodeSelectors is no field of a pod, server-side apply answers "field not declared in schema"; it means nodeSelector',
    from: 'nodeSelectors:',
    to: 'nodeSelector:',
  },
]

const EXPECTED_UNHEALTHY: readonly Exception[] = [
  {
    what: 'HorizontalPodAutoscaler/shop/web',
    why: 'kwok measures nothing, so there is no metrics API and the condition ScalingActive stays False',
  },
]

const CONFIG_MAPS = 30
// Placeholders that Kubernetes' own scripts fill in. (The containers fill in other __X__ of these files themselves.)
const PLACEHOLDER = /\{\{.*\}\}|__PILLAR__\w*/

export function demoRepository(): DemoRepository {
  const files: Record<string, string> = {}
  const skipped: Exception[] = [...LEFT_OUT]
  const services: DemoService[] = []
  const add = (name: string, namespace: string, contents: Record<string, string>) => {
    services.push({ name, path: `services/${name}`, namespace })
    for (const [file, text] of Object.entries(contents)) files[`services/${name}/${file}`] = text
  }
  for (const { name, namespace, from } of SOURCES) {
    const contents: Record<string, string> = namespace === 'kube-system' ? {} : { 'namespace.yaml': namespaceManifest(namespace) }
    for (const path of from.flatMap(manifestsIn)) {
      const text = readFileSync(kubernetesSource(path), 'utf8')
      const placeholder = PLACEHOLDER.exec(text)
      if (placeholder) skipped.push({ what: path, why: `has a placeholder to be filled in: ${placeholder[0]}` })
      else if (!LEFT_OUT.some(({ what }) => what === path)) contents[basename(path)] = mend(path, text)
    }
    add(name, namespace, contents)
  }
  add('shop', 'shop', shopManifests())
  add('settings', 'settings', settingsManifests(CONFIG_MAPS))
  const mended = MENDS.map(({ what, why }) => ({ what, why }))
  return { files, services, skipped, mended, expectedUnhealthy: [...EXPECTED_UNHEALTHY] }
}

const mend = (path: string, text: string): string =>
  MENDS.filter(({ what }) => what === path).reduce((mended, { from, to }) => mended.replace(from, to), text)

function manifestsIn(path: string): string[] {
  const full = kubernetesSource(path)
  if (statSync(full).isFile()) return [path]
  return readdirSync(full)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => join(path, file))
}

function shopManifests(): Record<string, string> {
  const dir = join(import.meta.dir, 'shop')
  return Object.fromEntries(readdirSync(dir).map((file) => [file, readFileSync(join(dir, file), 'utf8')]))
}

const namespaceManifest = (name: string): string => `apiVersion: v1
kind: Namespace
metadata:
  name: ${name}
`

/** ConfigMaps `setting-01` and so on, one a file, so that a commit can change exactly one. */
export function settingsManifests(count: number): Record<string, string> {
  const files: Record<string, string> = { 'namespace.yaml': namespaceManifest('settings') }
  for (let index = 1; index <= count; index++) {
    const name = `setting-${String(index).padStart(2, '0')}`
    files[`${name}.yaml`] = configMap(name, `value ${index}`)
  }
  return files
}

export const configMap = (name: string, value: string): string => `apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
data:
  value: ${JSON.stringify(value)}
`
