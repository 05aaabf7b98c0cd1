// What it takes to speak to one API server. Made by kubeconfig.ts, used by kube-http.ts.

export interface KubeTls {
  /** PEM of the authorities to trust; absent means the system's. */
  ca?: string
  cert?: string
  key?: string
  /** Name that the certificate must carry, where it is not the host of the URL. */
  serverName?: string
  /** True only where a kubeconfig says `insecure-skip-tls-verify`. */
  insecure: boolean
}

export interface KubeAccess {
  tls: KubeTls
  /** Whole value of the Authorization header; null where a client certificate is the identity. */
  authorization: string | null
  impersonateUser?: string
}

export interface KubeCredentials {
  /** Where they come from, for logs and errors: "in-cluster", "context demo of PATH". */
  source: string
  /** https://host:port, without a trailing slash. */
  server: string
  proxyUrl?: string
  /** Reads files again: tokens and authorities rotate under a running process. A plugin is run again when its token has expired or was
   *  `refused`. Throws AppError `kube_config`. */
  read(options?: { refused: boolean }): Promise<KubeAccess>
}
