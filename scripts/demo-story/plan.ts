// Plans what the demo will show, from its flags. Pure.
export interface DemoPlan {
  once: boolean
  /** A cluster of the user's. Null means real clusters of our own. */
  context: { name: string; kubeconfig: string } | null
  /** Manifests of the user's. Null means our repository. */
  repository: { url: string; path: string; ref: string } | null
}

interface Flags {
  once?: boolean
  context?: string | undefined
  kubeconfig?: string | undefined
  repo?: string | undefined
  path?: string | undefined
  ref?: string | undefined
}

/** Throws with what to write instead. */
export function planDemo(
  { once = false, context, kubeconfig, repo, path, ref }: Flags,
  env: Record<string, string | undefined> = process.env,
): DemoPlan {
  if (kubeconfig !== undefined && context === undefined) throw new Error('--kubeconfig goes with --context NAME')
  if ((repo === undefined) !== (path === undefined)) throw new Error('--repo URL and --path DIR go together; the root is --path .')
  if (ref !== undefined && repo === undefined) throw new Error('--ref goes with --repo')
  if (repo !== undefined && !/^https?:\/\//.test(repo)) throw new Error('--repo takes an http:// or https:// URL')
  return {
    once,
    context:
      context === undefined ? null : { name: context, kubeconfig: kubeconfig ?? env['KUBECONFIG'] ?? `${env['HOME'] ?? ''}/.kube/config` },
    repository: repo === undefined || path === undefined ? null : { url: repo, path, ref: ref ?? 'main' },
  }
}
