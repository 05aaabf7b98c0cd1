// Credentials for one API server, from kubeconfig.ts to kube-http.ts.

export interface KubeTls {
  /** PEM of the trusted authorities. Absent means those of the system. */
  ca?: string
  cert?: string
  key?: string
  /** Name in the certificate, if it is not the host of the URL. */
  serverName?: string
  /** True only if the kubeconfig sets `insecure-skip-tls-verify`. */
  insecure: boolean
}

export interface KubeAccess {
  tls: KubeTls
  /** Value of the Authorization header. Null with a client certificate. */
  authorization: string | null
  impersonateUser?: string
}

export interface KubeCredentials {
  /** Origin, for logs and errors: `in-cluster`, `context demo of PATH`. */
  source: string
  /** https://host:port, without a trailing slash. */
  server: string
  proxyUrl?: string
  /** Reads the files again, because tokens and authorities rotate. A plugin runs again when its token has expired or
   *  was `refused`. Throws AppError `kube_config`. */
  read(options?: { refused: boolean }): Promise<KubeAccess>
}
