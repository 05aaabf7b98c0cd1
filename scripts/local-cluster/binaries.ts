// Where scripts/setup --cluster put the binaries and manifests of the local cluster.
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const CLUSTER_DIR = join(import.meta.dir, '..', '..', 'build', 'cluster')

export type ClusterBinary = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kubectl' | 'kwok'

function inClusterDir(path: string, made = '--cluster'): string {
  const full = join(CLUSTER_DIR, path)
  if (!existsSync(full)) throw new Error(`${path} of the local cluster is missing; run scripts/setup ${made} once`)
  return full
}

export const clusterBinary = (name: ClusterBinary): string => inClusterDir(join('bin', name))

/** etcd's own tools, of the version of the etcd that runs. */
export const etcdTool = (name: 'etcdctl' | 'etcdutl'): string => inClusterDir(join('etcd-tools', name))

/** The Kubernetes that is served: the one of the demo, or an older minor, of which there is only the API server. */
export type KubernetesMinor = 'newest' | 'older'

export const apiServerBinary = (minor: KubernetesMinor): string =>
  minor === 'newest' ? clusterBinary('kube-apiserver') : inClusterDir(join('older', 'kube-apiserver'), '--cluster-older')

/** A file or folder of the Kubernetes sources, under cluster/addons or test/e2e/testing-manifests. */
export const kubernetesSource = (path: string): string => inClusterDir(join('kubernetes', path))

/** A file or folder of kwok's sources, under kustomize. */
export const kwokSource = (path: string): string => inClusterDir(join('kwok', path))
